"""Agents that ask how well a mean fits everything that was released.

Their curators have more verbs than others: ``LikelihoodUCB`` needs ``protocols.Bounded``, and ``LikelihoodIMED``
``protocols.Likelihood``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np

from dpbandits.agents.exploring import first_unready
from dpbandits.checks import not_negative
from dpbandits.numerics import corrected, positive_log
from dpbandits.protocols import NO_LINE, Likelihood
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

    def act(self, releases: Any, t: int, rng: Rng) -> tuple[int, int, float]:
        confidence = positive_log(t)
        arm = first_unready(releases, self.arms, t, confidence)
        if arm < self.arms:
            return arm, 1, NO_LINE
        best, largest = 0, -1.0
        for arm in range(self.arms):
            index = releases.upper(arm, confidence)
            if index > largest:
                best, largest = arm, index
        return best, 1, NO_LINE


class LikelihoodIMED(NamedTuple):
    """Play the arm with the least e + log n, e being the evidence against its mean being the largest one.

    It is IMED (Honda & Takemura 2015) with the likelihood of what was released in the place of n kl. With a
    ``correction`` k, evidence e counts as max(0, e - k log(1 + e)). What was computed is kept until it changes.

    >>> from dpbandits.curators import BatchLikelihood
    >>> LikelihoodIMED.start(2).act(BatchLikelihood.start(2, epsilon=1.0), 1, None)
    (0, 1, -inf)
    """

    correction: float
    counts: Floats  # (arms,): the samples for which the next two hold; 0 is none
    means: Floats  # (arms,)
    least: Floats  # (arms,): the misfit of the mean
    tops: Floats  # (arms,): the largest mean for which the next one holds; -1 is none
    evidence: Floats  # (arms,)

    @classmethod
    def start(cls, arms: int, *, correction: float = 0.0) -> Self:
        """A fresh agent."""
        memory = np.zeros((5, arms))
        return cls(not_negative("correction", correction), *memory)

    def act(self, releases: Any, t: int, rng: Rng) -> tuple[int, int, float]:
        arms = len(self.means)
        arm = first_unready(releases, arms, t, positive_log(t))
        if arm < arms:
            return arm, 1, NO_LINE
        top = 0.0
        for arm in range(arms):
            top = max(top, self.mean(releases, arm))
        best, lowest = 0, math.inf
        for arm in range(arms):
            self.against(releases, arm, top)
            if self.rank(arm) < lowest:
                best, lowest = arm, self.rank(arm)
        return best, 1, NO_LINE

    def rank(self, arm: int) -> float:
        """The arm's index, for the largest mean that was looked at last."""
        return corrected(self.evidence[arm], self.correction) + positive_log(self.counts[arm])

    def mean(self, releases: Likelihood, arm: int) -> float:
        """The released mean."""
        n = releases.samples(arm, 0)
        if self.counts[arm] != n:
            self.counts[arm], self.means[arm], self.tops[arm] = n, releases.mean(arm), -1.0
            self.least[arm] = releases.misfit(arm, self.means[arm])
        return self.means[arm]

    def against(self, releases: Likelihood, arm: int, top: float) -> None:
        """Find the evidence against the arm's mean being ``top``."""
        if self.tops[arm] != top:
            self.tops[arm] = top
            self.evidence[arm] = 0.0
            if self.means[arm] < top:
                self.evidence[arm] = max(releases.misfit(arm, top) - self.least[arm], 0.0)
