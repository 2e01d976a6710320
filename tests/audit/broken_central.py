"""Central policies that break their claim, each in one way, with its true epsilon at a claim of 1.

``TRUTH`` is the loss of what the policy shows, its releases and its actions, over all plays. It is a closed form, or it
is infinite because something is shown that no noise hides. ``test_attacks`` holds each against a brute force, too.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpbandits.agents import UCB, Doubling, Elimination
from dpbandits.curators import Batch, Hybrid, Tree
from dpbandits.curators.common import Trusted
from dpbandits.exact import SystemNoise
from dpbandits.mechanisms import laplace
from dpbandits.numerics import on_grid, sigmoid, unit
from dpbandits.policies.policy import Parts, published
from dpbandits.privacy import Guarantee
from dpbandits.protocols import NO_LINE
from dpbandits.types import Floats, Integers

TRUTH: dict[str, float] = {}
LEAK = math.inf
KEPT: list[float] = []
SHARED = np.random.default_rng(3)


def broken(truth: float, make: Any, agent: Any = None, truths: dict[str, float] = TRUTH) -> Any:
    """Declare a policy with this curator, and an agent that doubles its stints unless another is given."""

    def build(arms: int, *, epsilon: float) -> Parts:
        acts = Doubling.start(arms, UCB.start(arms, alpha=3.1)) if agent is None else agent(arms)
        return Parts(acts, make(arms, epsilon))

    def named(name: str) -> Any:
        build.__name__ = name
        truths[name] = truth
        return published("a fault")(build)

    return named


def start(cls: Any) -> Any:
    return lambda arms, epsilon: cls.start(arms, epsilon=epsilon)


# The agent, or what it is told, depends on raw memory.


class RawMean(Batch):
    def mean(self, arm: int) -> float:
        return self.raw_sums[arm] if self.raw_counts[arm] > 0 else self.means[arm]


class RawAlways(Batch):
    """The mean that is told is that of the last stint without noise, which is kept in raw memory."""

    def close(self, arm: int, rng: Any) -> None:
        n = self.raw_counts[arm]
        self.counts[arm] = n
        self.means[arm] = rng.laplace(0.0, 1.0 / self.epsilon)
        self.raw_counts[arm] = 0

    def mean(self, arm: int) -> float:
        return self.raw_sums[arm] / self.counts[arm]


class RawSamples(RawAlways):
    def mean(self, arm: int) -> float:
        return self.means[arm]

    def samples(self, arm: int, ahead: int) -> float:
        return self.counts[arm] + 100.0 * self.raw_sums[arm]


class RawWidth(RawAlways):
    def mean(self, arm: int) -> float:
        return self.means[arm]

    def width(self, arm: int, exponent: float, ahead: int) -> float:
        return 100.0 if self.raw_sums[arm] > 0.5 else 0.0


class RawReady(RawAlways):
    def mean(self, arm: int) -> float:
        return self.means[arm]

    def ready(self, arm: int, exponent: float) -> bool:
        return self.counts[arm] > 0 and not self.raw_sums[arm] > 0.5


class RawLowest(RawAlways):
    def mean(self, arm: int) -> float:
        return self.means[arm]

    def lowest(self, arm: int, ahead: int) -> float:
        return self.raw_sums[arm]


class AsksLowest(NamedTuple):
    arms: int

    def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
        if t <= self.arms:
            return t - 1, 1, NO_LINE
        return (1 if releases.lowest(0, 1) > 0.5 else 0), 1, NO_LINE


class Peeks(NamedTuple):
    """Looks at the raw sums of a curator that keeps them."""

    arms: int

    def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
        if t <= self.arms:
            return t - 1, 1, NO_LINE
        return (1 if releases.raw_sums[0] > 0.5 else 0), 1, NO_LINE


class PeeksByPlace(NamedTuple):
    """The same without naming the field: a curator is a tuple."""

    arms: int

    def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
        if t <= self.arms:
            return t - 1, 1, NO_LINE
        return (1 if releases[2][0] > 0.5 else 0), 1, NO_LINE


class PeeksAtStints(NamedTuple):
    """The length of a stint depends on raw memory."""

    arms: int

    def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
        return (t - 1) % self.arms, 1 + int(releases.raw_sums[0] > 0.5), NO_LINE


class PeeksLate(NamedTuple):
    """Looks at raw memory from round 50 on."""

    arms: int

    def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
        if t > 50 and releases.raw_sums[0] > 0.5:
            return 0, 1, NO_LINE
        return (t - 1) % self.arms, 1, NO_LINE


raw_mean = broken(LEAK, start(RawAlways))("raw_mean")
raw_samples = broken(LEAK, start(RawSamples))("raw_samples")
raw_width = broken(LEAK, start(RawWidth))("raw_width")
raw_ready = broken(LEAK, start(RawReady))("raw_ready")
raw_lowest = broken(LEAK, start(RawLowest), AsksLowest)("raw_lowest")
peeks = broken(LEAK, start(RawLowest), Peeks)("peeks")
peeks_by_place = broken(LEAK, start(RawLowest), PeeksByPlace)("peeks_by_place")
peeks_at_stints = broken(LEAK, start(RawLowest), PeeksAtStints)("peeks_at_stints")
peeks_late = broken(LEAK, start(RawLowest), PeeksLate)("peeks_late")


# Rewards are kept, or shown, outside of the arrays.


class InAList(Batch):
    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        KEPT[:] = [response]
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)


class ReadsTheList(NamedTuple):
    arms: int

    def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
        if t <= self.arms:
            return t - 1, 1, NO_LINE
        return (1 if KEPT and KEPT[0] > 0.5 else 0), 1, NO_LINE


class OnTheClass(Batch):
    last = 0.0

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        type(self).last = response
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)

    def ready(self, arm: int, exponent: float) -> bool:
        return self.counts[arm] > 0 and type(self).last < 0.5


class InADefault(Batch):
    def add(self, arm: int, response: float, level: float, rng: Any, kept: Any = [0.0]) -> None:  # noqa: B006
        kept[0] = response
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)

    def width(self, arm: int, exponent: float, ahead: int) -> float:
        kept: Any = InADefault.add.__defaults__
        return 50.0 * kept[0][0]


class ByFlat(Batch):
    def close(self, arm: int, rng: Any) -> None:
        n = self.raw_counts[arm]
        self.means.flat[arm] = self.raw_sums[arm] / n
        self.counts[arm] = n
        self.raw_counts[arm] = 0
        self.raw_sums[arm] = 0.0


class ByPut(Batch):
    def close(self, arm: int, rng: Any) -> None:
        n = self.raw_counts[arm]
        self.means.put(arm, self.raw_sums[arm] / n)
        self.counts[arm] = n
        self.raw_counts[arm] = 0
        self.raw_sums[arm] = 0.0


class BySlice(Batch):
    def close(self, arm: int, rng: Any) -> None:
        n = self.raw_counts[arm]
        self.means[arm : arm + 1] = self.raw_sums[arm : arm + 1] / n
        self.counts[arm] = n
        self.raw_counts[arm] = 0
        self.raw_sums[arm] = 0.0


class InCounts(Batch):
    """A count that is released depends on a reward."""

    def close(self, arm: int, rng: Any) -> None:
        n = self.raw_counts[arm]
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
        self.counts[arm] = n + int(self.raw_sums[arm] > 0.5)
        self.raw_counts[arm] = 0
        self.raw_sums[arm] = 0.0


class ThroughAGenerator(Batch):
    """A generator that curator and agent share is moved on by rewards of 1."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        if response > 0.5:
            SHARED.random()
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)


