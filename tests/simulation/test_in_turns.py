"""DP-SE plays the arms of an epoch in turns, and learns what it would learn arm by arm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpbandits as dp
from dpbandits.policies import lookup
from dpbandits.simulation import loop
from dpbandits.simulation.runs import streams

ARMS = "0.75,0.625,0.5,0.375,0.25"


def test_pulls_of_surviving_arms_differ_by_at_most_one() -> None:
    marks = [1, 2, 3, 4, 7, 100, 999, 5003, 12_000]  # within the first epoch, which has 5 x 2,537 rounds
    trace = dp.simulate(
        "dp-se", arms=ARMS, epsilon=1, horizon=12_000, runs=5, checkpoints=marks, options={"beta": 1e-7}
    )
    assert trace.pulls.sum(axis=2).tolist() == [marks] * 5
    assert np.ptp(trace.pulls, axis=2).max() == 1


@pytest.mark.parametrize("engine", ["compiled", "python"])
def test_regret_is_piecewise_linear(engine: str) -> None:
    """In an epoch every block of as many rounds as there are arms left costs the same."""
    trace = dp.simulate(
        "dp-se", arms=ARMS, epsilon=1, horizon=60_000, runs=3, checkpoints=list(range(600, 60_001, 600)), engine=engine
    )
    for run in range(3):
        slopes = np.round(np.diff(trace.regret[run]) / 600, 2)
        assert np.all(np.diff(slopes) <= 0.01)  # arms are only ever dropped, the worst ones first
        assert len(set(slopes)) <= 12


def test_whole_epochs_are_those_that_are_played_arm_by_arm() -> None:
    """With the same noise the two loops end at the same pulls, once one arm is left."""
    horizon = 300_000
    found = []
    loops: tuple[Any, ...] = (loop.play, loop.play_in_turns)
    for play in loops:
        policy = lookup.make("dp-se", arms=5, epsilon=1.0, horizon=horizon)
        environment = dp.simulation.Simulation.of("ucb1", arms=ARMS, horizon=10).environment
        pulls, random = np.zeros((1, 5), np.int64), streams(3, 0)
        play(
            environment,
            policy.curator,
            policy.agent,
            np.array([horizon]),
            pulls,
            random.rewards,
            random.noise,
            random.choices,
        )
        found.append(pulls[0].tolist())
    assert found[0] == found[1]
    assert sum(found[0]) == horizon
