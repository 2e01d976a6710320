"""Agents that use how well a mean fits everything that was released.

They need more of a curator than other agents: ``LikelihoodUCB`` needs ``protocols.Bounded``, and ``LikelihoodIMED``
``protocols.Likelihood``.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from dpbandits.agents.exploring import first_unready
from dpbandits.checks import not_negative
from dpbandits.numerics import corrected, positive_log
from dpbandits.protocols import EVIDENCE_MARGIN, NO_LINE, Bounded, Likelihood
from dpbandits.types import Floats, Rng


class LikelihoodUCB(NamedTuple):
    """Play the arm with the largest mean against which the evidence is at most log t (Garivier & Cappe 2011).

    >>> from dpbandits.curators import RunningSum
    >>> LikelihoodUCB.start(2).act(RunningSum.start(2, epsilon=1.0), 1, None)
    (0, 1, -inf)
    """

    arms: int

    @classmethod
    def start(cls, arms: int) -> Self:
        """A fresh agent."""
        return cls(arms)

    def act(self, releases: Bounded, t: int, rng: Rng) -> tuple[int, int, float]:
        exponent = positive_log(t)
        arm = first_unready(releases, self.arms, t, exponent)
        if arm < self.arms:
            return arm, 1, NO_LINE
        best, largest = 0, -1.0
        for arm in range(self.arms):
            index = releases.upper(arm, exponent)
            if index > largest:
                best, largest = arm, index
        return best, 1, NO_LINE


class LikelihoodIMED(NamedTuple):
    """Play the arm with the least e + log n, where e is the evidence that its mean is below the largest one.

    It is IMED (Honda & Takemura 2015) with the likelihood of the releases in place of n kl. With a ``correction`` k,
    evidence e counts as max(0, e - k log(1 + e)). What was computed for an arm is kept until its releases change.
    Evidence grows with the largest mean, so an index that was too large for a smaller one is not computed again.

    >>> from dpbandits.curators import BatchLikelihood
    >>> LikelihoodIMED.start(2).act(BatchLikelihood.start(2, epsilon=1.0), 1, None)
    (0, 1, -inf)
    """

    correction: float
    counts: Floats  # (arms,): the number of samples when ``means`` was computed; 0 before that
    means: Floats  # (arms,)
    tops: Floats  # (arms,): the largest mean of all arms when ``indices`` was computed; -1 before that
    indices: Floats  # (arms,)

    @classmethod
    def start(cls, arms: int, *, correction: float = 0.0) -> Self:
        """A fresh agent."""
        memory = np.zeros((4, arms))
        return cls(not_negative("correction", correction), *memory)

    @property
    def forgotten(self) -> tuple[str, ...]:
        """Fields of earlier versions, which are ignored when a saved session is read."""
        return ("least",)

    def act(self, releases: Likelihood, t: int, rng: Rng) -> tuple[int, int, float]:
        arms = len(self.means)
        arm = first_unready(releases, arms, t, positive_log(t))
        return (arm if arm < arms else self.choice(releases)), 1, NO_LINE

    def choice(self, releases: Likelihood) -> int:
        """The first arm with the least index."""
        counts, means = self.counts, self.means
        arms = len(means)
        changed, leader, top = arms, 0, 0.0
        for arm in range(arms):
            if counts[arm] != releases.samples(arm, 0):
                if changed == arms:
                    changed = arm  # whether its mean is needed depends on the other arms
                    continue
                self.look(releases, arm)
            if means[arm] > top:
                leader, top = arm, means[arm]
        if changed < arms:
            if means[changed] > top and self.leads(releases, changed):
                return changed
            self.look(releases, changed)
            if means[changed] > top:
                leader, top = changed, means[changed]
        best, lowest, indices, tops = leader, self.index_at(releases, leader, top), self.indices, self.tops
        for arm in range(arms):
            above = indices[arm] > lowest + EVIDENCE_MARGIN and 0.0 <= tops[arm] <= top  # it was, and has only grown
            if arm != leader and not above:
                index = self.index_at(releases, arm, top)
                if index < lowest or (index == lowest and arm < best):
                    best, lowest = arm, index
        return best

    def leads(self, releases: Likelihood, leader: int) -> bool:
        """Whether this arm is certain to have the largest mean and the least index, before its new mean is computed.

        This is certain if its mean is at least the largest mean for which the other indices were computed, and if these
        indices are above log n, which is this arm's index when it leads.
        """
        lowest, top = positive_log(releases.samples(leader, 0)) + EVIDENCE_MARGIN, 0.0
        for arm in range(len(self.means)):
            if arm != leader:
                if self.indices[arm] <= lowest or self.tops[arm] < 0.0:
                    return False
                top = max(top, self.tops[arm])
        return releases.reaches(leader, top)

    def look(self, releases: Likelihood, arm: int) -> None:
        """Read the mean of an arm again if its releases have changed."""
        n = releases.samples(arm, 0)
        if self.counts[arm] != n:
            self.counts[arm], self.means[arm], self.tops[arm] = n, releases.mean(arm), -1.0

    def index_at(self, releases: Likelihood, arm: int, top: float) -> float:
        """The index of an arm when the largest mean is ``top``."""
        if self.tops[arm] != top:
            mean = self.means[arm]
            evidence = max(releases.evidence(arm, mean, top), 0.0) if mean < top else 0.0  # rounding
            self.tops[arm] = top
            self.indices[arm] = corrected(evidence, self.correction) + positive_log(self.counts[arm])
        return self.indices[arm]
