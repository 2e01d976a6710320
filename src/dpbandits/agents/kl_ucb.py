"""Upper confidence bounds from the Bernoulli divergence."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from dpbandits.errors import positive
from dpbandits.numerics import kl, kl_upper, positive_log, unit
from dpbandits.protocols import MARGIN, NO_LINE, Curator, Integers, Rng


class KLUCB(NamedTuple):
    r"""Play the arm with the largest :math:`\max\{q : n_a\,\mathrm{kl}(c_a, q) \le L\}`, :math:`L = \alpha \log t`.

    Garivier & Cappe 2011, with :math:`c_a` the released mean plus the width of the curator's noise, clipped to [0, 1]
    (Azize & Basu 2022, Eq. 8). Arms that cannot win against the best index so far are not solved for.

    With ``skip`` the agent proves how long its choice stands: were all coming rewards 0, the leader's index at the end
    of the stint would still be one that no rival reaches there.

    >>> from dpbandits.curators import Exact
    >>> agent, curator, rng = KLUCB.start(2), Exact.start(2), np.random.default_rng(0)
    >>> for t, reward in enumerate([0.0, 1.0, 1.0], start=1):
    ...     arm, stint, line = agent.act(curator, t, rng)
    ...     curator.add(arm, reward, 0.0, rng)
    >>> agent.act(curator, 4, rng)[0]
    1
    """

    arms: int
    alpha: float
    skip: bool
    block: Integers  # (1,): length of the stint to try next

    @classmethod
    def start(cls, arms: int, *, alpha: float = 1.0, skip: bool = True) -> Self:
        """A fresh agent; ``alpha`` > 0 scales the confidence."""
        return cls(arms, positive("alpha", alpha), skip, np.array([2], np.int64))

    def act(self, curator: Curator, t: int, rng: Rng) -> tuple[int, int, float]:
        confidence = self.alpha * positive_log(t)
        turn = (t - 1) % self.arms
        if not curator.ready(turn, confidence):
            return turn, 1, NO_LINE
        best, best_index = 0, -1.0
        for arm in range(self.arms):
            if not curator.ready(arm, confidence):
                return arm, 1, NO_LINE
            center = unit(curator.mean(arm) + curator.width(arm, confidence, 0))
            n = curator.samples(arm, 0)
            if center > best_index or n * kl(center, best_index) < confidence:
                index = kl_upper(center, confidence / n)
                if index > best_index:
                    best, best_index = arm, index
        return best, self.stand(curator, t, best) if self.skip else 1, NO_LINE

    def stand(self, curator: Curator, t: int, best: int) -> int:
        """For how many rounds ``best`` is certain to stay ahead; the next try is twice as long if this one held."""
        confidence = self.alpha * positive_log(t)
        stint = self.block[0]
        while stint > 1:
            later = self.alpha * positive_log(t + stint - 1)
            center = unit(curator.lowest(best, stint - 1) + curator.width(best, confidence, stint - 1))
            floor = kl_upper(center, confidence / curator.samples(best, stint - 1)) - MARGIN
            if self.none_reaches(curator, best, floor, later):
                self.block[0] = min(2 * stint, 1 << 40)
                return stint
            stint //= 2
        self.block[0] = 2
        return 1

    def none_reaches(self, curator: Curator, best: int, floor: float, confidence: float) -> bool:
        """Whether every rival's index is below ``floor`` at this confidence."""
        for arm in range(self.arms):
            if arm != best:
                if not curator.ready(arm, confidence):
                    return False
                center = unit(curator.mean(arm) + curator.width(arm, confidence, 0))
                if center >= floor or curator.samples(arm, 0) * kl(center, floor) <= confidence:
                    return False
        return True
