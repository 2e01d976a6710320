"""The intervals of a summary: how often they miss, what they are without noise, and where there is none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpbandits import curators
from dpbandits.mechanisms import attenuation, debias
from dpbandits.policies import lookup
from dpbandits.service.intervals import half_width, noise, spread
from dpbandits.service.state import State

MEANS = (0.3, 0.6, 0.5)
ROUNDS, RUNS, MISSED = 300, 120, 0.05
POLICIES = [
    "ucb1", "adap-ucb", "adap-klucb", "dp-ucb", "dp-ucb-bound", "dp-ucb-int", "anytime-lazy-ucb", "lazy-dp-ts",
    "private-ucb", "dp-klucb", "adac-ucb", "ldp-ucb-b", "ldp-ucb-l", "heldp-ucb-b", "heldp-weighted-b",
]  # fmt: skip


@pytest.mark.parametrize("name", POLICIES)
def test_intervals_miss_seldom_although_the_policy_decides_when_it_plays(name: str) -> None:
    """In each run all arms' intervals are looked at after the last round.

    One misses with probability at most 0.05. The runs are independent, so by Hoeffding's inequality for 120 means of
    indicators, more than 0.05 + 0.3 of them miss with probability below exp(-2 * 120 * 0.09) < 1e-9.
    """
    rng = np.random.default_rng(7)
    missed, seen = 0.0, 0
    for _ in range(RUNS):
        state = State(lookup.sample(name, arms=3, horizon=ROUNDS), math.inf)
        for now in range(ROUNDS):
            arm, stint = state.decide(float(now), rng, rng)
            reward = float(rng.random() < MEANS[arm])
            level = 1.0
            state.receive(arm, stint, float(now), state.curator.respond(reward, level, rng), level, float(now), rng)
        wrong = 0.0
        for arm in range(3):
            if state.curator.ready(arm, 0.0):
                half = half_width(state.curator, arm, MISSED)
                assert half is not None
                mean = state.curator.mean(arm)
                if isinstance(state.curator, curators.LocalBernoulli):
                    mean = debias(mean, attenuation(state.curator.epsilon))
                seen += 1
                wrong += abs(mean - MEANS[arm]) > half
        missed += wrong / 3
    assert seen > RUNS
    assert missed / RUNS <= MISSED + 0.3


def test_the_interval_shrinks_with_the_root_of_the_sample() -> None:
    assert spread(2500.0, 0.025) / 10_000 < 0.021
    assert spread(250_000.0, 0.025) / 1_000_000 < 0.0024


@pytest.mark.parametrize("scales", [[(1.0, 1)], [(2.0, 3)], [(1.0, 50)], [(5.0, 1), (0.1, 200)]])
def test_the_noise_is_bounded(scales: list[tuple[float, int]]) -> None:
    """Each of 4000 sums exceeds the bound with probability at most 0.1; by Hoeffding more than 0.1 + 0.051 of them do
    with probability below exp(-2 * 4000 * 0.0026) < 1e-9."""
    rng = np.random.default_rng(1)
    sums = sum(rng.laplace(0.0, scale, (4000, number)).sum(1) for scale, number in scales)
    assert np.mean(np.abs(sums) > noise(scales, 0.1)) < 0.151


@pytest.mark.parametrize("items", [1, 2, 3, 7, 8, 13, 100])
def test_the_noises_of_a_hybrid_sum_are_counted(items: int) -> None:
    """The bound is asked of the noises that are drawn: with a source that always gives 1, the sum counts them."""

    class Ones:
        def laplace(self, mean: float, scale: float) -> float:
            return mean + scale

    curator = curators.Hybrid.start(1, epsilon_log=2.0, epsilon_tree=0.5)
    for _ in range(items):
        curator.add(0, 0.0, 0.0, Ones())  # type: ignore[arg-type]
    from dpbandits.service.intervals import _of_hybrid

    counted = sum(scale * number for scale, number in _of_hybrid(curator, items))
    assert curator.mean(0) * items == pytest.approx(counted)


def test_there_is_none_for_a_most_likely_mean() -> None:
    curator = curators.BatchLikelihood.start(2, epsilon=1.0)
    curator.add(0, 1.0, 0.0, np.random.default_rng(0))
    curator.close(0, np.random.default_rng(0))
    assert half_width(curator, 0, MISSED) is None
