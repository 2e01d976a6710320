"""No privacy: the baseline."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from dpbandits.curators.rounds import one_by_one
from dpbandits.numerics import rounds_above, sigmoid
from dpbandits.privacy.guarantee import Guarantee
from dpbandits.protocols import Environment, Floats, Integers, Rng


class Exact(NamedTuple):
    """Releases the exact mean of all rewards.

    >>> curator, rng = Exact.start(2), np.random.default_rng(0)
    >>> curator.add(0, 1.0, 0.0, rng), curator.add(0, 0.0, 0.0, rng)
    (None, None)
    >>> float(curator.mean(0))
    0.5
    """

    sigmoid: bool
    counts: Integers
    sums: Floats

    @classmethod
    def start(cls, arms: int, *, sigmoid: bool = False) -> Self:
        """A fresh curator; with ``sigmoid`` it keeps the logistic function of each reward."""
        return cls(sigmoid, np.zeros(arms, np.int64), np.zeros(arms))

    def guarantee(self) -> Guarantee:
        return Guarantee.none()

    def respond(self, reward: float, level: float, rng: Rng) -> float:
        return reward

    def accepts(self, response: float) -> bool:
        return math.isfinite(response) if self.sigmoid else 0.0 <= response <= 1.0

    def add(self, arm: int, response: float, level: float, rng: Rng) -> None:
        self.counts[arm] += 1
        self.sums[arm] += sigmoid(response) if self.sigmoid else response

    def close(self, arm: int, rng: Rng) -> None:
        pass

    def absorb(self, environment: Environment, arm: int, n: int, line: float, rewards: Rng, noise: Rng) -> int:
        if self.sigmoid:
            return one_by_one(self, environment, arm, n, line, rewards, noise)
        played = 0
        while played < n:
            step = rounds_above(self.sums[arm], self.counts[arm], line, n - played)
            self.counts[arm] += step
            self.sums[arm] += environment.total(arm, step, rewards)
            played += step
            if self.mean(arm) <= line:
                break
        return played

    def ready(self, arm: int, confidence: float) -> bool:
        return self.counts[arm] > 0

    def mean(self, arm: int) -> float:
        return self.sums[arm] / self.counts[arm]

    def lowest(self, arm: int, ahead: int) -> float:
        return self.sums[arm] / (self.counts[arm] + ahead)

    def samples(self, arm: int, ahead: int) -> float:
        return self.counts[arm] + ahead

    def width(self, arm: int, confidence: float, ahead: int) -> float:
        return 0.0
