"""KL-UCB in stints, for simulations."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from dpbandits.agents.exploring import first_unready
from dpbandits.agents.kl_ucb import KLUCB
from dpbandits.numerics import kl, kl_lower_near, kl_upper, positive_log, unit
from dpbandits.protocols import MARGIN, NO_LINE, Releases
from dpbandits.types import Floats, Rng

SHARE = 0.25  # the share of the leader's lead that a stint may use up
ROUNDING = 2e-15  # more than the rounding error of a divergence
MANY = 1e6  # samples; with fewer, arms whose indices are equal are alike, and rounding does not decide


class SkippingKLUCB(NamedTuple):
    """KL-UCB in stints: the leader stays ahead while its mean is above a line.

    The ceiling is an upper bound on the rivals' indices at the end of the stint. The leader's index is above it as long
    as its mean p has n kl(p, ceiling) < L, with the n of the stint's end and the L of its start. The line is an upper
    bound on the least such p. Where the curator's noise has a width, every choice is made anew.

    What was computed for an arm is kept until the arm is played. Its index is a concave function of L, so the tangent
    at its last computed value is an upper bound. Only arms that this bound does not exclude are computed again.

    >>> from dpbandits.curators import Plain
    >>> agent, curator, rng = SkippingKLUCB.start(KLUCB.start(2)), Plain.start(2), np.random.default_rng(0)
    >>> curator.counts[:], curator.sums[:] = 1000, (100.0, 900.0)
    >>> arm, stint, line = agent.act(curator, 2001, rng)
    >>> arm, stint, round(float(line), 3)
    (1, 13707, 0.147)
    """

    kl_ucb: KLUCB
    counts: Floats  # (arms,): the number of samples when ``means`` was computed; 0 before that
    means: Floats  # (arms,): clipped to [0, 1]
    exponents: Floats  # (arms,): the L at which the next three were computed; 0 before that
    indices: Floats  # (arms,)
    rises: Floats  # (arms,): the slope of the index as a function of L
    margins: Floats  # (arms,): more than the rounding error of the index, which is a divergence's divided by its slope

    @classmethod
    def start(cls, kl_ucb: KLUCB) -> Self:
        """A fresh agent with the choices of ``kl_ucb``."""
        return cls(kl_ucb, *np.zeros((6, kl_ucb.arms)))

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        kl_ucb = self.kl_ucb
        exponent = kl_ucb.alpha * positive_log(t)
        arm = first_unready(releases, kl_ucb.arms, t, exponent)
        if arm < kl_ucb.arms:
            return arm, 1, NO_LINE
        for arm in range(kl_ucb.arms):
            if exponent <= 0.0 or releases.width(arm, exponent, 0) > 0.0:
                return kl_ucb.act(releases, t, rng)
        leader, second = self.look(releases, exponent)
        lead = self.indices[leader] - second
        if lead <= self.margins[leader] and (lead > 0.0 or self.counts[leader] > MANY):
            leader, lead = kl_ucb.act(releases, t, rng)[0], 0.0  # rounding may decide, so the agent itself does
        rounds = self.rounds(leader, t, exponent, lead)
        self.counts[leader] = 0.0  # it is played now, and its mean may change while its samples do not
        later = kl_ucb.alpha * positive_log(t + rounds - 1)
        if rounds < 2 or first_unready(releases, kl_ucb.arms, t, later) < kl_ucb.arms:
            return leader, 1, NO_LINE
        line = self.line(leader, exponent / releases.samples(leader, rounds - 1), later)
        return (leader, rounds, line) if line < self.means[leader] else (leader, 1, NO_LINE)

    def look(self, releases: Releases, exponent: float) -> tuple[int, float]:
        """The first arm with the largest index, and an upper bound on the other indices."""
        arms = self.kl_ucb.arms
        best = 0
        for arm in range(arms):
            n = releases.samples(arm, 0)
            if self.counts[arm] != n:
                self.counts[arm], self.means[arm], self.exponents[arm] = n, unit(releases.mean(arm)), 0.0
                self.solve(arm, exponent)
            if self.indices[arm] > self.indices[best]:
                best = arm
        self.solve(best, exponent)
        second = -1.0
        for arm in range(arms):
            if arm == best:
                continue
            index = self.ceiling(arm, exponent)
            if index >= self.indices[best] - max(self.margins[arm], self.margins[best]):
                index = self.solve(arm, exponent)
                if index > self.indices[best] or (index == self.indices[best] and arm < best):
                    best, index = arm, self.indices[best]
            second = max(second, index)
        return best, second

    def solve(self, arm: int, exponent: float) -> float:
        """The index of this arm at this L."""
        if self.exponents[arm] != exponent:
            mean, n = self.means[arm], self.counts[arm]
            index = kl_upper(mean, exponent / n)
            self.exponents[arm], self.indices[arm] = exponent, index
            self.rises[arm] = index * (1.0 - index) / (n * (index - mean)) if index > mean else 0.0
            self.margins[arm] = max(MARGIN, ROUNDING * n * self.rises[arm])
        return self.indices[arm]

    def ceiling(self, arm: int, exponent: float) -> float:
        """An upper bound on this arm's index at this L, from its last computed value."""
        return self.indices[arm] + self.rises[arm] * (exponent - self.exponents[arm])

    def rounds(self, leader: int, t: int, exponent: float, lead: float) -> int:
        """For how many rounds the leader, which has this lead, may stay ahead if its mean stays as well."""
        fall = self.rises[leader] * exponent / self.counts[leader]  # of its index in a round
        for arm in range(self.kl_ucb.arms):
            if arm != leader:
                fall = max(fall, self.rises[arm] * self.kl_ucb.alpha / t)
        return int(min(SHARE * lead / fall, 1e15)) if fall > 0.0 else 1

    def line(self, leader: int, budget: float, later: float) -> float:
        """A mean above which the leader's index, of this divergence, exceeds all others at L = ``later``."""
        mean, ceiling = self.means[leader], MARGIN
        for arm in range(self.kl_ucb.arms):
            if arm != leader:
                ceiling = max(ceiling, self.ceiling(arm, later) + self.margins[arm])
        line, margin = kl_lower_near(mean, ceiling, kl(mean, ceiling), budget), MARGIN
        if line < ceiling:
            margin = max(margin, ROUNDING * ceiling * (1.0 - ceiling) / (ceiling - line))
        return line + margin
