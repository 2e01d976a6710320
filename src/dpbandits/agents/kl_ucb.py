"""Upper confidence bounds from the Bernoulli divergence."""

from __future__ import annotations

from typing import NamedTuple, Self

from dpbandits.agents.exploring import first_unready, raised_mean
from dpbandits.checks import positive
from dpbandits.numerics import kl, kl_upper, positive_log
from dpbandits.protocols import NO_LINE, Releases
from dpbandits.types import Rng


class KLUCB(NamedTuple):
    r"""Play the arm with the largest :math:`\max\{q : n_a\,\mathrm{kl}(c_a, q) \le L\}`, :math:`L = \alpha \log t`.

    Garivier & Cappe 2011, with :math:`c_a` the released mean plus the width of the curator's noise, clipped to [0, 1]
    (Azize & Basu 2022, Eq. 8). Arms that cannot win against the best index so far are not solved for.

    >>> import numpy as np
    >>> from dpbandits.curators import Plain
    >>> agent, curator, rng = KLUCB.start(2), Plain.start(2), np.random.default_rng(0)
    >>> for t, reward in enumerate([0.0, 1.0, 1.0], start=1):
    ...     curator.add(agent.act(curator, t, rng)[0], reward, 0.0, rng)
    >>> agent.act(curator, 4, rng)
    (1, 1, -inf)
    """

    arms: int
    alpha: float

    @classmethod
    def start(cls, arms: int, *, alpha: float = 1.0) -> Self:
        """A fresh agent; ``alpha`` > 0 scales the exponent."""
        return cls(arms, positive("alpha", alpha))

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        exponent = self.alpha * positive_log(t)
        arm = first_unready(releases, self.arms, t, exponent)
        if arm < self.arms:
            return arm, 1, NO_LINE
        best, largest = 0, -1.0
        for arm in range(self.arms):
            if self.reaches(releases, arm, exponent, largest):
                index = kl_upper(raised_mean(releases, arm, exponent), exponent / releases.samples(arm, 0))
                if index > largest:
                    best, largest = arm, index
        return best, 1, NO_LINE

    def reaches(self, releases: Releases, arm: int, exponent: float, rival: float) -> bool:
        """Whether the arm's index may be above ``rival``, another index."""
        center = raised_mean(releases, arm, exponent)
        return center > rival or releases.samples(arm, 0) * kl(center, rival) < exponent
