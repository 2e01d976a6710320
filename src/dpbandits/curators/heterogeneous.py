"""The local model with a level for each user (HeLDP): responses below ``epsilon_min`` are discarded."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from dpbandits.curators.rounds import one_by_one
from dpbandits.errors import positive
from dpbandits.mechanisms import attenuation, convert_to_bernoulli, debias, debias_variance, laplace
from dpbandits.numerics import sigmoid, unit
from dpbandits.privacy.guarantee import IN_RANGE, ON_THE_LINE, Guarantee
from dpbandits.protocols import Environment, Floats, Integers, Rng

OWN_LEVEL = (
    "each user's response is private at that user's own epsilon, which is public "
    "and must not depend on the reward; at level 0 no response is sent"
)


class HeterogeneousLaplace(NamedTuple):
    """Laplace noise at each user's own level: Curator 1 and the tallies of Agent 2 of the HeLDP paper.

    >>> curator, rng = HeterogeneousLaplace.start(2, epsilon_min=0.5), np.random.default_rng(0)
    >>> curator.add(0, 0.7, 2.0, rng), curator.add(0, 9.9, 0.1, rng)  # the second is below epsilon_min
    (None, None)
    >>> float(curator.mean(0))
    0.7
    """

    epsilon_min: float
    sigmoid: bool
    counts: Integers
    sums: Floats
    inverse_squares: Floats  # (arms,): the sum of 1/level^2 over accepted responses

    @classmethod
    def start(cls, arms: int, *, epsilon_min: float, sigmoid: bool = False) -> Self:
        """A fresh curator; with ``sigmoid`` any real reward is allowed."""
        epsilon_min = positive("epsilon_min", epsilon_min)
        return cls(epsilon_min, sigmoid, np.zeros(arms, np.int64), np.zeros(arms), np.zeros(arms))

    def guarantee(self) -> Guarantee:
        return Guarantee.local(None, ON_THE_LINE if self.sigmoid else IN_RANGE).under(OWN_LEVEL)

    def respond(self, reward: float, level: float, rng: Rng) -> float:
        if level <= 0.0:
            return math.nan
        return laplace(sigmoid(reward) if self.sigmoid else unit(reward), 1.0, level, rng)

    def accepts(self, response: float) -> bool:
        return math.isfinite(response)

    def add(self, arm: int, response: float, level: float, rng: Rng) -> None:
        if level >= self.epsilon_min:
            self.counts[arm] += 1
            self.sums[arm] += response
            self.inverse_squares[arm] += 1.0 / (level * level)

    def close(self, arm: int, rng: Rng) -> None:
        pass

    def absorb(self, environment: Environment, arm: int, n: int, line: float, rewards: Rng, noise: Rng) -> int:
        return one_by_one(self, environment, arm, n, line, rewards, noise)

    def ready(self, arm: int, confidence: float) -> bool:
        """The noise of the mean is bounded as ``width`` says only beyond this (HeLDP, Agent 2, line 4)."""
        return self.inverse_squares[arm] * self.epsilon_min * self.epsilon_min > confidence

    def mean(self, arm: int) -> float:
        return self.sums[arm] / self.counts[arm]

    def lowest(self, arm: int, ahead: int) -> float:
        return -math.inf

    def samples(self, arm: int, ahead: int) -> float:
        return self.counts[arm] + ahead

    def width(self, arm: int, confidence: float, ahead: int) -> float:
        return math.sqrt(8.0 * confidence * self.inverse_squares[arm]) / (self.counts[arm] + ahead)


class HeterogeneousBernoulli(NamedTuple):
    """One private bit at each user's own level, debiased: Curator 3 and the tallies of Agent 4 of the HeLDP paper.

    >>> curator, rng = HeterogeneousBernoulli.start(2, epsilon_min=0.5), np.random.default_rng(0)
    >>> curator.add(0, 1.0, 1.0, rng)
    >>> round(float(curator.mean(0)), 6), round(float(curator.samples(0, 0)), 6)
    (1.581977, 0.213552)
    """

    epsilon_min: float
    sigmoid: bool
    counts: Integers
    sums: Floats
    variances: Floats  # (arms,): the sum of coth(level/2)^2 over accepted responses

    @classmethod
    def start(cls, arms: int, *, epsilon_min: float, sigmoid: bool = False) -> Self:
        """A fresh curator; with ``sigmoid`` any real reward is allowed."""
        epsilon_min = positive("epsilon_min", epsilon_min)
        return cls(epsilon_min, sigmoid, np.zeros(arms, np.int64), np.zeros(arms), np.zeros(arms))

    def guarantee(self) -> Guarantee:
        return Guarantee.local(None, ON_THE_LINE if self.sigmoid else IN_RANGE).under(OWN_LEVEL)

    def respond(self, reward: float, level: float, rng: Rng) -> float:
        if level <= 0.0:
            return math.nan
        return convert_to_bernoulli(sigmoid(reward) if self.sigmoid else unit(reward), level, rng)

    def accepts(self, response: float) -> bool:
        return response in (0.0, 1.0)

    def add(self, arm: int, response: float, level: float, rng: Rng) -> None:
        if level >= self.epsilon_min:
            slope = attenuation(level)
            self.counts[arm] += 1
            self.sums[arm] += debias(response, slope)
            self.variances[arm] += debias_variance(slope)

    def close(self, arm: int, rng: Rng) -> None:
        pass

    def absorb(self, environment: Environment, arm: int, n: int, line: float, rewards: Rng, noise: Rng) -> int:
        return one_by_one(self, environment, arm, n, line, rewards, noise)

    def ready(self, arm: int, confidence: float) -> bool:
        return self.counts[arm] > 0

    def mean(self, arm: int) -> float:
        return self.sums[arm] / self.counts[arm]

    def lowest(self, arm: int, ahead: int) -> float:
        return -math.inf

    def samples(self, arm: int, ahead: int) -> float:
        n = float(self.counts[arm] + ahead)
        return n * n / self.variances[arm]

    def width(self, arm: int, confidence: float, ahead: int) -> float:
        return 0.0
