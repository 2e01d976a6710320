"""Rewards that are fixed beforehand, for audits: what each arm pays in each round."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from dpbandits.environments.levels import ListedUsers
from dpbandits.types import Floats, Integers, Rng


class Scripted(NamedTuple):
    """Arm ``arm`` pays ``tables[table, t, arm]`` in round t, counted from 0; every user has one level.

    >>> environment = Scripted.start(np.array([[[0.0, 1.0], [0.5, 0.25]]]))
    >>> [float(environment.draw(1, np.random.default_rng(0))) for _ in range(2)]
    [1.0, 0.25]
    """

    means: Floats
    unit_means: Floats
    sigmoid_means: Floats
    tables: Floats  # (tables, rounds, arms)
    table: Integers  # (1,)
    round: Integers  # (1,)
    population: ListedUsers

    @classmethod
    def start(cls, tables: Floats, level: float = 0.0) -> Self:
        """These tables, the first of them from its first round on."""
        nothing = np.zeros((3, tables.shape[2]))  # means are not known, and not needed
        at = np.zeros((2, 1), np.int64)
        return cls(nothing[0], nothing[1], nothing[2], tables, at[0], at[1], ListedUsers.start([level]))

    def rewind(self, table: int) -> None:
        """Begin again with this table."""
        self.table[0] = table
        self.round[0] = 0

    def draw(self, arm: int, rng: Rng) -> float:
        t = self.round[0]
        self.round[0] = t + 1
        return self.tables[self.table[0], t, arm]

    def total(self, arm: int, n: int, rng: Rng) -> float:
        total = 0.0
        for _ in range(n):
            total += self.draw(arm, rng)
        return total
