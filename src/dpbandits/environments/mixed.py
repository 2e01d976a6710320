"""Arms that each have a distribution of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from dpbandits.environments.distributions import Choice, Distribution
from dpbandits.environments.population import Levels, NormalLevels
from dpbandits.mechanisms import successes
from dpbandits.protocols import Floats, Integers, Rng


class Mixed(NamedTuple):
    """Beta, uniform, normal, Bernoulli and empirical arms side by side; a range clips and maps rewards to [0, 1].

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
    population: Levels | NormalLevels

    @classmethod
    def start(
        cls,
        arms: Sequence[Distribution],
        population: Levels | NormalLevels | None = None,
        reward_range: tuple[float, float] | None = None,
    ) -> Self:
        """These arms, for users with these levels; ``reward_range`` clips rewards and maps it to [0, 1]."""
        low, high = reward_range or (0.0, 1.0)
        choices = [arm.values if isinstance(arm, Choice) else np.zeros(0) for arm in arms]
        sizes = np.array([values.size for values in choices], np.int64)
        pairs = np.array([(*arm.parameters[:2], 0.0)[:2] for arm in arms], np.float64)
        unclipped = () if reward_range is None else (low, high)
        return cls(
            np.array([arm.mean for arm in arms]),
            np.array([arm.clipped_mean(low, high) for arm in arms]),
            np.array([arm.sigmoid_mean(*unclipped) for arm in arms]),
            np.array([arm.code for arm in arms], np.int64),
            pairs[:, 0].copy(),
            pairs[:, 1].copy(),
            np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int64),
            sizes,
            np.concatenate([*choices, np.zeros(1)]).astype(np.float64),
            reward_range is not None,
            low,
            high,
            population or Levels.start([0.0]),
        )

    def reorder(self, order: Integers) -> Self:
        """The same arms in another order."""
        per_arm = ("means", "unit_means", "sigmoid_means", "codes", "first", "second", "starts", "sizes")
        return self._replace(**{name: getattr(self, name)[order] for name in per_arm})

    def draw(self, arm: int, rng: Rng) -> float:
        code = self.codes[arm]
        if code == 0:
            reward = 1.0 if rng.random() < self.first[arm] else 0.0
        elif code == 1:
            reward = rng.beta(self.first[arm], self.second[arm])
        elif code == 2:
            reward = self.first[arm] + (self.second[arm] - self.first[arm]) * rng.random()
        elif code == 3:
            reward = self.first[arm] + self.second[arm] * rng.standard_normal()
        elif code == 4:
            reward = self.values[self.starts[arm] + int(rng.random() * self.sizes[arm])]
        else:
            raise ValueError("no way is written to draw from this distribution")
        if self.clipped:
            reward = (min(max(reward, self.low), self.high) - self.low) / (self.high - self.low)
        return reward

    def total(self, arm: int, n: int, rng: Rng) -> float:
        if self.codes[arm] == 0 and not self.clipped:
            return successes(n, self.first[arm], rng)
        total = 0.0
        for _ in range(n):
            total += self.draw(arm, rng)
        return total
