"""Policies that claim more than they keep. Each has one fault; an audit that misses one is no audit."""

from __future__ import annotations

from typing import Self

import numpy as np

from dpbandits.agents import UCB, Doubling, Elimination
from dpbandits.curators import Batch, Interval
from dpbandits.mechanisms import laplace
from dpbandits.numerics import unit
from dpbandits.policies.policy import Parts, Policy, published
from dpbandits.privacy.release_points import next_release
from dpbandits.types import Rng

FAULTY = "a mutant"


def doubling(arms: int) -> Doubling[UCB]:
    return Doubling.start(arms, UCB.start(arms, alpha=3.1))


class Halved(Batch):
    def close(self, arm: int, rng: Rng) -> None:
        n = self.raw_counts[arm]
        self.means[arm] = laplace(self.raw_sums[arm], 0.5, self.epsilon, rng) / n
        self.counts[arm] = n
        self.raw_counts[arm] = 0
        self.raw_sums[arm] = 0.0


class WrongSensitivity(Batch):
    def close(self, arm: int, rng: Rng) -> None:
        n = self.raw_counts[arm]
        self.means[arm] = laplace(self.raw_sums[arm], 1.0 / n, self.epsilon, rng) / n
        self.counts[arm] = n
        self.raw_counts[arm] = 0
        self.raw_sums[arm] = 0.0


class NotForgetting(Batch):
    def close(self, arm: int, rng: Rng) -> None:
        n = self.raw_counts[arm]
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
        self.counts[arm] = n


class FirstWithoutNoise(Batch):
    def close(self, arm: int, rng: Rng) -> None:
        n = self.raw_counts[arm]
        if self.counts[arm] == 0:
            self.means[arm] = self.raw_sums[arm] / n
        else:
            self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
        self.counts[arm] = n
        self.raw_counts[arm] = 0
        self.raw_sums[arm] = 0.0


class SameSeed(Batch):
    def close(self, arm: int, rng: Rng) -> None:
        n = self.raw_counts[arm]
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, np.random.default_rng(7)) / n
        self.counts[arm] = n
        self.raw_counts[arm] = 0
        self.raw_sums[arm] = 0.0


class Redrawn(Batch):
    """Keeps each arm's last sum in the second half of its arrays, and adds noise to all of them at each closing."""

    @classmethod
    def start(cls, arms: int, *, epsilon: float) -> Self:
        return cls(epsilon, np.zeros(2 * arms, np.int64), np.zeros(2 * arms), np.zeros(arms, np.int64), np.zeros(arms))

    def close(self, arm: int, rng: Rng) -> None:
        arms = self.means.size
        self.raw_counts[arms + arm] = self.raw_counts[arm]
        self.raw_sums[arms + arm] = self.raw_sums[arm]
        self.counts[arm] = self.raw_counts[arm]
        self.raw_counts[arm] = 0
        self.raw_sums[arm] = 0.0
        for other in range(arms):
            n = self.raw_counts[arms + other]
            if n > 0:
                self.means[other] = laplace(self.raw_sums[arms + other], 1.0, self.epsilon, rng) / n


class SharedDraw(Batch):
    """Draws noise for arm 0, and uses the same for all arms: it cancels where they are compared."""

    @classmethod
    def start(cls, arms: int, *, epsilon: float) -> Self:
        return cls(epsilon, np.zeros(arms, np.int64), np.zeros(arms + 1), np.zeros(arms, np.int64), np.zeros(arms))

    def close(self, arm: int, rng: Rng) -> None:
        arms, n = self.means.size, self.raw_counts[arm]
        if arm == 0:
            self.raw_sums[arms] = laplace(0.0, 1.0, self.epsilon, rng)
        self.means[arm] = (self.raw_sums[arm] + self.raw_sums[arms]) / n
        self.counts[arm] = n
        self.raw_counts[arm] = 0
        self.raw_sums[arm] = 0.0


class PrintedInterval(Interval):
    """TD16, Algorithm 3 to the letter: in every round, every arm whose count is a multiple of the interval."""

    def add(self, arm: int, response: float, level: float, rng: Rng) -> None:
        self.pulls[arm] += 1
        self.raw_sums[arm] += unit(response)
        interval = next_release(0, self.rate, self.v, self.schedule)
        for other in range(self.pulls.size):
            n = self.pulls[other]
            if n > 0 and n % interval == 0:
                self.means[other] = laplace(self.raw_sums[other], 1.0, n ** (-0.5 * self.v), rng) / n
                self.counts[other] = n


@published(FAULTY)
def halved(arms: int, *, epsilon: float) -> Parts:
    return Parts(doubling(arms), Halved.start(arms, epsilon=epsilon))


@published(FAULTY)
def wrong_sensitivity(arms: int, *, epsilon: float) -> Parts:
    return Parts(doubling(arms), WrongSensitivity.start(arms, epsilon=epsilon))


@published(FAULTY)
def not_forgetting(arms: int, *, epsilon: float) -> Parts:
    return Parts(doubling(arms), NotForgetting.start(arms, epsilon=epsilon))


@published(FAULTY)
def first_without_noise(arms: int, *, epsilon: float) -> Parts:
    return Parts(doubling(arms), FirstWithoutNoise.start(arms, epsilon=epsilon))


@published(FAULTY)
def same_seed(arms: int, *, epsilon: float) -> Parts:
    return Parts(doubling(arms), SameSeed.start(arms, epsilon=epsilon))


@published(FAULTY)
def redrawn(arms: int, *, epsilon: float) -> Parts:
    return Parts(doubling(arms), Redrawn.start(arms, epsilon=epsilon))


@published(FAULTY)
def shared_draw(arms: int, *, epsilon: float, epoch_factor: float = 1e-6) -> Parts:
    agent = Elimination.start(arms, epsilon=epsilon, beta=0.9, epoch_factor=epoch_factor)
    return Parts(agent, SharedDraw.start(arms, epsilon=epsilon))


@published(FAULTY)
def printed_interval(arms: int, *, epsilon: float, delta: float = 1e-4) -> Parts:
    curator = PrintedInterval.start(arms, epsilon=epsilon, delta=delta, v=1.1, schedule="constant")
    return Parts(UCB.start(arms, alpha=4.0), curator)


class FloatLaplace:
    """Laplace noise on floats, by numpy: private on real numbers, and not on these."""

    def __init__(self, epsilon: float) -> None:
        self.scale, self.rng = 1.0 / epsilon, np.random.default_rng(1)

    def respond(self, reward: float) -> float:
        return float(min(1.0, max(0.0, reward)) + self.rng.laplace(0.0, self.scale))


def float_laplace(epsilon: float) -> FloatLaplace:
    return FloatLaplace(epsilon)


def broken_curator() -> int:
    return 3


def laplace_for_arms(epsilon: float, arms: int) -> FloatLaplace:
    """A curator of one reward, whose function has a parameter that policies have, too."""
    return FloatLaplace(epsilon)


def redrawn_for_two(epsilon: float, times: int = 1) -> Policy:
    """A policy, by a function that takes no arms."""
    return redrawn(2, epsilon=times * epsilon)
