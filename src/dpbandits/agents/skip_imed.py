"""IMED in stints, for simulations: on a mean, and on a likelihood."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np

from dpbandits.agents.exploring import first_unready, rounds_ready
from dpbandits.agents.imed import IMED
from dpbandits.agents.likelihood import LikelihoodIMED
from dpbandits.numerics import (
    corrected,
    corrected_room,
    corrected_slope,
    kl,
    kl_lower_near,
    kl_upper,
    positive_log,
    uncorrected,
    unit,
)
from dpbandits.protocols import EVIDENCE_MARGIN, MARGIN, NO_LINE, Foreseeable, Releases
from dpbandits.types import Floats, Integers, Rng

HALF = 0.5  # the share of an index's lead that its own growth may use up in a stint
NEAR = 0.1  # up to here 1 + x stands for e^x, in the direction that makes stints a little shorter
FARTHEST = 40.0  # a lead larger than this does not make the stint longer
LONGEST = 1e18  # rounds; a 64-bit integer holds nine times as many


class KeptOfIMED(NamedTuple):
    """The fields of ``SkippingIMED`` and ``SkippingLikelihood``."""

    imed: Any
    last: Integers  # (1,): the arm of the last stint, the only one that may have changed; -1 if any may have
    until: Integers  # (1,): in no round up to this one must an arm be explored; 0 where that is not known
    counts: Floats  # (arms,): the number of samples when the next three were computed; 0 before that
    means: Floats  # (arms,)
    logs: Floats  # (arms,): log of ``counts``
    tops: Floats  # (arms,): the largest mean of all arms when the next three were computed; -1 before that
    evidence: Floats  # (arms,)
    penalties: Floats  # (arms,): the evidence with IMED's correction
    slopes: Floats  # (arms,): the penalty's largest slope from the arm's mean to the largest one; -1 until it is needed


class IMEDInStints:
    """Play the arm with the least evidence + log n, for as long as it certainly has the least.

    The arm with the largest mean has the index log n. Its rivals' indices are above that as long as its mean is above a
    line. The line is an upper bound on the largest mean at which a rival's index equals log n at the end of the stint.
    While an arm with a smaller mean is played, no other index falls. Its own index stays below the least of them as
    long as its mean is above a line.

    What was computed for an arm is kept until the arm is played. Together with a bound on the slope it gives a lower
    bound on the arm's index for any largest mean. Only arms that this bound does not exclude are computed again.
    """

    __slots__ = ()

    def stint(self: Any, releases: Releases) -> tuple[int, int, float]:
        """The arm, for how many rounds, and above which line."""
        arms = len(self.means)
        leader = self.leader(releases)
        top = max(self.means[leader], 0.0)
        least = self.logs[leader] if self.means[leader] >= top else self.index_at(releases, leader, top)
        best, second = leader, math.inf
        for arm in range(arms):
            if arm == leader:
                continue
            index = self.floor(releases, arm, top) - self.rounding(arm)
            if index <= least:
                index = self.index_at(releases, arm, top)
                if index < least or (index == least and arm < best):
                    best, least, index = arm, index, least
            second = min(second, index)
        if second - least <= MARGIN:
            return best, 1, NO_LINE
        if self.means[best] >= top:
            rounds, line = self.leading(releases, best, min(second - least, FARTHEST))
        else:
            rounds, line = self.exploring(releases, best, top, second - least)
        return (best, rounds, line) if line < self.means[best] else (best, 1, NO_LINE)

    def leader(self: Any, releases: Releases) -> int:
        """Look at the arm that was played, and return the first arm with the largest mean."""
        arms, last = len(self.means), self.last[0]
        for arm in range(arms) if last < 0 else range(last, last + 1):
            n = releases.samples(arm, 0)
            if self.counts[arm] != n:
                self.counts[arm], self.means[arm], self.logs[arm] = n, self.mean(releases, arm), positive_log(n)
                self.tops[arm] = -1.0
        leader = 0
        for arm in range(1, arms):
            if self.means[arm] > self.means[leader]:
                leader = arm
        return leader

    def unready(self: Any, releases: Releases, t: int, alpha: float) -> int:
        """An arm that must be explored in round t; the number of arms if there is none. Most rounds need no look."""
        arms = len(self.means)
        if t <= self.until[0]:
            return arms
        arm = first_unready(releases, arms, t, alpha * positive_log(t))
        if arm < arms:
            self.last[0] = -1
        else:
            self.until[0] = t + rounds_ready(releases, arms, t, alpha)
        return arm

    def stint_while_ready(self: Any, releases: Releases, t: int, alpha: float) -> tuple[int, int, float]:
        """``stint``, but only one round if an arm may have to be explored before the stint ends."""
        arm, rounds, line = self.stint(releases)
        self.last[0] = arm
        end = t + rounds - 1
        if end > self.until[0]:
            arms = len(self.means)
            if first_unready(releases, arms, t, alpha * positive_log(end)) < arms:
                return arm, 1, NO_LINE
            self.until[0] = end
        return arm, rounds, line

    def rounding(self: Any, arm: int) -> float:
        """A bound on the rounding error of this arm's index, if evidence is rounded like n times a divergence."""
        return MARGIN + 1e-15 * self.counts[arm]

    def floor(self: Any, releases: Releases, arm: int, top: float) -> float:
        """A lower bound on this arm's index, from its last computed value."""
        last, penalty = self.tops[arm], self.penalties[arm]
        if last < 0.0:
            return -math.inf
        if top < last:
            penalty = max(penalty - self.slope(releases, arm) * (last - top), 0.0)
        return penalty + self.logs[arm]

    def index_at(self: Any, releases: Releases, arm: int, top: float) -> float:
        """The index of this arm when the largest mean is ``top``."""
        if self.tops[arm] != top:
            evidence = self.against(releases, arm, top) if self.means[arm] < top else 0.0
            penalty = corrected(evidence, self.imed.correction)
            self.evidence[arm], self.penalties[arm] = evidence, penalty
            self.slopes[arm] = -1.0 if 0.0 < penalty < math.inf else 0.0
            self.tops[arm] = top if penalty < math.inf else -1.0
        return self.penalties[arm] + self.logs[arm]

    def slope(self: Any, releases: Releases, arm: int) -> float:
        """See ``slopes``; it is computed where it is needed."""
        if self.slopes[arm] < 0.0:
            steepness = max(self.steepness(releases, arm, self.tops[arm]), 0.0)  # rounding
            self.slopes[arm] = steepness * corrected_slope(self.evidence[arm], self.imed.correction)
        return self.slopes[arm]

    def leading(self: Any, releases: Releases, leader: int, lead: float) -> tuple[int, float]:
        """For how long to play the arm with the largest mean, and above which line; ``lead`` is how far it leads."""
        n, top, growth = self.counts[leader], self.means[leader], HALF * lead
        rounds = int(min(n * (math.expm1(growth) if growth > NEAR else growth), LONGEST))
        if rounds < 2:
            return 1, NO_LINE
        own = self.log_after(releases, leader, rounds) + MARGIN
        line = 0.0
        for arm in range(len(self.means)):
            if arm != leader:
                line = max(line, self.reaching(releases, arm, own, top))
        return rounds, line + MARGIN

    def reaching(self: Any, releases: Releases, arm: int, own: float, top: float) -> float:
        """Where the largest mean is above this, the arm's index is at least ``own``; ``top`` if none is known."""
        mean, needed = self.means[arm], own + self.rounding(arm) - self.logs[arm]
        if needed <= 0.0:
            return mean
        if self.tops[arm] < 0.0 or self.penalties[arm] < needed:
            self.index_at(releases, arm, top)
        if self.penalties[arm] == math.inf:
            return self.root(arm, uncorrected(needed, self.imed.correction))
        slope = self.slope(releases, arm) if self.penalties[arm] >= needed else 0.0
        return max(mean, self.tops[arm] - (self.penalties[arm] - needed) / slope) if slope > 0.0 else top

    def exploring(self: Any, releases: Releases, arm: int, top: float, lead: float) -> tuple[int, float]:
        """For how long to play an arm with a smaller mean, and above which line."""
        evidence, correction = self.evidence[arm], self.imed.correction
        doubled = self.rise(releases, arm, top)
        rise = doubled * corrected_slope(evidence + doubled, correction) + 1.0  # of its index when its samples double
        share = HALF * lead * self.counts[arm]
        if share < 2.0 * rise:
            return 1, NO_LINE
        rounds = int(min(share / rise, 1e15))
        left = lead + self.logs[arm] - self.log_after(releases, arm, rounds) - self.rounding(arm)
        most = evidence + corrected_room(evidence, correction, left)
        return rounds, self.lower(releases, arm, top, most, rounds) + MARGIN

    def log_after(self: Any, releases: Releases, arm: int, rounds: int) -> float:
        """An upper bound on the log of the arm's samples after this many rounds; a tangent if they grow little."""
        n, later = self.counts[arm], releases.samples(arm, rounds)
        return self.logs[arm] + (later - n) / n if later < (1.0 + NEAR) * n else positive_log(later)


