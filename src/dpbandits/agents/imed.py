"""Indexed minimum empirical divergence."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

from dpbandits.agents.exploring import first_unready, raised_mean
from dpbandits.checks import not_negative, positive
from dpbandits.numerics import corrected, kl, positive_log
from dpbandits.protocols import NO_LINE, Releases
from dpbandits.types import Rng


class IMED(NamedTuple):
    r"""Play the arm with the least :math:`n_a\,\mathrm{kl}(c_a, \max_b c_b) + \log n_a` (Honda & Takemura 2015).

    :math:`c_a` is the released mean plus the width of the curator's noise at :math:`L = \alpha \log t`, clipped
    to [0, 1]; a curator without noise has no width, and ``alpha`` does not matter. With a ``correction`` k, the
    evidence :math:`e = n_a\,\mathrm{kl}(c_a, \max_b c_b)` counts as :math:`\max(0, e - k \log(1 + e))`: an arm is given
    up later, so bad luck at the start locks out the best arm more rarely.

    >>> import numpy as np
    >>> from dpbandits.curators import Plain
    >>> agent, curator, rng = IMED.start(2), Plain.start(2), np.random.default_rng(0)
    >>> for t, reward in enumerate([0.0, 1.0, 1.0], start=1):
    ...     curator.add(agent.act(curator, t, rng)[0], reward, 0.0, rng)
    >>> agent.act(curator, 4, rng)
    (1, 1, -inf)
    """

    arms: int
    alpha: float
    correction: float

    @classmethod
    def start(cls, arms: int, *, alpha: float = 1.0, correction: float = 0.0) -> Self:
        """A fresh agent; ``alpha`` > 0 scales the exponent at which noise is covered."""
        return cls(arms, positive("alpha", alpha), not_negative("correction", correction))

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        exponent = self.alpha * positive_log(t)
        arm = first_unready(releases, self.arms, t, exponent)
        if arm < self.arms:
            return arm, 1, NO_LINE
        top = 0.0
        for arm in range(self.arms):
            top = max(top, raised_mean(releases, arm, exponent))
        best, least = 0, math.inf
        for arm in range(self.arms):
            index = self.divergence(releases, arm, exponent, top)
            if index < least:
                best, least = arm, index
        return best, 1, NO_LINE

    def divergence(self, releases: Releases, arm: int, exponent: float, top: float) -> float:
        """The index of an arm when the largest mean is ``top``."""
        n = releases.samples(arm, 0)
        return corrected(n * kl(raised_mean(releases, arm, exponent), top), self.correction) + positive_log(n)
