"""No noise, no privacy: the baseline."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from dpbandits.curators.common import Averaging, NotNegative
from dpbandits.curators.rounds import one_by_one
from dpbandits.draws import rounds_above
from dpbandits.numerics import sigmoid
from dpbandits.privacy.guarantee import Guarantee
from dpbandits.protocols import Environment
from dpbandits.types import Floats, Integers, Rng


class PlainFields(NamedTuple):
    """The fields of ``Plain``."""

    sigmoid: bool
    counts: Integers
    sums: Floats


class Plain(NotNegative, Averaging, PlainFields):
    """Releases the mean of all rewards as it is.

    >>> curator, rng = Plain.start(2), np.random.default_rng(0)
    >>> curator.add(0, 1.0, 0.0, rng), curator.add(0, 0.0, 0.0, rng)
    (None, None)
    >>> float(curator.mean(0))
    0.5
    """

    __slots__ = ()

    @classmethod
    def start(cls, arms: int, *, sigmoid: bool = False) -> Self:
        """A fresh curator; with ``sigmoid`` it keeps the logistic function of each reward."""
        return cls(sigmoid, np.zeros(arms, np.int64), np.zeros(arms))

    def guarantee(self) -> Guarantee:
        return Guarantee.none()

    def respond(self, reward: float, level: float, rng: Rng) -> float:
        return sigmoid(reward) if self.sigmoid else reward

    def accepts(self, response: float) -> bool:
        return 0.0 <= response <= 1.0

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
