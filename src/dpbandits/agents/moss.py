"""The minimax-optimal bonus."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

from dpbandits.checks import at_least
from dpbandits.numerics import positive_log
from dpbandits.protocols import NO_LINE, Releases
from dpbandits.types import Rng


class MOSS(NamedTuple):
    r"""Play the arm with the largest :math:`\tilde\mu_a + \sqrt{\log^+(T / (K n_a)) / n_a}` (Audibert & Bubeck 2009).

    Each arm has its own exponent :math:`L_a = 2 \log^+(T / (K n_a))`, which is used for the bonus and for the width
    of the curator's noise.

    >>> MOSS.start(5, horizon=1000).act
    <bound method MOSS.act of MOSS(arms=5, horizon=1000)>
    """

    arms: int
    horizon: int

    @classmethod
    def start(cls, arms: int, *, horizon: int) -> Self:
        """A fresh agent for ``horizon`` rounds."""
        return cls(arms, at_least("horizon", horizon, arms))

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        best, best_index = 0, -math.inf
        for arm in range(self.arms):
            if not releases.ready(arm, 0.0):
                return arm, 1, NO_LINE
            n = releases.samples(arm, 0)
            exponent = 2.0 * positive_log(self.horizon / (self.arms * n))
            index = releases.mean(arm) + math.sqrt(exponent / (2.0 * n)) + releases.width(arm, exponent, 0)
            if index > best_index:
                best, best_index = arm, index
        return best, 1, NO_LINE
