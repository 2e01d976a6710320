"""The local model: each user's device randomises the reward, and all devices promise the same epsilon."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from dpbandits.curators.rounds import one_by_one
from dpbandits.errors import positive
from dpbandits.mechanisms import bits_above, convert_to_bernoulli, laplace, response_probability
from dpbandits.numerics import sigmoid, unit
from dpbandits.privacy.guarantee import IN_RANGE, ON_THE_LINE, Guarantee
from dpbandits.protocols import Environment, Floats, Integers, Rng


class LocalLaplace(NamedTuple):
    """Laplace noise on every reward: Curators 1 and 5 (CTL, CTL-S) of Ren et al. 2020.

    >>> LocalLaplace.start(2, epsilon=0.5).guarantee().epsilon
    0.5
    """

    epsilon: float
    sigmoid: bool
    counts: Integers
    sums: Floats

    @classmethod
    def start(cls, arms: int, *, epsilon: float, sigmoid: bool = False) -> Self:
        """A fresh curator; with ``sigmoid`` any real reward is allowed."""
        return cls(positive("epsilon", epsilon), sigmoid, np.zeros(arms, np.int64), np.zeros(arms))

    def guarantee(self) -> Guarantee:
        return Guarantee.local(self.epsilon, ON_THE_LINE if self.sigmoid else IN_RANGE)

    def respond(self, reward: float, level: float, rng: Rng) -> float:
        return laplace(sigmoid(reward) if self.sigmoid else unit(reward), 1.0, self.epsilon, rng)

    def accepts(self, response: float) -> bool:
        return math.isfinite(response)

    def add(self, arm: int, response: float, level: float, rng: Rng) -> None:
        self.counts[arm] += 1
        self.sums[arm] += response

    def close(self, arm: int, rng: Rng) -> None:
        pass

    def absorb(self, environment: Environment, arm: int, n: int, line: float, rewards: Rng, noise: Rng) -> int:
        return one_by_one(self, environment, arm, n, line, rewards, noise)

    def ready(self, arm: int, confidence: float) -> bool:
        """The sum of n Laplace noises is bounded as ``width`` says only for n > confidence (Ren20, Lemma 3)."""
        return self.counts[arm] > confidence

    def mean(self, arm: int) -> float:
        return self.sums[arm] / self.counts[arm]

    def lowest(self, arm: int, ahead: int) -> float:
        return -math.inf

    def samples(self, arm: int, ahead: int) -> float:
        return self.counts[arm] + ahead

    def width(self, arm: int, confidence: float, ahead: int) -> float:
        return math.sqrt(8.0 * confidence / (self.counts[arm] + ahead)) / self.epsilon


class LocalBernoulli(NamedTuple):
    """One private bit for every reward: Curators 3 and 6 (CTB, CTB-S) of Ren et al. 2020.

    The response depends on the reward only through its mean, so n responses are one binomial draw, whatever the
    distribution of the rewards.

    >>> LocalBernoulli.start(2, epsilon=100.0).respond(1.0, 0.0, np.random.default_rng(0))
    1.0
    """

    epsilon: float
    sigmoid: bool
    counts: Integers
    sums: Floats

    @classmethod
    def start(cls, arms: int, *, epsilon: float, sigmoid: bool = False) -> Self:
        """A fresh curator; with ``sigmoid`` any real reward is allowed."""
        return cls(positive("epsilon", epsilon), sigmoid, np.zeros(arms, np.int64), np.zeros(arms))

    def guarantee(self) -> Guarantee:
        return Guarantee.local(self.epsilon, ON_THE_LINE if self.sigmoid else IN_RANGE)

    def respond(self, reward: float, level: float, rng: Rng) -> float:
        return convert_to_bernoulli(sigmoid(reward) if self.sigmoid else unit(reward), self.epsilon, rng)

    def accepts(self, response: float) -> bool:
        return response in (0.0, 1.0)

    def add(self, arm: int, response: float, level: float, rng: Rng) -> None:
        self.counts[arm] += 1
        self.sums[arm] += response

    def close(self, arm: int, rng: Rng) -> None:
        pass

    def absorb(self, environment: Environment, arm: int, n: int, line: float, rewards: Rng, noise: Rng) -> int:
        mean = environment.sigmoid_means[arm] if self.sigmoid else environment.unit_means[arm]
        p = response_probability(mean, self.epsilon)
        played = 0
        while played < n:
            step, ones = bits_above(self.sums[arm], self.counts[arm], line, n - played, p, noise)
            self.counts[arm] += step
            self.sums[arm] += ones
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
