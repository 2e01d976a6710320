"""The same choices in longer stints, for simulations: agents that prove for how long a choice stands.

Each wraps the agent whose choices it makes. An index policy often repeats one arm, and what could change its mind is
known: the leader's released mean, as long as no other arm is played. So the wrapper answers with as many rounds as are
certain, and a simulator can draw their rewards at once. A law of the conformance suite says that the choices are the
same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from dpbandits.agents.exploring import first_unready, raised_mean
from dpbandits.agents.imed import IMED
from dpbandits.agents.kl_ucb import KLUCB
from dpbandits.agents.lazy import CoveringUCB, LazyUCB
from dpbandits.agents.likelihood import LikelihoodIMED
from dpbandits.agents.ucb import UCB
from dpbandits.numerics import corrected, kl, kl_lower, kl_upper, positive_log, uncorrected, unit
from dpbandits.protocols import MARGIN, NO_LINE, Agent, Releases
from dpbandits.types import Floats, Integers, Rng

__all__ = ["SkippingIMED", "SkippingKLUCB", "SkippingLazy", "SkippingLikelihood", "SkippingUCB", "skip_ahead"]

SHORTEST = 4  # rounds of a stint with a line: a longer stint lowers the line, a shorter one asks more often
SHARE = 0.25  # the share of the leader's lead that a stint may use up
KEPT = 0.9  # the share of the last computed lead below which all rivals are computed again
HALF = 0.5  # of the lead of IMED's index that its own growth may cost in a stint
FARTHEST = 40.0  # leads beyond this one are as good
LONGEST = 1 << 40


class _Indexed(Agent, Protocol):
    """An agent that plays the arm with the largest index."""

    @property
    def arms(self) -> int: ...

    def bound(self, releases: Releases, arm: int, t: int) -> float: ...


Lazily = TypeVar("Lazily", bound=_Indexed)


def skip_ahead(agent: Agent) -> Agent:
    """An agent with the same choices in longer stints; the agent itself where no such proof is written.

    >>> type(skip_ahead(UCB.start(2))).__name__
    'SkippingUCB'
    """
    start = SKIPPING.get(type(agent))
    return agent if start is None else start(agent)


class SkippingUCB(NamedTuple):
    """UCB in stints: the leader stays ahead while its mean is above a line.

    The leader's bonus only falls while it is played, and its rivals' indices only rise, and that slowly. So the line is
    the rivals' largest index at the end of the stint, less the leader's bonus there. A ceiling of the rivals' indices,
    linear in t, is remembered: it holds while the leader alone is played, so most questions are about the leader only.

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
    confidence: Floats  # (1,): at the last look

    @classmethod
    def start(cls, ucb: UCB) -> Self:
        """A fresh agent with the choices of ``ucb``."""
        return cls(ucb, *np.zeros((3, 1), np.int64), *np.zeros((4, 1)))

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        if self.since[0] <= t <= self.until[0]:
            leader = int(self.leader[0])
            bonus = self.ucb.bonus(releases, leader, self.confidence[0], 0)
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
        confidence = ucb.alpha * log_t
        best, first, best_bonus = 0, -math.inf, 0.0
        second, rival_bonus = -math.inf, 0.0
        for arm in range(ucb.arms):
            bonus = ucb.bonus(releases, arm, confidence, 0)
            index = releases.mean(arm) + bonus
            if index > first:
                second, rival_bonus = first, max(rival_bonus, best_bonus)
                best, first, best_bonus = arm, index, bonus
            else:
                second, rival_bonus = max(second, index), max(rival_bonus, bonus)
        if confidence <= 0.0:
            return best, 1, NO_LINE
        self.leader[0], self.since[0], self.until[0] = best, t, t + self.rounds_ready(releases, t)
        self.rise[0] = rival_bonus / ((t - ucb.lag) * log_t)  # bonuses grow at most like log t, whose slope falls
        self.ceiling[0] = second - self.rise[0] * t + MARGIN * (1.0 + rival_bonus)
        self.lead[0], self.confidence[0] = first - second, confidence
        return self.stint(releases, t, best_bonus, first - second)

    def rounds_ready(self, releases: Releases, t: int) -> int:
        """A number of rounds, t or fewer, for which no arm must be explored."""
        ahead = t
        while ahead > 0:
            due = self.ucb.alpha * positive_log(t + ahead)
            if first_unready(releases, self.ucb.arms, t, due) == self.ucb.arms:
                return ahead
            ahead //= 4
        return 0

    def ceiling_at(self, t: int) -> float:
        """What no rival's index exceeds in round t."""
        return self.ceiling[0] + self.rise[0] * t

    def stint(self, releases: Releases, t: int, bonus: float, lead: float) -> tuple[int, int, float]:
        """For how long to play the leader, which has this bonus and lead now, and above which line."""
        leader = int(self.leader[0])
        fall = bonus / releases.samples(leader, 0) + self.rise[0]  # of the lead in a round, if the mean stays
        rounds = min(max(int(min(SHARE * lead / fall, 1e15)), SHORTEST), int(self.until[0]) - t + 1)
        bonus = self.ucb.bonus(releases, leader, self.confidence[0], rounds - 1)
        return leader, rounds, self.ceiling_at(t + rounds - 1) - bonus + MARGIN * (1.0 + bonus)


