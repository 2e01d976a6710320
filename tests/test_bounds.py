"""Each theorem on a value computed here by hand, its limits, and when it must refuse."""

from __future__ import annotations

import builtins
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import beta as beta_law

from dpbandits.bounds import (
    Bound,
    ClippedNormal,
    Law,
    Levels,
    LinearProblem,
    Problem,
    applicable,
    best_epsilon_min,
    central,
    continual,
    evaluate,
    heterogeneous,
    level_cost,
    level_curve,
    linear,
    local,
    report,
    theorem_named,
    theorems,
)
from dpbandits.bounds.divergences import d_eps, d_inf, gaussian_d_inf, gaussian_t_inf, kl_across, t_inf
from dpbandits.errors import InputError, MissingExtraError
from dpbandits.numerics import kl

LOG = math.log(10**6)
TWO = Problem.bernoulli([0.9, 0.6], 10**6, epsilon=2.0)
C2 = [0.75, 0.625, 0.5, 0.375, 0.25]
FIG_3 = [0.8, 0.1, 0.1, 0.1, 0.1]
FIVE = Levels.uniform([0, 0.2, 1, 2, 100])
PI2 = math.pi**2
DOCUMENT = Path(__file__).parents[1] / "docs" / "theory.md"


def value(bound: Bound) -> float:
    assert bound.value is not None, bound.holds
    return bound.value


# --- divergences -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 3.0])
@pytest.mark.parametrize(("x", "y"), [(0.1, 0.8), (0.7, 0.75), (0.0, 0.5), (0.9, 0.2), (0.5, 0.5), (1.0, 0.3)])
def test_d_eps_against_a_grid(x: float, y: float, epsilon: float) -> None:
    z = np.linspace(1e-9, 1 - 1e-9, 400_001)
    by_grid = np.min(epsilon * np.abs(z - x) + z * np.log(z / y) + (1 - z) * np.log((1 - z) / (1 - y)))
    assert d_eps(x, y, epsilon) == pytest.approx(float(by_grid), abs=2e-5)


def test_d_eps_limits() -> None:
    assert d_eps(0.3, 0.6, 1000.0) == kl(0.3, 0.6)
    assert d_eps(0.3, 0.6, 1e-6) == pytest.approx(0.3e-6, rel=1e-5)
    assert d_eps(0.2, 1.0, 0.5) == pytest.approx(0.4)
    for epsilon in (0.01, 0.3, 2.0):
        assert d_eps(0.3, 0.6, epsilon) <= min(kl(0.3, 0.6), epsilon * 0.3)