class SkippingIMED(IMEDInStints, KeptOfIMED):
    """IMED in stints. Where the curator's noise has a width, indices change with t, and every choice is made anew.

    >>> from dpbandits.curators import Plain
    >>> agent, curator, rng = SkippingIMED.start(IMED.start(2)), Plain.start(2), np.random.default_rng(0)
    >>> curator.counts[:], curator.sums[:] = 1000, (100.0, 900.0)
    >>> arm, stint, line = agent.act(curator, 2001, rng)
    >>> arm, stint > 10**6, round(float(line), 3)
    (1, True, 0.704)
    """

    __slots__ = ()

    @classmethod
    def start(cls, imed: IMED) -> Self:
        """A fresh agent with the choices of ``imed``."""
        return cls(imed, np.array([-1]), np.array([0]), *np.zeros((7, imed.arms)))

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        imed = self.imed
        arm = self.unready(releases, t, imed.alpha)
        if arm < imed.arms:
            return arm, 1, NO_LINE
        exponent = imed.alpha * positive_log(t)
        for arm in range(imed.arms):
            if releases.width(arm, exponent, 0) > 0.0:
                self.last[0] = -1
                return imed.act(releases, t, rng)
        arm, rounds, line = self.stint_while_ready(releases, t, imed.alpha)
        self.counts[arm] = 0.0  # it is played now, and its mean may change while its samples do not
        return arm, rounds, line

    def floor(self, releases: Releases, arm: int, top: float) -> float:
        """The tangent at the last computed value: the penalty is a convex function of the largest mean."""
        if self.tops[arm] < 0.0:
            return -math.inf
        rise = self.slope(releases, arm) * (top - self.tops[arm])
        return max(self.penalties[arm] + rise, 0.0) + self.logs[arm]

    def mean(self, releases: Releases, arm: int) -> float:
        """The released mean, clipped to [0, 1]."""
        return unit(releases.mean(arm))

    def against(self, releases: Releases, arm: int, top: float) -> float:
        """The evidence against the arm's mean being ``top``."""
        return self.counts[arm] * kl(self.means[arm], top)

    def steepness(self, releases: Releases, arm: int, top: float) -> float:
        """The slope of the evidence at ``top``, which is the largest up to there: evidence is convex."""
        return self.counts[arm] * (top - self.means[arm]) / (top * (1.0 - top))

    def root(self, arm: int, evidence: float) -> float:
        """The largest mean against which the evidence is at most this."""
        return kl_upper(self.means[arm], evidence / self.counts[arm])

    def rise(self, releases: Releases, arm: int, top: float) -> float:
        """By how much the evidence against ``top`` rises when the arm's samples double, if the mean stays."""
        return self.evidence[arm]

    def lower(self, releases: Releases, arm: int, top: float, most: float, rounds: int) -> float:
        """The line for this many rounds: above it, the evidence against ``top`` is at most ``most``."""
        divergence = self.evidence[arm] / self.counts[arm]
        return kl_lower_near(self.means[arm], top, divergence, most / releases.samples(arm, rounds))


