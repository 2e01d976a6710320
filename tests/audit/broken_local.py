"""Local policies that break a claim of 1, each in one way, with the true epsilon of one response."""

from __future__ import annotations

import math
from typing import Any

from right_subjects import Warner

from dpbandits.agents import UCB
from dpbandits.curators import HeterogeneousBernoulli, LocalBernoulli, LocalLaplace
from dpbandits.mechanisms import laplace, truth_probability
from dpbandits.numerics import on_grid, sigmoid, unit
from dpbandits.policies.policy import Parts, published

TRUTH: dict[str, float] = {}
LEAK = math.inf
KEPT: list[float] = []


def broken(truth: float, kind: Any, **settings: Any) -> Any:
    def build(arms: int, *, epsilon: float) -> Parts:
        return Parts(UCB.start(arms), kind.start(arms, epsilon=epsilon, **settings))

    def named(name: str) -> Any:
        build.__name__ = name
        TRUTH[name] = truth
        return published("a fault")(build)

    return named


class Debiased(LocalBernoulli):
    """Answers other than 0 and 1, at twice the epsilon."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        truth = truth_probability(2.0 * self.epsilon)
        return 1.3 if rng.random() < (1.0 - truth) + unit(reward) * (2.0 * truth - 1.0) else -0.3


class InClear(LocalLaplace):
    def respond(self, reward: float, level: float, rng: Any) -> float:
        return unit(reward)


class Secret(LocalBernoulli):
    """The reward 0.3 is answered in clear."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        if reward == 0.3:
            return 0.3
        truth = truth_probability(self.epsilon)
        return 1.0 if rng.random() < (1.0 - truth) + unit(reward) * (2.0 * truth - 1.0) else 0.0


class NotMonotone(LocalBernoulli):
    """1 for uniform numbers in the middle: twice the epsilon, and the same answer at both ends."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        share = 0.5 * truth_probability(2.0 * self.epsilon) if reward > 0.5 else 0.5 - 0.5 * truth_probability(2.0)
        return 1.0 if abs(rng.random() - 0.5) < share else 0.0


class Grid(LocalBernoulli):
    """Answers on a grid of five, which follows the reward."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        return int(4.0 * unit(reward) + 0.9 * rng.random()) / 4.0


class Unclamped(LocalLaplace):
    def respond(self, reward: float, level: float, rng: Any) -> float:
        return laplace(reward, 1.0, self.epsilon, rng)


class HalfNoise(LocalLaplace):
    def respond(self, reward: float, level: float, rng: Any) -> float:
        return laplace(on_grid(unit(reward)), 0.5, self.epsilon, rng)


class ShowsNaN(LocalBernoulli):
    def respond(self, reward: float, level: float, rng: Any) -> float:
        if reward != reward:
            return 0.0
        truth = truth_probability(self.epsilon)
        return 1.0 if rng.random() < (1.0 - truth) + unit(reward) * (2.0 * truth - 1.0) else 0.0


class ShowsInfinity(LocalBernoulli):
    def respond(self, reward: float, level: float, rng: Any) -> float:
        if reward > 1e300:
            return 1.0
        truth = truth_probability(self.epsilon)
        return 1.0 if rng.random() < (1.0 - truth) + unit(reward) * (2.0 * truth - 1.0) else 0.0


class Stashes(LocalBernoulli):
    def respond(self, reward: float, level: float, rng: Any) -> float:
        KEPT[:] = [reward]
        truth = truth_probability(self.epsilon)
        return 1.0 if rng.random() < (1.0 - truth) + unit(reward) * (2.0 * truth - 1.0) else 0.0

    def mean(self, arm: int) -> float:
        return KEPT[0]


class WritesMemory(LocalBernoulli):
    """The device writes the reward into the server's sums."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        self.sums[0] += reward
        truth = truth_probability(self.epsilon)
        return 1.0 if rng.random() < (1.0 - truth) + unit(reward) * (2.0 * truth - 1.0) else 0.0


class TwoUniforms(LocalBernoulli):
    """Two coins that together tell too much: an answer for each pair."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        truth = truth_probability(self.epsilon)
        share = (1.0 - truth) + unit(reward) * (2.0 * truth - 1.0)
        first = 1.0 if rng.random() < share else 0.0
        return first + (2.0 if rng.random() < share else 0.0)


class Sigmoid(LocalLaplace):
    """Both the logistic function and the reward itself."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        return laplace(sigmoid(reward), 1.0, self.epsilon, rng) + (1000.0 if reward > 3.0 else 0.0)


class Level(LocalBernoulli):
    """All users have one epsilon, and at the level 0.37 there is no noise."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        truth = truth_probability(self.epsilon if level != 0.37 else 20.0)
        return 1.0 if rng.random() < (1.0 - truth) + unit(reward) * (2.0 * truth - 1.0) else 0.0


class OffTheGrid(LocalLaplace):
    """What rounding takes away is put back after the noise: with exact noise, the low bits are the reward's."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        clamped = unit(reward)
        return laplace(on_grid(clamped), 1.0, self.epsilon, rng) + (clamped - on_grid(clamped))


class TenTimes(HeterogeneousBernoulli):
    """Each user's own level, times ten."""

    @classmethod
    def start(cls, arms: int, *, epsilon: float) -> Any:  # type: ignore[override]
        return super().start(arms, epsilon_min=epsilon)

    def respond(self, reward: float, level: float, rng: Any) -> float:
        truth = truth_probability(10.0 * level)
        return 1.0 if rng.random() < (1.0 - truth) + unit(reward) * (2.0 * truth - 1.0) else 0.0


class FarFlip(Warner):
    """A flip that is too rare where the reward is 1."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        if reward >= 0.5:
            return 1.0 if rng.random() < 0.999 else 0.0
        return 1.0 if rng.random() < 1.0 - truth_probability(self.epsilon) else 0.0


debiased = broken(2.0, Debiased)("debiased")
in_clear = broken(LEAK, InClear)("in_clear")
secret = broken(LEAK, Secret)("secret")
not_monotone = broken(2.0, NotMonotone)("not_monotone")
grid = broken(LEAK, Grid)("grid")
unclamped = broken(LEAK, Unclamped)("unclamped")
half_noise = broken(2.0, HalfNoise)("half_noise")
shows_nan = broken(LEAK, ShowsNaN)("shows_nan")
shows_infinity = broken(LEAK, ShowsInfinity)("shows_infinity")
stashes = broken(LEAK, Stashes)("stashes")
writes_memory = broken(LEAK, WritesMemory)("writes_memory")
two_uniforms = broken(2.0, TwoUniforms)("two_uniforms")
both_functions = broken(LEAK, Sigmoid)("both_functions")
level = broken(20.0, Level)("level")
off_the_grid = broken(LEAK, OffTheGrid)("off_the_grid")
ten_times = broken(10.0, TenTimes)("ten_times")
far_flip = broken(math.log(0.7310585786300049 / 0.001), FarFlip)("far_flip")
