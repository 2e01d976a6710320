"""The interaction loop, in plain Python."""

from __future__ import annotations

from dpbandits.curators.rounds import one_by_one
from dpbandits.protocols import Agent, Curator, Environment, Integers, Rng


def play(
    environment: Environment,
    curator: Curator,
    agent: Agent,
    checkpoints: Integers,
    pulls: Integers,
    rewards: Rng,
    noise: Rng,
    choices: Rng,
    singly: bool | None,
) -> None:
    """Play to the last checkpoint; write the pulls of each arm so far at each one, (checkpoints, arms).

    A stint is one bulk draw, or, if ``singly`` is not None, as many single rewards; both have the same law. (Numba
    makes a loop for each, because None is a type.) Within a stint one arm is played, so the pulls at checkpoints inside
    it are known, and checkpoints change nothing else.
    """
    arms = pulls.shape[1]
    horizon = checkpoints[checkpoints.size - 1]
    t = mark = 0
    while t < horizon:
        arm, stint, line = agent.act(curator, t + 1, choices)
        n = min(stint, horizon - t)
        if singly is None:
            played = curator.absorb(environment, arm, n, line, rewards, noise)
        else:
            played = one_by_one(curator, environment, arm, n, line, rewards, noise)
        if played == stint:
            curator.close(arm, noise)
        while mark < checkpoints.size and checkpoints[mark] <= t + played:
            pulls[mark, arm] += checkpoints[mark] - t
            if mark + 1 < checkpoints.size:
                for other in range(arms):
                    pulls[mark + 1, other] = pulls[mark, other]
            t, played = checkpoints[mark], played - (checkpoints[mark] - t)
            mark += 1
        if mark < checkpoints.size:
            pulls[mark, arm] += played
        t += played
