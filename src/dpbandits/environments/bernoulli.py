"""Coin-flip arms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from dpbandits.draws import successes
from dpbandits.environments.levels import NOBODY
from dpbandits.numerics import sigmoid
from dpbandits.protocols import Population
from dpbandits.types import Floats, Integers, Rng


class Bernoulli(NamedTuple):
    """Arms that pay 1 with probability ``means[arm]`` and 0 otherwise; n rewards are one binomial draw.

    >>> environment = Bernoulli.start([0.9, 0.5])
    >>> environment.total(0, 1000, np.random.default_rng(0))
    908.0
    """

    means: Floats
    unit_means: Floats
    sigmoid_means: Floats
    population: Population

    @classmethod
    def start(cls, means: Sequence[float], population: Population = NOBODY) -> Self:
        """Arms with these means, for users with these levels."""
        array = np.array(means, np.float64)
        shifted = np.array([p * sigmoid(1.0) + (1.0 - p) * sigmoid(0.0) for p in means])
        return cls(array, array.copy(), shifted, population)

    def reorder(self, order: Integers) -> Self:
        """The same arms in another order."""
        return type(self)(self.means[order], self.unit_means[order], self.sigmoid_means[order], self.population)

    def draw(self, arm: int, rng: Rng) -> float:
        return 1.0 if rng.random() < self.means[arm] else 0.0

    def total(self, arm: int, n: int, rng: Rng) -> float:
        return successes(n, self.means[arm], rng)