class SkippingLikelihood(IMEDInStints, KeptOfIMED):
    """IMED on a likelihood in stints.

    >>> from dpbandits.curators import WeightedBernoulli
    >>> agent, curator = SkippingLikelihood.start(LikelihoodIMED.start(2)), WeightedBernoulli.start(2)
    >>> curator.weights[:], curator.sums[:] = 1000.0, (100.0, 900.0)
    >>> arm, stint, line = agent.act(curator, 2001, np.random.default_rng(0))
    >>> arm, stint > 10**6, round(float(line), 3)
    (1, True, 0.506)
    """

    __slots__ = ()

    @classmethod
    def start(cls, likelihood: LikelihoodIMED) -> Self:
        """A fresh agent with the choices of ``likelihood``."""
        return cls(likelihood, np.array([-1]), np.array([0]), *np.zeros((7, len(likelihood.means))))

    def act(self, releases: Foreseeable, t: int, rng: Rng) -> tuple[int, int, float]:
        arm = self.unready(releases, t, 1.0)
        return (arm, 1, NO_LINE) if arm < len(self.means) else self.stint_while_ready(releases, t, 1.0)

    def rounding(self, arm: int) -> float:
        """More than the error of this arm's index, so that only indices that nearly agree may change places.

        The error is larger where the largest mean is next to 1, where a small error of that mean counts for more.
        """
        return EVIDENCE_MARGIN + 1e-15 * self.counts[arm]

    def mean(self, releases: Foreseeable, arm: int) -> float:
        """The released mean."""
        return releases.mean(arm)

    def against(self, releases: Foreseeable, arm: int, top: float) -> float:
        """The evidence against the arm's mean being ``top``."""
        return max(releases.evidence(arm, self.means[arm], top), 0.0)  # rounding

    def steepness(self, releases: Foreseeable, arm: int, top: float) -> float:
        """An upper bound on the slope of the evidence between the arm's mean and ``top``."""
        return releases.steepness(arm, top)

    def root(self, arm: int, evidence: float) -> float:
        """Infinity: where the evidence is infinite, no bound is known."""
        return math.inf

    def rise(self, releases: Foreseeable, arm: int, top: float) -> float:
        """By how much the evidence against ``top`` may rise when the arm's samples double."""
        return self.counts[arm] * releases.rise(arm, self.means[arm], top, self.evidence[arm])

    def lower(self, releases: Foreseeable, arm: int, top: float, most: float, rounds: int) -> float:
        """The line for this many rounds: above it, the evidence against ``top`` is at most ``most``."""
        return releases.lower(arm, self.means[arm], top, self.evidence[arm], most, rounds)