class UsesTheGenerator(NamedTuple):
    arms: int

    def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
        return int(SHARED.random() * self.arms), 1, NO_LINE


in_a_list = broken(LEAK, start(InAList), ReadsTheList)("in_a_list")
on_the_class = broken(LEAK, start(OnTheClass))("on_the_class")
in_a_default = broken(LEAK, start(InADefault))("in_a_default")
by_flat = broken(LEAK, start(ByFlat))("by_flat")
by_put = broken(LEAK, start(ByPut))("by_put")
by_slice = broken(LEAK, start(BySlice))("by_slice")
in_counts = broken(LEAK, start(InCounts))("in_counts")
through_a_generator = broken(LEAK, start(ThroughAGenerator), UsesTheGenerator)("through_a_generator")


# Noise: too little, shared, reused, looked at, cut off, or dependent on rewards.


class Scaled(Batch):
    factor = 0.5

    def close(self, arm: int, rng: Any) -> None:
        n = self.raw_counts[arm]
        self.means[arm] = laplace(self.raw_sums[arm], self.factor, self.epsilon, rng) / n
        self.counts[arm] = n
        self.raw_counts[arm] = 0
        self.raw_sums[arm] = 0.0


class SlightlyLess(Scaled):
    factor = 0.999


class Twice(Batch):
    """Released twice, with fresh noise: the second draw goes where the first was."""

    def close(self, arm: int, rng: Any) -> None:
        n = self.raw_counts[arm]
        for _ in range(2):
            self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
        self.counts[arm] = n
        self.raw_counts[arm] = 0

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        if self.raw_counts[arm] == 0:
            if self.counts[arm] > 0:  # the last stint once more
                self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / self.counts[arm]
            self.raw_sums[arm] = 0.0
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)


