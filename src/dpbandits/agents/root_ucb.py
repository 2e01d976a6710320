"""Upper confidence bounds where the noise is Gaussian."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

from dpbandits.agents.exploring import largest_bound
from dpbandits.checks import positive
from dpbandits.numerics import positive_log
from dpbandits.protocols import Releases
from dpbandits.types import Rng


class RootUCB(NamedTuple):
    """UCB where the noise is Gaussian: the variances of sampling and of noise add up, not their deviations.

    With the exponent L = alpha log t the index is mean + sqrt(L / (2n) + w^2), w being the width of the noise at L.

    >>> from dpbandits.curators import Plain
    >>> RootUCB.start(2).act(Plain.start(2), 1, None)
    (0, 1, -inf)
    """

    arms: int
    alpha: float

    @classmethod
    def start(cls, arms: int, *, alpha: float = 3.1) -> Self:
        """A fresh agent; ``alpha`` > 0 scales the exponent."""
        return cls(arms, positive("alpha", alpha))

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        return largest_bound(self, releases, t, self.alpha * positive_log(t))

    def bound(self, releases: Releases, arm: int, t: int) -> float:
        """The arm's index in round t."""
        exponent = self.alpha * positive_log(t)
        width = releases.width(arm, exponent, 0)
        return releases.mean(arm) + math.sqrt(exponent / (2.0 * releases.samples(arm, 0)) + width * width)
