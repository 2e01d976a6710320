"""Policies that keep a claim of 1 in unusual ways, each with its true epsilon: an audit must not call them violated."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from broken_central import Pair, start

from dpbandits.agents import UCB, Doubling
from dpbandits.curators import Batch, LocalBernoulli, LocalLaplace
from dpbandits.curators.local import OneLevel
from dpbandits.exact import SystemNoise
from dpbandits.mechanisms import laplace, truth_probability
from dpbandits.numerics import on_grid, unit
from dpbandits.policies.policy import Parts, published
from dpbandits.protocols import NO_LINE

TRUTH: dict[str, float] = {}
PROVABLE: set[str] = set()  # those that are proved; the others are refused or not refuted


def right(truth: float, make: Any, agent: Any = None, *, provable: bool = True) -> Any:
    """Declare a policy with this curator, and an agent that doubles its stints unless another is given."""

    def build(arms: int, *, epsilon: float) -> Parts:
        acts = Doubling.start(arms, UCB.start(arms, alpha=3.1)) if agent is None else agent(arms)
        return Parts(acts, make(arms, epsilon))

    def named(name: str) -> Any:
        build.__name__ = name
        TRUTH[name] = truth
        if provable:
            PROVABLE.add(name)
        return published("right")(build)

    return named


class ExactNoise(Pair):
    """Exact noise of its own, whatever source it is given."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, SystemNoise()) / n  # type: ignore[arg-type]


class DrawnAhead(Pair):
    """The noise is drawn with the first reward of a stint, and kept to itself until the stint closes."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        if self.raw_counts[arm] == 0:
            self.raw_noise[arm] = rng.laplace(0.0, 1.0 / self.epsilon)
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = (self.raw_sums[arm] + self.raw_noise[arm]) / n


class ClampedAfter(Pair):
    """The released mean is clamped to [0, 1]: post-processing."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        mean = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
        if mean < 0.0:
            mean = 0.0
        if mean > 1.0:
            mean = 1.0
        self.means[arm] = mean


class MoreNoise(Pair):
    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm], 2.0, self.epsilon, rng) / n


class HalfEach(Pair):
    """Two releases at epsilon/2 each."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm], 2.0, self.epsilon, rng) / n
        self.seconds[arm] = laplace(self.raw_sums[arm], 2.0, self.epsilon, rng) / n


class Copied(Pair):
    """One release, shown in two places."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
        self.seconds[arm] = 2.0 * self.means[arm] + 3.0


class Turned(Pair):
    """Counts losses: n minus the sum."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += 1.0 - unit(response)


class OwnScale(Batch):
    """Noise with a scale of its own, which is right."""

    def close(self, arm: int, rng: Any) -> None:
        n = self.raw_counts[arm]
        scale = max(1.0, 0.5) / self.epsilon
        self.means[arm] = (self.raw_sums[arm] + rng.laplace(0.0, scale)) / n
        self.counts[arm] = n
        self.raw_counts[arm] = 0
        self.raw_sums[arm] = 0.0


class TwoSources(Pair):
    """Two noises in one sum: more than enough."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        noise = rng.laplace(0.0, 1.0 / self.epsilon) + rng.laplace(0.0, 1.0 / self.epsilon)
        self.means[arm] = (self.raw_sums[arm] + noise) / n


class OwnClamp(Pair):
    """A clamp of its own, in the order that is right for NaN too."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += min(1.0, max(0.0, response))


class AboveThreshold(Pair):
    """Sparse vector: whether a noisy sum is above a noisy threshold, and nothing else, at epsilon/2 each."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        threshold = 0.5 + rng.laplace(0.0, 2.0 / self.epsilon)
        value = self.raw_sums[arm] + rng.laplace(0.0, 2.0 / self.epsilon)
        self.means[arm] = 1.0 if value > threshold else 0.0


class UnreadRawField(Pair):
    """Keeps raw memory that nobody ever uses."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
        self.raw_noise[arm] = self.raw_sums[arm]


class ByNumPy(Pair):
    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = np.float64(1.0) * laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class ReadsConstants(NamedTuple):
    """Looks at the curator's epsilon, which is public; an agent is not allowed to, but nothing leaks."""

    arms: int

    def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
        return (t - 1) % self.arms, 1 + int(releases.epsilon > 5.0), NO_LINE


