"""Users as they come: draws of their privacy levels, for simulations."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from dpbandits.environments.levels import Levels, Population
from dpbandits.mechanisms import attenuation
from dpbandits.types import Floats, Rng

__all__ = ["NOBODY", "ListedUsers", "NormalUsers", "Users", "users_of"]


class ListedUsers(NamedTuple):
    """Every user has one of these levels, each as likely as the others.

    >>> ListedUsers.start([0.2, 1.0]).values.tolist()
    [0.2, 1.0]
    """

    values: Floats  # ascending
    attenuations: Floats  # of a private bit, at each of the levels

    @classmethod
    def start(cls, values: list[float]) -> Self:
        """Users with these levels."""
        ordered = sorted(values)
        return cls(np.array(ordered), np.array([attenuation(value) for value in ordered]))

    def level(self, rng: Rng) -> float:
        if len(self.values) == 1:
            return self.values[0]
        return self.values[int(rng.random() * len(self.values))]

    def bit_slope(self, least: float, rng: Rng) -> float:
        i = int(rng.random() * len(self.values)) if len(self.values) > 1 else 0
        slope = self.attenuations[i]
        return slope if self.values[i] >= least else 0.0

    def bit_slopes(self, least: float) -> tuple[Floats, float]:
        first = 0
        while first < len(self.values) and self.values[first] < least:
            first += 1
        return self.attenuations[first:], 1.0 - first / len(self.values)


class NormalUsers(NamedTuple):
    """Users with normally distributed levels, clipped to [0, high]."""

    mean: float
    sd: float
    high: float
    none: Floats  # (0,): the attenuations that can be listed

    @classmethod
    def start(cls, mean: float, sd: float, high: float) -> Self:
        """Users with these levels."""
        return cls(mean, sd, high, np.zeros(0))

    def level(self, rng: Rng) -> float:
        return min(max(self.mean + self.sd * rng.standard_normal(), 0.0), self.high)

    def bit_slope(self, least: float, rng: Rng) -> float:
        level = self.level(rng)
        return attenuation(level) if level >= least else 0.0

    def bit_slopes(self, least: float) -> tuple[Floats, float]:
        return self.none, 0.0


Users = ListedUsers | NormalUsers

#: Where nobody has a level: the policy has one epsilon for all, or none.
NOBODY = ListedUsers.start([0.0])


def users_of(population: Population | None) -> Users:
    """The users of a population.

    >>> type(users_of(Levels.of([1.0]))).__name__
    'ListedUsers'
    """
    if population is None:
        return NOBODY
    if isinstance(population, Levels):
        return ListedUsers.start(list(population.sample))
    return NormalUsers.start(population.mean, population.sd, population.high)
