"""Find the best arm and stop: play the leader or its strongest rival, until the leader is known to be the best."""

from __future__ import annotations

import math
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from dpbandits.agents.exploring import first_unready
from dpbandits.agents.geometric import grown, growth
from dpbandits.checks import at_least, fraction, positive
from dpbandits.numerics import evidence_between, kl, positive_log, uncorrected
from dpbandits.protocols import FOR_EVER, NO_LINE, Releases
from dpbandits.types import Integers, Rng

__all__ = ["BitsTest", "SumsTest", "TopTwo"]


class Test(Protocol):
    """When the releases of two arms show which is better."""

    @property
    def beta(self) -> float:
        """A wrong arm is named with at most this probability."""

    def evidence(self, releases: Releases, better: int, worse: int, batches: Integers) -> float:
        """The evidence that ``better``, whose released mean is the higher one, has the higher mean."""

    def needed(self, releases: Releases, better: int, worse: int, batches: Integers) -> float:
        """How much evidence is needed to say so."""


Tested = TypeVar("Tested", bound=Test)


class SumsTest(NamedTuple):
    """The test of noisy batch sums, by Chernoff's bound for rewards in [0, 1] with Laplace noise.

    For a fixed batch of an arm let x be the exponent of Chernoff's bound (``numerics.chernoff``) at its true mean: x is
    at least c with probability at most e^-c. For fixed batches of two arms the two exponents are independent, so their
    sum is at least c with probability at most (1 + c) e^-c. If the worse of two arms were named, the sum would be at
    least ``evidence``, which is its least value over all common means. So a wrong arm is named with probability at most
    beta, if (1 + c) e^-c = beta / ((K - 1) k (k + 1) l (l + 1)) for the k-th batch of one arm and the l-th of the
    other: these weights sum to beta over all k and l and all K - 1 wrong arms.

    >>> round(SumsTest.start(2, epsilon=1.0, beta=0.05).needed(None, 0, 1, np.array([1, 1])), 3)
    6.381
    """

    beta: float
    epsilon: float
    keeps: bool  # whether a released mean is over all batches, each with its noise, or over the last one
    tests: float  # log((K - 1) / beta)

    @classmethod
    def start(cls, arms: int, *, epsilon: float, beta: float, keeps: bool = False) -> Self:
        """A test that errs with probability at most ``beta``, whatever is played."""
        return cls(fraction("beta", beta), positive("epsilon", epsilon), keeps, math.log((arms - 1) / beta))

    def evidence(self, releases: Releases, better: int, worse: int, batches: Integers) -> float:
        return evidence_between(
            releases.samples(better, 0),
            releases.mean(better),
            float(batches[better]) if self.keeps else 1.0,
            releases.samples(worse, 0),
            releases.mean(worse),
            float(batches[worse]) if self.keeps else 1.0,
            self.epsilon,
        )

    def needed(self, releases: Releases, better: int, worse: int, batches: Integers) -> float:
        k, other = float(batches[better]), float(batches[worse])
        return uncorrected(self.tests + math.log(k * (k + 1.0) * other * (other + 1.0)), 1.0)


class BitsTest(NamedTuple):
    """The test of private bits: the generalised likelihood ratio of Bernoulli samples (Garivier & Kaufmann 2016).

    With p the mean of all n + m bits of both arms, the evidence is n kl(mean, p) + m kl(other mean, p), and
    log((K - 1)/beta) + log(2 sqrt n) + log(2 sqrt m) is needed. The likelihood of the Krichevsky-Trofimov mixture is at
    least that of the best Bernoulli law over 2 sqrt n. Over that of the true law it is a martingale with mean 1,
    whatever is played, so its product over two arms ever exceeds (K - 1)/beta with probability at most beta/(K - 1).
    That is the proof of their Theorem 10, whose threshold log(2 t (K - 1)/beta) is not lower.

    >>> round(BitsTest.start(2, beta=0.05).tests, 3)
    2.996
    """

    beta: float
    tests: float  # log((K - 1) / beta)

    @classmethod
    def start(cls, arms: int, *, beta: float) -> Self:
        """A test that errs with probability at most ``beta``, whatever is played."""
        return cls(fraction("beta", beta), math.log((arms - 1) / beta))

    def evidence(self, releases: Releases, better: int, worse: int, batches: Integers) -> float:
        n, m = releases.samples(better, 0), releases.samples(worse, 0)
        high, low = releases.mean(better), releases.mean(worse)
        pooled = (n * high + m * low) / (n + m)
        return n * kl(high, pooled) + m * kl(low, pooled)

    def needed(self, releases: Releases, better: int, worse: int, batches: Integers) -> float:
        return self.tests + 0.5 * math.log(16.0 * releases.samples(better, 0) * releases.samples(worse, 0))


class TopTwo(NamedTuple, Generic[Tested]):
    """Play the arm with the highest released mean, or its strongest rival, in batches, until the test is sure.

    The rival has the least evidence against it, plus log n (Jourdan, Degenne, Baudry, de Heide & Kaufmann 2022, EB and
    TCI). The leader is played while it has had at most half of all plays. The first batch of an arm has ``first``
    plays. Each later one lasts until its count is ``ratio`` times as large. When the evidence against every rival is
    what ``test`` needs, the leader is named, and played for ever.

    >>> from dpbandits.curators import LocalBernoulli
    >>> agent = TopTwo.start(2, BitsTest.start(2, beta=0.05), ratio=2.0, first=3)
    >>> agent.act(LocalBernoulli.start(2, epsilon=1.0), 1, None)
    (0, 3, -inf)
    """

    test: Tested
    ratio: float
    first: int
    pulls: Integers  # (arms,): plays that were asked for
    batches: Integers  # (arms,): batches that were asked for
    named: Integers  # (arms,): the rounds after which the arm was named the best; 0 for the others

    @classmethod
    def start(cls, arms: int, test: Tested, *, ratio: float, first: int) -> Self:
        """A fresh agent with a test for as many arms."""
        memory = np.zeros((3, at_least("arms", arms, 2)), np.int64)
        return cls(test, *growth(ratio, first), *memory)

    @property
    def beta(self) -> float:
        """A wrong arm is named with at most this probability."""
        return self.test.beta

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        arms = len(self.pulls)
        arm = first_unready(releases, arms, t, 0.0)
        if arm < arms:
            return self.play(arm)
        leader, plays = 0, 0
        for arm in range(arms):
            plays += self.pulls[arm]
            if releases.mean(arm) > releases.mean(leader):
                leader = arm
        rival, least, known = leader, math.inf, True
        for arm in range(arms):
            if arm != leader:
                evidence = self.test.evidence(releases, leader, arm, self.batches)
                if evidence < self.test.needed(releases, leader, arm, self.batches):
                    known = False
                if evidence + positive_log(releases.samples(arm, 0)) < least:
                    rival, least = arm, evidence + positive_log(releases.samples(arm, 0))
        if known:
            self.named[leader] = t - 1
            return leader, FOR_EVER, NO_LINE
        return self.play(leader if 2 * self.pulls[leader] <= plays else rival)

    def play(self, arm: int) -> tuple[int, int, float]:
        """The next batch of an arm."""
        stint = int(grown(self.pulls[arm], self.ratio, self.first) - self.pulls[arm])
        self.pulls[arm] += stint
        self.batches[arm] += 1
        return arm, stint, NO_LINE
