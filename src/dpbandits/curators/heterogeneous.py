"""The local model with a level for each user (HeLDP): responses below ``epsilon_min`` are discarded."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from dpbandits.checks import positive
from dpbandits.curators.common import Local
from dpbandits.draws import rounds_within, successes
from dpbandits.mechanisms import (
    attenuate,
    attenuation,
    convert_to_bernoulli,
    debias,
    debias_variance,
    laplace,
)
from dpbandits.numerics import GRID, on_grid
from dpbandits.privacy.guarantee import ANY_REAL, IN_RANGE, Guarantee
from dpbandits.protocols import NO_LINE, Environment
from dpbandits.types import Floats, Integers, Rng

#: Responses are drawn at once where that saves time: for more rounds than the first, and at most the second number of
#: levels.
BLOCK = 64
MAX_LEVELS = 8
OWN_LEVEL = (
    "each user's response is private at that user's own epsilon, which is public "
    "and must not depend on the reward; at level 0 no response is sent"
)


class HeterogeneousFields(NamedTuple):
    """The fields of both curators."""

    epsilon_min: float
    sigmoid: bool
    counts: Integers  # (arms,): accepted responses
    sums: Floats
    variances: Floats  # (arms,): how noisy the accepted responses are, summed: each curator says in which unit
    scratch: Floats  # (2, MAX_LEVELS): ones and zeros at each level, while many bits are drawn at once


class Heterogeneous(Local, HeterogeneousFields):
    """What both curators do alike: the mean of all accepted responses is released."""

    __slots__ = ()

    counts_ahead = False  # the noise of a response depends on its user's level, which is known when it comes

    @classmethod
    def start(cls, arms: int, *, epsilon_min: float, sigmoid: bool = False) -> Self:
        """A fresh curator; with ``sigmoid`` any real reward is allowed."""
        epsilon_min = positive("epsilon_min", epsilon_min)
        counts, sums, variances = np.zeros(arms, np.int64), np.zeros(arms), np.zeros(arms)
        return cls(epsilon_min, sigmoid, counts, sums, variances, np.zeros((2, MAX_LEVELS)))

    def guarantee(self) -> Guarantee:
        return Guarantee.local(None, ANY_REAL if self.sigmoid else IN_RANGE).under(OWN_LEVEL)


class HeterogeneousLaplace(Heterogeneous):
    """Laplace noise at each user's own level: Curator 1 and the tallies of Agent 2 of the HeLDP paper.

    ``variances`` sums 1/level^2. Differs: the reward is first rounded to a multiple of 2^-16, as with exact noise.

    >>> curator, rng = HeterogeneousLaplace.start(2, epsilon_min=0.5), np.random.default_rng(0)
    >>> curator.add(0, 0.7, 2.0, rng), curator.add(0, 9.9, 0.1, rng)  # the second is below epsilon_min
    (None, None)
    >>> float(curator.mean(0))
    0.7
    """

    __slots__ = ()

    steps = int(GRID)
    mechanism = "laplace"

    def respond(self, reward: float, level: float, rng: Rng) -> float:
        if level <= 0.0:
            return math.nan
        return laplace(on_grid(self.bounded(reward)), 1.0, level, rng)

    def accepts(self, response: float) -> bool:
        return math.isfinite(response)

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

    def ready(self, arm: int, confidence: float) -> bool:
        """The noise of the mean is bounded as ``width`` says only beyond this (HeLDP, Agent 2, line 4)."""
        return self.variances[arm] * self.epsilon_min * self.epsilon_min > confidence

    def width(self, arm: int, confidence: float, ahead: int) -> float:
        return math.sqrt(8.0 * confidence * self.variances[arm]) / (self.counts[arm] + ahead)


class HeterogeneousBernoulli(Heterogeneous):
    """One private bit at each user's own level, debiased: Curator 3 and the tallies of Agent 4 of the HeLDP paper.

    ``variances`` sums coth(level/2)^2.

    >>> curator, rng = HeterogeneousBernoulli.start(2, epsilon_min=0.5), np.random.default_rng(0)
    >>> curator.add(0, 1.0, 1.0, rng)
    >>> round(float(curator.mean(0)), 6), round(float(curator.samples(0, 0)), 6)
    (1.581977, 0.213552)
    """

    __slots__ = ()

    def respond(self, reward: float, level: float, rng: Rng) -> float:
        if level <= 0.0:
            return math.nan
        return convert_to_bernoulli(self.bounded(reward), level, rng)

    def accepts(self, response: float) -> bool:
        return response in (0.0, 1.0)

    def add(self, arm: int, response: float, level: float, rng: Rng) -> None:
        if level >= self.epsilon_min:
            self.take_bit(arm, response, attenuation(level))

    def take_bit(self, arm: int, response: float, slope: float) -> None:
        """Take a response with this attenuation."""
        self.counts[arm] += 1
        self.sums[arm] += debias(response, slope)
        self.variances[arm] += debias_variance(slope)

    def absorb(self, environment: Environment, arm: int, n: int, line: float, rewards: Rng, noise: Rng) -> int:
        """The same as ``one_by_one``, but bits are drawn from the mean reward, and discarded ones are not drawn.

        Where there are few levels, as many rounds as will rarely bring the mean down to the line are drawn at once.
        """
        played = 0
        while n - played > BLOCK:
            step = self.safe_rounds(environment, arm, n - played, line)
            if step > BLOCK:
                played += self.add_many(environment, arm, step, line, noise)
            else:
                played += self.add_few(environment, arm, BLOCK, line, rewards, noise)
            if line > NO_LINE and self.counts[arm] > 0 and self.mean(arm) <= line:
                return played
        return played + self.add_few(environment, arm, n - played, line, rewards, noise)

    def given_mean(self, environment: Environment, arm: int) -> float:
        """The mean of the numbers in [0, 1] that the devices turn into bits."""
        return environment.sigmoid_means[arm] if self.sigmoid else environment.unit_means[arm]

    def safe_rounds(self, environment: Environment, arm: int, most: int, line: float) -> int:
        """How many rounds will rarely bring the mean down to ``line``, in whatever order their bits come; 0 is unknown.

        A bit x with g(x) below the line brings the sum closer to line * count by line - g(x).
        """
        slopes, share = environment.population.bit_slopes(self.epsilon_min)
        if len(slopes) == 0 or len(slopes) > MAX_LEVELS:
            return 0
        if line <= NO_LINE:
            return most
        mean, drift, variance = self.given_mean(environment, arm), 0.0, 0.0
        for j in range(len(slopes)):
            one = share / len(slopes) * attenuate(mean, slopes[j])
            zero = share / len(slopes) - one
            loss_of_one, loss_of_zero = self.bit_losses(line, slopes[j])
            drift += one * loss_of_one + zero * loss_of_zero
            variance += one * loss_of_one * loss_of_one + zero * loss_of_zero * loss_of_zero
        slack = self.sums[arm] - line * self.counts[arm]
        if slack <= 0.0 or variance <= 0.0:
            return 0 if slack <= 0.0 else most
        return int(min(rounds_within(slack, drift, variance), float(most)))

    def bit_losses(self, line: float, slope: float) -> tuple[float, float]:
        """By how much a 1 and a 0 at this attenuation bring the sum closer to line * count."""
        return max(line - debias(1.0, slope), 0.0), max(line - debias(0.0, slope), 0.0)

    def add_few(self, environment: Environment, arm: int, n: int, line: float, rewards: Rng, noise: Rng) -> int:
        """Play up to n rounds, until the mean is no longer above ``line``; how many that took."""
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

    def add_many(self, environment: Environment, arm: int, n: int, line: float, rng: Rng) -> int:
        """``add_few``, drawn at once: the users at each level, then their bits, and the order only if it can matter."""
        mean, (slopes, share) = self.given_mean(environment, arm), environment.population.bit_slopes(self.epsilon_min)
        ones, zeros = self.scratch[0], self.scratch[1]
        left, loss = successes(n, share, rng), 0.0
        for j in range(len(slopes)):
            here = successes(int(left), 1.0 / (len(slopes) - j), rng)
            left -= here
            ones[j] = successes(int(here), attenuate(mean, slopes[j]), rng)
            zeros[j] = here - ones[j]
            loss_of_one, loss_of_zero = self.bit_losses(line, slopes[j])
            loss += ones[j] * loss_of_one + zeros[j] * loss_of_zero
        if line <= NO_LINE or loss < (self.sums[arm] - line * self.counts[arm]) * (1.0 - 1e-9):
            for j in range(len(slopes)):
                self.counts[arm] += int(ones[j] + zeros[j])
                self.sums[arm] += ones[j] * debias(1.0, slopes[j]) + zeros[j] * debias(0.0, slopes[j])
                self.variances[arm] += (ones[j] + zeros[j]) * debias_variance(slopes[j])
            return n
        for played in range(1, n + 1):
            place = rng.random() * (n - played + 1)
            for j in range(len(slopes)):
                if place < ones[j]:
                    ones[j] -= 1.0
                    self.take_bit(arm, 1.0, slopes[j])
                    break
                place -= ones[j]
                if place < zeros[j]:
                    zeros[j] -= 1.0
                    self.take_bit(arm, 0.0, slopes[j])
                    break
                place -= zeros[j]
            if self.mean(arm) <= line:
                return played
        return n

    def samples(self, arm: int, ahead: int) -> float:
        n = float(self.counts[arm] + ahead)
        return n * n / self.variances[arm]
