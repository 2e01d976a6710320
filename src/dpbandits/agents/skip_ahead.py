"""The same choices in longer stints, for simulations: agents that prove for how long a choice stands.

Each wraps the agent whose choices it makes. An index policy often repeats one arm. While no other arm is played, only
the leader's released mean can change its choice. So the wrapper answers with as many rounds as are certain, and a
simulator can draw their rewards at once. A law of the conformance suite checks that the choices are the same.

Only ``LazyThompson`` draws its choices. Its wrapper draws how long a choice is repeated, and the law checks that the
distributions are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from dpbandits.agents.exploring import first_unready, rounds_ready
from dpbandits.agents.imed import IMED
from dpbandits.agents.kl_ucb import KLUCB
from dpbandits.agents.lazy import CoveringUCB, LazyThompson, LazyUCB
from dpbandits.agents.likelihood import LikelihoodIMED
from dpbandits.agents.skip_imed import SkippingIMED, SkippingLikelihood
from dpbandits.agents.skip_kl_ucb import SHARE, SkippingKLUCB
from dpbandits.agents.skip_thompson import SkippingThompson
from dpbandits.agents.ucb import UCB
from dpbandits.numerics import positive_log
from dpbandits.protocols import MARGIN, NO_LINE, Agent, Curator, Foresees, Releases, Schedules
from dpbandits.types import Floats, Integers, Rng

__all__ = ["SkippingIMED", "SkippingKLUCB", "SkippingLazy", "SkippingLikelihood", "SkippingUCB", "skip_ahead"]

SHORTEST = 4  # rounds of a stint with a line: a longer stint raises the line, a shorter one asks more often
KEPT = 0.9  # the share of the last computed lead below which all rivals are computed again
LONGEST = 1 << 40


class _Indexed(Agent, Protocol):
    """An agent that plays the arm with the largest index."""

    @property
    def arms(self) -> int: ...

    def exponent(self, t: int) -> float: ...

    def bound(self, releases: Releases, arm: int, t: int) -> float: ...

    def bonus(self, releases: Releases, arm: int, t: int, ahead: int) -> float: ...


Lazily = TypeVar("Lazily", bound=_Indexed)


def skip_ahead(agent: Agent, curator: Curator) -> Agent:
    """An agent with the same choices in longer stints; the agent itself where no such agent is known.

    An agent that draws its choices draws other ones, with the same distribution.

    The proofs make six assumptions about the curator. The first four are checked here. While an arm is played, the
    releases of the other arms stay the same. The curator does not release whole stints, where a longer stint would
    change the release. If the agent uses a likelihood, the curator is declared ``protocols.Foresees``. If it draws
    its choices, the curator is declared ``protocols.Schedules``. ``lowest``, ``samples`` and ``width`` bound later
    releases, as ``protocols.Releases`` says. An arm that is ready at some exponent stays ready, and is ready at every
    smaller exponent.

    >>> from dpbandits.curators import Batch, Plain
    >>> type(skip_ahead(UCB.start(2), Plain.start(2))).__name__
    'SkippingUCB'
    >>> type(skip_ahead(UCB.start(2), Batch.start(2, epsilon=1.0))).__name__
    'UCB'
    """
    start = SKIPPING.get(type(agent))
    if start is None or curator.by_stint or not curator.others_stand:
        return agent
    if isinstance(agent, LikelihoodIMED) and not isinstance(curator, Foresees):
        return agent
    if isinstance(agent, LazyThompson) and not isinstance(curator, Schedules):
        return agent
    return start(agent)


class SkippingUCB(NamedTuple):
    """UCB in stints: the leader stays ahead while its mean is above a line.

    While the leader is played, its bonus falls, and its rivals' indices rise slowly. So the line is the rivals' largest
    index at the end of the stint, less the leader's bonus there. The agent keeps a ceiling: an upper bound on the
    rivals' indices, linear in t. It holds while only the leader is played, so most calls look at the leader alone.

    >>> from dpbandits.curators import Plain
    >>> agent, curator, rng = SkippingUCB.start(UCB.start(2)), Plain.start(2), np.random.default_rng(0)
    >>> for t, reward in enumerate([0.0, 1.0], start=1):
    ...     curator.add(agent.act(curator, t, rng)[0], reward, 0.0, rng)
    >>> arm, stint, line = agent.act(curator, 3, rng)
    >>> arm, stint, round(float(line), 3)
    (1, 4, 2.09)
    """

    ucb: UCB
    leader: Integers  # (1,)
    since: Integers  # (1,): the round of the last look at all arms
    until: Integers  # (1,): the last round for which the ceiling holds; 0 where there is none
    ceiling: Floats  # (1,): of the rivals' indices, extrapolated to round 0
    rise: Floats  # (1,): of the ceiling in a round
    lead: Floats  # (1,): of the leader's index over its rivals' at the last look
    exponent: Floats  # (1,): at the last look

    @classmethod
    def start(cls, ucb: UCB) -> Self:
        """A fresh agent with the choices of ``ucb``."""
        return cls(ucb, *np.zeros((3, 1), np.int64), *np.zeros((4, 1)))

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        if self.since[0] <= t <= self.until[0]:
            leader = int(self.leader[0])
            bonus = self.ucb.bonus(releases, leader, self.exponent[0], 0)
            lead = releases.mean(leader) + bonus - self.ceiling_at(t)
            if lead > KEPT * self.lead[0]:
                return self.stint(releases, t, bonus, lead)
        return self.look(releases, t)

    def look(self, releases: Releases, t: int) -> tuple[int, int, float]:
        """Look at all arms, choose one, and remember a ceiling of the others' indices."""
        self.until[0] = 0
        ucb = self.ucb
        arm = first_unready(releases, ucb.arms, t, ucb.alpha * positive_log(t))
        if arm < ucb.arms:
            return arm, 1, NO_LINE
        log_t = positive_log(t - ucb.lag)
        exponent = ucb.alpha * log_t
        best, first, best_bonus = 0, -math.inf, 0.0
        second, rival_bonus = -math.inf, 0.0
        for arm in range(ucb.arms):
            bonus = ucb.bonus(releases, arm, exponent, 0)
            index = releases.mean(arm) + bonus
            if index > first:
                second, rival_bonus = first, max(rival_bonus, best_bonus)
                best, first, best_bonus = arm, index, bonus
            else:
                second, rival_bonus = max(second, index), max(rival_bonus, bonus)
        if exponent <= 0.0:
            return best, 1, NO_LINE
        self.leader[0], self.since[0], self.until[0] = best, t, t + rounds_ready(releases, ucb.arms, t, ucb.alpha)
        self.rise[0] = rival_bonus / ((t - ucb.lag) * log_t)  # bonuses grow at most like log t, whose slope falls
        self.ceiling[0] = second - self.rise[0] * t + MARGIN * (1.0 + rival_bonus)
        self.lead[0], self.exponent[0] = first - second, exponent
        return self.stint(releases, t, best_bonus, first - second)

    def ceiling_at(self, t: int) -> float:
        """An upper bound on the rivals' indices in round t."""
        return self.ceiling[0] + self.rise[0] * t

    def stint(self, releases: Releases, t: int, bonus: float, lead: float) -> tuple[int, int, float]:
        """For how long to play the leader, which has this bonus and lead now, and above which line."""
        leader = int(self.leader[0])
        fall = bonus / releases.samples(leader, 0) + self.rise[0]  # of the lead in a round, if the mean stays
        rounds = min(max(int(min(SHARE * lead / fall, 1e15)), SHORTEST), int(self.until[0]) - t + 1)
        bonus = self.ucb.bonus(releases, leader, self.exponent[0], rounds - 1)
        return leader, rounds, self.ceiling_at(t + rounds - 1) - bonus + MARGIN * (1.0 + bonus)