@pytest.mark.parametrize("gap", [1e-14, 1e-9, 1e-6, 9e-6, 1.1e-5, 1e-3])
@pytest.mark.parametrize("mean", [0.9, 0.1, 0.5])
def test_kl_across_small_gaps(mean: float, gap: float) -> None:
    """By the integral of (q - mean) / (q (1 - q)), which has no cancellation."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    step = 0.5 * gap * (nodes + 1)
    integral = 0.5 * gap * float(np.dot(weights, step / ((mean + step) * (1 - mean - step))))
    assert kl_across(mean, gap) == pytest.approx(integral, rel=1e-5)


@pytest.mark.parametrize(("mean", "target"), [(0.3, 0.5), (0.0, 0.2), (0.001, 0.999), (0.89, 0.9)])
def test_d_inf_of_bernoulli_is_kl(mean: float, target: float) -> None:
    assert d_inf(Law.bernoulli(mean), target) == pytest.approx(kl(mean, target), rel=1e-9)


def test_d_inf_by_primal() -> None:
    """The dual against the best of many distributions on the same support and 1."""
    law, target = Law((0.1, 0.4, 0.7), (0.2, 0.5, 0.3)), 0.6
    best = math.inf
    p = np.array(law.weights)
    for a in np.linspace(0.01, 0.6, 150):
        for b in np.linspace(0.01, 0.98 - a, 150):
            # masses a, b on the first two points; the rest so that the mean is the target
            rest = 1 - a - b
            at_one = (target - 0.1 * a - 0.4 * b - 0.7 * rest) / 0.3
            at_third = rest - at_one
            if at_one >= 0 and at_third > 0:
                best = min(best, float(np.sum(p * np.log(p / np.array([a, b, at_third])))))
    assert d_inf(law, target) <= best + 1e-12
    assert d_inf(law, target) == pytest.approx(best, abs=2e-3)


def test_d_inf_edges() -> None:
    assert d_inf(Law.of([0.5]), 0.5) == 0.0
    assert d_inf(Law.bernoulli(0.5), 1.0) == math.inf
    assert d_inf(Law.of([0.5]), 0.75) == pytest.approx(math.log(2))  # half of the mass must go to 1
    uniform = Law.of_quantiles(lambda q: q)
    assert 2 * 0.2**2 < d_inf(uniform, 0.7) < kl(0.5, 0.7) + 1  # Pinsker below
    assert d_inf(uniform, 0.7) > kl(0.5, 0.7)  # Bernoulli is the hardest law with this mean


@pytest.mark.parametrize("target", [0.45, 0.6, 0.9])
def test_t_inf_by_linear_program(target: float) -> None:
    law = Law((0.1, 0.4, 0.7, 1.0), (0.2, 0.4, 0.3, 0.1))
    p, x = np.array(law.weights), np.array(law.support)
    n = len(p)  # variables: q, and |p - q|
    cost = np.concatenate([np.zeros(n), np.full(n, 0.5)])
    eye = np.eye(n)
    above = np.block([[eye, -eye], [-eye, -eye], [-x[None, :], np.zeros((1, n))]])
    solved = linprog(cost, above, np.concatenate([p, -p, [-target]]), [[1.0] * n + [0.0] * n], [1.0])
    assert t_inf(law, target) == pytest.approx(solved.fun, abs=1e-9)


def test_t_inf_edges() -> None:
    assert t_inf(Law.bernoulli(0.3), 0.8) == pytest.approx(0.5)  # the gap
    assert t_inf(Law.bernoulli(0.3), 0.2) == 0.0
    assert t_inf(Law.bernoulli(0.3), 1.0) == math.inf


def test_gaussian_gaps() -> None:
    x = np.linspace(-12, 12, 400_001)
    p, q = (np.exp(-0.5 * ((x - m) / 0.7) ** 2) / (0.7 * math.sqrt(2 * math.pi)) for m in (0.0, 0.4))
    assert gaussian_t_inf(0.4, 0.7) == pytest.approx(0.5 * float(np.trapezoid(np.abs(p - q), x)), abs=1e-7)
    assert gaussian_d_inf(0.4, 0.7) == pytest.approx(float(np.trapezoid(p * np.log(p / q), x)), abs=1e-7)


def test_laws_refuse_what_they_cannot_be() -> None:
    with pytest.raises(InputError, match=r"support must lie in \[0, 1\], got 2"):
        Law((0.0, 2.0), (0.5, 0.5))
    with pytest.raises(InputError, match="weights must be at least 0 and add up to 1"):
        Law((0.0, 1.0), (0.5, 0.6))


# --- local -----------------------------------------------------------------------------------------------------------


def test_ren_theorem_1() -> None:
    problem = Problem.bernoulli([0.9, 0.6, 0.8], 10**6, epsilon=0.5)
    by_hand = (1 / 0.3 + 1 / 0.1) / (math.e**0.5 - math.e**-0.5) ** 2 * LOG
    assert value(local.ldp_lower_printed(problem)) == pytest.approx(by_hand)
    assert value(local.ldp_lower(problem)) == pytest.approx(by_hand)


def test_ren_theorem_1_vanishes_and_its_correction_does_not() -> None:
    problem = Problem.bernoulli([0.9, 0.6], 10**6, epsilon=20.0)
    lai_robbins = 0.3 / (0.6 * math.log(0.6 / 0.9) + 0.4 * math.log(0.4 / 0.1)) * LOG
    assert value(local.ldp_lower_printed(problem)) < 1e-12
    assert value(local.ldp_lower(problem)) == pytest.approx(lai_robbins)
    assert value(local.ldp_lower(Problem.bernoulli([0.9, 0.6], 10**6, epsilon=600.0))) == pytest.approx(lai_robbins)


def test_randomised_response_lower_bound() -> None:
    p, q = ((m * math.e**2 + 1 - m) / (1 + math.e**2) for m in (0.6, 0.9))
    by_hand = 0.3 / (p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))) * LOG
    assert value(local.ldp_lower_randomised_response(TWO)) == pytest.approx(by_hand)
    free = Problem.bernoulli([0.9, 0.6], 10**6, epsilon=50.0)
    assert value(local.ldp_lower_randomised_response(free)) == pytest.approx(value(central.lai_robbins(free)))
    tiny = Problem.bernoulli([0.9, 0.6], 10**6, epsilon=1e-3)
    assert value(local.ldp_lower_randomised_response(tiny)) == pytest.approx(2 / (0.3 * 1e-6) * LOG, rel=1e-3)


def test_ren_theorems_4_and_6() -> None:
    coth = (math.e**2 + 1) / (math.e**2 - 1)
    assert value(local.ldp_ucb_l(TWO)) == pytest.approx(8 * 9 / 0.3 * LOG + (1 + 2 * PI2 / 3) * 0.3)
    assert value(local.ldp_ucb_b(TWO)) == pytest.approx(8 * coth**2 / 0.3 * LOG + (1 + PI2 / 3) * 0.3)
    ucb1 = 8 / 0.3 * LOG + (1 + PI2 / 3) * 0.3
    assert value(local.ldp_ucb_b(Problem.bernoulli([0.9, 0.6], 10**6, epsilon=60.0))) == pytest.approx(ucb1)


def test_ren_distribution_free() -> None:
    assert value(local.ldp_ucb_l_distribution_free(TWO)) == pytest.approx(
        2 * math.sqrt(8 * 9 * 2 * 10**6 * LOG) + (1 + 2 * PI2 / 3) * 2
    )
    coth = (math.e**2 + 1) / (math.e**2 - 1)
    free = value(local.ldp_ucb_b_distribution_free(TWO))
    assert free == pytest.approx(2 * math.sqrt(8 * coth**2 * 2 * 10**6 * LOG) + (1 + PI2 / 3) * 2)
    for gap in np.geomspace(1e-4, 0.9, 60):  # above the smaller of both bounds, whatever the gap
        problem = Problem.bernoulli([0.9, 0.9 - gap], 10**6, epsilon=2.0)
        assert min(value(local.ldp_ucb_b(problem)), gap * 10**6) <= free


def test_ren_corollaries_10_and_11() -> None:
    normal = Problem.gaussian([0.9, 0.6], 10**6, epsilon=2.0)
    coth = (math.e**2 + 1) / (math.e**2 - 1)
    laplace = 8 * 9 / 0.3 * LOG + (1 + 2 * PI2 / 3) * 0.3
    bernoulli = 8 * coth**2 / 0.3 * LOG + (1 + PI2 / 3) * 0.3
    assert value(local.ldp_ucb_ls_sub_gaussian(normal)) == pytest.approx(laplace * (math.e / 0.0765) ** 2)
    assert value(local.ldp_ucb_ls_gaussian(normal)) == pytest.approx(laplace * (math.e / 0.2066) ** 2)
    assert value(local.ldp_ucb_bs_sub_gaussian(normal)) == pytest.approx(bernoulli * (math.e / 0.0765) ** 2)
    assert value(local.ldp_ucb_bs_gaussian(normal)) == pytest.approx(bernoulli * (math.e / 0.2066) ** 2)
    x = np.linspace(-12, 14, 200_001)
    density = np.exp(-0.5 * (x - 1) ** 2) / math.sqrt(2 * math.pi)
    slope = float(np.trapezoid(density * np.exp(-x) / (1 + np.exp(-x)) ** 2, x))
    assert slope == pytest.approx(0.1779, abs=5e-5)
    assert value(local.ldp_ucb_ls_slope(normal)) == pytest.approx(laplace / slope**2, rel=1e-6)
    assert value(local.ldp_ucb_bs_slope(normal)) == pytest.approx(bernoulli / slope**2, rel=1e-6)


def test_the_sigmoids_constants() -> None:
    """Lemma 7's two numbers, recomputed: sup a (1 - 2 e^(-v_a^2/2)), and the slope at 0."""
    a = np.linspace(0.01, 0.2499, 100_000)
    v = np.log(1 / (2 * a) - 1 + np.sqrt(1 / (4 * a * a) - 1 / a))
    assert 0.0765 <= float(np.max(a * (1 - 2 * np.exp(-0.5 * v * v)))) < 0.0767
    assert math.e * local.SUB_GAUSSIAN_SLOPE == pytest.approx(0.0765)
    assert local.sigmoid_slope(0.0, 1.0) == pytest.approx(math.e * local.GAUSSIAN_SLOPE, abs=5e-5)


