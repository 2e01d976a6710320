"""Upper confidence bounds on whatever the curator releases."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

from dpbandits.errors import positive
from dpbandits.numerics import positive_log
from dpbandits.protocols import MARGIN, NO_LINE, Curator, Rng

SHORTEST = 8  # rounds of a stint with a line: few enough to cost the line little, enough to save most questions


class UCB(NamedTuple):
    r"""Play the arm with the largest upper confidence bound.

    At confidence :math:`L = \alpha \log(t - \text{lag})` the index of arm :math:`a` is

    .. math:: \tilde\mu_a + \sqrt{L / (2 n_a)} + w_a(L)

    with the released mean, the number of rewards it stands for, and the width of the curator's noise. Without noise and
    at ``alpha=4`` this is UCB1 (Auer, Cesa-Bianchi & Fischer 2002). ``lag`` is 1 where a paper's t counts completed
    rounds. An arm whose mean cannot be bounded yet is played first: the one whose turn it is, or else the first.

    With ``skip`` the agent proves how long its choice stands. The leader's bonus only falls, and its rivals' indices
    only rise, and that slowly; so the leader stays ahead as long as its mean is above a line: the rivals' largest index
    at the end of the stint, less its own bonus there.

    >>> import numpy as np
    >>> from dpbandits.curators import Exact
    >>> agent, curator, rng = UCB.start(2), Exact.start(2), np.random.default_rng(0)
    >>> for t, reward in enumerate([0.0, 1.0], start=1):
    ...     curator.add(agent.act(curator, t, rng)[0], reward, 0.0, rng)
    >>> arm, stint, line = agent.act(curator, 3, rng)
    >>> arm, stint, round(float(line), 3)
    (1, 8, 2.583)
    """

    arms: int
    alpha: float
    lag: int
    skip: bool

    @classmethod
    def start(cls, arms: int, *, alpha: float = 4.0, lag: int = 0, skip: bool = True) -> Self:
        """A fresh agent; ``alpha`` > 0 scales the confidence."""
        return cls(arms, positive("alpha", alpha), lag, skip)

    def act(self, curator: Curator, t: int, rng: Rng) -> tuple[int, int, float]:
        confidence, due = self.alpha * positive_log(t - self.lag), self.alpha * positive_log(t)
        turn = (t - 1) % self.arms
        if not curator.ready(turn, due):
            return turn, 1, NO_LINE
        best, first, best_bonus = 0, -math.inf, 0.0
        second, rival_bonus = -math.inf, 0.0
        for arm in range(self.arms):
            if not curator.ready(arm, due):
                return arm, 1, NO_LINE
            bonus = math.sqrt(confidence / (2.0 * curator.samples(arm, 0))) + curator.width(arm, confidence, 0)
            index = curator.mean(arm) + bonus
            if index > first:
                second, rival_bonus = first, max(rival_bonus, best_bonus)
                best, first, best_bonus = arm, index, bonus
            else:
                second, rival_bonus = max(second, index), max(rival_bonus, bonus)
        if not self.skip or confidence <= 0.0:
            return best, 1, NO_LINE
        # The lead falls by about this in a round, if the mean stays; most of it should survive the stint.
        fall = best_bonus / curator.samples(best, 0) + rival_bonus * self.alpha / (t * confidence)
        stint = max(int(min(0.25 * (first - second) / fall, 1e15)), SHORTEST)
        end = t + stint - 1
        if not self.all_ready(curator, self.alpha * positive_log(end)):
            return best, 1, NO_LINE
        later = self.alpha * positive_log(end - self.lag)
        rival = second + rival_bonus * (later / confidence - 1.0)  # no bonus grows faster than the confidence
        bonus = math.sqrt(confidence / (2.0 * curator.samples(best, stint - 1)))
        bonus += curator.width(best, confidence, stint - 1)
        return best, stint, rival - bonus + MARGIN * (1.0 + rival_bonus + bonus)

    def all_ready(self, curator: Curator, due: float) -> bool:
        """Whether every arm's mean can still be bounded at this confidence."""
        for arm in range(self.arms):  # noqa: SIM110  (kernels have no generator expressions)
            if not curator.ready(arm, due):
                return False
        return True
