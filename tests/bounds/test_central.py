"""Azize & Basu 2022: each theorem on a value computed here by hand, its limits, and when it must refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bound_cases import C2, FIG_3, LOG, value
from scipy.stats import beta as beta_law

from dpbandits.bounds import Problem, RewardLaw, central
from dpbandits.errors import InputError
from dpbandits.numerics import kl


def test_azize_theorem_2() -> None:
    problem = Problem.bernoulli(C2, 10**6, epsilon=1.0)
    assert "rewards must be normal" in central.dp_minimax_lower_printed(problem).holds
    normal = Problem.gaussian(C2, 10**6, epsilon=1.0)
    assert value(central.dp_minimax_lower_printed(normal)) == pytest.approx(math.sqrt(4 * 10**6) / 27)
    private = Problem.gaussian(C2, 100, epsilon=1e-4)
    assert value(central.dp_minimax_lower_printed(private)) == pytest.approx(4 / (131 * 1e-4))
    assert value(central.dp_minimax_lower(problem)) == pytest.approx(math.sqrt(4 * 10**6) / 27)
    few, many = (Problem.bernoulli(C2, rounds, epsilon=1e-4) for rounds in (100, 4000))
    assert value(central.dp_minimax_lower(few)) == pytest.approx(100 / (16 * math.e))
    assert value(central.dp_minimax_lower(many)) == pytest.approx(4000 / (16 * math.e))
    assert value(central.dp_minimax_lower(Problem.bernoulli(C2, 10**5, epsilon=1e-4))) == pytest.approx(
        4 / (96 * math.e * 1e-4)
    )
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
    two_points = Problem.bounded([RewardLaw.of([0.85]), RewardLaw.of([0.4, 1.0])], 10**6, epsilon=0.01)
    assert value(central.dp_lower(two_points)) == pytest.approx(0.15 / (0.06 * 0.25) * LOG)
    free = Problem.bounded([RewardLaw.of([0.85]), RewardLaw.of([0.4, 1.0])], 10**6, epsilon=100.0)
    divergence = 0.5 * math.log(0.5 / 0.25) + 0.5 * math.log(0.5 / 0.75)
    assert value(central.dp_lower(free)) == pytest.approx(0.15 / divergence * LOG)
    assert value(central.lai_robbins(free)) == value(central.dp_lower(free))


def test_beta_arms_are_harder_to_confuse_than_bernoulli_ones() -> None:
    skewed = RewardLaw.of_quantiles(lambda q: float(beta_law.ppf(q, 4, 1)))
    assert skewed.mean == pytest.approx(0.8, abs=1e-4)
    mixed = Problem.bounded([RewardLaw.bernoulli(0.9), skewed], 10**6, epsilon=1.0)
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
