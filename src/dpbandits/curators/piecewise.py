"""The local model for rewards that are not just 0 or 1: the piecewise mechanism on each of them."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from dpbandits.checks import positive
from dpbandits.curators.common import Local
from dpbandits.exact import rational, window_width
from dpbandits.mechanisms import piecewise, piecewise_mean, window_probability
from dpbandits.numerics import GRID, on_grid
from dpbandits.privacy.guarantee import ANY_REAL, IN_RANGE, Guarantee
from dpbandits.protocols import Foresees
from dpbandits.types import Floats, Integers, Rng

FIRST = 5  # responses of an arm before its variance is relied on


class PiecewiseFields(NamedTuple):
    """The fields of ``LocalPiecewise``."""

    epsilon: float
    sigmoid: bool
    window: float  # grid points in it
    inside: float  # the probability of a response in the window
    offset: float  # the mean response to a reward r is offset + slope r
    slope: float
    counts: Integers
    sums: Floats  # of the responses
    squares: Floats


@Foresees.register
class LocalPiecewise(Local, PiecewiseFields):
    """The piecewise mechanism of Wang et al. 2019 on every reward, on the grid of 2^-16; the mean is debiased.

    Evidence against a mean q is n/2 log(1 + (q - mean)^2 / V), the likelihood ratio of normal responses, V being their
    variance plus 1/n. The responses are bounded and not normal, so that this is an approximation for large n.

    >>> curator, rng = LocalPiecewise.start(2, epsilon=2.0), np.random.default_rng(0)
    >>> for _ in range(10_000):
    ...     curator.add(0, curator.respond(0.3, 0.0, rng), 0.0, rng)
    >>> abs(float(curator.mean(0)) - 0.3) < 0.03
    True
    """

    __slots__ = ()

    steps = int(GRID)
    mechanism = "piecewise"
    counts_ahead = False  # the variance of the responses is known when they come

    @classmethod
    def start(cls, arms: int, *, epsilon: float, sigmoid: bool = False) -> Self:
        """A fresh curator; with ``sigmoid`` any real reward is allowed."""
        epsilon = positive("epsilon", epsilon)
        window = float(window_width(rational("epsilon", epsilon)))
        inside = window_probability(window, epsilon)
        offset, slope = piecewise_mean(window, inside)
        return cls(
            epsilon, sigmoid, window, inside, offset, slope, np.zeros(arms, np.int64), np.zeros(arms), np.zeros(arms)
        )

    def guarantee(self) -> Guarantee:
        return Guarantee.local(self.epsilon, ANY_REAL if self.sigmoid else IN_RANGE)

    def respond(self, reward: float, level: float, rng: Rng) -> float:
        return piecewise(on_grid(self.bounded(reward)), self.window, self.inside, rng)

    def accepts(self, response: float) -> bool:
        place = response * GRID
        return 0.0 <= place < GRID + self.window and place == math.floor(place)

    def add(self, arm: int, response: float, level: float, rng: Rng) -> None:
        self.counts[arm] += 1
        self.sums[arm] += response
        self.squares[arm] += response * response

    def ready(self, arm: int, exponent: float) -> bool:
        return self.counts[arm] >= FIRST

    def mean(self, arm: int) -> float:
        return (self.sums[arm] / self.counts[arm] - self.offset) / self.slope

    def variance(self, arm: int) -> float:
        """The sample variance of the debiased responses, plus 1/n."""
        n = self.counts[arm]
        mean = self.sums[arm] / n
        return max(self.squares[arm] / n - mean * mean, 0.0) / (self.slope * self.slope) + 1.0 / n

    def width(self, arm: int, exponent: float, ahead: int) -> float:
        """Hoeffding's bound for the debiased responses."""
        return self.reach() * math.sqrt(0.5 * exponent / (self.counts[arm] + ahead))

    def reach(self) -> float:
        """The length of the interval in which all debiased responses lie."""
        return (1.0 + self.window / GRID) / self.slope

    def evidence(self, arm: int, mean: float, top: float) -> float:
        off = top - mean
        return 0.5 * self.counts[arm] * math.log1p(off * off / self.variance(arm))

    def steepness(self, arm: int, mean: float) -> float:
        """The largest slope of the evidence up to ``mean``: it rises up to one standard deviation, then it falls."""
        variance = self.variance(arm)
        off = min(mean - self.mean(arm), math.sqrt(variance))
        return self.counts[arm] * off / (variance + off * off)

    def rise(self, arm: int, mean: float, top: float, evidence: float) -> float:
        return 2.0 * evidence / self.counts[arm]

    def lower(self, arm: int, mean: float, top: float, evidence: float, budget: float, ahead: int) -> float:
        """The line for ``ahead`` more responses. It uses that n times the variance cannot decrease."""
        n = self.counts[arm] + ahead
        least = self.variance(arm) * self.counts[arm] / n
        return top - math.sqrt(least * math.expm1(min(2.0 * budget / n, 700.0))) if budget > 0.0 else top
