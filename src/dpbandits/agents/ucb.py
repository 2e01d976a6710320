"""Upper confidence bounds on whatever the curator releases."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

from dpbandits.agents.exploring import first_unready, largest_bound
from dpbandits.checks import positive
from dpbandits.numerics import positive_log
from dpbandits.protocols import NO_LINE, Releases
from dpbandits.types import Rng


class UCB(NamedTuple):
    r"""Play the arm with the largest upper confidence bound.

    At confidence :math:`L = \alpha \log(t - \text{lag})` the index of arm :math:`a` is

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
        """A fresh agent; ``alpha`` > 0 scales the confidence."""
        return cls(arms, positive("alpha", alpha), lag)

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        arm = first_unready(releases, self.arms, t, self.alpha * positive_log(t))
        if arm < self.arms:
            return arm, 1, NO_LINE
        confidence = self.alpha * positive_log(t - self.lag)
        best, largest = 0, -math.inf
        for arm in range(self.arms):
            index = releases.mean(arm) + self.bonus(releases, arm, confidence, 0)
            if index > largest:
                best, largest = arm, index
        return best, 1, NO_LINE

    def bonus(self, releases: Releases, arm: int, confidence: float, ahead: int) -> float:
        """The least by which the arm's index exceeds its mean in the next ``ahead`` rounds; 0 is exact."""
        return math.sqrt(confidence / (2.0 * releases.samples(arm, ahead))) + releases.width(arm, confidence, ahead)


class RootUCB(NamedTuple):
    """UCB where the noise is Gaussian: the variances of sampling and of noise add up, not their deviations.

    At confidence L = alpha log t the index is mean + sqrt(L / (2n) + w^2), w being the width of the curator's noise at
    L.

    >>> from dpbandits.curators import Plain
    >>> RootUCB.start(2).act(Plain.start(2), 1, None)
    (0, 1, -inf)
    """

    arms: int
    alpha: float

    @classmethod
    def start(cls, arms: int, *, alpha: float = 3.1) -> Self:
        """A fresh agent; ``alpha`` > 0 scales the confidence."""
        return cls(arms, positive("alpha", alpha))

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        return largest_bound(self, releases, t, self.alpha * positive_log(t))

    def bound(self, releases: Releases, arm: int, t: int) -> float:
        """The arm's index in round t."""
        confidence = self.alpha * positive_log(t)
        width = releases.width(arm, confidence, 0)
        return releases.mean(arm) + math.sqrt(confidence / (2.0 * releases.samples(arm, 0)) + width * width)