class SkippingKLUCB(NamedTuple):
    """KL-UCB in stints: the leader stays ahead while its mean is above a line.

    The floor is the rivals' largest index at the end of the stint. The leader's index is above it as long as its mean p
    has n kl(p, floor) < L, with the n of the end and the L of the start: the line is the least such p.

    >>> from dpbandits.curators import Plain
    >>> agent, curator, rng = SkippingKLUCB.start(KLUCB.start(2)), Plain.start(2), np.random.default_rng(0)
    >>> curator.counts[:], curator.sums[:] = 1000, (100.0, 900.0)
    >>> [int(agent.act(curator, t, rng)[1]) for t in (2001, 2003, 2007)]
    [2, 4, 8]
    >>> int(agent.act(curator, 2012, rng)[1])  # the line cut the last one short
    5
    """

    kl_ucb: KLUCB
    last: Integers  # (1,): the last stint
    since: Integers  # (1,): the round in which it began

    @classmethod
    def start(cls, kl_ucb: KLUCB) -> Self:
        """A fresh agent with the choices of ``kl_ucb``."""
        return cls(kl_ucb, np.ones(1, np.int64), np.zeros(1, np.int64))

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        leader = self.kl_ucb.act(releases, t, rng)[0]
        stint = min(2 * self.last[0], LONGEST)
        if t < self.since[0] + self.last[0]:  # its line cut the last one short
            stint = max(t - self.since[0], 2)
        line = NO_LINE
        while stint > 1:
            line = self.line(releases, t, leader, stint)
            if line < math.inf and releases.mean(leader) > line:
                break
            stint //= 2
        self.last[0], self.since[0] = stint, t
        return leader, stint, line if stint > 1 else NO_LINE

    def line(self, releases: Releases, t: int, leader: int, stint: int) -> float:
        """The leader is certain to be chosen for so many rounds while its mean is above this."""
        alpha = self.kl_ucb.alpha
        now, later = alpha * positive_log(t), alpha * positive_log(t + stint - 1)
        if now <= 0.0 or first_unready(releases, self.kl_ucb.arms, t, later) < self.kl_ucb.arms:
            return math.inf
        floor = 0.0
        for arm in range(self.kl_ucb.arms):
            if arm != leader and self.kl_ucb.reaches(releases, arm, later, floor):
                index = kl_upper(raised_mean(releases, arm, later), later / releases.samples(arm, 0))
                floor = max(floor, index)
        if floor >= 1.0:
            return math.inf
        least = kl_lower(floor + MARGIN, now / releases.samples(leader, stint - 1))
        return least + MARGIN - releases.width(leader, now, stint - 1)


