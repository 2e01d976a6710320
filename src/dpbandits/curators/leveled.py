"""The local model with a level for each user, where responses are weighted by what they tell, and none discarded."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np

from dpbandits.checks import at_least
from dpbandits.curators.bits import MAX_LEVELS, BitsAtLevels, LaplaceAtLevels
from dpbandits.curators.likelihood import HIGH, LOW, MostLikely
from dpbandits.mechanisms import attenuate
from dpbandits.types import Floats, Integers, Rng

#: A line is proposed with this share of the room for more evidence, as if new bits bent the misfit so many times more
#: than they do: the attenuations of their bins move, too. Found by trying: no proof rests on these numbers.
PROPOSED_SHARE, PROPOSED_BEND = 0.7, 3.0


class ByWeight:
    """Responses have weights: a response with weight w says as much about the mean as w rewards would.

    The field ``weights`` holds their sum for each arm.
    """

    __slots__ = ()

    def ready(self: Any, arm: int, confidence: float) -> bool:
        return self.weights[arm] > 0.0

    def heard(self: Any, arm: int) -> bool:
        """Whether a response with weight has come from this arm, so that it has a mean."""
        return self.ready(arm, 0.0)

    def samples(self: Any, arm: int, ahead: int) -> float:
        return self.weights[arm] + ahead


class WeightedMean(ByWeight):
    """The weighted mean. Evidence against a mean q is 2 W (q - mean)^2. ``sums`` holds sums of weighted responses."""

    __slots__ = ()

    def mean(self: Any, arm: int) -> float:
        return self.sums[arm] / self.weights[arm]

    def evidence(self: Any, arm: int, mean: float, top: float) -> float:
        off = top - mean
        return 2.0 * self.weights[arm] * off * off

    def steepness(self: Any, arm: int, mean: float) -> float:
        return 4.0 * self.weights[arm] * (mean - self.mean(arm))

    def rise(self: Any, arm: int, mean: float, top: float, evidence: float) -> float:
        return evidence / self.weights[arm]

    def lower(self: Any, arm: int, mean: float, top: float, evidence: float, budget: float, ahead: int) -> float:
        """The line at which the evidence reaches the budget if each response has a weight of 1, the largest."""
        return top - math.sqrt(0.5 * budget / (self.weights[arm] + ahead)) if budget > 0.0 else top


class WeightedFields(NamedTuple):
    """The fields of ``WeightedBernoulli``."""

    sigmoid: bool
    sums: Floats  # (arms,): of s^2 times the debiased bit
    weights: Floats  # (arms,): of s^2
    scratch: Floats  # (2, MAX_LEVELS): ones and zeros at each level, while many bits are drawn at once


class WeightedBernoulli(WeightedMean, BitsAtLevels, WeightedFields):
    """The mean of the debiased bits, each with the weight s^2, the inverse of its variance up to a factor.

    The evidence 2 W (q - mean)^2 has the right coverage: the term of a bit in W (mean - mu) lies in an interval of
    length s, so by Hoeffding's inequality P(mean >= mu + z) <= exp(-2 W z^2), for all rewards in [0, 1].

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


class BinnedFields(NamedTuple):
    """The fields of ``BinnedBernoulli``."""

    sigmoid: bool
    used: Integers  # (1,): bins that have responses
    places: Integers  # (bins,): of each bin in the next three, from 1 on in the order of first use; 0 is none
    ones: Floats  # (arms, bins)
    counts: Floats  # (arms, bins): responses whose attenuation is in this bin
    slopes: Floats  # (arms, bins): the sum of their attenuations
    weights: Floats  # (arms,): of s^2
    apart: Integers  # (1,): 1 if the users who come are known, and each of their attenuations has a bin of its own
    scratch: Floats  # (2, MAX_LEVELS): ones and zeros at each level, while many bits are drawn at once


