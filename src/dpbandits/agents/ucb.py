"""Upper confidence bounds on whatever the curator releases."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

from dpbandits.agents.exploring import first_unready
from dpbandits.checks import positive
from dpbandits.numerics import positive_log
from dpbandits.protocols import NO_LINE, Releases
from dpbandits.types import Rng


class UCB(NamedTuple):
    r"""Play the arm with the largest upper confidence bound.

    With the exponent :math:`L = \alpha \log(t - \text{lag})` the index of arm :math:`a` is

    .. math:: \tilde\mu_a + \sqrt{L / (2 n_a)} + w_a(L)

    with the released mean, the number of rewards it stands for, and the width of the curator's noise. Without noise and
    at ``alpha=4`` this is UCB1 (Auer, Cesa-Bianchi & Fischer 2002). ``lag`` is 1 where a paper's t counts completed
    rounds. Arms whose mean cannot be bounded yet are played first, in turn.

    >>> import numpy as np
    >>> from dpbandits.curators import Plain
    >>> agent, curator, rng = UCB.start(2), Plain.start(2), np.random.default_rng(0)
    >>> for t, reward in enumerate([0.0, 1.0], start=1):
    ...     curator.add(agent.act(curator, t, rng)[0], reward, 0.0, rng)
    >>> agent.act(curator, 3, rng)
    (1, 1, -inf)
    """

    arms: int
    alpha: float
    lag: int

    @classmethod
    def start(cls, arms: int, *, alpha: float = 4.0, lag: int = 0) -> Self:
        """A fresh agent; ``alpha`` > 0 scales the exponent."""
        return cls(arms, positive("alpha", alpha), lag)

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        arm = first_unready(releases, self.arms, t, self.alpha * positive_log(t))
        if arm < self.arms:
            return arm, 1, NO_LINE
        exponent = self.alpha * positive_log(t - self.lag)
        best, largest = 0, -math.inf
        for arm in range(self.arms):
            index = releases.mean(arm) + self.bonus(releases, arm, exponent, 0)
            if index > largest:
                best, largest = arm, index
        return best, 1, NO_LINE

    def bonus(self, releases: Releases, arm: int, exponent: float, ahead: int) -> float:
        """The least by which the arm's index exceeds its mean in the next ``ahead`` rounds; 0 is exact."""
        return math.sqrt(exponent / (2.0 * releases.samples(arm, ahead))) + releases.width(arm, exponent, ahead)
