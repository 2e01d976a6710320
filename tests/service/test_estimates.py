"""The intervals of a summary hold, for policies of every curator, in the live state that the service keeps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpbandits.curators import interval
from dpbandits.curators.intervals import noises
from dpbandits.policies import lookup
from dpbandits.service.state import LiveState

MEANS = (0.3, 0.6, 0.5)
ROUNDS, RUNS, MISSED = 300, 120, 0.05
POLICIES = [
    "ucb1", "adap-ucb", "dp-ucb", "dp-ucb-bound", "dp-ucb-int", "anytime-lazy-ucb", "lazy-dp-ts", "private-ucb",
    "dp-klucb", "adac-ucb", "ldp-ucb-b", "ldp-ucb-l", "heldp-ucb-b", "heldp-ucb-l", "heldp-weighted-b",
]  # fmt: skip


#: After so few rounds the noise leaves nothing to say.
WIDE = ("dp-ucb", "dp-ucb-bound", "private-ucb", "dp-ucb-int", "heldp-ucb-l")


@pytest.mark.parametrize("name", POLICIES)
def test_intervals_miss_seldom_although_the_policy_decides_when_it_plays(name: str) -> None:
    """In each run all arms' intervals are looked at after the last round.

    One misses with probability at most 0.05. The runs are independent, so by Hoeffding's inequality for 120 means of
    indicators, more than 0.05 + 0.3 of them miss with probability below exp(-2 * 120 * 0.09) < 1e-9.
    """
    rng = np.random.default_rng(7)
    missed, seen = 0.0, 0
    for _ in range(RUNS):
        state = LiveState(lookup.sample(name, arms=3, horizon=ROUNDS), math.inf)
        for now in range(ROUNDS):
            arm, stint = state.decide(float(now), rng, rng)
            reward = float(rng.random() < MEANS[arm])
            response = state.curator.respond(reward, 1.0, rng)
            state.receive(arm, stint, float(now), response, 1.0, float(now), rng)
        for arm in range(3):
            low, high = interval(state.curator, arm, MISSED)
            seen += (low, high) != (0.0, 1.0)
            missed += (not low <= MEANS[arm] <= high) / 3
    assert seen > 0 or name in WIDE, "no interval said anything"
    assert missed / RUNS <= MISSED + 0.3


@pytest.mark.parametrize("scales", [[1.0], [2.0] * 3, [1.0] * 50, [5.0, *[0.1] * 200]])
def test_the_noise_is_bounded(scales: list[float]) -> None:
    """Each of 4000 sums exceeds the bound with probability at most 0.1; by Hoeffding more than 0.1 + 0.051 of them do
    with probability below exp(-2 * 4000 * 0.0026) < 1e-9."""
    sums = np.random.default_rng(1).laplace(0.0, scales, (4000, len(scales))).sum(1)
    bound = noises(sum(scale * scale for scale in scales), max(scales), 0.1)
    assert np.mean(np.abs(sums) > bound) < 0.151
