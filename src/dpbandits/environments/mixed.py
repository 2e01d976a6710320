"""Arms that each have a distribution of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from dpbandits.draws import successes
from dpbandits.environments.distributions import BERNOULLI, Choice, Distribution, draw
from dpbandits.environments.levels import NOBODY
from dpbandits.errors import InputError
from dpbandits.protocols import Population
from dpbandits.types import Floats, Integers, Rng


class Mixed(NamedTuple):
    """Arms of any kind side by side; a range clips rewards and maps them to [0, 1].

    >>> from dpbandits.environments.distributions import Beta, Normal
    >>> environment = Mixed.start([Beta(4, 1), Normal(0.5, 1)])
    >>> environment.means.tolist(), [round(float(m), 4) for m in environment.unit_means]
    ([0.8, 0.5], [0.8, 0.5])
    """

    means: Floats
    unit_means: Floats
    sigmoid_means: Floats
    codes: Integers
    first: Floats  # (arms,): first parameter
    second: Floats  # (arms,): second parameter
    starts: Integers  # (arms,): where a choice arm's values begin
    sizes: Integers  # (arms,): how many they are
    values: Floats
    clipped: bool
    low: float
    high: float
    population: Population

    @classmethod
    def start(
        cls,
        arms: Sequence[Distribution],
        population: Population = NOBODY,
        reward_range: tuple[float, float] | None = None,
    ) -> Self:
        """These arms, for users with these levels; ``reward_range`` clips rewards and maps it to [0, 1]."""
        low, high = reward_range or (0.0, 1.0)
        choices = [arm.values if isinstance(arm, Choice) else np.zeros(0) for arm in arms]
        sizes = np.array([values.size for values in choices], np.int64)
        pairs = np.array([_pair(arm) for arm in arms], np.float64)
        return cls(
            np.array([arm.mean for arm in arms]),
            np.array([arm.clipped_mean(low, high) for arm in arms]),
            np.array([arm.sigmoid_mean(*(reward_range or ())) for arm in arms]),
            np.array([arm.code for arm in arms], np.int64),
            pairs[:, 0].copy(),
            pairs[:, 1].copy(),
            np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int64),
            sizes,
            np.concatenate([*choices, np.zeros(1)]).astype(np.float64),
            reward_range is not None,
            low,
            high,
            population,
        )

    def reorder(self, order: Integers) -> Self:
        """The same arms in another order."""
        per_arm = ("means", "unit_means", "sigmoid_means", "codes", "first", "second", "starts", "sizes")
        return self._replace(**{name: getattr(self, name)[order] for name in per_arm})

    def draw(self, arm: int, rng: Rng) -> float:
        first, second = self.first[arm], self.second[arm]
        reward = draw(self.codes[arm], first, second, self.values, self.starts[arm], self.sizes[arm], rng)
        if self.clipped:
            reward = (min(max(reward, self.low), self.high) - self.low) / (self.high - self.low)
        return reward

    def total(self, arm: int, n: int, rng: Rng) -> float:
        if self.codes[arm] == BERNOULLI and not self.clipped:
            return successes(n, self.first[arm], rng)
        total = 0.0
        for _ in range(n):
            total += self.draw(arm, rng)
        return total


def _pair(arm: Distribution) -> tuple[float, float]:
    """The two parameters that ``draw`` gets; a choice has its values instead."""
    if isinstance(arm, Choice):
        return 0.0, 0.0
    if len(arm.parameters) > 2:
        raise InputError("arms", f": a distribution has at most 2 parameters, got {len(arm.parameters)} of {arm.name}")
    first, second = (*arm.parameters, 0.0)[:2]
    return first, second
