"""The local model: each user's device randomises the reward, and all devices promise the same epsilon."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from dpbandits.checks import positive
from dpbandits.curators.common import Local, NotNegative
from dpbandits.draws import bits_above, successes
from dpbandits.mechanisms import convert_to_bernoulli, laplace, response_probability
from dpbandits.numerics import GRID, on_grid
from dpbandits.privacy.guarantee import ANY_REAL, IN_RANGE, Guarantee
from dpbandits.protocols import NO_LINE, Environment
from dpbandits.types import Floats, Integers, Rng


class LocalFields(NamedTuple):
    """The fields of both curators."""

    epsilon: float
    sigmoid: bool
    counts: Integers
    sums: Floats


class OneLevel(Local, LocalFields):
    """The common part of both curators: the mean of all responses is released."""

    __slots__ = ()

    @classmethod
    def start(cls, arms: int, *, epsilon: float, sigmoid: bool = False) -> Self:
        """A fresh curator; with ``sigmoid`` any real reward is allowed."""
        return cls(positive("epsilon", epsilon), sigmoid, np.zeros(arms, np.int64), np.zeros(arms))

    def guarantee(self) -> Guarantee:
        return Guarantee.local(self.epsilon, ANY_REAL if self.sigmoid else IN_RANGE)


class LocalLaplace(OneLevel):
    """Laplace noise on every reward: Curators 1 and 5 (CTL, CTL-S) of Ren et al. 2020.

    Differs: the reward is first rounded to a multiple of 2^-16, as on a device with exact noise.

    >>> LocalLaplace.start(2, epsilon=0.5).guarantee().epsilon
    0.5
    """

    __slots__ = ()

    steps = int(GRID)
    mechanism = "laplace"

    def respond(self, reward: float, level: float, rng: Rng) -> float:
        return laplace(on_grid(self.bounded(reward)), 1.0, self.epsilon, rng)

    def accepts(self, response: float) -> bool:
        return math.isfinite(response)

    def ready(self, arm: int, exponent: float) -> bool:
        """The sum of n Laplace noises is bounded as ``width`` says only for n > L, the exponent (Ren20, Lemma 3)."""
        return self.counts[arm] > exponent

    def width(self, arm: int, exponent: float, ahead: int) -> float:
        return math.sqrt(8.0 * exponent / (self.counts[arm] + ahead)) / self.epsilon


class LocalBernoulli(NotNegative, OneLevel):
    """One private bit for every reward: Curators 3 and 6 (CTB, CTB-S) of Ren et al. 2020.

    The response depends on the reward only through its mean, so n responses are one binomial draw, whatever the
    distribution of the rewards.

    >>> LocalBernoulli.start(2, epsilon=100.0).respond(1.0, 0.0, np.random.default_rng(0))
    1.0
    """

    __slots__ = ()

    mechanism = "bernoulli"

    def respond(self, reward: float, level: float, rng: Rng) -> float:
        return convert_to_bernoulli(self.bounded(reward), self.epsilon, rng)

    def accepts(self, response: float) -> bool:
        return response in (0.0, 1.0)

    def absorb(self, environment: Environment, arm: int, n: int, line: float, rewards: Rng, noise: Rng) -> int:
        mean = environment.sigmoid_means[arm] if self.sigmoid else environment.unit_means[arm]
        p = response_probability(mean, self.epsilon)
        if n == 1:
            self.counts[arm] += 1
            self.sums[arm] += successes(1, p, noise)
            return 1
        played = 0
        while played < n:
            step, ones = bits_above(self.sums[arm], self.counts[arm], line, n - played, p, noise)
            self.counts[arm] += step
            self.sums[arm] += ones
            played += step
            if line > NO_LINE and self.mean(arm) <= line:
                break
        return played