class SkippingLazy(NamedTuple, Generic[Lazily]):
    """An agent whose indices only grow with t while releases stand: the leader stays while its mean is above a line.

    In the stint each rival's index is at most what it is at the end, and the leader's is at least its mean plus the
    least bonus that its later releases can have. So the line is the difference of the two.

    >>> from dpbandits.curators import Lazy
    >>> agent, curator, rng = SkippingLazy.start(LazyUCB.start(2)), Lazy.start(2, epsilon=1.0), np.random.default_rng(0)
    >>> curator.counts[:], curator.means[:] = 1024, (0.1, 0.9)
    >>> [int(agent.act(curator, 2001, rng)[1]) for _ in range(3)]
    [2, 4, 8]
    """

    lazy: Lazily
    attempt: Integers  # (1,): the stint to try next

    @classmethod
    def start(cls, lazy: Lazily) -> Self:
        """A fresh agent with the choices of ``lazy``."""
        return cls(lazy, np.array([2], np.int64))

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        leader = self.lazy.act(releases, t, rng)[0]
        stint, line = self.attempt[0], NO_LINE
        while stint > 1:
            line = self.line(releases, t, leader, stint)
            if line < math.inf:
                break
            stint, line = stint // 2, NO_LINE
        self.attempt[0] = min(2 * stint, LONGEST)
        return leader, stint, line

    def line(self, releases: Releases, t: int, leader: int, stint: int) -> float:
        """While its mean is above this, ``leader`` is chosen in this many rounds; infinity if its mean is not above."""
        arms, end = self.lazy.arms, t + stint - 1
        if first_unready(releases, arms, t, self.lazy.exponent(end)) < arms:
            return math.inf
        mean, bonus, line = releases.mean(leader), self.lazy.bonus(releases, leader, t, stint - 1), -math.inf
        for arm in range(arms):
            if arm != leader:
                line = max(line, self.lazy.bound(releases, arm, end) - bonus + MARGIN)
                if line >= mean:
                    return math.inf
        return line


SKIPPING: dict[type, Callable[[Any], Agent]] = {
    UCB: SkippingUCB.start,
    KLUCB: SkippingKLUCB.start,
    IMED: SkippingIMED.start,
    LazyThompson: SkippingThompson.start,
    LazyUCB: SkippingLazy.start,
    LikelihoodIMED: SkippingLikelihood.start,
    CoveringUCB: SkippingLazy.start,
}
