"""The central model, released when an arm's buffer has twice the rewards of its last release, then forgotten."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from dpbandits.checks import positive
from dpbandits.curators.common import Released
from dpbandits.mechanisms import laplace
from dpbandits.privacy.guarantee import Guarantee
from dpbandits.types import Floats, Integers, Rng


class LazyFields(NamedTuple):
    """The fields of ``Lazy``."""

    epsilon: float
    raw_sums: Floats
    buffered: Integers  # (arms,): rewards since the last release
    counts: Integers  # (arms,): rewards in the last release
    means: Floats


class Lazy(Released, LazyFields):
    """The curator of Anytime-Lazy-UCB and Lazy-DP-TS: the mean of 1, 2, 4 .. new rewards of an arm, with Laplace noise.

    Unlike ``Batch`` it does not ask for whole stints: another arm may be played while the buffer fills. Every reward is
    in one released sum, which moves by at most 1 with it, so the whole is epsilon-private.

    >>> curator, rng = Lazy.start(2, epsilon=1e6), np.random.default_rng(0)
    >>> for reward in (0.0, 1.0, 1.0):
    ...     curator.add(0, reward, 0.0, rng)
    >>> round(float(curator.mean(0)), 3), curator.samples(0, 0)
    (1.0, 2.0)
    """

    __slots__ = ()

    @classmethod
    def start(cls, arms: int, *, epsilon: float) -> Self:
        """A fresh curator."""
        counts, sums = np.zeros((2, arms), np.int64), np.zeros((2, arms))
        return cls(positive("epsilon", epsilon), sums[0], counts[0], counts[1], sums[1])

    def guarantee(self) -> Guarantee:
        return Guarantee.central(self.epsilon)

    def due(self, arm: int) -> int:
        return max(2 * self.counts[arm], 1) - self.buffered[arm]

    def take(self, arm: int, n: int, total: float) -> None:
        """Take n rewards with this sum."""
        self.buffered[arm] += n
        self.raw_sums[arm] += total

    def release(self, arm: int, rng: Rng) -> None:
        """Release the mean of the buffer if it is full."""
        if self.due(arm) <= 0:
            n = self.buffered[arm]
            self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
            self.counts[arm] = n
            self.buffered[arm] = 0
            self.raw_sums[arm] = 0.0

    def samples(self, arm: int, ahead: int) -> float:
        """At most this many rewards are in the arm's last release after ``ahead`` more rounds."""
        return float(self.counts[arm] if ahead < self.due(arm) else self.buffered[arm] + ahead)

    def width(self, arm: int, exponent: float, ahead: int) -> float:
        return exponent / (self.epsilon * self.samples(arm, ahead))