class PairFields(NamedTuple):
    epsilon: float
    raw_counts: Integers
    raw_sums: Floats
    raw_noise: Floats  # (arms,)
    counts: Integers
    means: Floats
    seconds: Floats  # (arms,): a second number that is released


class Pair(Trusted, PairFields):
    """A curator with a second released number, and noise that it may keep."""

    __slots__ = ()
    by_stint = True

    @classmethod
    def start(cls, arms: int, *, epsilon: float) -> Any:
        floats, integers = np.zeros((4, arms)), np.zeros((2, arms), np.int64)
        return cls(epsilon, integers[0], floats[0], floats[1], integers[1], floats[2], floats[3])

    def guarantee(self) -> Guarantee:
        return Guarantee.central(self.epsilon)

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)

    def close(self, arm: int, rng: Any) -> None:
        n = self.raw_counts[arm]
        self.release(arm, n, rng)
        self.counts[arm] = n
        self.raw_counts[arm] = 0
        self.raw_sums[arm] = 0.0

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n

    def mean(self, arm: int) -> float:
        return self.means[arm]

    def samples(self, arm: int, ahead: int) -> float:
        return float(self.counts[arm])

    def width(self, arm: int, exponent: float, ahead: int) -> float:
        return exponent / (self.epsilon * self.counts[arm])


class ShowsNoise(Pair):
    def release(self, arm: int, n: int, rng: Any) -> None:
        noise = rng.laplace(0.0, 1.0 / self.epsilon)
        self.means[arm] = (self.raw_sums[arm] + noise) / n
        self.seconds[arm] = noise


class Antithetic(Pair):
    def release(self, arm: int, n: int, rng: Any) -> None:
        noise = rng.laplace(0.0, 2.0 / self.epsilon)
        self.means[arm] = (self.raw_sums[arm] + noise) / n
        self.seconds[arm] = (self.raw_sums[arm] - noise) / n


