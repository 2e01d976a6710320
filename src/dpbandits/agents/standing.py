"""How near an agent that stops is to knowing the best arm, from releases alone."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from dpbandits.agents.elimination import Elimination
from dpbandits.agents.top_two import TopTwo
from dpbandits.protocols import Releases

__all__ = ["standing"]


@singledispatch
def standing(agent: Any, releases: Releases) -> list[float] | None:
    """For each arm, the share of the evidence that is needed to rule it out; None for agents that never stop.

    1 is enough, and the arm that is ahead has 0. It is written for each class of agents; for agents of your own:
    ``@standing.register``.

    >>> from dpbandits.agents import UCB
    >>> from dpbandits.curators import Batch
    >>> standing(UCB.start(2), Batch.start(2, epsilon=1.0))
    >>> standing(Elimination.start(2, epsilon=1.0, beta=0.1), Batch.start(2, epsilon=1.0))
    [0.0, 0.0]
    """
    return None


@standing.register
def _(agent: Elimination, releases: Releases) -> list[float]:
    """An arm is ruled out when it is dropped: its share is 1 then, and 0 before."""
    return [0.0 if active else 1.0 for active in agent.active]


@standing.register
def _(agent: TopTwo, releases: Releases) -> list[float]:  # type: ignore[type-arg]
    arms = range(len(agent.pulls))
    shares = [0.0 for _ in arms]
    if all(releases.ready(arm, 0.0) for arm in arms):
        leader = max(arms, key=releases.mean)
        for arm in arms:
            if arm != leader:
                needed = agent.test.needed(releases, leader, arm, agent.batches)
                shares[arm] = agent.test.evidence(releases, leader, arm, agent.batches) / needed
    return shares