class Explores(NamedTuple):
    """Chance of the agent's own."""

    arms: int

    def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
        if t <= self.arms:
            return t - 1, 1, NO_LINE
        if rng.random() < 0.2 or releases.mean(0) > releases.mean(1):
            return 0, 1, NO_LINE
        return 1, 1, NO_LINE


class LessAfterwards(Pair):
    """Takes 0.3 of the sum away again after the noise: 0.7 epsilon on real numbers, and low bits with exact noise."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = (laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) - 0.3 * self.raw_sums[arm]) / n


class TwoWays(Pair):
    """The length of a stint decides whether its sum is released at once, or twice at epsilon/2."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        sensitivity = 2.0 if n > 3 else 1.0
        self.means[arm] = laplace(self.raw_sums[arm], sensitivity, self.epsilon, rng) / n
        if n > 3:
            self.seconds[arm] = laplace(self.raw_sums[arm], sensitivity, self.epsilon, rng) / n


exact_noise = right(1.0, start(ExactNoise))("exact_noise")
drawn_ahead = right(1.0, start(DrawnAhead))("drawn_ahead")
clamped_after = right(1.0, start(ClampedAfter))("clamped_after")
more_noise = right(0.5, start(MoreNoise))("more_noise")
half_each = right(1.0, start(HalfEach))("half_each")
copied_release = right(1.0, start(Copied))("copied_release")
turned = right(1.0, start(Turned))("turned")
own_scale = right(1.0, start(OwnScale))("own_scale")
two_sources = right(1.0, start(TwoSources))("two_sources")
own_clamp = right(1.0, start(OwnClamp), provable=False)("own_clamp")
above_threshold = right(0.5, start(AboveThreshold))("above_threshold")
unread_raw_field = right(1.0, start(UnreadRawField))("unread_raw_field")
by_numpy = right(1.0, start(ByNumPy), provable=False)("by_numpy")
reads_constants = right(1.0, start(Pair), ReadsConstants, provable=False)("reads_constants")
less_afterwards = right(0.7, start(LessAfterwards), provable=False)("less_afterwards")
two_ways = right(1.0, start(TwoWays))("two_ways")
randomised_agent = right(1.0, start(Pair), Explores)("randomised_agent")


# The local model.


class Warner(OneLevel):
    """Warner's response, written as a flip of a bit."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        bit = 1.0 if reward >= 0.5 else 0.0
        if rng.random() >= truth_probability(self.epsilon):
            bit = 1.0 - bit
        return bit

    def accepts(self, response: float) -> bool:
        return response in (0.0, 1.0)


class WarnerReversed(Warner):
    """The same with the uniform number the other way round."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        truthful = 1.0 - rng.random() < truth_probability(self.epsilon)
        return float(truthful == (reward >= 0.5))


class TwoCoins(Warner):
    """First the reward becomes a bit, and then the bit is flipped."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        bit = 1.0 if rng.random() < unit(reward) else 0.0
        return bit if rng.random() < truth_probability(self.epsilon) else 1.0 - bit


class Debiased(Warner):
    """Answers with two numbers other than 0 and 1."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        truth = truth_probability(self.epsilon)
        return 1.7 if rng.random() < (1.0 - truth) + unit(reward) * (2.0 * truth - 1.0) else -0.7

    def accepts(self, response: float) -> bool:
        return True


class ShiftedLaplace(LocalLaplace):
    def respond(self, reward: float, level: float, rng: Any) -> float:
        return 0.25 + 0.5 * laplace(2.0 * on_grid(unit(reward)), 2.0, self.epsilon, rng)


class OnSystemNoise(LocalBernoulli):
    def respond(self, reward: float, level: float, rng: Any) -> float:
        truth = truth_probability(self.epsilon)
        return 1.0 if SystemNoise().random() < (1.0 - truth) + unit(reward) * (2.0 * truth - 1.0) else 0.0


def _ucb(arms: int) -> Any:
    return UCB.start(arms)


warner = right(1.0, start(Warner), _ucb)("warner")
warner_reversed = right(1.0, start(WarnerReversed), _ucb)("warner_reversed")
two_coins = right(1.0, start(TwoCoins), _ucb)("two_coins")
debiased = right(1.0, start(Debiased), _ucb)("debiased")
shifted_laplace = right(1.0, start(ShiftedLaplace), _ucb)("shifted_laplace")
on_system_noise = right(1.0, start(OnSystemNoise), _ucb)("on_system_noise")
