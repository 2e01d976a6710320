"""Divergences against grids, linear programs and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from dpbandits.bounds import RewardLaw
from dpbandits.bounds.divergences import d_eps, d_inf, gaussian_d_inf, gaussian_t_inf, kl_across, t_inf
from dpbandits.errors import InputError
from dpbandits.numerics import kl


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
    assert d_inf(RewardLaw.bernoulli(mean), target) == pytest.approx(kl(mean, target), rel=1e-9)


def test_d_inf_by_primal() -> None:
    """The dual against the best of many distributions on the same support and 1."""
    law, target = RewardLaw((0.1, 0.4, 0.7), (0.2, 0.5, 0.3)), 0.6
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
    assert d_inf(RewardLaw.of([0.5]), 0.5) == 0.0
    assert d_inf(RewardLaw.bernoulli(0.5), 1.0) == math.inf
    assert d_inf(RewardLaw.of([0.5]), 0.75) == pytest.approx(math.log(2))  # half of the mass must go to 1
    uniform = RewardLaw.of_quantiles(lambda q: q)
    assert 2 * 0.2**2 < d_inf(uniform, 0.7) < kl(0.5, 0.7) + 1  # Pinsker below
    assert d_inf(uniform, 0.7) > kl(0.5, 0.7)  # Bernoulli is the hardest law with this mean


@pytest.mark.parametrize("target", [0.45, 0.6, 0.9])
def test_t_inf_by_linear_program(target: float) -> None:
    law = RewardLaw((0.1, 0.4, 0.7, 1.0), (0.2, 0.4, 0.3, 0.1))
    p, x = np.array(law.weights), np.array(law.support)
    n = len(p)  # variables: q, and |p - q|
    cost = np.concatenate([np.zeros(n), np.full(n, 0.5)])
    eye = np.eye(n)
    above = np.block([[eye, -eye], [-eye, -eye], [-x[None, :], np.zeros((1, n))]])
    solved = linprog(cost, above, np.concatenate([p, -p, [-target]]), [[1.0] * n + [0.0] * n], [1.0])
    assert t_inf(law, target) == pytest.approx(solved.fun, abs=1e-9)


def test_t_inf_edges() -> None:
    assert t_inf(RewardLaw.bernoulli(0.3), 0.8) == pytest.approx(0.5)  # the gap
    assert t_inf(RewardLaw.bernoulli(0.3), 0.2) == 0.0
    assert t_inf(RewardLaw.bernoulli(0.3), 1.0) == math.inf


def test_gaussian_gaps() -> None:
    x = np.linspace(-12, 12, 400_001)
    p, q = (np.exp(-0.5 * ((x - m) / 0.7) ** 2) / (0.7 * math.sqrt(2 * math.pi)) for m in (0.0, 0.4))
    assert gaussian_t_inf(0.4, 0.7) == pytest.approx(0.5 * float(np.trapezoid(np.abs(p - q), x)), abs=1e-7)
    assert gaussian_d_inf(0.4, 0.7) == pytest.approx(float(np.trapezoid(p * np.log(p / q), x)), abs=1e-7)


def test_laws_refuse_what_they_cannot_be() -> None:
    with pytest.raises(InputError, match=r"support must lie in \[0, 1\], got 2"):
        RewardLaw((0.0, 2.0), (0.5, 0.5))
    with pytest.raises(InputError, match="weights must be at least 0 and add up to 1"):
        RewardLaw((0.0, 1.0), (0.5, 0.6))
