"""Upper confidence bounds on whatever the curator releases."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from dpbandits.errors import positive
from dpbandits.numerics import positive_log
from dpbandits.protocols import MARGIN, NO_LINE, Curator, Floats, Integers, Rng

SHORTEST = 4  # rounds of a stint with a line: few enough to cost the line little, enough to save most questions
SHARE = 0.25  # of the leader's lead that a stint may cost
KEPT = 0.9  # of the lead that the last look at the rivals found: with less, it is time to look again


class UCB(NamedTuple):
    r"""Play the arm with the largest upper confidence bound.

    At confidence :math:`L = \alpha \log(t - \text{lag})` the index of arm :math:`a` is

    .. math:: \tilde\mu_a + \sqrt{L / (2 n_a)} + w_a(L)

    with the released mean, the number of rewards it stands for, and the width of the curator's noise. Without noise and
    at ``alpha=4`` this is UCB1 (Auer, Cesa-Bianchi & Fischer 2002). ``lag`` is 1 where a paper's t counts completed
    rounds. An arm whose mean cannot be bounded yet is played first: the one whose turn it is, or else the first.

    With ``skip`` the agent proves how long its choice stands. The leader's bonus only falls, and its rivals' indices
    only rise, and that slowly; so the leader stays ahead as long as its mean is above a line: the rivals' largest index
    at the end of the stint, less its own bonus there. It remembers a ceiling of the rivals' indices, which stands while
    the leader alone is played, so that most questions are about the leader only.

    >>> import numpy as np
    >>> from dpbandits.curators import Exact
    >>> agent, curator, rng = UCB.start(2), Exact.start(2), np.random.default_rng(0)
    >>> for t, reward in enumerate([0.0, 1.0], start=1):
    ...     curator.add(agent.act(curator, t, rng)[0], reward, 0.0, rng)
    >>> arm, stint, line = agent.act(curator, 3, rng)
    >>> arm, stint, round(float(line), 3)
    (1, 4, 2.09)
    """

    arms: int
    alpha: float
    lag: int
    skip: bool
    lead_rounds: Integers  # (3,): the arm that leads, and from which round to which its rivals' ceiling stands
    lead_values: Floats  # (4,): the ceiling at round 0, its rise in a round, and the lead and confidence at the look

    @classmethod
    def start(cls, arms: int, *, alpha: float = 4.0, lag: int = 0, skip: bool = True) -> Self:
        """A fresh agent, for one run; ``alpha`` > 0 scales the confidence."""
        return cls(arms, positive("alpha", alpha), lag, skip, np.zeros(3, np.int64), np.zeros(4))

    def act(self, curator: Curator, t: int, rng: Rng) -> tuple[int, int, float]:
        if self.skip and self.lead_rounds[1] <= t <= self.lead_rounds[2]:
            best = int(self.lead_rounds[0])
            bonus = self.index_bonus(curator, best, self.lead_values[3], 0)
            lead = curator.mean(best) + bonus - self.rivals_ceiling(t)
            if lead > KEPT * self.lead_values[2]:
                return self.leaders_stint(curator, t, bonus, lead)
        self.lead_rounds[2] = 0
        log_t = positive_log(t - self.lag)
        confidence, due = self.alpha * log_t, self.alpha * positive_log(t)
        turn = (t - 1) % self.arms
        if not curator.ready(turn, due):
            return turn, 1, NO_LINE
        best, first, best_bonus = 0, -math.inf, 0.0
        second, rival_bonus = -math.inf, 0.0
        for arm in range(self.arms):
            if not curator.ready(arm, due):
                return arm, 1, NO_LINE
            bonus = self.index_bonus(curator, arm, confidence, 0)
            index = curator.mean(arm) + bonus
            if index > first:
                second, rival_bonus = first, max(rival_bonus, best_bonus)
                best, first, best_bonus = arm, index, bonus
            else:
                second, rival_bonus = max(second, index), max(rival_bonus, bonus)
        if not self.skip or confidence <= 0.0:
            return best, 1, NO_LINE
        ahead = t
        while ahead > 0 and not self.all_ready(curator, self.alpha * positive_log(t + ahead)):
            ahead //= 4
        rise = rival_bonus / ((t - self.lag) * log_t)  # no bonus grows faster than log t, and that not faster than now
        self.lead_rounds[0], self.lead_rounds[1], self.lead_rounds[2] = best, t, t + ahead
        self.lead_values[0], self.lead_values[1] = second - rise * t + MARGIN * (1.0 + rival_bonus), rise
        self.lead_values[2], self.lead_values[3] = first - second, confidence
        return self.leaders_stint(curator, t, best_bonus, first - second)

    def index_bonus(self, curator: Curator, arm: int, confidence: float, ahead: int) -> float:
        """The least by which the arm's index exceeds its mean in the next ``ahead`` rounds; 0 is exact."""
        return math.sqrt(confidence / (2.0 * curator.samples(arm, ahead))) + curator.width(arm, confidence, ahead)

    def rivals_ceiling(self, t: int) -> float:
        """What no rival's index exceeds in round t."""
        return self.lead_values[0] + self.lead_values[1] * t

    def leaders_stint(self, curator: Curator, t: int, bonus: float, lead: float) -> tuple[int, int, float]:
        """For how long to play the leader, which has this bonus and lead now, and above which line."""
        best = int(self.lead_rounds[0])
        # The lead falls by about this in a round, if the mean stays.
        fall = bonus / curator.samples(best, 0) + self.lead_values[1]
        rounds = min(max(int(min(SHARE * lead / fall, 1e15)), SHORTEST), int(self.lead_rounds[2]) - t + 1)
        bonus = self.index_bonus(curator, best, self.lead_values[3], rounds - 1)
        return best, rounds, self.rivals_ceiling(t + rounds - 1) - bonus + MARGIN * (1.0 + bonus)

    def all_ready(self, curator: Curator, due: float) -> bool:
        """Whether every arm's mean can still be bounded at this confidence."""
        for arm in range(self.arms):  # noqa: SIM110  (kernels have no generator expressions)
            if not curator.ready(arm, due):
                return False
        return True
