"""Agents for means that are released rarely: while a release stands, their indices only grow with t."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

from dpbandits.agents.exploring import first_unready, largest_bound, raised_mean
from dpbandits.checks import positive
from dpbandits.numerics import positive_log
from dpbandits.protocols import NO_LINE, Releases
from dpbandits.types import Rng

NOISE = 3.0  # times log t: the exponent at which Hu et al. cover the noise


class LazyUCB(NamedTuple):
    """Play the arm with the largest mean + sqrt(c log t / n) + width(3 log t) (Hu, Huang & Mehta 2021).

    >>> from dpbandits.curators import Lazy
    >>> LazyUCB.start(2).act(Lazy.start(2, epsilon=1.0), 1, None)
    (0, 1, -inf)
    """

    arms: int
    c: float

    @classmethod
    def start(cls, arms: int, *, c: float = 3.0) -> Self:
        """A fresh agent."""
        return cls(arms, positive("c", c))

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        return largest_bound(self, releases, t, self.exponent(t))

    def exponent(self, t: int) -> float:
        """The exponent at which the released means must be bounded in round t."""
        return NOISE * positive_log(t)

    def bound(self, releases: Releases, arm: int, t: int) -> float:
        """The arm's index in round t."""
        return releases.mean(arm) + self.bonus(releases, arm, t, 0)

    def bonus(self, releases: Releases, arm: int, t: int, ahead: int) -> float:
        """The least by which the arm's index exceeds its mean in rounds t to t + ``ahead``; 0 is exact."""
        log_t = positive_log(t)
        sampling = math.sqrt(self.c * log_t / releases.samples(arm, ahead))
        return sampling + releases.width(arm, NOISE * log_t, ahead)


class CoveringUCB(NamedTuple):
    """Play the arm with the largest mean plus the largest shift that sampling and Laplace noise together could explain.

    With B the scale of the noise of a released mean of n rewards and g = c log((t + 1) / n), the bonus is the largest
    shift s with min over z of 2 n z^2 + (s - z) / B <= g: sqrt(g / (2n)) if that is at most 1 / (4 n B), and otherwise
    B g + 1 / (8 n B).

    >>> from dpbandits.curators import Batch
    >>> round(CoveringUCB.start(2).shift(100.0, 0.01, 4.0), 6), round(CoveringUCB.start(2).shift(100.0, 0.1, 4.0), 6)
    (0.141421, 0.4125)
    """

    arms: int
    c: float

    @classmethod
    def start(cls, arms: int, *, c: float = 1.5) -> Self:
        """A fresh agent."""
        return cls(arms, positive("c", c))

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        return largest_bound(self, releases, t, self.exponent(t))

    def exponent(self, t: int) -> float:
        """The exponent at which the released means must be bounded in round t."""
        return positive_log(t)

    def bound(self, releases: Releases, arm: int, t: int) -> float:
        """The arm's index in round t."""
        return releases.mean(arm) + self.bonus(releases, arm, t, 0)

    def bonus(self, releases: Releases, arm: int, t: int, ahead: int) -> float:
        """The least by which the arm's index exceeds its mean in rounds t to t + ``ahead``; 0 is exact.

        The shift grows with the scale and falls with n.
        """
        n = releases.samples(arm, ahead)
        return self.shift(n, releases.width(arm, 1.0, ahead), self.c * positive_log((t + 1) / n))

    def shift(self, n: float, scale: float, budget: float) -> float:
        """The largest shift that noise of this scale and sampling explain at a cost of ``budget``."""
        sampling = math.sqrt(budget / (2.0 * n))
        if sampling * 4.0 * n * scale <= 1.0:
            return sampling
        return scale * budget + 1.0 / (8.0 * n * scale)


class LazyThompson(NamedTuple):
    """Play the largest draw from Beta(m n + 1, (1 - m) n + 1), m the mean raised by width(3 log t) (Hu & Hegde 2022).

    >>> import numpy as np
    >>> from dpbandits.curators import Lazy
    >>> LazyThompson.start(2).act(Lazy.start(2, epsilon=1.0), 1, np.random.default_rng(0))
    (0, 1, -inf)
    """

    arms: int

    @classmethod
    def start(cls, arms: int) -> Self:
        """A fresh agent."""
        return cls(arms)

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        exponent = NOISE * positive_log(t)
        arm = first_unready(releases, self.arms, t, exponent)
        if arm < self.arms:
            return arm, 1, NO_LINE
        best, largest = 0, -1.0
        for arm in range(self.arms):
            n = releases.samples(arm, 0)
            raised = raised_mean(releases, arm, exponent)
            sample = rng.beta(raised * n + 1.0, (1.0 - raised) * n + 1.0)
            if sample > largest:
                best, largest = arm, sample
        return best, 1, NO_LINE
