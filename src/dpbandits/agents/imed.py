"""Indexed minimum empirical divergence."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from dpbandits.errors import positive
from dpbandits.numerics import kl, positive_log, unit
from dpbandits.protocols import MARGIN, NO_LINE, Curator, Integers, Rng


class IMED(NamedTuple):
    r"""Play the arm with the least :math:`n_a\,\mathrm{kl}(c_a, \max_b c_b) + \log n_a` (Honda & Takemura 2015).

    :math:`c_a` is the released mean plus the width of the curator's noise at confidence :math:`\alpha \log t`, clipped
    to [0, 1]; a curator without noise has no width, and ``alpha`` does not matter.

    With ``skip`` the agent proves how long a leader stands: were all its coming rewards 0, it would still have the
    largest mean at the end of the stint, and its own index, the logarithm of its count, would still be the least.

    >>> from dpbandits.curators import Exact
    >>> agent, curator, rng = IMED.start(2), Exact.start(2), np.random.default_rng(0)
    >>> for t, reward in enumerate([0.0, 1.0, 1.0], start=1):
    ...     arm, stint, line = agent.act(curator, t, rng)
    ...     curator.add(arm, reward, 0.0, rng)
    >>> agent.act(curator, 4, rng)
    (1, 1, -inf)
    """

    arms: int
    alpha: float
    skip: bool
    block: Integers  # (1,): length of the stint to try next

    @classmethod
    def start(cls, arms: int, *, alpha: float = 1.0, skip: bool = True) -> Self:
        """A fresh agent; ``alpha`` > 0 scales the confidence at which noise is covered."""
        return cls(arms, positive("alpha", alpha), skip, np.array([2], np.int64))

    def act(self, curator: Curator, t: int, rng: Rng) -> tuple[int, int, float]:
        confidence = self.alpha * positive_log(t)
        turn = (t - 1) % self.arms
        if not curator.ready(turn, confidence):
            return turn, 1, NO_LINE
        top = 0.0
        for arm in range(self.arms):
            if not curator.ready(arm, confidence):
                return arm, 1, NO_LINE
            top = max(top, unit(curator.mean(arm) + curator.width(arm, confidence, 0)))
        best = self.least(curator, confidence, top)
        return best, self.stand(curator, t, best) if self.skip else 1, NO_LINE

    def divergence(self, curator: Curator, arm: int, confidence: float, top: float) -> float:
        """The index of an arm when the largest mean is ``top``."""
        n = curator.samples(arm, 0)
        return n * kl(unit(curator.mean(arm) + curator.width(arm, confidence, 0)), top) + positive_log(n)

    def least(self, curator: Curator, confidence: float, top: float) -> int:
        """The arm with the least index; the first of several."""
        best, least = 0, self.divergence(curator, 0, confidence, top)
        for arm in range(1, self.arms):
            index = self.divergence(curator, arm, confidence, top)
            if index < least:
                best, least = arm, index
        return best

    def stand(self, curator: Curator, t: int, best: int) -> int:
        """For how many rounds ``best`` is certain to be chosen; the next try is twice as long if this one held."""
        stint = self.block[0]
        while stint > 1:
            confidence = self.alpha * positive_log(t + stint - 1)
            low, own = curator.lowest(best, stint - 1), MARGIN + positive_log(curator.samples(best, stint - 1))
            if self.none_below(curator, best, confidence, low, own):
                self.block[0] = min(2 * stint, 1 << 40)
                return stint
            stint //= 2
        self.block[0] = 2
        return 1

    def none_below(self, curator: Curator, best: int, confidence: float, low: float, own: float) -> bool:
        """Whether every rival's mean is below ``low``, and its index above ``own`` even if that is the largest mean."""
        for arm in range(self.arms):
            if arm != best:
                if not curator.ready(arm, confidence):
                    return False
                center = unit(curator.mean(arm) + curator.width(arm, confidence, 0))
                if center >= low or self.divergence(curator, arm, confidence, low) <= own:
                    return False
        return True