class SameNoiseAgain(Pair):
    """One draw for an arm, used at all its closings: the difference of two releases has no noise."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        if self.counts[arm] == 0:
            self.raw_noise[arm] = rng.laplace(0.0, 1.0 / self.epsilon)
        self.means[arm] = (self.raw_sums[arm] + self.raw_noise[arm]) / n


class TwoLooks(Pair):
    """The sum under two noises of scale 1/epsilon each: 2 epsilon."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
        self.seconds[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class CutOff(Pair):
    """Laplace noise that is cut off far out: pure epsilon does not hold at all."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        noise = rng.laplace(0.0, 1.0 / self.epsilon)
        if noise > 30.0 / self.epsilon:
            noise = 30.0 / self.epsilon
        self.means[arm] = (self.raw_sums[arm] + noise) / n


class Redraws(Pair):
    """Noise is drawn again until it is small."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        noise = rng.laplace(0.0, 1.0 / self.epsilon)
        while abs(noise) > 3.0 / self.epsilon:
            noise = rng.laplace(0.0, 1.0 / self.epsilon)
        self.means[arm] = (self.raw_sums[arm] + noise) / n


class WhenNoiseIsLarge(Pair):
    """Shows the sum where the noise happens to be large."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        noise = rng.laplace(0.0, 1.0 / self.epsilon)
        if noise > 10.0 / self.epsilon:
            self.means[arm] = self.raw_sums[arm] / n
        else:
            self.means[arm] = (self.raw_sums[arm] + noise) / n


class ScaleByData(Pair):
    def release(self, arm: int, n: int, rng: Any) -> None:
        scale = 1.0 if self.raw_sums[arm] > 0.5 else 2.0
        self.means[arm] = (self.raw_sums[arm] + rng.laplace(0.0, scale / self.epsilon)) / n


class Swallowed(Pair):
    """Numbers so large that floats round the noise away where the reward is 1."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        large = 1e18 * self.raw_sums[arm]
        self.means[arm] = ((large + rng.laplace(0.0, 1.0 / self.epsilon)) - large) / n


class WeightedSum(Pair):
    """A reward counts as often as its place in the stint: a stint of n loses n epsilon, without a bound."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response) * self.raw_counts[arm]


class Unclamped(Pair):
    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += response


class ClampedButNaN(Pair):
    """min(max(nan, 0), 1) is NaN in Python."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += min(max(response, 0.0), 1.0)


class WiderClamp(Pair):
    """Clamped to [-1, 1], with noise for [0, 1]: 2 epsilon."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += 2.0 * unit(0.5 * (unit(response) + unit(response)))


class TwoFunctions(Pair):
    """The difference of two functions of the reward is shown without noise."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)
        self.raw_noise[arm] = unit(response) - sigmoid(response)

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
        self.seconds[arm] = self.raw_noise[arm]


class OffTheGrid(Pair):
    """What rounding to the grid takes away is shown."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += on_grid(unit(response))
        self.raw_noise[arm] = unit(response) - on_grid(unit(response))

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
        self.seconds[arm] = self.raw_noise[arm]


scaled = broken(2.0, start(Scaled))("scaled")
slightly_less = broken(1.0 / 0.999, start(SlightlyLess))("slightly_less")
twice = broken(2.0, start(Twice))("twice")
shows_noise = broken(LEAK, start(ShowsNoise))("shows_noise")
antithetic = broken(LEAK, start(Antithetic))("antithetic")
same_noise_again = broken(LEAK, start(SameNoiseAgain))("same_noise_again")
two_looks = broken(2.0, start(TwoLooks))("two_looks")
cut_off = broken(LEAK, start(CutOff))("cut_off")
redraws = broken(LEAK, start(Redraws))("redraws")
when_noise_is_large = broken(LEAK, start(WhenNoiseIsLarge))("when_noise_is_large")
scale_by_data = broken(LEAK, start(ScaleByData))("scale_by_data")
swallowed = broken(LEAK, start(Swallowed))("swallowed")
weighted_sum = broken(LEAK, start(WeightedSum))("weighted_sum")
unclamped = broken(LEAK, start(Unclamped))("unclamped")
clamped_but_nan = broken(LEAK, start(ClampedButNaN))("clamped_but_nan")
wider_clamp = broken(2.0, start(WiderClamp))("wider_clamp")
two_functions = broken(LEAK, start(TwoFunctions))("two_functions")
off_the_grid = broken(LEAK, start(OffTheGrid))("off_the_grid")


# Some rewards, arms or rounds alone.


class TwoRewards(Pair):
    """Leaks where a stint begins with the rewards 0.25 and 0.75."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)
        if self.raw_counts[arm] == 2 and self.raw_noise[arm] == 0.25 and response == 0.75:
            self.seconds[arm] = 1.0
        self.raw_noise[arm] = response


class SecretReward(Pair):
    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)
        if response == 0.3:
            self.seconds[arm] = 1.0


class ArmTwo(Pair):
    def release(self, arm: int, n: int, rng: Any) -> None:
        if arm == 2:
            self.means[arm] = self.raw_sums[arm] / n
        else:
            self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class AfterFifty(Pair):
    """Noise is halved once an arm has had 50 rewards."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.seconds[arm] += n
        sensitivity = 0.5 if self.seconds[arm] > 50.0 else 1.0
        self.means[arm] = laplace(self.raw_sums[arm], sensitivity, self.epsilon, rng) / n


class EarlyRelease(Pair):
    """A stint whose first reward is 1 is released at once."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)
        if self.raw_sums[arm] > 0.5:
            self.seconds[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng)


