"""Play all surviving arms equally, drop those that are clearly worse, ask for twice the precision."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from dpbandits.checks import fraction, positive
from dpbandits.protocols import FOR_EVER, NO_LINE, Releases
from dpbandits.types import Integers, Rng


class Elimination(NamedTuple):
    """Successive elimination with fresh means in every epoch (Sajed & Sheffet 2019, DP-SE).

    In epoch e with m arms left, each is played R = ceil(max(32 ln(8 m e^2/beta) 4^e, 8 ln(4 m e^2/beta) 2^e / epsilon)
    + 1) times. An arm is dropped if the best mean exceeds its own by twice the bonus sqrt(ln(8 m e^2/beta) / (2R)) plus
    twice the curator's width at the exponent ln(4 m e^2/beta). A last arm is named the best and played for ever, and
    nothing is released.

    With probability at least 1 - beta the best arm is never dropped: in an epoch, a mean is off by more than the bonus
    with probability at most 2 exp(-2 R bonus^2) = beta/(4 m e^2), its noise exceeds the width with probability
    beta/(4 m e^2), and the sum over m arms and all epochs is beta pi^2/12.

    ``epoch_factor`` multiplies R - 1, and nothing else: below 1 the epochs are short enough for exact verification.

    >>> agent = Elimination.start(5, epsilon=1.0, beta=1e-7)
    >>> agent.plays(agent.left())
    2537
    """

    epsilon: float
    beta: float
    epoch_factor: float
    active: Integers  # (arms,): 1 while the arm survives
    epoch: Integers  # (2,): number of the epoch; the next arm to play in it
    named: Integers  # (arms,): the rounds after which the arm was named the best; 0 for the others

    @classmethod
    def start(cls, arms: int, *, epsilon: float, beta: float, epoch_factor: float = 1.0) -> Self:
        """A fresh agent that drops the best arm with probability at most ``beta``."""
        return cls(
            positive("epsilon", epsilon),
            fraction("beta", beta),
            positive("epoch_factor", epoch_factor),
            np.ones(arms, np.int64),
            np.array([1, 0], np.int64),
            np.zeros(arms, np.int64),
        )

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        arms = len(self.active)
        if self.next_arm() == arms:
            self.drop(releases)
            self.epoch[0] += 1
            self.epoch[1] = 0
        arm = self.next_arm()
        self.epoch[1] = arm + 1
        left = self.left()
        if left == 1:
            self.named[arm] = t - 1
            return arm, FOR_EVER, NO_LINE
        return arm, self.plays(left), NO_LINE

    def turns(self) -> int:
        """How many arms are played in turns in this epoch."""
        return self.left()

    def next_arm(self) -> int:
        """The next surviving arm of this epoch; the number of arms if there is none."""
        arm = self.epoch[1]
        while arm < len(self.active) and self.active[arm] == 0:
            arm += 1
        return arm

    def left(self) -> int:
        """How many arms survive."""
        left = 0
        for arm in range(len(self.active)):
            left += self.active[arm]
        return left

    def log(self, factor: float, left: int) -> float:
        """ln(factor * m * e^2 / beta)."""
        epoch = float(self.epoch[0])
        return math.log(factor * left * epoch * epoch / self.beta)

    def plays(self, left: int) -> int:
        """R, the plays of each arm in this epoch."""
        gap = 2.0 ** -float(self.epoch[0])
        most = max(32.0 * self.log(8.0, left) / (gap * gap), 8.0 * self.log(4.0, left) / (self.epsilon * gap))
        return math.ceil(min(self.epoch_factor * most + 1.0, 1e18))  # beyond 2^63 compiled code has no integers

    def drop(self, releases: Releases) -> None:
        """Drop the arms that are clearly worse than the best."""
        left = self.left()
        top = -math.inf
        for arm in range(len(self.active)):
            if self.active[arm] == 1:
                top = max(top, releases.mean(arm))
        for arm in range(len(self.active)):
            if self.active[arm] == 1:
                bonus = math.sqrt(self.log(8.0, left) / (2.0 * releases.samples(arm, 0)))
                if top - releases.mean(arm) > 2.0 * (bonus + releases.width(arm, self.log(4.0, left), 0)):
                    self.active[arm] = 0
