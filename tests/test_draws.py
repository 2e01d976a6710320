"""Many draws at once have the law of single ones. Probabilities of failing a correct one are stated."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy.stats import chi2

from dpbandits.draws import DEVIATIONS, bits_above, rounds_above, rounds_within, successes

DRAWS = 20_000
SIGMAS = 5.5  # a two-sided normal tail of 4e-8 for each comparison


def test_bits_above_a_line_have_the_law_of_single_bits() -> None:
    """Chi-square of the stopping round against the round-by-round law, failure probability 1e-6."""
    total, count, line, most, p, rng = 6.0, 8, 0.62, 12, 0.6, np.random.default_rng(1)
    alive, stopped = {total: 1.0}, np.zeros(most + 1)
    for drawn in range(1, most + 1):
        following: dict[float, float] = {}
        for value, weight in alive.items():
            for bit, chance in ((1.0, p), (0.0, 1 - p)):
                after = value + bit
                if after <= line * (count + drawn) or drawn == most:
                    stopped[drawn] += weight * chance
                else:
                    following[after] = following.get(after, 0.0) + weight * chance
        alive = following
    seen = np.zeros(most + 1)
    for _ in range(DRAWS):
        here, drawn, done = total, 0, False
        while not done:
            step, ones = bits_above(here, count + drawn, line, most - drawn, p, rng)
            here, drawn = here + ones, drawn + step
            done = drawn == most or here <= line * (count + drawn)
        seen[drawn] += 1
    likely = stopped * DRAWS > 5
    statistic = np.sum((seen[likely] - DRAWS * stopped[likely]) ** 2 / (DRAWS * stopped[likely]))
    assert likely.sum() >= 4
    assert seen[~likely].sum() <= DRAWS * stopped[~likely].sum() + 40
    assert statistic < chi2.ppf(1 - 1e-6, likely.sum() - 1)


@pytest.mark.parametrize("n", [1, 50])
def test_successes_are_binomial(n: int) -> None:
    """Mean and variance; each comparison fails with probability 4e-8."""
    rng = np.random.default_rng(2)
    draws = np.array([successes(n, 0.3, rng) for _ in range(DRAWS)])
    assert abs(draws.mean() - 0.3 * n) < SIGMAS * math.sqrt(n * 0.21 / DRAWS)
    centred = draws - draws.mean()
    error = math.sqrt((np.mean(centred**4) - np.mean(centred**2) ** 2) / DRAWS)
    assert abs(np.mean(centred**2) - 0.21 * n) < SIGMAS * error


@given(
    total=some.floats(min_value=0.0, max_value=1e6),
    count=some.integers(min_value=1, max_value=10**6),
    line=some.floats(min_value=-1.0, max_value=2.0),
    most=some.integers(min_value=1, max_value=10**6),
)
def test_no_values_can_reach_the_line_before_the_last_of_the_sure_rounds(
    total: float, count: int, line: float, most: int
) -> None:
    """Were all of them 0, the mean would still be above the line one round earlier."""
    sure = rounds_above(total, count, line, most)
    assert 1 <= sure <= most
    if sure > 1:
        assert total > line * (count + sure - 1)


@pytest.mark.parametrize(("slack", "drift", "variance"), [(10.0, 0.1, 0.1), (1e-3, 0.5, 0.2), (1e6, 1e-9, 1e-3)])
def test_rounds_within_solve_their_equation(slack: float, drift: float, variance: float) -> None:
    n = rounds_within(slack, drift, variance)
    assert drift * n + DEVIATIONS * math.sqrt(variance * n) == pytest.approx(slack)
    assert rounds_within(-1.0, drift, variance) == 0.0
