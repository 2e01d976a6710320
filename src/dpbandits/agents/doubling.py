"""An agent that asks another one only when the count of the played arm has doubled: Azize & Basu's framework."""

from __future__ import annotations

from typing import Generic, NamedTuple, Self, TypeVar

import numpy as np

from dpbandits.protocols import NO_LINE, Agent, Counting, Releases
from dpbandits.types import Integers, Rng

Inner = TypeVar("Inner", bound=Agent)


@Counting.register
class Doubling(NamedTuple, Generic[Inner]):
    """Play what ``inner`` chooses for as many rounds as that arm has had so far: Algorithm 1 of Azize & Basu 2022.

    With a curator that releases the mean of each stint, and nothing of earlier ones, this makes any index private.

    >>> from dpbandits.agents import UCB
    >>> from dpbandits.curators import Batch
    >>> agent, curator, rng = Doubling.start(2, UCB.start(2)), Batch.start(2, epsilon=1.0), None
    >>> agent.act(curator, 1, rng)
    (0, 1, -inf)
    """

    inner: Inner
    pulls: Integers  # (arms,): plays, with all of the open stint

    @classmethod
    def start(cls, arms: int, inner: Inner) -> Self:
        """A fresh agent around a fresh ``inner``."""
        return cls(inner, np.zeros(arms, np.int64))

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        arm = self.inner.act(releases, t, rng)[0]
        plays = min(self.pulls[arm], t - 1)  # a session of an earlier version may have counted unplayed rounds
        stint = max(plays, 1)
        self.pulls[arm] = plays + stint
        return arm, stint, NO_LINE

    def unplayed(self, arm: int, rounds: int) -> None:
        self.pulls[arm] -= rounds
