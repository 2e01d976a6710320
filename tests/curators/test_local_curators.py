"""Curators of the local model: users without a level, huge levels, the grid of exact noise, and lines."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from dpbandits.curators import (
    BinnedBernoulli,
    HeterogeneousBernoulli,
    HeterogeneousLaplace,
    LocalLaplace,
    WeightedBernoulli,
)
from dpbandits.curators.likelihood import HIGH
from dpbandits.curators.rounds import OneByOne
from dpbandits.environments import Bernoulli, parse_levels
from dpbandits.environments.levels import users_of
from dpbandits.numerics import sigmoid
from dpbandits.parts import copied, freeze
from dpbandits.protocols import NO_LINE


class NoNoise:
    """In place of a generator: every Laplace noise is 0."""

    def laplace(self, loc: float, scale: float) -> float:
        return 0.0


@pytest.mark.parametrize("kind", [HeterogeneousLaplace, HeterogeneousBernoulli])
def test_level_zero_is_no_response_and_level_1000_does_not_overflow(kind: type[HeterogeneousLaplace]) -> None:
    curator, rng = kind.start(2, epsilon_min=0.5), np.random.default_rng(0)
    assert math.isnan(curator.respond(1.0, 0.0, rng))
    curator.add(0, math.nan, 0.0, rng)
    assert curator.counts[0] == 0
    for level in (0.5, 100.0, 1000.0):
        curator.add(0, curator.respond(1.0, level, rng), level, rng)
    assert curator.counts[0] == 3
    assert math.isfinite(curator.mean(0))


@pytest.mark.parametrize("through_sigmoid", [False, True])
def test_laplace_responses_are_of_rewards_on_the_grid(through_sigmoid: bool) -> None:
    """The nearest multiple of 2^-16 of the clipped reward, or of its logistic function; not a number is 0."""
    silent: Any = NoNoise()
    one = LocalLaplace.start(2, epsilon=1.0, sigmoid=through_sigmoid)
    other = HeterogeneousLaplace.start(2, epsilon_min=1.0, sigmoid=through_sigmoid)
    rewards = [*np.random.default_rng(0).normal(0.5, 1.0, 500).tolist(), 0.0, 1.0, math.inf, -math.inf]
    for reward in rewards:
        inside = sigmoid(reward) if through_sigmoid else min(max(reward, 0.0), 1.0)
        expected = round(inside * 65536) / 65536
        assert one.respond(reward, 0.0, silent) == other.respond(reward, 1.0, silent) == expected
    assert one.respond(math.nan, 0.0, silent) == 0.0


BITS: list[Callable[[], Any]] = [
    lambda: WeightedBernoulli.start(1),
    lambda: BinnedBernoulli.start(1),
    lambda: HeterogeneousBernoulli.start(1, epsilon_min=0.5),
]


@pytest.mark.parametrize("bulk", [True, False])
@pytest.mark.parametrize("start", BITS)
def test_a_mean_that_is_not_above_the_line_is_asked_about_after_one_round(
    start: Callable[[], Any], bulk: bool, fit: Callable[..., bool]
) -> None:
    """Also where the first user sends nothing. Chi-square of 4000 stints of up to 4 rounds; it fails by chance in 1e-9.

    A quarter of the users send a fair bit. The first round goes on only with a 1, in one of 8 cases. After that a 0,
    in one of 8 cases, ends the stint, and another 1 keeps it above the line until the last round.
    """
    environment = Bernoulli.start([0.5], users_of(parse_levels("choice(0,0,0,1)")))
    law = {1: 7 / 8, 2: 1 / 64, 3: 3 / 256, 4: 25 / 256}
    rng, played = np.random.default_rng(0), []
    for _ in range(4000):
        curator = start()
        for bit in (1.0, 0.0, 0.0, 1.0):
            curator.add(0, bit, 1.0, rng)
        line = float(curator.mean(0)) + 1e-9
        played.append((curator if bulk else OneByOne(curator)).absorb(environment, 0, 4, line, rng, rng))
    assert fit(played, lambda rounds: law.get(rounds, 0.0))


@pytest.mark.parametrize("levels", ["normal(1,1)", "choice(0,0.2,1,2,100)"])
@pytest.mark.parametrize("start", BITS)
def test_a_stint_ends_with_the_first_response_after_which_the_mean_is_not_above_the_line(
    start: Callable[[], Any], levels: str
) -> None:
    """300 stints: bits that are counted and watched one by one end in the same round, and leave the same memory.

    An expansion is computed anew after a stint with a line, and followed bit by bit without one: it rounds otherwise.
    """
    environment, ended = Bernoulli.start([0.1], users_of(parse_levels(levels))), 0
    for trial in range(300):
        rng = np.random.default_rng(trial)
        curator = start()
        curator.absorb(environment, 0, int(10 ** rng.uniform(1, 4)), NO_LINE, rng, rng)
        line = float(curator.mean(0)) - rng.exponential() / 100
        naive, generators = copied(curator), [np.random.default_rng([trial, 1]) for _ in range(2)]
        played = curator.add_few(environment, 0, 64, line, generators[0], generators[0])
        expected, above = 0, True
        while above and expected < 64:
            naive.add_few(environment, 0, 1, NO_LINE, generators[1], generators[1])
            expected, above = expected + 1, naive.slack(0, line) > 0.0
        assert played == expected
        kept, expected_memory = freeze(curator), freeze(naive)
        kept.pop("near", None), expected_memory.pop("near", None)
        assert kept == expected_memory
        curator.settle(0), naive.settle(0)
        assert curator.mean(0) == pytest.approx(naive.mean(0), rel=0, abs=1e-10)
        ended += played < 64
    assert 50 < ended < 290


@pytest.mark.parametrize("line", [HIGH, 1.0, 2.0])
def test_no_mean_is_above_a_line_at_the_end_of_the_range(line: float) -> None:
    environment, rng = Bernoulli.start([1.0], users_of(parse_levels("constant(100)"))), np.random.default_rng(0)
    curator: Any = BinnedBernoulli.start(1)
    assert curator.add_few(environment, 0, 64, line, rng, rng) == 1
    assert curator.absorb(environment, 0, 64, line, rng, rng) == 1


@pytest.mark.parametrize("level", [0.001, 0.1, 1.0, 3.0])
@pytest.mark.parametrize("above", [1e-6, 1e-3, 0.3])
def test_evidence_on_bits_is_right_to_14_digits(level: float, above: float) -> None:
    """In two bins with 10^8 bits each, beside 50 digits. The parts of ones and of zeros nearly cancel each other."""
    curator: Any = BinnedBernoulli.start(1)
    n, slopes = 10.0**8, (math.tanh(level / 2.0), 0.95)
    for slope in slopes:
        ones = float(round(n * (0.5 + (0.2 - 0.5) * slope)))
        curator.take(0, ones, n - ones, slope)
    mean = curator.mean(0)
    top, expected, size = mean + above, mpmath.mpf(0), 0.0
    with mpmath.workdps(50):
        for place in range(2):
            ones, s = mpmath.mpf(curator.ones[0, place]), mpmath.mpf(curator.slopes[0, place]) / mpmath.mpf(n)
            p, q = (mpmath.mpf(1) / 2 + (mpmath.mpf(x) - mpmath.mpf(1) / 2) * s for x in (mean, top))
            from_ones, from_zeros = ones * mpmath.log(p / q), (n - ones) * mpmath.log((1 - p) / (1 - q))
            expected += from_ones + from_zeros
            size += float(abs(from_ones) + abs(from_zeros))
    assert abs(curator.evidence(0, mean, top) - float(expected)) <= 1e-14 * size
