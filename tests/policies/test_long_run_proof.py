"""The steps of the proof of Theorem 3 in docs/papers/strongest.md that a computer can try."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbandits.agents.geometric import grown
from dpbandits.numerics import d_eps, d_eps_slope

MEANS = st.floats(0.001, 0.999)
EPSILONS = st.floats(0.01, 6.0)


@given(x=st.floats(-5.0, 6.0), y=MEANS, epsilon=EPSILONS)
def test_the_derivative_is_bounded_and_grows(x: float, y: float, epsilon: float) -> None:
    first, second = d_eps_slope(x, y, epsilon)
    assert abs(first) <= math.expm1(epsilon) * (1 + 1e-9)
    assert second >= math.expm1(-epsilon) ** 2 * (1 - 1e-9)


@given(means=st.tuples(MEANS, MEANS, MEANS).map(sorted), epsilon=EPSILONS)
def test_the_divergence_is_at_least_that_of_both_steps(means: list[float], epsilon: float) -> None:
    x, b, best = means
    assert d_eps(x, best, epsilon) >= d_eps(x, b, epsilon) + d_eps(b, best, epsilon) - 1e-12


@given(means=st.tuples(MEANS, MEANS).map(sorted), epsilon=EPSILONS)
def test_the_divergence_is_the_best_exponent_of_markov(means: list[float], epsilon: float) -> None:
    """max over v in [0, epsilon] of -v x - log(1 - y + y e^-v), on a grid; it is concave in v, so near the maximum."""
    x, y = means
    v = np.linspace(0.0, epsilon, 20_001)
    best = float(np.max(-v * x - np.log1p(y * np.expm1(-v))))
    assert best == pytest.approx(d_eps(x, y, epsilon), abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
@pytest.mark.parametrize("best", [0.3, 1.0])
def test_evidence_against_the_best_arm(epsilon: float, best: float) -> None:
    """F1 for DP-GLR-IMED: what follows from an estimate below b, for every draw, and the tail of J at the best mean.

    Each of the 4 x 5 x 4 comparisons of tails fails wrongly with probability below 1e-9, by Hoeffding's inequality.
    """
    rng, draws, b = np.random.default_rng(3), 4000, best - 0.1
    allowed = math.sqrt(math.log(1e9) / (2 * draws))
    grid = np.linspace(0.005, 0.995, 100)
    grid = np.unique(np.concatenate([grid, [b, min(best, 1 - 1e-12)]]))
    at_b, at_best = np.searchsorted(grid, b), np.searchsorted(grid, min(best, 1 - 1e-12))
    misfit, plays, low = np.zeros((draws, grid.size)), 0, 0
    for batches in range(1, 6):
        n = grown(plays, 2.0, 2) - plays
        plays += n
        noisy = (rng.binomial(n, best, draws) + rng.laplace(0.0, 1.0 / epsilon, draws)) / n
        misfit += n * np.array([[d_eps(x, q, epsilon) for q in grid.tolist()] for x in noisy.tolist()])
        looks_bad = np.argmin(misfit, axis=1) < at_b
        low += int(looks_bad.sum())
        step = 0.5 * math.expm1(-epsilon) ** 2 * (best - b) ** 2 * plays
        assert np.all(misfit[looks_bad, at_best] >= misfit[looks_bad, at_b] + step)
        evidence = misfit[looks_bad, at_b] - misfit[looks_bad].min(axis=1)
        assert np.all(evidence <= math.expm1(epsilon) * plays)
        for w in (1.0, 3.0, 6.0, 10.0):
            v = np.linspace(0.01, 0.99, 99)
            bound = float(np.min(np.exp(-v * w) * ((1 + v) / (1 - v) ** 2) ** batches))
            assert (misfit[:, at_best] > w).mean() <= bound + allowed
    assert low > 100
