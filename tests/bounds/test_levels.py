"""HeLDP: each theorem on a value computed here by hand, and the costs of levels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from bound_cases import FIVE, LOG, PI2, TWO, value

from dpbandits.bounds import Problem, best_epsilon_min, heterogeneous, level_cost, level_curve
from dpbandits.environments import Levels, NormalLevels
from dpbandits.errors import InputError


def minimised(total: Any) -> float:
    return float(min(total(kappa) for kappa in np.geomspace(1e-6, 1e6, 200_001)))


def test_heldp_theorem_7() -> None:
    problem = Problem.bernoulli([0.9, 0.6, 0.4], 10**6, levels=FIVE)
    p0, alpha0, q = 0.6, (1 + 1 / 4 + 1e-4) / 3, 1 - 1e-4

    def total(kappa: float) -> float:
        regret = 0.0
        for gap in (0.3, 0.5):
            played = 8 / (p0 * gap) * (1 + 4 * math.sqrt(alpha0 + kappa * q)) ** 2 * LOG
            forced = 2 * gap / (p0 * alpha0**2) * (4 * alpha0 + 1) * LOG
            rest = math.log(p0 * 10**6) / (2 * p0 * kappa**2) + 1 / p0 + 2 / p0 + 2 * PI2 / 3
            regret += max(played, forced) + gap * rest
        return regret

    assert value(heterogeneous.heldp_ucb_l(problem, epsilon_min=1.0)) == pytest.approx(minimised(total), rel=1e-7)


def test_heldp_theorem_7_when_forced_exploration_rules() -> None:
    """alpha0 far below epsilon_min^-2: one cautious user in a thousand."""
    levels = Levels.of([0.05] + [50.0] * 999)
    problem = Problem.bernoulli([1.0, 0.05], 10**6, levels=levels)
    alpha0 = 0.001 * 400 + 0.999 / 2500
    forced = 2 * 0.95 / alpha0**2 * (4 * alpha0 * 400 + 400**2) * LOG
    assert value(heterogeneous.heldp_ucb_l(problem, epsilon_min=0.05)) > forced
    assert value(heterogeneous.heldp_ucb_l(problem, epsilon_min=0.05)) == pytest.approx(forced, rel=1e-4)


def test_heldp_theorem_10_printed_and_corrected() -> None:
    problem = Problem.bernoulli([0.9, 0.6], 10**6, levels=FIVE)
    coth = [((math.e**x + 1) / (math.e**x - 1)) ** 2 for x in (1, 2)]
    beta0, q = (coth[0] + coth[1] + 1) / 3, coth[0] - 1

    def total(kappa: float, p0: float, power: float) -> float:
        rest = (math.log(p0 * 10**6) + 2 * power * kappa**2) / (2 * p0 * kappa**2) + 1 / p0 + PI2 / 3
        return 8 / (p0 * 0.3) * (beta0 + kappa * q) * LOG + 0.3 * rest

    corrected = minimised(lambda kappa: total(kappa, 0.6, 1.0))
    printed = minimised(lambda kappa: total(kappa, 0.4, 0.4))
    assert value(heterogeneous.heldp_ucb_b(problem, epsilon_min=1.0)) == pytest.approx(corrected, rel=1e-7)
    assert value(heterogeneous.heldp_ucb_b_printed(problem, epsilon_min=1.0)) == pytest.approx(printed, rel=1e-7)


def test_heldp_corollaries_are_the_theorems_for_one_level() -> None:
    assert value(heterogeneous.heldp_ucb_l_homogeneous(TWO)) == pytest.approx(
        8 * 9 / 0.3 * LOG + (3 + 2 * PI2 / 3) * 0.3
    )
    coth = (math.e**2 + 1) / (math.e**2 - 1)
    assert value(heterogeneous.heldp_ucb_b_homogeneous(TWO)) == pytest.approx(
        8 * coth**2 / 0.3 * LOG + (2 + PI2 / 3) * 0.3
    )
    assert value(heterogeneous.heldp_ucb_l(TWO)) == pytest.approx(value(heterogeneous.heldp_ucb_l_homogeneous(TWO)))
    assert value(heterogeneous.heldp_ucb_b(TWO)) == pytest.approx(value(heterogeneous.heldp_ucb_b_homogeneous(TWO)))


def test_heldp_distribution_free() -> None:
    problem = Problem.bernoulli([0.9, 0.6], 10**6, levels=FIVE)
    p0, alpha0, q = 0.6, (1 + 1 / 4 + 1e-4) / 3, 1 - 1e-4

    def laplace(kappa: float) -> float:
        cost = 8 / p0 * (1 + 4 * math.sqrt(alpha0 + kappa * q)) ** 2
        forced = 2 / (p0 * alpha0**2) * (4 * alpha0 + 1) * LOG
        rest = forced + math.log(p0 * 10**6) / (2 * p0 * kappa**2) + 3 / p0 + 2 * PI2 / 3
        return 2 * math.sqrt(cost * 2 * 10**6 * LOG) + 2 * rest

    free = value(heterogeneous.heldp_ucb_l_distribution_free(problem, epsilon_min=1.0))
    assert free == pytest.approx(minimised(laplace), rel=1e-7)
    coth = [((math.e**x + 1) / (math.e**x - 1)) ** 2 for x in (1, 2)]

    def bernoulli(kappa: float) -> float:
        cost = 8 / p0 * ((coth[0] + coth[1] + 1) / 3 + kappa * (coth[0] - 1))
        rest = math.log(p0 * 10**6) / (2 * p0 * kappa**2) + 2 / p0 + PI2 / 3
        return 2 * math.sqrt(cost * 2 * 10**6 * LOG) + 2 * rest

    free = value(heterogeneous.heldp_ucb_b_distribution_free(problem, epsilon_min=1.0))
    assert free == pytest.approx(minimised(bernoulli), rel=1e-7)


def test_heldp_corollary_13() -> None:
    normal = Problem.gaussian([0.9, 0.6], 10**6, levels=FIVE)
    plain = Problem.bernoulli([0.9, 0.6], 10**6, levels=FIVE)
    factor = (math.e / 0.2066) ** 2
    assert value(heterogeneous.heldp_ucb_ls(normal, epsilon_min=1.0)) == pytest.approx(
        factor * value(heterogeneous.heldp_ucb_l(plain, epsilon_min=1.0))
    )
    assert value(heterogeneous.heldp_ucb_bs(normal, epsilon_min=1.0)) == pytest.approx(
        factor * value(heterogeneous.heldp_ucb_b(plain, epsilon_min=1.0))
    )
    assert "rewards must be normal" in heterogeneous.heldp_ucb_ls(plain).holds


def test_heldp_refuses() -> None:
    problem = Problem.bernoulli([0.9, 0.6], 10**6, levels=FIVE)
    assert "at or above epsilon_min = 200" in heterogeneous.heldp_ucb_b(problem, epsilon_min=200).holds
    assert "epsilon_min must be positive" in heterogeneous.heldp_ucb_l(problem, epsilon_min=0).holds
    nobody = Problem.bernoulli([0.9, 0.6], 10**6, levels=Levels.of([0.0]))
    assert "every level is 0" in heterogeneous.heldp_ucb_l(nobody).holds
    rare = Problem.bernoulli([0.9, 0.6], 10, levels=Levels.of([0.0] * 99 + [1.0]))
    assert "at least one response must be expected" in heterogeneous.heldp_ucb_b(rare).holds
    assert "one epsilon for all" in heterogeneous.heldp_ucb_b_homogeneous(problem).holds


@pytest.mark.parametrize(
    ("levels", "thresholds", "laplace", "bernoulli"),
    [
        (FIVE, (0.2, 1, 2, 100), (148.8, 19.5, 12.6, 5.41), (33.8, 4.11, 3.41, 5.00)),
        (NormalLevels(1, 1), (0.5, 1, 1.5, 2), (30.5, 25.1, 29.0, 43.9), (5.90, 4.73, 5.64, 9.00)),
    ],
)
def test_level_costs_of_the_paper(
    levels: Levels | NormalLevels,
    thresholds: tuple[float, ...],
    laplace: tuple[float, ...],
    bernoulli: tuple[float, ...],
) -> None:
    for threshold, l_cost, b_cost in zip(thresholds, laplace, bernoulli, strict=True):
        assert level_cost(levels, threshold, "laplace") == pytest.approx(l_cost, rel=6e-3)
        assert level_cost(levels, threshold, "bernoulli") == pytest.approx(b_cost, rel=6e-3)


def test_clipped_normal_by_sampling() -> None:
    """2 million draws: the standard error of each cost is below 0.1 %; 0.5 % fails with probability below 1e-6."""
    rng = np.random.default_rng(1)
    levels = np.clip(rng.normal(1.0, 1.0, 2_000_000), 0.0, 100.0)
    kept = levels[levels >= 0.8]
    by_sample = np.mean((1 + 4 / kept) ** 2) / (len(kept) / len(levels))
    assert level_cost(NormalLevels(1, 1), 0.8, "laplace") == pytest.approx(float(by_sample), rel=5e-3)


def test_best_epsilon_min() -> None:
    assert best_epsilon_min(FIVE, "laplace") == 100
    assert best_epsilon_min(FIVE, "bernoulli") == 2
    for mechanism in ("laplace", "bernoulli"):
        normal = NormalLevels(1, 1)
        best = best_epsilon_min(normal, mechanism)
        grid = [level_cost(normal, float(x), mechanism) for x in np.linspace(0.3, 2.5, 200)]
        assert level_cost(normal, best, mechanism) <= min(grid) + 1e-9
        sample = np.clip(np.random.default_rng(2).normal(1.0, 1.0, 400), 0.0, 100.0)
        chosen = best_epsilon_min(Levels.of(sample), mechanism)
        assert chosen in sample
        assert level_cost(normal, chosen, mechanism) <= 1.1 * level_cost(normal, best, mechanism)
    thresholds, costs = level_curve(FIVE, "bernoulli")
    assert thresholds == [0.2, 1, 2, 100]
    assert costs.index(min(costs)) == 2
    with pytest.raises(InputError, match="levels must have a positive one"):
        best_epsilon_min(Levels.of([0.0]), "laplace")
    with pytest.raises(InputError, match=r"epsilon_min must be at most the highest level 100, got 101"):
        level_cost(FIVE, 101, "laplace")