# --- heterogeneous levels --------------------------------------------------------------------------------------------


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
    levels = Levels((0.05, 50.0), (0.001, 0.999))
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
    assert "rewards must be gaussian" in heterogeneous.heldp_ucb_ls(plain).holds


def test_heldp_refuses() -> None:
    problem = Problem.bernoulli([0.9, 0.6], 10**6, levels=FIVE)
    assert "at or above epsilon_min = 200" in heterogeneous.heldp_ucb_b(problem, epsilon_min=200).holds
    assert "epsilon_min must be positive" in heterogeneous.heldp_ucb_l(problem, epsilon_min=0).holds
    nobody = Problem.bernoulli([0.9, 0.6], 10**6, levels=Levels((0.0,), (1.0,)))
    assert "every level is 0" in heterogeneous.heldp_ucb_l(nobody).holds
    rare = Problem.bernoulli([0.9, 0.6], 10, levels=Levels((0.0, 1.0), (0.99, 0.01)))
    assert "at least one response must be expected" in heterogeneous.heldp_ucb_b(rare).holds
    assert "one epsilon for all" in heterogeneous.heldp_ucb_b_homogeneous(problem).holds


@pytest.mark.parametrize(
    ("levels", "thresholds", "laplace", "bernoulli"),
    [
        (FIVE, (0.2, 1, 2, 100), (148.8, 19.5, 12.6, 5.41), (33.8, 4.11, 3.41, 5.00)),
        (ClippedNormal(1, 1), (0.5, 1, 1.5, 2), (30.5, 25.1, 29.0, 43.9), (5.90, 4.73, 5.64, 9.00)),
    ],
)
def test_level_costs_of_the_paper(
    levels: Levels | ClippedNormal,
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
    assert level_cost(ClippedNormal(1, 1), 0.8, "laplace") == pytest.approx(float(by_sample), rel=5e-3)


def test_best_epsilon_min() -> None:
    assert best_epsilon_min(FIVE, "laplace") == 100
    assert best_epsilon_min(FIVE, "bernoulli") == 2
    for mechanism in ("laplace", "bernoulli"):
        normal = ClippedNormal(1, 1)
        best = best_epsilon_min(normal, mechanism)
        grid = [level_cost(normal, float(x), mechanism) for x in np.linspace(0.3, 2.5, 200)]
        assert level_cost(normal, best, mechanism) <= min(grid) + 1e-9
        sample = np.clip(np.random.default_rng(2).normal(1.0, 1.0, 400), 0.0, 100.0)
        chosen = best_epsilon_min(Levels.uniform(sample), mechanism)
        assert chosen in sample
        assert level_cost(normal, chosen, mechanism) <= 1.1 * level_cost(normal, best, mechanism)
    thresholds, costs = level_curve(FIVE, "bernoulli")
    assert thresholds == [0.2, 1, 2, 100]
    assert costs.index(min(costs)) == 2
    with pytest.raises(InputError, match="levels must have a positive one"):
        best_epsilon_min(Levels((0.0,), (1.0,)), "laplace")
    with pytest.raises(InputError, match=r"epsilon_min must be at most the highest level 100, got 101"):
        level_cost(FIVE, 101, "laplace")


# --- central ---------------------------------------------------------------------------------------------------------


def test_azize_theorem_2() -> None:
    problem = Problem.bernoulli(C2, 10**6, epsilon=1.0)
    assert value(central.dp_minimax_lower_printed(problem)) == pytest.approx(math.sqrt(4 * 10**6) / 27)
    private = Problem.bernoulli(C2, 100, epsilon=1e-4)
    assert value(central.dp_minimax_lower_printed(private)) == pytest.approx(4 / (131 * 1e-4))
    assert value(central.dp_minimax_lower(private)) == 100
    assert central.dp_minimax_lower(problem).scope == "some problem"
    assert "arms must be from 2" in central.dp_minimax_lower(Problem.bernoulli([0.5], 10, epsilon=1.0)).holds
    assert math.isnan(central.dp_minimax_lower(problem).at([3])[0])


@pytest.mark.parametrize(("epsilon", "printed"), [(0.05, 215), (0.1, 107), (0.2, 54), (0.3, 39.4), (10, 39.4)])
def test_azize_theorem_3_in_figure_3(epsilon: float, printed: float) -> None:
    information = min(0.1 * math.log(1 / 8) + 0.9 * math.log(4.5), 6 * epsilon * 0.7)
    bound = value(central.dp_lower(Problem.bernoulli(FIG_3, 10**7, epsilon=epsilon)))
    assert bound == pytest.approx(4 * 0.7 / information * math.log(10**7))
    assert bound == pytest.approx(printed, abs=0.5 if epsilon < 0.3 else 0.05)


def test_sharper_lower_bound_in_figure_3() -> None:
    epsilons = (0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10)
    problems = [Problem.bernoulli(FIG_3, 10**7, epsilon=epsilon) for epsilon in epsilons]
    sharp = [value(central.dp_lower_bernoulli(problem)) for problem in problems]
    assert [round(x) for x in sharp] == [1297, 652, 330, 223, 138, 75, 46, 39, 39]
    assert all(x >= value(central.dp_lower(problem)) for x, problem in zip(sharp, problems, strict=True))
    by_hand = 4 * 0.7 / (-0.5 * 0.1 - math.log(0.2 + 0.8 * math.exp(-0.5))) * math.log(10**7)
    assert sharp[4] == pytest.approx(by_hand)


def test_azize_theorem_3_on_other_rewards() -> None:
    normal = Problem.gaussian([0.5, 0.1], 10**6, sd=2.0, epsilon=0.1)
    tv = math.erf(0.4 / (2 * math.sqrt(2) * 2.0))
    assert value(central.dp_lower(normal)) == pytest.approx(0.4 / min(0.5 * 0.2**2, 0.6 * tv) * LOG)
    # half of the mass at 0.4, half at 1; the best mean is 0.85: a quarter of the mass must move from 0.4 to 1
    two_points = Problem.bounded([Law.of([0.85]), Law.of([0.4, 1.0])], 10**6, epsilon=0.01)
    assert value(central.dp_lower(two_points)) == pytest.approx(0.15 / (0.06 * 0.25) * LOG)
    free = Problem.bounded([Law.of([0.85]), Law.of([0.4, 1.0])], 10**6, epsilon=100.0)
    divergence = 0.5 * math.log(0.5 / 0.25) + 0.5 * math.log(0.5 / 0.75)
    assert value(central.dp_lower(free)) == pytest.approx(0.15 / divergence * LOG)
    assert value(central.lai_robbins(free)) == value(central.dp_lower(free))


def test_beta_arms_are_harder_to_confuse_than_bernoulli_ones() -> None:
    skewed = Law.of_quantiles(lambda q: float(beta_law.ppf(q, 4, 1)))
    assert skewed.mean == pytest.approx(0.8, abs=1e-4)
    mixed = Problem.bounded([Law.bernoulli(0.9), skewed], 10**6, epsilon=1.0)
    plain = Problem.bernoulli([0.9, skewed.mean], 10**6, epsilon=1.0)
    assert value(central.lai_robbins(mixed)) < value(central.lai_robbins(plain))


@pytest.mark.parametrize(("gap", "epsilon"), [(0.1, 0.1), (0.1, 0.2), (0.1, 1.0), (0.5, 0.01)])
def test_azize_theorem_7(gap: float, epsilon: float) -> None:
    problem = Problem.bernoulli([0.75, 0.75 - gap], 10**6, epsilon=epsilon)
    u = gap / epsilon
    printed = 16 * 3.1 / min(gap, epsilon) * LOG + 9.3 / 0.1
    corrected = 4 * 3.1 / gap * (1 + 2 * u + math.sqrt(1 + 4 * u)) * LOG + 9.3 / 0.1
    assert value(central.adap_ucb_printed(problem)) == pytest.approx(printed, rel=1e-9)
    assert value(central.adap_ucb(problem)) == pytest.approx(corrected, rel=1e-9)
    assert (corrected > printed) == (0.5858 < u < 2)


def test_azize_theorem_7_needs_what_the_correction_asks() -> None:
    """The least n with gap = 2 sqrt(alpha log T / (2n)) + 2 alpha log T / (epsilon n): the bound has 4n."""
    gap = epsilon = 0.1
    low, high = 1.0, 1e9
    for _ in range(200):
        n = math.sqrt(low * high)
        covered = 2 * math.sqrt(3.1 * LOG / (2 * n)) + 2 * 3.1 * LOG / (epsilon * n)
        low, high = (n, high) if covered > gap else (low, n)
    bound = value(central.adap_ucb(Problem.bernoulli([0.75, 0.65], 10**6, epsilon=epsilon)))
    assert bound == pytest.approx(4 * gap * high + 93, rel=1e-9)
    assert 4 * gap * high / (16 * 3.1 * LOG / gap) == pytest.approx((3 + math.sqrt(5)) / 4)  # 20.94 instead of 16


def test_azize_theorem_8_by_searching_every_beta() -> None:
    """Both conditions of the proof over a grid of beta, at each power of two: the least power that meets them."""
    mean, best, epsilon, alpha = 0.25, 0.75, 0.5, 3.1
    d, gap = kl(mean, best), 0.5
    grid = np.linspace(mean, best, 200_001)[1:-1]
    to_best = grid * np.log(grid / best) + (1 - grid) * np.log((1 - grid) / (1 - best))
    to_mean = grid * np.log(grid / mean) + (1 - grid) * np.log((1 - grid) / (1 - mean))
    for level in range(40):
        n = 2.0**level
        gamma = (grid[np.argmin(np.abs(to_mean - LOG / n))] - mean) / gap if LOG / n < to_mean[-1] else 9.0
        beta = d / to_best - 1
        c = (grid - mean) / gap
        with np.errstate(divide="ignore"):
            needed = np.where(c > gamma, (1 + alpha) / ((c - gamma) * epsilon * gap), np.inf)
        if np.min(np.maximum((1 + beta) * alpha / d, needed)) * LOG <= n:
            break
    problem = Problem.bernoulli([best, mean], 10**6, epsilon=epsilon)
    assert value(central.adap_klucb(problem)) == pytest.approx(gap * (2 * n + 1.5 + 31.0))
    printed = value(central.adap_klucb_printed(problem))
    assert gap * 4 * n / 2 < printed - 93 <= gap * 4 * n


def test_azize_theorem_8_limits() -> None:
    nearly_free = Problem.bernoulli([0.75, 0.25], 10**6, epsilon=1e4)
    # privacy no longer counts: z and x only have to meet, where kl(z, best) = alpha kl(z, mean)
    low, high = 0.25, 0.75
    for _ in range(100):
        z = 0.5 * (low + high)
        low, high = (z, high) if kl(z, 0.75) > 3.1 * kl(z, 0.25) else (low, z)
    assert value(central.adap_klucb_printed(nearly_free)) == pytest.approx(2 * LOG / kl(low, 0.25) + 93, rel=1e-2)
    tiny = Problem.bernoulli([0.75, 0.25], 10**6, epsilon=1e-5)
    assert value(central.adap_klucb_printed(tiny)) == pytest.approx(2 * 4.1 * LOG / (0.5 * 1e-5), rel=2e-2)
    assert value(central.adap_klucb(Problem.bernoulli([1.0, 0.0], 10**6, epsilon=1.0))) > 0


def test_azize_theorem_12_holds_after_all() -> None:
    problem = Problem.bernoulli(C2, 10**6, epsilon=1.0)
    gaps = 0.125 + 0.25 + 0.375 + 0.5
    private = 16 * 3.1 * 5 * LOG
    printed = value(central.adap_ucb_minimax_printed(problem))
    corrected = value(central.adap_ucb_minimax(problem))
    assert printed == pytest.approx(93 * gaps + 8 * math.sqrt(3.1 * 5 * 10**6 * LOG) + private, rel=1e-9)
    assert corrected == pytest.approx(93 * gaps + math.sqrt(32 * 3.1 * 5 * 10**6 * LOG) + private, rel=1e-9)
    assert corrected < printed
    for u in np.geomspace(1e-3, 1e3, 100):  # the step that repairs the proof
        assert 1 + 2 * u + math.sqrt(1 + 4 * u) <= 2 + 4 * u


def test_azize_theorem_10() -> None:
    assert central.kl_decomposition(0.5, [100, 900], [0.3, 0.0]) == pytest.approx(6 * 0.5 * 100 * 0.3)
    with pytest.raises(InputError, match="one for each arm"):
        central.kl_decomposition(0.5, [100], [0.3, 0.1])
    with pytest.raises(InputError, match=r"must lie in \[0, 1\], got 1\.5"):
        central.kl_decomposition(0.5, [100], [1.5])


# --- continual release -----------------------------------------------------------------------------------------------


def test_tossou_theorem_3_2_printed() -> None:
    problem = Problem.bernoulli([0.9, 0.6, 0.7], 10**5, epsilon=1.0)
    log = math.log(10**5)

    def at(share: float) -> float:
        b = math.sqrt(8) * math.log(4 * 1e20) / (1 - share)
        return sum(max(b * (math.log(b) + 7), 8 * log / (share**2 * gap)) for gap in (0.3, 0.2))

    by_hand = min(at(share) for share in np.linspace(0.001, 0.999, 200_001)) + (1 + 2 * PI2 / 3) * 0.5
    assert value(continual.dp_ucb_bound_printed(problem)) == pytest.approx(by_hand, rel=1e-5)


def test_tossou_theorem_3_2_corrected_by_counting() -> None:
    """The least count beyond which both conditions of the proof hold for ever, at the best of many lambdas."""
    gap, epsilon, log = 0.3, 1.0, math.log(10**5)
    n = np.arange(1.0, 200_001)
    noise = math.sqrt(8) / (epsilon / 2) * math.log(4e20) * (np.log2(n) + 1) / n
    best = math.inf
    for share in np.linspace(0.05, 0.6, 1101):
        fails = ((1 - share) * gap < 2 * noise) | (share * gap < 2 * np.sqrt(2 * log / n))
        best = min(best, float(n[np.flatnonzero(fails)[-1]]))
    bound = value(continual.dp_ucb_bound(Problem.bernoulli([0.9, 0.6], 10**5, epsilon=epsilon)))
    assert bound == pytest.approx(gap * (best + 1 + 2 * PI2 / 3), rel=2e-3)
    assert bound > value(continual.dp_ucb_bound_printed(Problem.bernoulli([0.9, 0.6], 10**5, epsilon=epsilon)))


def test_tossou_theorem_3_3() -> None:
    log = math.log(10**5)
    c = 56 * (2 + math.sqrt(3.5)) * math.sqrt(log)
    zeta = 2.612375348685488
    by_hand = 0.3 * (c * (math.log(c) + 7)) ** 2 + 0.3 * (1 + 4 * zeta)
    assert value(continual.dp_ucb(Problem.bernoulli([0.9, 0.6], 10**5, epsilon=1.0))) == pytest.approx(by_hand)
    loose = 8 * log / 0.3 + 0.3 * (1 + 4 * zeta)
    assert value(continual.dp_ucb(Problem.bernoulli([0.9, 0.6], 10**5, epsilon=1e9))) == pytest.approx(loose)


@pytest.mark.parametrize(("schedule", "first"), [("y", 46), ("x", 124), ("constant", 253)])
def test_tossou_theorem_3_5(schedule: str, first: int) -> None:
    by_hand = 0.3 * (first + 8 * math.log(10**5) / 0.09 + 1 + 4 * 2.612375348685488)
    problem = Problem.bernoulli([0.9, 0.6], 10**5, epsilon=1.0)
    assert value(continual.dp_ucb_int(problem, schedule=schedule)) == pytest.approx(by_hand)
    assert "epsilon must be at most 1" in continual.dp_ucb_int(TWO).holds


# --- linear ----------------------------------------------------------------------------------------------------------


def basis(parameter: tuple[float, ...], epsilon: float) -> LinearProblem:
    d = len(parameter)
    return LinearProblem(tuple(tuple(map(float, row)) for row in np.eye(d)), parameter, 10**6, epsilon)


def test_azize_theorem_4() -> None:
    problem = basis((1.0, 0.5, 0.2), 1e-4)
    assert value(linear.linear_minimax_lower_printed(problem)) == pytest.approx(math.exp(-1.8) * 3 * 1000 / 8)
    assert value(linear.linear_minimax_lower(problem)) == pytest.approx(math.exp(-0.6) * 3 * 1000 / 8)
    free = basis((1.0, 0.5, 0.2), 1.0)
    assert value(linear.linear_minimax_lower(free)) == pytest.approx(math.exp(-2) * 3 * 1000 / 8)


@pytest.mark.parametrize("epsilon", [10.0, 0.05, 0.001])
def test_azize_theorem_5_on_the_orthogonal_basis(epsilon: float) -> None:
    problem = basis((1.0, 0.7, 0.5, -0.2), epsilon)
    assert linear.action_weights(problem) == [0, 2, 2, 2]
    by_hand = sum(gap / min(0.5 * gap**2, 6 * epsilon * gap) for gap in (0.3, 0.5, 1.2))
    assert linear.structural_constant(problem) == pytest.approx(by_hand, rel=1e-5)
    assert value(linear.linear_lower(problem)) == pytest.approx(by_hand * LOG, rel=1e-5)


def test_azize_theorem_5_in_the_plane() -> None:
    """Three actions; an informative bad one. Orthogonal to the best (1, 0) only the second coordinate counts."""
    problem = LinearProblem(((1.0, 0.0), (0.9, 0.1), (0.0, 1.0)), (1.0, 0.0), 10**6, epsilon=100.0)
    # 0.01 <= n_2 0.01 + n_3 times each limit: 0.01 / h <= 0.005 and 1 / h <= 0.5, h = 0.01 n_2 + n_3
    h = max(0.01 / (0.5 * 0.1**2), 1 / 0.5)
    by_hand = min(0.1 * h / 0.01, 1.0 * h)
    assert linear.structural_constant(problem) == pytest.approx(by_hand, rel=1e-5)


def test_azize_theorem_5_is_the_program_it_states() -> None:
    """On random actions: the answer is feasible for a large number of best plays, and no cheaper point nearby is."""
    rng = np.random.default_rng(5)
    actions = rng.normal(size=(6, 3))
    theta = rng.normal(size=3)
    problem = LinearProblem(tuple(map(tuple, actions.tolist())), tuple(theta.tolist()), 10**6, epsilon=0.05)
    gaps = np.array(problem.gaps)
    limits = np.minimum(0.5 * gaps**2, 3 * 0.05 * np.array(linear.action_weights(problem)) * gaps)
    constant = linear.structural_constant(problem)
    cheapest = math.inf
    for _ in range(20_000):  # any feasible point costs at least the constant
        plays = rng.exponential(size=6) ** 3 * (gaps > 0) + 1e9 * (gaps == 0)
        inverse = np.linalg.inv((actions * plays[:, None]).T @ actions)
        scale = max(float(a @ inverse @ a / limit) for a, limit in zip(actions, limits, strict=True) if limit > 0)
        cheapest = min(cheapest, scale * float(np.dot(plays, gaps)))
    assert constant <= cheapest * (1 + 1e-6)
    assert cheapest <= 1.5 * constant


def test_azize_theorem_5_refuses() -> None:
    flat = LinearProblem(((1.0, 0.0), (0.5, 0.0)), (1.0, 0.0), 100, 1.0)
    assert "actions must span R^2" in linear.linear_lower(flat).holds
    tie = LinearProblem(((1.0, 0.0), (0.0, 1.0)), (1.0, 1.0), 100, 1.0)
    assert "one action must be best, and 2 are" in linear.linear_lower(tie).holds
    with pytest.raises(InputError, match="actions must have dimension 2, got 1"):
        LinearProblem(((1.0,),), (1.0, 0.0), 100, 1.0)


def test_linear_without_a_solver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "cvxpy":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install 'dpbandits\[linear\]'"):
        linear.structural_constant(basis((1.0, 0.5), 1.0))


# --- all of them -----------------------------------------------------------------------------------------------------

PROBLEMS: dict[str, Problem | LinearProblem] = {
    "bernoulli": Problem.bernoulli(C2, 10**6, epsilon=0.5),
    "levels": Problem.bernoulli(C2, 10**6, levels=FIVE),
    "normal levels": Problem.bernoulli(C2, 10**6, levels=ClippedNormal(1, 1)),
    "gaussian": Problem.gaussian([0.9, 0.6], 10**6, epsilon=0.5),
    "bounded": Problem.bounded([Law.of([0.4, 1.0]), Law.of([0.2, 0.6])], 10**6, epsilon=0.5),
    "linear": basis((1.0, 0.5), 0.5),
}


def test_every_theorem_applies_somewhere() -> None:
    applied = {bound.name for problem in PROBLEMS.values() for bound in applicable(problem)}
    assert applied == {theorem.name for theorem in theorems()}


@pytest.mark.parametrize("theorem", theorems(), ids=lambda theorem: theorem.name)
def test_every_theorem_is_documented(theorem: Any) -> None:
    statement = theorem.statement
    assert theorem.__doc__
    assert ">>>" in theorem.__doc__
    assert statement.source
    assert statement.holds
    assert statement.form == "printed" or statement.note
    assert statement.kind == "lower" or statement.policies
    assert theorem_named(theorem.name) is theorem


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_bound_is_a_rising_curve(name: str) -> None:
    problem = PROBLEMS[name]
    horizons = [10**3, 10**4, 10**5, 10**6]
    for bound in applicable(problem):
        curve = bound.at(horizons)
        assert np.all(np.isfinite(curve)), bound.name
        assert np.all(np.diff(curve) >= 0), bound.name
        assert curve[-1] == bound.value, bound.name
        assert curve[-1] > 0, bound.name


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 5.0])
def test_lower_bounds_lie_below_upper_bounds(epsilon: float) -> None:
    bounds = applicable(Problem.bernoulli(C2, 10**7, epsilon=epsilon))
    for lower in (b for b in bounds if b.kind == "lower" and b.scope == "this problem"):
        for upper in (b for b in bounds if b.kind == "upper"):
            if lower.trust in ("any", upper.trust) and (
                not lower.policies or set(upper.policies) & set(lower.policies)
            ):
                assert value(lower) < value(upper), (lower.name, upper.name)


