"""Any agent, asked only when the played arm's count has grown by a factor."""

from __future__ import annotations

import math
from typing import Generic, NamedTuple, Self, TypeVar

import numpy as np

from dpbandits.checks import MAX_EXACT_INT, at_least, positive
from dpbandits.errors import InputError
from dpbandits.protocols import NO_LINE, Agent, Counting, Releases
from dpbandits.types import Integers, Rng

__all__ = ["Geometric", "batches", "grown", "growth"]

Inner = TypeVar("Inner", bound=Agent)

LEAST_RATIO = 1.05


@Counting.register
class Geometric(NamedTuple, Generic[Inner]):
    """Play what ``inner`` chooses until that arm has n' = max(n + 1, ceil(ratio n)) plays; the first time, ``first``.

    >>> from dpbandits.agents import UCB
    >>> from dpbandits.curators import Batch
    >>> agent, curator = Geometric.start(2, UCB.start(2), ratio=1.5, first=4), Batch.start(2, epsilon=1.0)
    >>> agent.act(curator, 1, None)
    (0, 4, -inf)
    """

    inner: Inner
    ratio: float
    first: int
    pulls: Integers  # (arms,): plays, with all of the open stint

    @classmethod
    def start(cls, arms: int, inner: Inner, *, ratio: float, first: int) -> Self:
        """A fresh agent around a fresh ``inner``."""
        ratio, first = growth(ratio, first)
        return cls(inner, ratio, first, np.zeros(arms, np.int64))

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        arm = self.inner.act(releases, t, rng)[0]
        plays = min(self.pulls[arm], t - 1)  # a session of an earlier version may have counted unplayed rounds
        stint = int(grown(plays, self.ratio, self.first) - plays)
        self.pulls[arm] = plays + stint
        return arm, stint, NO_LINE

    def unplayed(self, arm: int, rounds: int) -> None:
        self.pulls[arm] -= rounds


def growth(ratio: float, first: int) -> tuple[float, int]:
    """The ratio and the first batch, checked."""
    ratio, first = positive("ratio", ratio), at_least("first", first, 1)
    if ratio < LEAST_RATIO:
        raise InputError("ratio", f"must be at least {LEAST_RATIO}, got {ratio}")
    return ratio, first


def grown(plays: int, ratio: float, first: int) -> int:
    """How many plays an arm has after its next batch."""
    if plays == 0:
        return first
    return max(plays + 1, int(min(math.ceil(ratio * plays), 2.0**62)))


def batches(ratio: float, first: int) -> int:
    """How many batches of an arm there can be within 2^53 rounds.

    >>> batches(1.5, 4), batches(2.0, 1)
    (89, 54)
    """
    ratio, first = growth(ratio, first)
    plays, count = first, 1
    while plays < MAX_EXACT_INT:
        plays, count = grown(plays, ratio, first), count + 1
    return count
