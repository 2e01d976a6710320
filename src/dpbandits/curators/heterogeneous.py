"""The local model with a level for each user (HeLDP): responses below ``epsilon_min`` are discarded."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from dpbandits.checks import positive
from dpbandits.curators.bits import MAX_LEVELS, BitsAtLevels, LaplaceAtLevels
from dpbandits.mechanisms import attenuate, debias, debias_variance
from dpbandits.protocols import NO_LINE, Environment
from dpbandits.types import Floats, Integers, Rng


class Heterogeneous(NamedTuple):
    """The fields of both curators: the mean of all accepted responses is released."""

    epsilon_min: float
    sigmoid: bool
    counts: Integers  # (arms,): accepted responses
    sums: Floats
    variances: Floats  # (arms,): how noisy the accepted responses are, summed: each curator says in which unit
    scratch: Floats  # (2, MAX_LEVELS): ones and zeros at each level, while many bits are drawn at once

    @classmethod
    def start(cls, arms: int, *, epsilon_min: float, sigmoid: bool = False) -> Self:
        """A fresh curator; with ``sigmoid`` any real reward is allowed."""
        epsilon_min = positive("epsilon_min", epsilon_min)
        counts, sums, variances = np.zeros(arms, np.int64), np.zeros(arms), np.zeros(arms)
        return cls(epsilon_min, sigmoid, counts, sums, variances, np.zeros((2, MAX_LEVELS)))


class HeterogeneousLaplace(LaplaceAtLevels, Heterogeneous):
    """Laplace noise at each user's own level: Curator 1 and the tallies of Agent 2 of the HeLDP paper.

    ``variances`` sums 1/level^2. Differs: the reward is first rounded to a multiple of 2^-16, as with exact noise.

    >>> curator, rng = HeterogeneousLaplace.start(2, epsilon_min=0.5), np.random.default_rng(0)
    >>> curator.add(0, 0.7, 2.0, rng), curator.add(0, 9.9, 0.1, rng)  # the second is below epsilon_min
    (None, None)
    >>> float(curator.mean(0))
    0.7
    """

    __slots__ = ()

    def least_level(self) -> float:
        return self.epsilon_min

    def add(self, arm: int, response: float, level: float, rng: Rng) -> None:
        if level >= self.epsilon_min:
            self.counts[arm] += 1
            self.sums[arm] += response
            self.variances[arm] += 1.0 / (level * level)

    def absorb(self, environment: Environment, arm: int, n: int, line: float, rewards: Rng, noise: Rng) -> int:
        """The same as ``one_by_one``, but responses that would be discarded are not drawn."""
        for played in range(1, n + 1):
            level = environment.population.level(rewards)
            if level >= self.epsilon_min:
                self.add(arm, self.respond(environment.draw(arm, rewards), level, noise), level, noise)
            if line > NO_LINE and self.mean(arm) <= line:
                return played
        return n

    def ready(self, arm: int, exponent: float) -> bool:
        """The bound ``width`` on the noise of the mean holds only under this condition (HeLDP, Agent 2, line 4)."""
        return self.variances[arm] * self.epsilon_min * self.epsilon_min > exponent

    def width(self, arm: int, exponent: float, ahead: int) -> float:
        return math.sqrt(8.0 * exponent * self.variances[arm]) / (self.counts[arm] + ahead)


class HeterogeneousBernoulli(BitsAtLevels, Heterogeneous):
    """One private bit at each user's own level, debiased: Curator 3 and the tallies of Agent 4 of the HeLDP paper.

    ``variances`` sums coth(level/2)^2.

    >>> curator, rng = HeterogeneousBernoulli.start(2, epsilon_min=0.5), np.random.default_rng(0)
    >>> curator.add(0, 1.0, 1.0, rng)
    >>> round(float(curator.mean(0)), 6), round(float(curator.samples(0, 0)), 6)
    (1.581977, 0.213552)
    """

    __slots__ = ()

    def least_level(self) -> float:
        return self.epsilon_min

    def take(self, arm: int, ones: float, zeros: float, slope: float) -> None:
        """Take bits of this attenuation."""
        self.counts[arm] += int(ones + zeros)
        self.sums[arm] += ones * debias(1.0, slope) + zeros * debias(0.0, slope)
        self.variances[arm] += (ones + zeros) * debias_variance(slope)

    def heard(self, arm: int) -> bool:
        """Whether a response has come from this arm, so that it has a mean."""
        return self.counts[arm] > 0

    def slack(self, arm: int, line: float) -> float:
        """Positive while the mean is above ``line``."""
        return self.sums[arm] - line * self.counts[arm]

    def change(self, line: float, slope: float, bit: float) -> float:
        """By how much a bit changes the slack."""
        return debias(bit, slope) - line

    def add_few(self, environment: Environment, arm: int, n: int, line: float, rewards: Rng, noise: Rng) -> int:
        """As in the class above, quicker: the sums stay in registers."""
        mean = self.given_mean(environment, arm)
        count, total, variance = float(self.counts[arm]), self.sums[arm], self.variances[arm]
        played = 0
        while played < n:
            played += 1
            slope = environment.population.bit_slope(self.epsilon_min, rewards)
            heard, safe = (1.0, slope) if slope > 0.0 else (0.0, 1.0)  # no branch: discards are unpredictable
            response = 1.0 if noise.random() < attenuate(mean, slope) else 0.0
            count += heard
            total += heard * debias(response, safe)
            variance += heard * debias_variance(safe)
            if line > NO_LINE and count > 0.0 and total <= line * count:
                break
        self.counts[arm], self.sums[arm], self.variances[arm] = int(count), total, variance
        return played

    def samples(self, arm: int, ahead: int) -> float:
        n = float(self.counts[arm] + ahead)
        return n * n / self.variances[arm]
