"""The interaction loop. It runs in plain Python, and compiled."""

from __future__ import annotations

from dpbandits.errors import check_choice, check_turns
from dpbandits.protocols import Agent, Curator, Environment, InTurns
from dpbandits.types import Integers, Rng

__all__ = ["play", "play_in_turns", "play_stint"]


def play_stint(
    environment: Environment, curator: Curator, agent: Agent, t: int, left: int, rewards: Rng, noise: Rng, choices: Rng
) -> tuple[int, int, bool]:
    """Ask the agent in round t and play what it answers, for at most ``left`` rounds: (arm, rounds, whether it closed).

    A stint that is cut short by its line, or by the end, is not closed.
    """
    arm, stint, line = agent.act(curator, t, choices)
    check_choice(arm, stint, len(environment.means))
    played = curator.absorb(environment, arm, min(stint, left), line, rewards, noise)
    if played == stint:
        curator.close(arm, noise)
    return arm, played, played == stint


def play(
    environment: Environment,
    curator: Curator,
    agent: Agent,
    checkpoints: Integers,
    pulls: Integers,
    rewards: Rng,
    noise: Rng,
    choices: Rng,
) -> None:
    """Play to the last checkpoint; write the pulls of each arm so far at each one, (checkpoints, arms).

    Within a stint one arm is played, so the pulls at checkpoints inside it are known, and checkpoints change nothing
    else.
    """
    arms = pulls.shape[1]
    horizon = checkpoints[len(checkpoints) - 1]
    t = mark = 0
    while t < horizon:
        arm, played, _ = play_stint(environment, curator, agent, t + 1, horizon - t, rewards, noise, choices)
        while mark < len(checkpoints) and checkpoints[mark] <= t + played:
            pulls[mark, arm] += checkpoints[mark] - t
            if mark + 1 < len(checkpoints):
                for other in range(arms):
                    pulls[mark + 1, other] = pulls[mark, other]
            t, played = checkpoints[mark], played - (checkpoints[mark] - t)
            mark += 1
        if mark < len(checkpoints):
            pulls[mark, arm] += played
        t += played


def play_in_turns(
    environment: Environment,
    curator: Curator,
    agent: InTurns,
    checkpoints: Integers,
    pulls: Integers,
    rewards: Rng,
    noise: Rng,
    choices: Rng,
) -> None:
    """``play`` for an agent whose stints come in epochs, in each of which ``agent.turns()`` arms are played in turns.

    Nothing is released before an epoch ends, so the rewards of each arm's stint can still be drawn at once. An epoch
    that the horizon cuts short releases nothing, and its rewards need not be drawn.
    """
    horizon = checkpoints[len(checkpoints) - 1]
    t = mark = 0
    while t < horizon:
        arm, stint, line = agent.act(curator, t + 1, choices)
        turns = agent.turns()
        check_turns(turns)
        whole = stint <= (horizon - t) // turns
        end = t + turns * stint if whole else horizon
        for turn in range(turns):
            if turn > 0:
                arm, stint, line = agent.act(curator, t + 1, choices)
            check_choice(arm, stint, len(environment.means))
            if whole:
                curator.absorb(environment, arm, stint, line, rewards, noise)
                curator.close(arm, noise)
            for later in range(mark, len(checkpoints)):
                pulls[later, arm] += (min(checkpoints[later], end) - t - turn + turns - 1) // turns
        t = end
        while mark < len(checkpoints) and checkpoints[mark] <= t:
            mark += 1
