"""Ren et al. 2020: each theorem on a value computed here by hand, and its limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bound_cases import LOG, PI2, TWO, value

from dpbandits.bounds import Problem, central, local
from dpbandits.bounds.divergences import kl_across


def test_ren_theorem_1() -> None:
    problem = Problem.bernoulli([0.9, 0.6, 0.8], 10**6, epsilon=0.5)
    by_hand = (1 / 0.3 + 1 / 0.1) / (math.e**0.5 - math.e**-0.5) ** 2 * LOG
    assert value(local.ldp_lower_printed(problem)) == pytest.approx(by_hand)
    assert value(local.ldp_lower(problem)) == pytest.approx(by_hand)


def test_ren_theorem_1_arm_by_arm() -> None:
    """At epsilon 0.9 privacy decides for the near arm and learning for the far one: the sum of the larger terms."""
    problem = Problem.bernoulli([0.9, 0.88, 0.02], 10**6, epsilon=0.9)
    noise = (math.e**0.9 - math.e**-0.9) ** 2
    private = [1 / (gap * noise) for gap in (0.02, 0.88)]
    learning = [gap / kl_across(0.9 - gap, gap) for gap in (0.02, 0.88)]
    assert (private[0] > learning[0]) != (private[1] > learning[1])
    by_hand = sum(map(max, private, learning)) * LOG
    assert value(local.ldp_lower(problem)) == pytest.approx(by_hand)
    assert by_hand > max(sum(private), sum(learning)) * LOG * 1.0001


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
    assert local.ldp_lower_randomised_response(tiny).rate == pytest.approx(2 / (0.3 * 1e-6), rel=1e-3)
    assert value(local.ldp_lower_randomised_response(tiny)) == pytest.approx(tiny.at_random)


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
