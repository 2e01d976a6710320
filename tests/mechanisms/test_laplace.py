"""The Laplace mechanism: its scale, on simulated noise and on exact noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpbandits.exact import SystemNoise
from dpbandits.mechanisms import laplace

DRAWS = 20_000
FAILURE = 1e-9  # of each correct comparison here


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1.0, 0.5), (4.0, 2.0)])
def test_simulated_noise_has_the_scale_of_the_mechanism(sensitivity: float, epsilon: float) -> None:
    """Kolmogorov and Smirnov's test; a scale that is 20 % off is caught, so the test can fail."""
    rng = np.random.default_rng(0)
    draws = np.array([laplace(0.25, sensitivity, epsilon, rng) for _ in range(DRAWS)]) - 0.25
    scale = sensitivity / epsilon
    assert stats.kstest(draws, stats.laplace(scale=scale).cdf).pvalue > FAILURE
    assert stats.kstest(draws, stats.laplace(scale=1.2 * scale).cdf).pvalue < FAILURE


def test_exact_noise_has_the_same_verb_and_stays_on_the_grid() -> None:
    """Against the continuous law: steps of 2^-16 are far below what Kolmogorov and Smirnov's test sees."""
    source = SystemNoise()
    draws = np.array([laplace(0.25, 1.0, 2.0, source) for _ in range(DRAWS)])  # type: ignore[arg-type]
    assert all((float(x) * 65536).is_integer() for x in draws)
    assert stats.kstest(draws - 0.25, stats.laplace(scale=0.5).cdf).pvalue > FAILURE
    assert stats.kstest(draws - 0.25, stats.laplace(scale=0.6).cdf).pvalue < FAILURE