class SkippingIMED(NamedTuple):
    """IMED in stints: the chosen arm keeps the least index while its mean is above a line.

    The arm with the largest mean has the index log n. Its rivals' indices are above that as long as its mean is above a
    line: the largest mean at which a rival's index is log n at the end of the stint. For an arm with a smaller mean, no
    other index falls while it is played; its own stays below the least of them as long as its mean is above a line.
    Where the curator's noise has a width, indices change with t, and every choice is made anew.

    >>> from dpbandits.curators import Plain
    >>> agent, curator, rng = SkippingIMED.start(IMED.start(2)), Plain.start(2), np.random.default_rng(0)
    >>> curator.counts[:], curator.sums[:] = 1000, (100.0, 900.0)
    >>> arm, stint, line = agent.act(curator, 2001, rng)
    >>> arm, stint > 10**6, round(float(line), 3)
    (1, True, 0.17)
    """

    imed: IMED

    @classmethod
    def start(cls, imed: IMED) -> Self:
        """A fresh agent with the choices of ``imed``."""
        return cls(imed)

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        imed = self.imed
        confidence = imed.alpha * positive_log(t)
        arm = first_unready(releases, imed.arms, t, confidence)
        if arm < imed.arms:
            return arm, 1, NO_LINE
        top, width = 0.0, 0.0
        for arm in range(imed.arms):
            top = max(top, raised_mean(releases, arm, confidence))
            width = max(width, releases.width(arm, confidence, 0))
        best, least, second = 0, math.inf, math.inf
        for arm in range(imed.arms):
            index = imed.divergence(releases, arm, confidence, top)
            if index < least:
                best, least, second = arm, index, least
            elif index < second:
                second = index
        if width > 0.0 or t <= imed.arms or second - least <= MARGIN:
            return best, 1, NO_LINE
        if releases.mean(best) >= top:
            rounds, line = self.leading(releases, best, min(second - least, FARTHEST))
        else:
            rounds, line = self.exploring(releases, best, top, least, second)
        if first_unready(releases, imed.arms, t, imed.alpha * positive_log(t + rounds - 1)) < imed.arms:
            return best, 1, NO_LINE
        return best, rounds, line

    def leading(self, releases: Releases, leader: int, lead: float) -> tuple[int, float]:
        """For how long to play the arm with the largest mean, and above which line; ``lead`` is its index's."""
        n = releases.samples(leader, 0)
        rounds = max(int(n * math.expm1(HALF * lead)), SHORTEST)
        own = positive_log(n + rounds) + MARGIN
        line = 0.0
        for arm in range(self.imed.arms):
            if arm == leader:
                continue
            count, mean = releases.samples(arm, 0), unit(releases.mean(arm))
            needed = own - positive_log(count)
            if mean > line:
                line = mean
            if needed > 0.0 and corrected(count * kl(mean, line), self.imed.correction) < needed:
                line = kl_upper(mean, uncorrected(needed, self.imed.correction) / count)
        return rounds, line + MARGIN

    def exploring(self, releases: Releases, arm: int, top: float, least: float, second: float) -> tuple[int, float]:
        """For how long to play an arm with a smaller mean, and above which line."""
        n = releases.samples(arm, 0)
        rise = kl(unit(releases.mean(arm)), top) + 1.0 / n  # of its index in a round, if the mean stays
        rounds = max(int(min(HALF * (second - least) / rise, 1e15)), SHORTEST)
        most = second - positive_log(n + rounds) - MARGIN
        if most <= 0.0:
            return 1, NO_LINE
        return rounds, kl_lower(top, uncorrected(most, self.imed.correction) / (n + rounds)) + MARGIN