def test_privacy_never_helps() -> None:
    """Less epsilon, no smaller bound: for every theorem, on its own."""
    epsilons = [0.02, 0.1, 0.5, 1.0]
    for theorem in theorems():
        if theorem.about is Problem:
            for make in (Problem.bernoulli, Problem.gaussian):
                found = [theorem(make([0.75, 0.5], 10**6, epsilon=epsilon)) for epsilon in epsilons]
                values = [bound.value for bound in found if bound.value is not None]
                if len(values) == len(epsilons):
                    assert values == sorted(values, reverse=True), theorem.name


def test_a_failing_condition_gives_its_name_and_no_number() -> None:
    certain = Problem.bernoulli([1.0, 0.5], 10**6, epsilon=1.0)
    for bound in (central.dp_lower(certain), local.ldp_lower(certain), central.dp_lower_bernoulli(certain)):
        assert bound.value is None
        assert bound.holds == "does not apply: the best mean must be below 1, and is 1"
        assert np.isnan(bound.at([10, 100])).all()
    assert "alpha must be above 3, and is 3" in central.adap_ucb(TWO, alpha=3).holds
    wide = Problem.gaussian([0.9, 0.6], 100, sd=2.0, epsilon=1.0)
    assert "standard deviation must be at most 1, and is 2" in local.ldp_ucb_ls_gaussian(wide).holds
    far = Problem.gaussian([3.0, 0.6], 100, epsilon=1.0)
    assert "means must lie in [0, 1]" in local.ldp_ucb_bs_gaussian(far).holds
    assert "one epsilon" in local.ldp_ucb_l(Problem.bernoulli([0.9, 0.6], 100)).holds


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1000.0])
@pytest.mark.parametrize(
    "means", [[0.5], [0.5, 0.5], [0.9, 0.9 - 1e-9], [1.0, 0.0], [0.5, 0.0], [0.001, 0.0001], [0.999, 0.998]]
)
def test_extremes_give_a_number_or_a_reason(means: list[float], epsilon: float) -> None:
    for horizon in (1, 2, 10**9):
        for problem in (
            Problem.bernoulli(means, horizon, epsilon=epsilon),
            Problem.gaussian(means, horizon, epsilon=epsilon),
            Problem.bounded([Law.bernoulli(mean) for mean in means], horizon, epsilon=epsilon),
        ):
            for bound in evaluate(problem):
                assert bound.value is None or 0 <= bound.value < math.inf, bound.name


