"""The local model with a level for each user, where every response counts by what it tells: nobody is discarded."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np

from dpbandits.checks import at_least
from dpbandits.curators.common import Local
from dpbandits.curators.heterogeneous import BLOCK, MAX_LEVELS, OWN_LEVEL
from dpbandits.draws import rounds_within, successes
from dpbandits.mechanisms import attenuate, attenuation, convert_to_bernoulli, laplace
from dpbandits.numerics import GRID, kl, newton_step, on_grid
from dpbandits.privacy.guarantee import IN_RANGE, Guarantee
from dpbandits.protocols import NO_LINE, Environment
from dpbandits.types import Floats, Rng

ANYBODY = 1e-300  # the least level above 0
LOW, HIGH = 1e-9, 1.0 - 1e-9  # estimates of a mean are not closer to 0 and 1 than this
STEPS = 60  # of Newton's method, or halvings


class BitsAtLevels(Local):
    """One private bit at each user's own level. The field ``weights`` is by arm: the sum of squared attenuations.

    A bit with attenuation s is 1 with probability 1/2 + (mean - 1/2) s. It tells as much of the mean as s^2 rewards do.
    What is kept of the bits, and what the released mean is, the curators below say. ``slack`` is positive while the
    released mean is above a line, and each bit changes it by a known amount.
    """

    __slots__ = ()

    counts_ahead = False  # how much a response tells is known when it comes

    def guarantee(self) -> Guarantee:
        return Guarantee.local(None, IN_RANGE).under(OWN_LEVEL)

    def respond(self: Any, reward: float, level: float, rng: Rng) -> float:
        if level <= 0.0:
            return math.nan
        return convert_to_bernoulli(self.bounded(reward), level, rng)

    def accepts(self, response: float) -> bool:
        return response in (0.0, 1.0)

    def add(self: Any, arm: int, response: float, level: float, rng: Rng) -> None:
        if level > 0.0:
            self.take(arm, response, 1.0 - response, attenuation(level))

    def ready(self: Any, arm: int, confidence: float) -> bool:
        return self.weights[arm] > 0.0

    def samples(self: Any, arm: int, ahead: int) -> float:
        return self.weights[arm] + ahead

    def absorb(self: Any, environment: Environment, arm: int, n: int, line: float, rewards: Rng, noise: Rng) -> int:
        """As one by one; but a bit depends on the reward only through its mean.

        Where there are few levels, as many rounds as will rarely bring the mean down to the line are drawn at once.
        """
        played = 0
        while played < n:
            step = self.safe_rounds(environment, arm, n - played, line) if n - played > BLOCK else 0
            if step > BLOCK:
                played += self.add_many(environment, arm, step, line, noise)
            else:
                played += self.add_few(environment, arm, min(BLOCK, n - played), line, rewards, noise)
            if line > NO_LINE and self.weights[arm] > 0.0 and self.slack(arm, line) <= 0.0:
                break
        return played

    def safe_rounds(self: Any, environment: Environment, arm: int, most: int, line: float) -> int:
        """How many rounds will rarely bring the mean down to ``line``, in any order of their bits; 0 is unknown."""
        slopes, share = environment.population.bit_slopes(ANYBODY)
        if len(slopes) == 0 or len(slopes) > MAX_LEVELS or not self.separate(slopes):
            return 0
        if line <= NO_LINE:
            return most
        mean, drift, variance = environment.unit_means[arm], 0.0, 0.0
        for j in range(len(slopes)):
            one = share / len(slopes) * attenuate(mean, slopes[j])
            zero = share / len(slopes) - one
            loss_of_one = max(-self.change(line, slopes[j], 1.0), 0.0)
            loss_of_zero = max(-self.change(line, slopes[j], 0.0), 0.0)
            drift += one * loss_of_one + zero * loss_of_zero
            variance += one * loss_of_one * loss_of_one + zero * loss_of_zero * loss_of_zero
        slack = self.slack(arm, line) if self.weights[arm] > 0.0 else 0.0
        if slack <= 0.0 or variance <= 0.0:
            return 0 if slack <= 0.0 else most
        return int(min(rounds_within(slack, drift, variance), float(most)))

    def add_few(self: Any, environment: Environment, arm: int, n: int, line: float, rewards: Rng, noise: Rng) -> int:
        """Play up to n rounds, until the mean is no longer above ``line``; how many that took."""
        mean = environment.unit_means[arm]
        for played in range(1, n + 1):
            slope = environment.population.bit_slope(ANYBODY, rewards)
            one = 1.0 if noise.random() < attenuate(mean, slope) else 0.0
            if slope > 0.0:
                self.take(arm, one, 1.0 - one, slope)
                if line > NO_LINE and self.slack(arm, line) <= 0.0:
                    return played
        return n

    def add_many(self: Any, environment: Environment, arm: int, n: int, line: float, rng: Rng) -> int:
        """``add_few``, drawn at once: the users at each level, then their bits, and the order only if it can matter."""
        mean, (slopes, share) = environment.unit_means[arm], environment.population.bit_slopes(ANYBODY)
        ones, zeros = self.scratch[0], self.scratch[1]
        left, loss = successes(n, share, rng), 0.0
        for j in range(len(slopes)):
            here = successes(int(left), 1.0 / (len(slopes) - j), rng)
            left -= here
            ones[j] = successes(int(here), attenuate(mean, slopes[j]), rng)
            zeros[j] = here - ones[j]
            if line > NO_LINE:
                loss += ones[j] * max(-self.change(line, slopes[j], 1.0), 0.0)
                loss += zeros[j] * max(-self.change(line, slopes[j], 0.0), 0.0)
        if line <= NO_LINE or loss < self.slack(arm, line) * (1.0 - 1e-9):
            for j in range(len(slopes)):
                self.take(arm, ones[j], zeros[j], slopes[j])
            return n
        for played in range(1, n + 1):
            place = rng.random() * (n - played + 1)
            for j in range(len(slopes)):
                if place < ones[j]:
                    ones[j] -= 1.0
                    self.take(arm, 1.0, 0.0, slopes[j])
                    break
                place -= ones[j]
                if place < zeros[j]:
                    zeros[j] -= 1.0
                    self.take(arm, 0.0, 1.0, slopes[j])
                    break
                place -= zeros[j]
            if self.slack(arm, line) <= 0.0:
                return played
        return n


class WeightedFields(NamedTuple):
    """The fields of ``WeightedBernoulli``."""

    sigmoid: bool
    sums: Floats  # (arms,): of s^2 times the debiased bit
    weights: Floats  # (arms,): of s^2
    scratch: Floats  # (2, MAX_LEVELS): ones and zeros at each level, while many bits are drawn at once


class WeightedBernoulli(BitsAtLevels, WeightedFields):
    """The mean of the debiased bits, each with the weight s^2, the inverse of its variance up to a factor.

    Evidence against a mean q is 2 W (q - mean)^2. This covers: the term of a bit in W (mean - mu) lies in an interval
    of length s, so by Hoeffding's inequality P(mean >= mu + z) <= exp(-2 W z^2), whatever the rewards in [0, 1] are.

    >>> curator, rng = WeightedBernoulli.start(2), np.random.default_rng(0)
    >>> curator.add(0, 1.0, 1.0, rng)
    >>> round(float(curator.mean(0)), 6), round(float(curator.samples(0, 0)), 6)
    (1.581977, 0.213552)
    """

    __slots__ = ()

    @classmethod
    def start(cls, arms: int) -> Self:
        """A fresh curator."""
        return cls(False, np.zeros(arms), np.zeros(arms), np.zeros((2, MAX_LEVELS)))

    def take(self, arm: int, ones: float, zeros: float, slope: float) -> None:
        """Take bits of this attenuation."""
        count = ones + zeros
        self.sums[arm] += 0.5 * (count * slope * slope + (ones - zeros) * slope)
        self.weights[arm] += count * slope * slope

    def slack(self, arm: int, line: float) -> float:
        """Positive while the mean is above ``line``."""
        return self.sums[arm] - line * self.weights[arm]

    def change(self, line: float, slope: float, bit: float) -> float:
        """By how much a bit changes the slack."""
        return slope * (bit - 0.5 + (0.5 - line) * slope)

    def separate(self, slopes: Floats) -> bool:
        """Whether the slack changes as ``change`` says, for any bits."""
        return True

    def mean(self, arm: int) -> float:
        return self.sums[arm] / self.weights[arm]

    def misfit(self, arm: int, mean: float) -> float:
        off = mean - self.mean(arm)
        return 2.0 * self.weights[arm] * off * off

    def upper(self, arm: int, budget: float) -> float:
        return self.mean(arm) + math.sqrt(0.5 * budget / self.weights[arm])


class BinnedFields(NamedTuple):
    """The fields of ``BinnedBernoulli``."""

    sigmoid: bool
    ones: Floats  # (arms, bins)
    counts: Floats  # (arms, bins): responses whose attenuation is in this bin
    slopes: Floats  # (arms, bins): the sum of their attenuations
    weights: Floats  # (arms,): of s^2
    scratch: Floats  # (2, MAX_LEVELS): ones and zeros at each level, while many bits are drawn at once


class BinnedBernoulli(BitsAtLevels, BinnedFields):
    """The likelihood of all bits, counted in bins of their attenuation.

    Minus the log-likelihood of the bits of a bin with n responses, c of them 1, and mean attenuation s, is
    n kl(c/n, 1/2 + (mean - 1/2) s), up to a constant. The mean attenuation of a bin may stand for all of them: a sum of
    unequal bits is more concentrated than a binomial variable of the same mean (Hoeffding 1956).

    >>> curator, rng = BinnedBernoulli.start(2), np.random.default_rng(0)
    >>> for bit in (1.0, 1.0, 0.0):
    ...     curator.add(0, bit, 2.0, rng)
    >>> round(float(curator.mean(0)), 4), round(float(curator.upper(0, 1.0)), 4)
    (0.7188, 1.0)
    """

    __slots__ = ()

    @classmethod
    def start(cls, arms: int, *, bins: int = 12) -> Self:
        """A fresh curator; attenuations from 0 to 1 fall into ``bins`` bins of equal width."""
        cells = np.zeros((3, arms, at_least("bins", bins, 1)))
        return cls(False, cells[0], cells[1], cells[2], np.zeros(arms), np.zeros((2, MAX_LEVELS)))

    def bin(self, slope: float) -> int:
        """The bin of an attenuation."""
        bins = self.ones.shape[1]
        return min(int(slope * bins), bins - 1)

    def take(self, arm: int, ones: float, zeros: float, slope: float) -> None:
        """Take bits of this attenuation."""
        place, count = self.bin(slope), ones + zeros
        self.ones[arm, place] += ones
        self.counts[arm, place] += count
        self.slopes[arm, place] += count * slope
        self.weights[arm] += count * slope * slope

    def score(self, arm: int, mean: float) -> tuple[float, float]:
        """The first derivative of the misfit, and a bound on the second by expected information."""
        slope, bend = 0.0, 0.0
        for place in range(self.ones.shape[1]):
            n = self.counts[arm, place]
            if n > 0.0:
                s = self.slopes[arm, place] / n
                p = attenuate(mean, s)
                weight = s / (p * (1.0 - p))
                slope += (n * p - self.ones[arm, place]) * weight
                bend += n * s * weight
        return slope, bend

    def slack(self, arm: int, line: float) -> float:
        """Positive while the mean is above ``line``: the misfit still falls there."""
        if line >= HIGH:
            return 0.0
        return -self.score(arm, max(line, LOW))[0]

    def change(self, line: float, slope: float, bit: float) -> float:
        """By how much a bit changes the slack, where all of its bin have the same attenuation."""
        p = attenuate(min(max(line, LOW), HIGH), slope)
        return slope / p if bit > 0.5 else -slope / (1.0 - p)

    def separate(self, slopes: Floats) -> bool:
        """Whether the slack changes as ``change`` says: each of these attenuations has a bin of its own."""
        shared = 0
        for j in range(1, len(slopes)):
            shared += 1 if self.bin(slopes[j]) == self.bin(slopes[j - 1]) else 0
        return shared == 0

    def mean(self, arm: int) -> float:
        """The mean at which the misfit is least: Newton's method, with halving where it would leave the bracket."""
        low, high, mean = LOW, HIGH, 0.5
        for _ in range(STEPS):
            slope, bend = self.score(arm, mean)
            if slope > 0.0:
                high = mean
            else:
                low = mean
            step = newton_step(mean, slope, bend, low, high)
            mean += step
            if abs(step) <= 1e-12:
                break
        return mean

    def misfit(self, arm: int, mean: float) -> float:
        total = 0.0
        for place in range(self.ones.shape[1]):
            n = self.counts[arm, place]
            if n > 0.0:
                total += n * kl(self.ones[arm, place] / n, attenuate(mean, self.slopes[arm, place] / n))
        return total

    def upper(self, arm: int, budget: float) -> float:
        """Newton's method from the right: the misfit is convex, and at least 2 W (q - mean)^2 above its least value."""
        mean = self.mean(arm)
        most = self.misfit(arm, mean) + budget
        q = min(mean + math.sqrt(0.5 * budget / self.weights[arm]), HIGH)
        if self.misfit(arm, q) <= most:
            return 1.0 if q == HIGH else q
        for _ in range(STEPS):
            step = (self.misfit(arm, q) - most) / self.score(arm, q)[0]
            q -= step
            if step <= 1e-12 or q <= mean:
                break
        return max(q, mean)


