"""The central model, released when an arm's buffer has twice the rewards of its last release, then forgotten."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from dpbandits.checks import positive
from dpbandits.curators.common import Trusted
from dpbandits.mechanisms import laplace
from dpbandits.numerics import unit
from dpbandits.privacy.guarantee import Guarantee
from dpbandits.protocols import Environment
from dpbandits.types import Floats, Integers, Rng


class LazyFields(NamedTuple):
    """The fields of ``Lazy``."""

    epsilon: float
    raw_sums: Floats
    buffered: Integers  # (arms,): rewards since the last release
    counts: Integers  # (arms,): rewards in the last release
    means: Floats


class Lazy(Trusted, LazyFields):
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
        """How many rewards the next release of this arm has."""
        return max(2 * self.counts[arm], 1)

    def add(self, arm: int, response: float, level: float, rng: Rng) -> None:
        self.buffered[arm] += 1
        self.raw_sums[arm] += unit(response)
        self.release(arm, rng)

    def release(self, arm: int, rng: Rng) -> None:
        """Release the mean of the buffer if it is full."""
        n = self.buffered[arm]
        if n >= self.due(arm):
            self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
            self.counts[arm] = n
            self.buffered[arm] = 0
            self.raw_sums[arm] = 0.0

    def absorb(self, environment: Environment, arm: int, n: int, line: float, rewards: Rng, noise: Rng) -> int:
        played = 0
        while played < n:
            step = min(n - played, self.due(arm) - self.buffered[arm])
            if self.mean(arm) <= line:
                step = 1  # only the first round is sure
            self.buffered[arm] += step
            self.raw_sums[arm] += environment.total(arm, step, rewards)
            self.release(arm, noise)
            played += step
            if self.mean(arm) <= line:
                break
        return played

    def mean(self, arm: int) -> float:
        return self.means[arm]

    def lowest(self, arm: int, ahead: int) -> float:
        return self.means[arm] if self.buffered[arm] + ahead < self.due(arm) else -math.inf

    def samples(self, arm: int, ahead: int) -> float:
        """After a release the count is what was due; after k more, 2^k as much, and never more than all rewards."""
        n = self.buffered[arm] + ahead
        return float(self.counts[arm] if n < self.due(arm) else max(n, self.due(arm)))

    def width(self, arm: int, confidence: float, ahead: int) -> float:
        return confidence / (self.epsilon * self.samples(arm, ahead))