class NextStint(Pair):
    """The sum of the stint before is shown without noise."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
        self.seconds[arm] = self.raw_noise[arm]
        self.raw_noise[arm] = self.raw_sums[arm]


class OtherArm(Pair):
    """The sum of another arm is shown without noise."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
        self.raw_noise[arm] = self.raw_sums[arm]
        self.seconds[arm] = self.raw_noise[1 - arm] if arm < 2 else 0.0


class Hash(Pair):
    """A hash of the sum is shown."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
        self.seconds[arm] = float(hash(self.raw_sums[arm]) % 1000)


class OwnAbsorb(Pair):
    """Right one by one; what simulations run is not."""

    def absorb(self, environment: Any, arm: int, n: int, line: float, rewards: Any, noise: Any) -> int:
        for _ in range(n):
            self.raw_counts[arm] += 1
            self.raw_sums[arm] += environment.draw(arm, rewards)
        self.seconds[arm] = self.raw_sums[arm]
        return n


class LevelLeak(Pair):
    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)
        if level == 0.37:
            self.seconds[arm] = response


two_rewards = broken(LEAK, start(TwoRewards))("two_rewards")
secret_reward = broken(LEAK, start(SecretReward))("secret_reward")
arm_two = broken(LEAK, start(ArmTwo))("arm_two")
after_fifty = broken(2.0, start(AfterFifty))("after_fifty")
early_release = broken(LEAK, start(EarlyRelease))("early_release")
next_stint = broken(LEAK, start(NextStint))("next_stint")
other_arm = broken(LEAK, start(OtherArm))("other_arm")
hashed = broken(LEAK, start(Hash))("hashed")
own_absorb = broken(LEAK, start(OwnAbsorb))("own_absorb")
level_leak = broken(LEAK, start(LevelLeak))("level_leak")


# Counters: trees, hybrids, intervals, exact noise.


class ShallowTree(Tree):
    """A tree whose noise is for one level fewer than it has."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.counts[arm] += 1
        item, place, value = self.counts[arm], 0, unit(response)
        while item & 1 == 0:
            item >>= 1
            value += self.raw_nodes[arm, place]
            self.raw_nodes[arm, place] = 0.0
            place += 1
        self.raw_nodes[arm, place] = value
        total = self.releases[arm, place + 1] + laplace(value, float(self.depth - 1), self.epsilon, rng)
        for lower in range(place + 1):
            self.releases[arm, lower] = total


class HalfHybrid(Hybrid):
    """All rewards once more at every fourth: the loss grows without a bound."""

    def feed(self, arm: int, item: int, value: float, rng: Any) -> None:
        self.releases[arm, 0] += laplace(value, 1.0, self.epsilon_log + self.epsilon_tree, rng)
        self.raw_nodes[arm, 0] += value
        if item % 4 == 0:
            self.releases[arm, 0] = laplace(self.raw_nodes[arm, 0], 1.0, self.epsilon_log, rng)


class OnExactNoise(Pair):
    """Half the noise, exact."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm], 0.5, self.epsilon, SystemNoise()) / n  # type: ignore[arg-type]


def _shallow(arms: int, epsilon: float) -> Any:
    return ShallowTree.start(arms, epsilon=epsilon, horizon=127, width_factor=1.0)


def _half(arms: int, epsilon: float) -> Any:
    return HalfHybrid.start(arms, epsilon_log=0.5 * epsilon, epsilon_tree=0.5 * epsilon)


def _dropping(arms: int) -> Any:
    return Elimination.start(arms, epsilon=1.0, beta=0.9, epoch_factor=1e-6)


shallow_tree = broken(7.0 / 6.0, _shallow, lambda arms: UCB.start(arms))("shallow_tree")
half_hybrid = broken(LEAK, _half, lambda arms: UCB.start(arms))("half_hybrid")
on_exact_noise = broken(2.0, start(OnExactNoise))("on_exact_noise")
elimination_scaled = broken(2.0, start(Scaled), _dropping)("elimination_scaled")
elimination_shared = broken(LEAK, start(SameNoiseAgain), _dropping)("elimination_shared")