class WeightedLaplaceFields(NamedTuple):
    """The fields of ``WeightedLaplace``."""

    sigmoid: bool
    sums: Floats  # (arms,): of the weighted responses
    weights: Floats  # (arms,)


class WeightedLaplace(Local, WeightedLaplaceFields):
    """Laplace noise at each user's own level, each response with the weight w = e^2 / (e^2 + 8), the inverse variance.

    A response at level e has a variance of at most 1/4 + 2/e^2 = 1/(4w), so it tells as much as w rewards do. Evidence
    against a mean q is 2 W (q - mean)^2. For small deviations this covers as for bits. Laplace noise has heavier tails,
    but the weighted noise has a scale of at most 0.18, so for deviations of up to 1/2 the exponent is off by at most 7
    %.

    >>> curator, rng = WeightedLaplace.start(2), np.random.default_rng(0)
    >>> curator.add(0, 0.7, 2.0, rng)
    >>> round(float(curator.mean(0)), 6), round(float(curator.samples(0, 0)), 6)
    (0.7, 0.333333)
    """

    __slots__ = ()

    counts_ahead = False
    steps = int(GRID)
    mechanism = "laplace"

    @classmethod
    def start(cls, arms: int) -> Self:
        """A fresh curator."""
        return cls(False, *np.zeros((2, arms)))

    def guarantee(self) -> Guarantee:
        return Guarantee.local(None, IN_RANGE).under(OWN_LEVEL)

    def respond(self, reward: float, level: float, rng: Rng) -> float:
        if level <= 0.0:
            return math.nan
        return laplace(on_grid(self.bounded(reward)), 1.0, level, rng)

    def accepts(self, response: float) -> bool:
        return math.isfinite(response)

    def add(self, arm: int, response: float, level: float, rng: Rng) -> None:
        if level > 0.0:
            weight = 1.0 / (1.0 + 8.0 / (level * level))
            self.sums[arm] += weight * response
            self.weights[arm] += weight

    def ready(self, arm: int, confidence: float) -> bool:
        return self.weights[arm] > 0.0

    def mean(self, arm: int) -> float:
        return self.sums[arm] / self.weights[arm]

    def samples(self, arm: int, ahead: int) -> float:
        return self.weights[arm] + ahead

    def misfit(self, arm: int, mean: float) -> float:
        off = mean - self.mean(arm)
        return 2.0 * self.weights[arm] * off * off

    def upper(self, arm: int, budget: float) -> float:
        return self.mean(arm) + math.sqrt(0.5 * budget / self.weights[arm])
