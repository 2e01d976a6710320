"""Upper confidence bounds on whatever the curator releases."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from dpbandits.errors import positive
from dpbandits.numerics import positive_log
from dpbandits.protocols import MARGIN, NO_LINE, Curator, Integers, Rng


class UCB(NamedTuple):
    r"""Play the arm with the largest upper confidence bound.

    At confidence :math:`L = \alpha \log(t - \text{lag})` the index of arm :math:`a` is

    .. math:: \tilde\mu_a + \sqrt{L / (2 n_a)} + w_a(L)

    with the released mean, the number of rewards it stands for, and the width of the curator's noise. Without noise and
    at ``alpha=4`` this is UCB1 (Auer, Cesa-Bianchi & Fischer 2002). ``lag`` is 1 where a paper's t counts completed
    rounds. An arm whose mean cannot be bounded yet is played first: the one whose turn it is, or else the first.

    With ``skip`` the agent proves how long its choice stands. The leader's bonus only falls and its rivals' only rises,
    so the leader stays ahead for m rounds if its mean stays above the rivals' largest index at the end of them less
    its own bonus at that end. Where the curator's responses are bounded that is certain from m on; otherwise it is the
    line of the stint, and m adapts to how often the line is crossed.

    >>> from dpbandits.curators import Exact
    >>> agent, curator, rng = UCB.start(2), Exact.start(2), np.random.default_rng(0)
    >>> for t, reward in enumerate([0.0, 1.0, 1.0], start=1):
    ...     arm, stint, line = agent.act(curator, t, rng)
    ...     curator.add(arm, reward, 0.0, rng)
    >>> agent.act(curator, 4, rng)
    (1, 1, -inf)
    """

    arms: int
    alpha: float
    lag: int
    skip: bool
    block: Integers  # (2,): length of the next stint that has a line; the round in which the last one would have ended

    @classmethod
    def start(cls, arms: int, *, alpha: float = 4.0, lag: int = 0, skip: bool = True) -> Self:
        """A fresh agent; ``alpha`` > 0 scales the confidence."""
        return cls(arms, positive("alpha", alpha), lag, skip, np.array([16, 0], np.int64))

    def act(self, curator: Curator, t: int, rng: Rng) -> tuple[int, int, float]:
        confidence, due = self.alpha * positive_log(t - self.lag), self.alpha * positive_log(t)
        turn = (t - 1) % self.arms
        if not curator.ready(turn, due):
            return turn, 1, NO_LINE
        best, first, second, rival_bonus = 0, -math.inf, -math.inf, 0.0
        best_bonus = 0.0
        for arm in range(self.arms):
            if not curator.ready(arm, due):
                return arm, 1, NO_LINE
            bonus = math.sqrt(confidence / (2.0 * curator.samples(arm, 0))) + curator.width(arm, confidence, 0)
            index = curator.mean(arm) + bonus
            if index > first:
                second = first
                rival_bonus = max(rival_bonus, best_bonus)
                best, first, best_bonus = arm, index, bonus
            else:
                rival_bonus = max(rival_bonus, bonus)
                second = max(second, index)
        if not self.skip or confidence <= 0.0:
            return best, 1, NO_LINE
        return self.stand_against(curator, t, best, first, second, rival_bonus)

    def stand_against(
        self, curator: Curator, t: int, best: int, first: float, second: float, rival_bonus: float
    ) -> tuple[int, int, float]:
        """For how long ``best`` stays ahead of a rival's index ``second``, no rival's bonus being above ``rival_bonus``."""
        confidence = self.alpha * positive_log(t - self.lag)
        stint = self.adapted(t)
        while stint > 1:
            end = t + stint - 1
            later = self.alpha * positive_log(end - self.lag)
            rival = second + rival_bonus * (later / confidence - 1.0) + MARGIN
            bonus = math.sqrt(confidence / (2.0 * curator.samples(best, stint - 1)))
            line = rival - bonus - curator.width(best, confidence, stint - 1)
            if curator.mean(best) - line > 0.75 * (first - second) and self.all_ready(curator, self.alpha * positive_log(end)):
                self.block[1] = t + stint
                return best, stint, line
            stint //= 2
        self.block[0], self.block[1] = 2, t + 1
        return best, 1, NO_LINE

    def adapted(self, t: int) -> int:
        """Twice the last stint if it ran to its end, half of it if it was cut short."""
        length = self.block[0]
        length = min(2 * length, 1 << 20) if t == self.block[1] else max(length // 2, 2)
        self.block[0] = length
        return length

    def all_ready(self, curator: Curator, due: float) -> bool:
        """Whether every arm's mean can still be bounded at this confidence."""
        for arm in range(self.arms):
            if not curator.ready(arm, due):
                return False
        return True