@pytest.mark.parametrize(
    "levels",
    [
        Levels.uniform([1e-3, 100]),
        Levels((0.0, 5.0), (0.9, 0.1)),
        ClippedNormal(0.01, 3),
        ClippedNormal(-1, 1),
        ClippedNormal(200, 1),
    ],
)
def test_extreme_populations_give_a_number_or_a_reason(levels: Levels | ClippedNormal) -> None:
    for horizon in (1, 10, 10**9):
        for bound in evaluate(Problem.bernoulli([0.9, 0.6], horizon, levels=levels)):
            assert bound.value is None or 0 <= bound.value < math.inf, bound.name


def test_problems_refuse_what_they_cannot_be() -> None:
    with pytest.raises(InputError, match=r"means must lie in \[0, 1\], got 1\.2"):
        Problem.bernoulli([1.2], 100)
    with pytest.raises(InputError, match="horizon must be a whole number of at least 1, got 0"):
        Problem.bernoulli([0.5], 0)
    with pytest.raises(InputError, match="epsilon must be positive and finite, got -1"):
        Problem.bernoulli([0.5], 10, epsilon=-1)
    with pytest.raises(InputError, match="epsilon and levels must not both be given"):
        Problem.bernoulli([0.5], 10, epsilon=1.0, levels=FIVE)
    with pytest.raises(InputError, match="laws must be one for each arm of bounded rewards, got 0"):
        Problem((0.5,), 10, family="bounded")
    with pytest.raises(InputError, match="unknown bound 'adap-ubc': did you mean adap-ucb"):
        theorem_named("adap-ubc")


def test_every_theorem_has_its_line_in_the_documentation() -> None:
    lines = {line.split("`")[1]: line for line in DOCUMENT.read_text().splitlines() if line.startswith("| `")}
    for theorem in theorems():
        line = lines[theorem.name]
        assert theorem.statement.source in line
        assert f"| {theorem.statement.form}" in line
        assert ("not checked" in line) == (not theorem.statement.checked)


def test_report_is_the_contract() -> None:
    shown = json.loads(json.dumps(report(PROBLEMS["bernoulli"]), allow_nan=False))
    assert set(shown) == {"lower", "upper", "policies"}
    assert {"value", "source", "holds", "note", "form"} <= set(shown["upper"]["adap-ucb"])
    assert shown["upper"]["ldp-ucb-ls-gaussian"]["value"] is None
    assert "adap-klucb" in shown["policies"]
    assert "ldp-ucb-ls" not in shown["policies"]
    names = [bound.name for bound in evaluate(PROBLEMS["bernoulli"])]
    assert names == sorted(set(names))
