"""Lazy Thompson sampling for simulations: choices with the same distribution, drawn for many rounds at once.

While no release changes, the draws of one round do not depend on those of another. A cut is chosen. The draws of a few
arms, the contenders, are nearly always above it, and those of the other arms are mostly below it. The next round with a
draw of another arm above the cut is drawn ahead, and until then only the contenders are drawn. Where there is one
contender, the next round with its draw below the cut is drawn ahead, too. Until the first of these rounds the contender
is chosen, and nothing is drawn.

The probability of a draw beyond the cut is not computed. The logarithm of the posterior's density is concave, so beyond
the cut it is below its tangent there. The tangent is the density of an exponential tail. A point of this tail is drawn
and accepted with the ratio of the two densities (rejection sampling, as in Gilks & Wild 1992), so an accepted point has
the density of a draw beyond the cut. The tail is larger than the densities of all rounds until the next look, because
the raised means only grow.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from dpbandits.agents.exploring import first_unready, raised_mean
from dpbandits.agents.lazy import NOISE, LazyThompson
from dpbandits.numerics import beta_deficit, log_beta_peak, positive_log
from dpbandits.protocols import NO_LINE, Scheduled
from dpbandits.types import Floats, Integers, Rng

CUT = 2.0  # standard deviations below the raised mean of the best contender, for the first cut
LOWEST = 30  # standard deviations: no cut is lower
MAX_TAIL_POINTS = 0.4  # in a round: an arm whose tail needs more becomes a contender
COST_BELOW_CUT = 6.0  # the time of a round with the only contender below the cut, over that with an arm above it
DRIFT = 0.3  # about the most by which the parameters of a posterior grow until the next look
REACH = 0.25  # of t: the most rounds until the next look
ROUNDING = 1e-9  # tails are larger by this share than they must be
AFTER_EVERY_HORIZON = 10**18  # rounds
EXACT_WAIT = 1 << 20  # rounds: for longer waits the remainder is drawn anew, because a difference would lose digits


class SkippingThompson(NamedTuple):
    """``LazyThompson`` in stints that are drawn.

    >>> from dpbandits.curators import Lazy
    >>> agent, curator = SkippingThompson.start(LazyThompson.start(2)), Lazy.start(2, epsilon=1.0)
    >>> curator.counts[:], curator.means[:] = 1024, (0.1, 0.9)
    >>> arm, stint, line = agent.act(curator, 2001, np.random.default_rng(0))
    >>> int(arm), int(stint), line
    (1, 201, -inf)
    """

    thompson: LazyThompson
    first: Integers  # (1,): the round of the last look
    until: Integers  # (1,): the last round for which its results hold
    due: Integers  # (1,): the next round in which a tail has a point
    when: Integers  # (1,): a round whose choice is drawn already
    chosen: Integers  # (1,): that choice
    last: Integers  # (1,): the arm of the last answer, the only one whose release may have changed
    alone: Integers  # (1,): the only contender; -1 if there are several
    sures: Integers  # (1,): the number of contenders whose raised mean is 1
    number: Integers  # (1,): of contenders whose raised mean is below 1
    others: Integers  # (1,): of arms that are no contenders
    sure: Integers  # (arms,): the contenders whose raised mean is 1
    order: Integers  # (arms,): the contenders whose raised mean is below 1, then the others, by falling rates
    counts: Floats  # (arms,): the samples of each release at the last look
    means: Floats  # (arms,): the released means at the last look
    raised: Floats  # (arms,): the raised means for which the tails are made
    peaks: Floats  # (arms,): the log of the posterior's density at these raised means, which is its largest
    heights: Floats  # (arms,): the log of the tail's density at the cut
    falls: Floats  # (arms,): the rate at which the tail falls
    rates: Floats  # (arms,): -log(1 - p), p being the probability of a point in a round; -1 for contenders
    cut: Floats  # (1,)
    weight: Floats  # (1,): n + 1, summed over the contenders whose raised mean is 1
    own: Floats  # (1,): the rate of the only contender's tail below the cut; 0 if there are several
    total: Floats  # (1,): the sum of all rates
    ahead: Floats  # (1,): in the round that is due, the sum of the rates before the first tail that has a point

    @classmethod
    def start(cls, thompson: LazyThompson) -> Self:
        """A fresh agent whose choices have the distribution of those of ``thompson``."""
        arms = thompson.arms
        rounds, lists = np.zeros((10, 1), np.int64), np.zeros((2, arms), np.int64)
        return cls(thompson, *rounds, *lists, *np.zeros((7, arms)), *np.zeros((5, 1)))

    def act(self, releases: Scheduled, t: int, rng: Rng) -> tuple[int, int, float]:
        last = int(self.last[0])
        known = self.first[0] <= t <= min(self.until[0], self.due[0]) and releases.mean(last) == self.means[last]
        known = known and releases.samples(last, 0) == self.counts[last]
        if not (known or self.look(releases, t, rng)):
            return self.thompson.act(releases, t, rng)
        arm, stint = self.stint(releases, t, rng)
        self.last[0] = arm
        return arm, stint, NO_LINE

    # Playing

    def stint(self, releases: Scheduled, t: int, rng: Rng) -> tuple[int, int]:
        """The choice of round t, and for how many rounds it stands."""
        if self.when[0] == t:
            return int(self.chosen[0]), 1
        alone, drawn, end = int(self.alone[0]), t, t + 1
        if alone >= 0:
            drawn, end = int(self.due[0]), min(t + int(releases.due(alone)), int(self.until[0]) + 1)
        while drawn < end:
            arm = self.draw(releases, drawn, rng)
            if drawn == self.due[0]:
                self.wait(drawn + 1, rng)
            if arm != alone and drawn == t:
                return arm, 1
            if arm != alone:
                self.chosen[0], self.when[0] = arm, drawn
                return alone, drawn - t
            drawn = int(self.due[0])
        return alone, end - t

    def draw(self, releases: Scheduled, t: int, rng: Rng) -> int:
        """The choice of round t. Where there is one contender, the round is due."""
        alone, number, exponent = int(self.alone[0]), int(self.number[0]), NOISE * positive_log(t)
        best, largest, ahead = alone, -1.0, self.ahead[0] if t == self.due[0] else self.total[0]
        if alone < 0:
            if self.sures[0] > 0:
                best, largest = self.largest_of_sure(rng)
        elif ahead < self.own[0]:
            largest = self.accepted(releases, alone, exponent, -1.0, rng)
            ahead = rng.standard_exponential()
        else:
            ahead -= self.own[0]
        place = 0
        while place < number if alone < 0 else largest < 0.0:
            arm = int(self.order[place]) if alone < 0 else alone
            drawn = self.posterior(releases, arm, exponent, rng)
            if drawn > largest and (alone < 0 or drawn > self.cut[0]):
                best, largest = arm, drawn
            place += 1
        place, end = number, number + int(self.others[0])
        while ahead < self.total[0]:
            while place < end and ahead >= self.rates[self.order[place]]:
                ahead -= self.rates[self.order[place]]
                place += 1
            if place == end:
                break
            arm = int(self.order[place])
            point = self.accepted(releases, arm, exponent, largest, rng)
            if point > largest:
                best, largest = arm, point
            place, ahead = place + 1, rng.standard_exponential()
        if largest > self.cut[0]:
            return best
        for place in range(number, end):
            arm, drawn = int(self.order[place]), 1.0
            while drawn > self.cut[0]:
                drawn = self.posterior(releases, arm, exponent, rng)
            if drawn > largest:
                best, largest = arm, drawn
        return best

    def largest_of_sure(self, rng: Rng) -> tuple[int, float]:
        """Of the draws of arms whose raised mean is 1, the largest, and its arm.

        A draw from Beta(n + 1, 1) is e^-E with E exponential at rate n + 1. The least of such E is exponential at the
        sum of the rates, and it is each arm's with a probability in proportion to the arm's rate.
        """
        point, place = rng.random() * self.weight[0], 0
        while place + 1 < self.sures[0] and point >= self.counts[self.sure[place]] + 1.0:
            point -= self.counts[self.sure[place]] + 1.0
            place += 1
        return int(self.sure[place]), math.exp(-rng.standard_exponential() / self.weight[0])

    def accepted(self, releases: Scheduled, arm: int, exponent: float, least: float, rng: Rng) -> float:
        """A point of the arm's tail, if it is above ``least`` and a draw from the posterior; -1 otherwise."""
        n, far = self.counts[arm], rng.standard_exponential()
        step = far / self.falls[arm]
        point = self.cut[0] - step if arm == self.alone[0] else self.cut[0] + step
        if not (least < point < 1.0 and point > 0.0):
            return -1.0
        raised = raised_mean(releases, arm, exponent)
        density = log_beta_peak(n, raised) - beta_deficit(n, raised, point)
        return point if -rng.standard_exponential() <= density - (self.heights[arm] - far) else -1.0

    def posterior(self, releases: Scheduled, arm: int, exponent: float, rng: Rng) -> float:
        """A draw from the arm's posterior, as ``LazyThompson`` makes it."""
        n, raised = self.counts[arm], raised_mean(releases, arm, exponent)
        return rng.beta(raised * n + 1.0, (1.0 - raised) * n + 1.0)

    def wait(self, t: int, rng: Rng) -> None:
        """Draw in which round from t on a tail next has a point, and in which tail."""
        total, far, rounds = self.total[0], rng.standard_exponential(), AFTER_EVERY_HORIZON
        if far < AFTER_EVERY_HORIZON * total:
            rounds = int(far / total)
        self.ahead[0] = max(far - rounds * total, 0.0)  # exponential, given that it is below the total
        if rounds > EXACT_WAIT:
            self.ahead[0] = -math.log1p(rng.random() * math.expm1(-total))
        self.due[0] = t + rounds

    # Looking ahead

    def look(self, releases: Scheduled, t: int, rng: Rng) -> bool:
        """Choose the cut and the contenders, and make the tails; False if an arm must be explored first."""
        arms, exponent = self.thompson.arms, NOISE * positive_log(t)
        self.until[0], self.when[0] = 0, 0
        if first_unready(releases, arms, t, NOISE * positive_log(2 * t)) < arms:
            return False
        steepest = DRIFT / REACH
        for arm in range(arms):
            self.counts[arm], self.means[arm] = releases.samples(arm, 0), releases.mean(arm)
            steepest = max(steepest, self.counts[arm] * releases.width(arm, NOISE, 0))
            if self.counts[arm] <= 0.0:
                return False
        self.first[0], self.until[0] = t, t + int(t * DRIFT / steepest)
        best = self.first_cut(releases, exponent)
        later = NOISE * positive_log(self.until[0])
        self.alone[0], self.number[0], self.own[0], self.total[0] = -1, 0, 0.0, 0.0
        for arm in range(arms):
            if self.rates[arm] >= 0.0:
                self.place(arm, raised_mean(releases, arm, later))
                self.rates[arm] = self.tail(arm, self.cut[0])
                if self.rates[arm] < 0.0:
                    self.order[self.number[0]] = arm
                    self.number[0] += 1
        if self.number[0] + self.sures[0] == 1:
            self.place(best, raised_mean(releases, best, exponent))
            self.best_cut(best)
        self.total[0], self.others[0] = self.own[0], 0
        for arm in range(arms):
            if self.rates[arm] >= 0.0:
                self.enlist(arm)
        self.wait(t, rng)
        return True

    def enlist(self, arm: int) -> None:
        """Put an arm with a tail in its place."""
        first, place = int(self.number[0]), int(self.number[0] + self.others[0])
        while place > first and self.rates[self.order[place - 1]] < self.rates[arm]:
            self.order[place] = self.order[place - 1]
            place -= 1
        self.order[place] = arm
        self.others[0] += 1
        self.total[0] += self.rates[arm]

    def first_cut(self, releases: Scheduled, exponent: float) -> int:
        """Choose a cut that the draws of one arm mostly exceed: that arm. List the arms whose raised mean is 1."""
        best = 0
        self.cut[0], self.weight[0], self.sures[0] = 0.0, 0.0, 0
        for arm in range(self.thompson.arms):
            raised = raised_mean(releases, arm, exponent)
            self.rates[arm] = 0.0
            if raised >= 1.0:
                self.rates[arm] = -1.0
                self.sure[self.sures[0]] = arm
                self.sures[0] += 1
                self.weight[0] += self.counts[arm] + 1.0
            elif raised - CUT * posterior_deviation(self.counts[arm], raised) > self.cut[0]:
                best, self.cut[0] = arm, raised - CUT * posterior_deviation(self.counts[arm], raised)
        if self.sures[0] > 0 and math.exp(-CUT / self.weight[0]) > self.cut[0]:
            best, self.cut[0] = int(self.sure[0]), math.exp(-CUT / self.weight[0])
        return best

    def best_cut(self, alone: int) -> None:
        """Choose the cut for one contender so that the rounds that are due take the least time."""
        first, chosen, least = self.cut[0], 0.0, math.inf
        self.alone[0] = alone
        for deviations in range(2, LOWEST):
            cut = self.raised[alone] - deviations * posterior_deviation(self.counts[alone], self.raised[alone])
            time = self.tails(cut)
            if time < least:
                chosen, least = cut, time
            elif least < math.inf or cut <= 0.0:
                break
        if least == math.inf:  # draw the contender in every round
            self.alone[0], self.own[0], chosen = -1, 0.0, first
        self.cut[0] = chosen
        self.tails(chosen)

    def tails(self, cut: float) -> float:
        """Make all tails for this cut: about the time that their points take; infinite if a tail cannot be made."""
        time, alone = 0.0, int(self.alone[0])
        if alone >= 0:
            self.own[0] = self.tail(alone, cut)
            if self.own[0] < 0.0:
                return math.inf
            time = COST_BELOW_CUT * self.own[0]
        for arm in range(self.thompson.arms):
            if self.rates[arm] >= 0.0:
                rate = self.tail(arm, cut)
                if rate < 0.0:
                    return math.inf
                self.rates[arm] = rate
                time += rate
        return time

    def place(self, arm: int, raised: float) -> None:
        """Remember for which posterior the arm's tail is made."""
        self.raised[arm], self.peaks[arm] = raised, log_beta_peak(self.counts[arm], raised)

    def tail(self, arm: int, cut: float) -> float:
        """Make the arm's tail above the cut, or below it for the only contender: its rate; -1 if it cannot be made.

        A posterior with parameters a and b has a density at the cut that grows with the raised mean as long as
        log(cut / (1 - cut)) > psi(a) - psi(b). So the density is largest for the last raised mean where this holds for
        it, and for the first one where the opposite holds for the first. It holds where
        cut / (1 - cut) >= a / (b - 1/2), since log(x - 1/2) < psi(x) < log(x). The tangent's slope grows with the
        raised mean, too.
        """
        n, raised, rest = self.counts[arm], self.raised[arm], 1.0 - cut
        if not 0.0 < cut < 1.0:
            return -1.0
        ones, zeros = raised * n, (1.0 - raised) * n
        if arm == self.alone[0]:
            far, gap = rest * (ones + 0.5) >= cut * (zeros + 1.0), raised - cut
        else:
            far, gap = cut * (zeros + 0.5) >= rest * (ones + 1.0), cut - raised
        if not far or gap <= 0.0:
            return -1.0
        self.falls[arm] = n * gap / (cut * rest)
        self.heights[arm] = self.peaks[arm] - beta_deficit(n, raised, cut) + ROUNDING
        points = math.exp(self.heights[arm]) / self.falls[arm]
        return -math.log1p(-points) if points < MAX_TAIL_POINTS else -1.0


def posterior_deviation(n: float, raised: float) -> float:
    """About the standard deviation of a posterior."""
    return math.sqrt(raised * (1.0 - raised) * n + 1.0) / n
