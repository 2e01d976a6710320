"""The local model with a level for each user, where responses are weighted by what they tell, and none discarded."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np

from dpbandits.checks import at_least
from dpbandits.curators.bits import MAX_LEVELS, BitsAtLevels, LaplaceAtLevels
from dpbandits.curators.expansion import NOTHING, Bits, Expansion
from dpbandits.curators.likelihood import HIGH, LOW, MostLikely
from dpbandits.mechanisms import attenuate
from dpbandits.protocols import Foresees
from dpbandits.types import Floats, Integers, Rng

#: A proposed line uses PROPOSED_SHARE of the evidence that may still be added. It counts the curvature that new bits
#: add PROPOSED_BEND times, because they also move the attenuations of their bins. Both were found by experiment, and no
#: proof depends on them.
PROPOSED_SHARE, PROPOSED_BEND = 0.7, 3.0
MANY_BINS, MANY_SAMPLES = 4, 30.0  # from here on, an expansion of the misfit saves time
LOOK = 16  # bits between two looks at whether the expansion still reaches the largest mean
FEW = 3  # an expansion that is beyond its reach after this many bits saves no time


class ByWeight:
    """Responses have weights: a response with weight w says as much about the mean as w rewards would.

    The field ``weights`` holds their sum for each arm.
    """

    __slots__ = ()

    def ready(self: Any, arm: int, exponent: float) -> bool:
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


@Foresees.register
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
    near: Expansion  # of the misfit of each arm; it is right only near a point


@Foresees.register
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
        ones, counts, slopes = np.zeros((3, arms, at_least("bins", bins, 1)))
        used, places, apart = np.zeros(1, np.int64), np.zeros(bins, np.int64), np.zeros(1, np.int64)
        weights, scratch, near = np.zeros(arms), np.zeros((2, MAX_LEVELS)), Expansion.start(arms)
        return cls(False, used, places, ones, counts, slopes, weights, apart, scratch, near)

    def bin(self, slope: float) -> int:
        """The bin of an attenuation."""
        bins = len(self.places)
        return int(slope * bins) if slope < 1.0 else bins - 1

    def take(self, arm: int, ones: float, zeros: float, slope: float) -> None:
        """Take bits of this attenuation. An expansion that is up to date stays so; ``settle`` finds the new mean."""
        before, after = self.counted(arm, ones, zeros, slope)
        if self.near.changes[arm] > 0 and after[0] > 0.0:
            self.near.replace(arm, before, after)

    def counted(self, arm: int, ones: float, zeros: float, slope: float) -> tuple[Bits, Bits]:
        """Count bits of this attenuation; the bits of their bin, before and after."""
        bin, count = self.bin(slope), ones + zeros
        place = self.places[bin] - 1
        if place < 0:
            place = self.used[0]
            self.used[0] += 1
            self.places[bin] = place + 1
        before = self.counts[arm, place], self.ones[arm, place], self.slopes[arm, place]
        after = before[0] + count, before[1] + ones, before[2] + count * slope
        self.counts[arm, place], self.ones[arm, place], self.slopes[arm, place] = after
        self.weights[arm] += count * slope * slope
        return before, after

    @property
    def added(self) -> tuple[str, ...]:
        """Fields that sessions saved by earlier versions lack; they are computed from the others."""
        return ("near",)

    def mean(self, arm: int) -> float:
        near = self.near
        return near.means[arm] if near.changes[arm] > 0 or near.waits[arm] > 0 else self.search(arm)

    def settle(self, arm: int) -> None:
        """Bring the mean of an arm up to date, and the expansion from which it follows, where that saves time."""
        near = self.near
        changes, waits = near.changes[arm], near.waits[arm]
        if changes > 0 and near.move(arm):
            if changes % LOOK == 0 and not near.covers(arm, near.means[arm], near.largest()):
                self.expand(arm)
        elif self.used[0] < MANY_BINS:
            near.changes[arm] = near.waits[arm] = 0
        elif self.weights[arm] < MANY_SAMPLES:
            self.find(arm)
        elif changes + waits > 0 or near.means[arm] == 0.0 or not self.follow(arm):
            self.find(arm)
            if 0 < changes <= FEW + 1:  # the last expansion was right for few bits, as the next one would be
                near.waits[arm] = LOOK
            elif waits > 1:
                near.waits[arm] = waits - 1
            else:
                self.expand(arm)

    def find(self, arm: int) -> None:
        """Find the mean of an arm from all its bits. If it was at an end of its range, that is tried first."""
        near, last = self.near, self.near.means[arm]
        near.changes[arm], near.waits[arm] = 0, 1
        slope = self.score(arm, last)[0] if last in (LOW, HIGH) else 0.0
        if slope == 0.0 or (slope > 0.0) != (last == LOW):
            near.means[arm] = self.search(arm)

    def follow(self, arm: int) -> bool:
        """Expand the misfit about the last mean, and find the new one from that; False if that is too far away."""
        self.expand(arm)
        return self.near.move(arm)

    def guess(self, arm: int) -> float:
        """The last mean, if one is known that is not at an end of the range."""
        last = self.near.means[arm]
        return last if LOW < last < HIGH else 0.5

    def expand(self, arm: int) -> None:
        """Expand the misfit: between the arm's mean and the largest one if that reaches both, else about the mean."""
        mean, half = self.near.means[arm], 0.5 * (self.near.largest() - self.near.means[arm])
        self.expand_about(arm, mean + half if self.near.reaches(arm, half) else mean)
        if not self.near.covers(arm, mean, mean):
            self.expand_about(arm, mean)

    def expand_about(self, arm: int, point: float) -> None:
        """Expand the misfit about this point."""
        self.near.begin(arm, point)
        for place in range(self.used[0]):
            bits = self.counts[arm, place], self.ones[arm, place], self.slopes[arm, place]
            if bits[0] > 0.0:
                self.near.replace(arm, NOTHING, bits)
        self.near.changes[arm] = 1

    def score(self, arm: int, mean: float) -> tuple[float, float]:
        """The first and second derivative of the misfit."""
        if self.near.covers(arm, mean, mean):
            return self.near.score(arm, mean)
        slope, bend = 0.0, 0.0
        for place in range(self.used[0]):
            n = self.counts[arm, place]
            if n > 0.0:
                ones, slopes = self.ones[arm, place], self.slopes[arm, place]
                expected = 0.5 * n + (mean - 0.5) * slopes
                one, zero = slopes / expected, slopes / (n - expected)
                from_ones, from_zeros = ones * one, (n - ones) * zero
                slope += from_zeros - from_ones
                bend += from_zeros * zero + from_ones * one
        return slope, bend

    def slack(self, arm: int, line: float) -> float:
        """Positive while the mean is above ``line``: the misfit still falls there."""
        if line >= HIGH:
            return -math.inf
        if line < LOW:
            return math.inf
        return -self.score(arm, max(line, LOW))[0]

    def taken(self, arm: int, bit: float, slope: float, line: float) -> float:
        at, (before, after) = min(max(line, LOW), HIGH), self.counted(arm, bit, 1.0 - bit, slope)
        # A stint with a line is long: it is quicker to expand anew than to follow each bit.
        self.near.changes[arm] = self.near.waits[arm] = 0
        return _slope_of_bits(before, at) - _slope_of_bits(after, at)

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
        """Whether Newton's method may stop.

        The curvature of a bit's misfit changes by at most 2/m of itself, so a step d leaves an error of d^2/m.
        """
        return step * step <= 1e-13 * min(mean, 1.0 - mean)

    def evidence(self, arm: int, mean: float, top: float) -> float:
        if self.near.covers(arm, mean, top):
            return self.near.rise(arm, mean, top)
        total, off, left = 0.0, top - mean, 1.0 - top
        for place in range(self.used[0]):
            n = self.counts[arm, place]
            if n > 0.0:
                ones, slopes = self.ones[arm, place], self.slopes[arm, place]
                lost, less = 0.5 * (n - slopes), off * slopes  # of terms that are not negative, no digits cancel
                to_ones = ones * math.log1p(-less / (lost + top * slopes))
                total += to_ones + (n - ones) * math.log1p(less / (lost + left * slopes))
        return total

    def steepness(self, arm: int, mean: float) -> float:
        """An upper bound on the slope of the evidence up to ``mean``: the misfit is convex."""
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
                ones, slopes = self.ones[arm, place], self.slopes[arm, place]
                zeros, half = n - ones, 0.5 * n
                one, last = slopes / (half + (line - 0.5) * slopes), slopes / (half - (mean - 0.5) * slopes)
                from_ones = ones * one * one
                bends += from_ones + zeros * last * last
                if width > 0.0:
                    zero, most = slopes / (half - (top - 0.5) * slopes), min(slopes + width * k * n / (n + k), n)
                    p, q = min(half + (line - 0.5) * most, half), min(half - (top - 0.5) * most, half)
                    x, at_ones, at_zeros = width * k * n / (slopes * min(p, q)), q * q * ones, p * p * zeros
                    factor = x + x * x if x < 1.0 else math.expm1(min(x, 700.0))  # below 1 a bound, which is quicker
                    moved = max(moved, (from_ones + zeros * zero * zero) * factor)
                    pull = max(pull, 0.5 * width * n * max(at_ones, at_zeros) / (p * p * q * q))
        off, reach = top - mean, top - line
        new = k * (_bend_of_bit(line, top) + pull / line)
        return 0.5 * (bends * (reach * reach - off * off) + (moved + new) * reach * reach)


def _slope_of_bits(bits: Bits, mean: float) -> float:
    """What the bits of a bin contribute to the first derivative of the misfit."""
    n, ones, slopes = bits
    if n == 0.0:
        return 0.0
    expected = 0.5 * n + (mean - 0.5) * slopes
    return n * slopes * (expected - ones) / (expected * (n - expected))


def _bend_of_bit(low: float, top: float) -> float:
    """A bound on the average curvature that new bits add to the misfit between these means, if they move no bin."""
    return (1.0 / low + 1.0 / (1.0 - top)) / (1.0 - top)


class WeightedLaplaceFields(NamedTuple):
    """The fields of ``WeightedLaplace``."""

    sigmoid: bool
    sums: Floats  # (arms,): of the weighted responses
    weights: Floats  # (arms,)


@Foresees.register
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
        if level > 1e-150:  # below, the weight is less than 1e-300
            weight = 1.0 / (1.0 + 8.0 / (level * level))
            self.sums[arm] += weight * response
            self.weights[arm] += weight