class BinnedBernoulli(ByWeight, MostLikely, BitsAtLevels, BinnedFields):
    """The likelihood of all bits, counted in bins of their attenuation.

    Minus the log-likelihood of the bits of a bin with n responses, c of them 1, and mean attenuation s, is
    n kl(c/n, 1/2 + (mean - 1/2) s), up to a constant. The mean attenuation of a bin may stand for all of them: a sum of
    unequal bits is more concentrated than a binomial variable of the same mean (Hoeffding 1956).

    >>> curator, rng = BinnedBernoulli.start(2), np.random.default_rng(0)
    >>> for bit in (1.0, 1.0, 0.0):
    ...     curator.add(0, bit, 2.0, rng)
    >>> round(float(curator.mean(0)), 4), round(float(curator.evidence(0, curator.mean(0), 0.9)), 4)
    (0.7188, 0.1581)
    """

    __slots__ = ()

    @classmethod
    def start(cls, arms: int, *, bins: int = 12) -> Self:
        """A fresh curator; attenuations from 0 to 1 fall into ``bins`` bins of equal width."""
        cells = np.zeros((3, arms, at_least("bins", bins, 1)))
        used, places, apart = np.zeros(1, np.int64), np.zeros(bins, np.int64), np.zeros(1, np.int64)
        return cls(False, used, places, cells[0], cells[1], cells[2], np.zeros(arms), apart, np.zeros((2, MAX_LEVELS)))

    def bin(self, slope: float) -> int:
        """The bin of an attenuation."""
        bins = len(self.places)
        return min(int(slope * bins), bins - 1)

    def place(self, slope: float) -> int:
        """Where bits of this attenuation are counted."""
        bin = self.bin(slope)
        if self.places[bin] == 0:
            self.used[0] += 1
            self.places[bin] = self.used[0]
        return self.places[bin] - 1

    def take(self, arm: int, ones: float, zeros: float, slope: float) -> None:
        """Take bits of this attenuation."""
        place, count = self.place(slope), ones + zeros
        self.ones[arm, place] += ones
        self.counts[arm, place] += count
        self.slopes[arm, place] += count * slope
        self.weights[arm] += count * slope * slope

    def score(self, arm: int, mean: float) -> tuple[float, float]:
        """The first and second derivative of the misfit."""
        return self.score_of(arm, mean, 0, self.used[0])

    def score_of(self, arm: int, mean: float, first: int, end: int) -> tuple[float, float]:
        """What the bins at these places contribute to ``score``."""
        slope, bend = 0.0, 0.0
        for place in range(first, end):
            n = self.counts[arm, place]
            if n > 0.0:
                ones, s = self.ones[arm, place], self.slopes[arm, place] / n
                p = attenuate(mean, s)
                one, zero = s / p, s / (1.0 - p)
                from_ones, from_zeros = ones * one, (n - ones) * zero
                slope += from_zeros - from_ones
                bend += from_zeros * zero + from_ones * one
        return slope, bend

    def slack(self, arm: int, line: float) -> float:
        """Positive while the mean is above ``line``: the misfit still falls there."""
        if line >= HIGH:
            return -math.inf
        return -self.score(arm, max(line, LOW))[0]

    def taken(self, arm: int, bit: float, slope: float, line: float) -> float:
        place, at = self.place(slope), min(max(line, LOW), HIGH)
        before = self.score_of(arm, at, place, place + 1)[0]
        self.take(arm, bit, 1.0 - bit, slope)
        return before - self.score_of(arm, at, place, place + 1)[0]

    def change(self, line: float, slope: float, bit: float) -> float:
        """By how much a bit changes the slack, where all of its bin have the same attenuation."""
        p = attenuate(min(max(line, LOW), HIGH), slope)
        return slope / p if bit > 0.5 else -slope / (1.0 - p)

    def meet(self, slopes: Floats) -> None:
        self.apart[0] = 1 if len(slopes) > 0 and self.separate(slopes) else 0

    def separate(self, slopes: Floats) -> bool:
        """Whether each of these attenuations has a bin of its own: then the slack changes as ``change`` says."""
        shared = 0
        for j in range(1, len(slopes)):
            shared += 1 if self.bin(slopes[j]) == self.bin(slopes[j - 1]) else 0
        return shared == 0

    def settled(self, mean: float, step: float) -> bool:
        """The curvature of a bit's misfit changes by at most 2/m of itself, so a step d leaves an error of d^2/m.

        Rounding adds to it: the mean is right to about 1e-12.
        """
        return step * step <= 1e-13 * min(mean, 1.0 - mean)

    def evidence(self, arm: int, mean: float, top: float) -> float:
        total = 0.0
        for place in range(self.used[0]):
            n = self.counts[arm, place]
            if n > 0.0:
                ones, s = self.ones[arm, place], self.slopes[arm, place] / n
                p, less = attenuate(top, s), (top - mean) * s
                total += ones * math.log1p(-less / p) + (n - ones) * math.log1p(less / (1.0 - p))
        return total

    def steepness(self, arm: int, mean: float) -> float:
        """The slope at ``mean``: the misfit is convex, so its slope is largest there."""
        return self.score(arm, min(max(mean, LOW), HIGH))[0]

    def rise(self, arm: int, mean: float, top: float, evidence: float) -> float:
        off = top - mean
        return 0.5 * off * off * PROPOSED_BEND * _bend_of_bit(mean, top)

    def lower(self, arm: int, mean: float, top: float, evidence: float, budget: float, ahead: int) -> float:
        """The line at which a parabola through the evidence reaches a part of the budget, if ``growth`` confirms it."""
        if budget <= evidence or evidence <= 0.0:
            return math.inf
        off = top - mean
        bend, more = 2.0 * evidence / (off * off), ahead * PROPOSED_BEND * _bend_of_bit(mean, top)
        reach = math.sqrt((bend * off * off + 2.0 * PROPOSED_SHARE * (budget - evidence)) / (bend + more))
        line = max(top - reach, 0.5 * mean)
        if not max(LOW, 0.5 * off) <= line < mean or evidence + self.growth(arm, line, mean, top, ahead) > budget:
            return math.inf
        return line

    def growth(self, arm: int, line: float, mean: float, top: float, ahead: int) -> float:
        """The most that ``ahead`` more bits can add to the evidence against ``top`` while the mean is above ``line``.

        It holds where ``top`` is at most twice the line above ``mean``, and the line is not below the least estimate of
        a mean; docs/concepts/simulation.md has the proof. The attenuation of a bin moves by at most its width, and not
        at all where each attenuation has a bin of its own.
        """
        width, k = 0.0 if self.apart[0] == 1 else 1.0 / len(self.places), float(ahead)
        bends, moved, pull = 0.0, 0.0, 0.0
        for place in range(self.used[0]):
            n = self.counts[arm, place]
            if n > 0.0:
                ones, s = self.ones[arm, place], self.slopes[arm, place] / n
                zeros, largest = n - ones, min(s + width * k / (n + k), 1.0)
                one, zero, last = s / attenuate(line, s), s / (1.0 - attenuate(top, s)), s / (1.0 - attenuate(mean, s))
                p, q = min(attenuate(line, largest), 0.5), min(1.0 - attenuate(top, largest), 0.5)
                from_ones, factor = ones * one * one, math.expm1(min(width * k / (n * s * min(p, q)), 700.0))
                bends += from_ones + zeros * last * last
                moved = max(moved, (from_ones + zeros * zero * zero) * factor)
                pull = max(pull, 0.5 * width * max(ones / (p * p), zeros / (q * q)) / n)
        off, reach = top - mean, top - line
        new = k * (_bend_of_bit(line, top) + pull / line)
        return 0.5 * (bends * (reach * reach - off * off) + (moved + new) * reach * reach)


