"""Curators of the local model: users without a level, huge levels, and the grid of exact noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpbandits.curators import (
    BinnedBernoulli,
    HeterogeneousBernoulli,
    HeterogeneousLaplace,
    LocalLaplace,
    WeightedBernoulli,
)
from dpbandits.curators.rounds import OneByOne
from dpbandits.environments import Bernoulli, parse_levels
from dpbandits.environments.levels import users_of
from dpbandits.numerics import sigmoid


class NoNoise:
    """In the place of a generator: every Laplace noise is 0."""

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