class SkippingLazy(NamedTuple, Generic[Lazily]):
    """An agent whose indices only grow with t while releases stand: the leader stays while no rival can pass it.

    Until the leader's next release its index is at least what it is now, and no rival's is more than at the end.

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
        stint = self.attempt[0]
        while stint > 1 and not self.stands(releases, t, leader, stint):
            stint //= 2
        self.attempt[0] = min(2 * stint, LONGEST)
        return leader, stint, NO_LINE

    def stands(self, releases: Releases, t: int, leader: int, stint: int) -> bool:
        """Whether ``leader`` is certain to be chosen for so many rounds."""
        arms = self.lazy.arms
        if first_unready(releases, arms, t, 0.0) < arms or releases.lowest(leader, stint - 1) == -math.inf:
            return False
        largest = -math.inf
        for arm in range(arms):
            if arm != leader:
                largest = max(largest, self.lazy.bound(releases, arm, t + stint - 1))
        return largest < self.lazy.bound(releases, leader, t) - MARGIN


class SkippingLikelihood(NamedTuple):
    """IMED on a likelihood in stints: the arm with the largest mean keeps the least index while that is above a line.

    As in ``SkippingIMED``, the line is the largest mean at which a rival's index is log n at the end of the stint. A
    response adds at most 1 to n. Choices of other arms are made anew in every round.

    >>> from dpbandits.curators import WeightedBernoulli
    >>> agent, curator = SkippingLikelihood.start(LikelihoodIMED.start(2)), WeightedBernoulli.start(2)
    >>> curator.weights[:], curator.sums[:] = 1000.0, (100.0, 900.0)
    >>> arm, stint, line = agent.act(curator, 2001, np.random.default_rng(0))
    >>> arm, stint > 10**6, round(float(line), 3)
    (1, True, 0.2)
    """

    likelihood: LikelihoodIMED

    @classmethod
    def start(cls, likelihood: LikelihoodIMED) -> Self:
        """A fresh agent with the choices of ``likelihood``."""
        return cls(likelihood)

    def act(self, releases: Any, t: int, rng: Rng) -> tuple[int, int, float]:
        likelihood = self.likelihood
        arms = len(likelihood.means)
        arm = first_unready(releases, arms, t, positive_log(t))
        if arm < arms:
            return arm, 1, NO_LINE
        for arm in range(arms):
            likelihood.look(releases, arm)
        best = likelihood.choice(releases)
        top = max(likelihood.means[best], 0.0)
        for arm in range(arms):
            if arm != best and likelihood.means[arm] >= likelihood.means[best]:
                return best, 1, NO_LINE
        second = math.inf
        for arm in range(arms):
            if arm != best:
                second = min(second, likelihood.index_at(releases, arm, top))
        lead = min(second - likelihood.index_at(releases, best, top), FARTHEST)
        if lead <= MARGIN:
            return best, 1, NO_LINE
        rounds = max(int(likelihood.counts[best] * math.expm1(HALF * lead)), SHORTEST)
        own = positive_log(likelihood.counts[best] + rounds) + MARGIN
        line = 0.0
        for arm in range(arms):
            if arm != best:
                line = self.raised(releases, arm, line, own)
        return best, rounds, line + MARGIN

    def raised(self, releases: Any, arm: int, line: float, own: float) -> float:
        """The line, raised if need be to where this rival's index is ``own``."""
        likelihood = self.likelihood
        line = max(line, likelihood.means[arm])
        needed = own - positive_log(likelihood.counts[arm])
        if needed <= 0.0:
            return line
        evidence = max(releases.misfit(arm, line) - likelihood.least[arm], 0.0)
        if corrected(evidence, likelihood.correction) >= needed:
            return line
        return max(line, releases.upper(arm, uncorrected(needed, likelihood.correction)))


SKIPPING: dict[type, Callable[[Any], Agent]] = {
    UCB: SkippingUCB.start,
    KLUCB: SkippingKLUCB.start,
    IMED: SkippingIMED.start,
    LazyUCB: SkippingLazy.start,
    LikelihoodIMED: SkippingLikelihood.start,
    CoveringUCB: SkippingLazy.start,
}