def _bend_of_bit(low: float, top: float) -> float:
    """A bound on the average curvature that new bits add to the misfit between these means, if they move no bin."""
    return (1.0 / low + 1.0 / (1.0 - top)) / (1.0 - top)


class WeightedLaplaceFields(NamedTuple):
    """The fields of ``WeightedLaplace``."""

    sigmoid: bool
    sums: Floats  # (arms,): of the weighted responses
    weights: Floats  # (arms,)


class WeightedLaplace(WeightedMean, LaplaceAtLevels, WeightedLaplaceFields):
    """Laplace noise at each user's own level, each response with the weight w = e^2 / (e^2 + 8), the inverse variance.

    A response at level e has a variance of at most 1/4 + 2/e^2 = 1/(4w), so it tells as much as w rewards do. For small
    deviations the evidence has the same coverage as for bits. Laplace noise has heavier tails, but the weighted noise
    has a scale of at most 0.18, so for deviations of up to 1/2 the exponent is off by at most 7 %.

    >>> curator, rng = WeightedLaplace.start(2), np.random.default_rng(0)
    >>> curator.add(0, 0.7, 2.0, rng)
    >>> round(float(curator.mean(0)), 6), round(float(curator.samples(0, 0)), 6)
    (0.7, 0.333333)
    """

    __slots__ = ()

    @classmethod
    def start(cls, arms: int) -> Self:
        """A fresh curator."""
        return cls(False, *np.zeros((2, arms)))

    def add(self, arm: int, response: float, level: float, rng: Rng) -> None:
        if level > 0.0:
            weight = 1.0 / (1.0 + 8.0 / (level * level))
            self.sums[arm] += weight * response
            self.weights[arm] += weight
