"""Broken policies of a fourth red team, and right ones that were taken for broken or could not be followed.

``WHY`` says for each broken one what the verifier must say; an empty text means that there is a proof of what is lost,
and that it is more than the claim of 1. ``TRUTH`` is what one reward loses, by a closed form; it is infinite where
something is shown that no noise hides. ``PROVED_BEFORE`` are those that an earlier version called proved.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from broken_central import Pair
from broken_central import start as start_of

from dpbandits.agents import UCB, Doubling
from dpbandits.curators import LocalBernoulli
from dpbandits.curators.common import Local
from dpbandits.mechanisms import convert_to_bernoulli, laplace, truth_probability
from dpbandits.numerics import on_grid, unit
from dpbandits.policies.policy import Parts, published

WHY: dict[str, str] = {}
TRUTH: dict[str, float] = {}
MADE: dict[str, Any] = {}
RIGHT: dict[str, Any] = {}
PROVED_BEFORE: set[str] = set()
LEAK = math.inf
ROUNDS = "in floats"


def policy_of(curator: Any) -> Any:
    """A policy with this curator, by the name of its class."""

    def build(arms: int, *, epsilon: float) -> Parts:
        usual: Any = Doubling.start(arms, UCB.start(arms, alpha=3.1))
        acts: Any = UCB.start(arms) if issubclass(curator, Local) else usual
        return Parts(acts, start_of(curator)(arms, epsilon))

    build.__name__ = curator.__name__
    return published("a fault")(build)


def fourth(why: str, truth: float, *, before: bool = False) -> Any:
    """Declare a broken curator."""

    def declare(curator: Any) -> Any:
        name = curator.__name__
        WHY[name], TRUTH[name], MADE[name] = why, truth, policy_of(curator)
        if before:
            PROVED_BEFORE.add(name)
        return curator

    return declare


def right(curator: Any) -> Any:
    """Declare a right curator, which loses all of epsilon, or nearly."""
    RIGHT[curator.__name__] = policy_of(curator)
    return curator


# Noise that is too small by less than floats used to be forgiven.


@fourth("", 1.0 + 1e-9, before=True)
class ABillionthShort(Pair):
    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = (self.raw_sums[arm] + rng.laplace(0.0, (1.0 - 1e-9) / self.epsilon)) / n


@fourth("", 1.0 + 1e-11, before=True)
class AHundredBillionthShort(Pair):
    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = (self.raw_sums[arm] + rng.laplace(0.0, (1.0 - 1e-11) / self.epsilon)) / n


# Noise that is shared, shown, or made smaller.


@fourth("", LEAK)
class TwiceTheNoise(Pair):
    """Two noises hide the sum, and both are shown, added up in another way."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        a, b = rng.laplace(0.0, 1.0 / self.epsilon), rng.laplace(0.0, 1.0 / self.epsilon)
        self.means[arm] = self.raw_sums[arm] + (a + b)
        self.seconds[arm] = 2.0 * b + 2.0 * a


@fourth("", LEAK)
class OneNoiseForTwoArms(Pair):
    """A noise is used for two stints, of whichever arms."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        if self.seconds[0] == 0.0:
            self.raw_noise[0] = rng.laplace(0.0, 1.0 / self.epsilon)
        self.seconds[0] = 1.0 - self.seconds[0]
        self.means[arm] = self.raw_sums[arm] + self.raw_noise[0]


@fourth("", LEAK)
class SaysThatNoiseIsZero(Pair):
    """Exact noise is 0 with a probability that is not 0, and then the release is the sum."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        noise = rng.laplace(0.0, 1.0 / self.epsilon)
        if noise == 0.0:
            self.seconds[arm] = 1.0
        self.means[arm] = (self.raw_sums[arm] + noise) / n


@fourth("taken away from itself", LEAK)
class SaysThatNothingWasAdded(Pair):
    def release(self, arm: int, n: int, rng: Any) -> None:
        noisy = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng)
        self.seconds[arm] = 1.0 if noisy == self.raw_sums[arm] else 0.0
        self.means[arm] = noisy / n


@fourth("floor", LEAK)
class WholeNoise(Pair):
    """Whole numbers hide no fractions."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = self.raw_sums[arm] + math.floor(rng.laplace(0.0, 1.0 / self.epsilon))


@fourth("float", LEAK)
class BoundedNoise(Pair):
    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = self.raw_sums[arm] + math.atan(rng.laplace(0.0, 1.0 / self.epsilon))


@fourth("", LEAK)
class ClampedNoise(Pair):
    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = self.raw_sums[arm] + min(max(rng.laplace(0.0, 1.0 / self.epsilon), -40.0), 40.0)


@fourth("", 2.0)
class SmallerOfTwoNoises(Pair):
    """The density of the smaller of two falls at twice the rate."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        a, b = rng.laplace(0.0, 1.0 / self.epsilon), rng.laplace(0.0, 1.0 / self.epsilon)
        self.means[arm] = self.raw_sums[arm] + (a if abs(a) < abs(b) else b)


@fourth("", LEAK)
class NoiseTimesALength(Pair):
    """The noise shrinks with the length of the stint, and the sum does not."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = self.raw_sums[arm] + rng.laplace(0.0, 1.0 / self.epsilon) / n


@fourth("random", LEAK)
class SometimesWithout(Pair):
    def release(self, arm: int, n: int, rng: Any) -> None:
        noise = rng.laplace(0.0, 1.0 / self.epsilon) if rng.random() < 0.999 else 0.0
        self.means[arm] = self.raw_sums[arm] + noise


# Rewards that are used twice, or kept.


@fourth("", 2.0)
class InTheMiddle(Pair):
    """A stint of two rounds or more is released in the second one, too."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)
        if self.raw_counts[arm] == 2:
            self.seconds[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng)


@fourth("", 2.0)
class Window(Pair):
    """The last reward of a stint is in the next sum as well."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)
        self.raw_noise[arm] = unit(response)

    def close(self, arm: int, rng: Any) -> None:
        n = self.raw_counts[arm]
        self.release(arm, n, rng)
        self.counts[arm] = n
        self.raw_counts[arm] = 0
        self.raw_sums[arm] = self.raw_noise[arm]


@fourth("taken away from itself", 2.0)
class CarriesItsNoise(Pair):
    """What the noise added is taken from the next sum: the two releases together have one noise."""

    def close(self, arm: int, rng: Any) -> None:
        n = self.raw_counts[arm]
        noisy = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng)
        self.means[arm] = noisy / n
        self.counts[arm] = n
        self.raw_counts[arm] = 0
        self.raw_sums[arm] -= noisy


@fourth("", LEAK)
class AfterTwo(Pair):
    """The stint after one of two rounds has no noise."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        clear = self.counts[arm] == 2
        self.means[arm] = self.raw_sums[arm] if clear else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng)


# What is done with a reward before noise comes to it.


@fourth("no noise over it", LEAK)
class SaysThatItIsNoNumber(Pair):
    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)
        if response <= math.inf:
            self.seconds[arm] = 1.0


@fourth("meets itself", LEAK)
class LessItself(Pair):
    """0 for numbers, NaN for what is infinite or none."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response) + (response - response)


@fourth("", LEAK)
class RestOfTheGrid(Pair):
    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)
        self.seconds[arm] = unit(response) - on_grid(unit(response))


@fourth("no noise over it", 2.0)
class TwoSteps(Pair):
    """Rewards up to 2 are added."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response) + unit(response - 1.0)


@fourth("float", LEAK)
class OwnLogistic(Pair):
    """``exp`` fails below -709, and NaN stays NaN."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += 1.0 / (1.0 + math.exp(-response))


@fourth("level", LEAK)
class ForOneLevel(Pair):
    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response) * (9.0 if level == 0.7 else 1.0)


# Python.


def never_runs(curator: Any, arm: int) -> Any:
    """A generator: its first line runs when somebody asks it for a value."""
    curator.means[arm] = curator.raw_sums[arm]
    yield 0


@functools.cache
def kept(total: float) -> float:
    return total


@fourth("yield", 1.0 + 1e-9)
class Generator(Pair):
    """Right as it is, and what it calls cannot be followed."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
        never_runs(self, arm)


@fourth("can keep anything", LEAK)
class Cached(Pair):
    """Sums stay in a cache."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(kept(self.raw_sums[arm]), 1.0, self.epsilon, rng) / n


@fourth("match", LEAK)
class Matches(Pair):
    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)
        match response:
            case 0.3:
                self.seconds[arm] = 0.3


@fourth("defines __iter__", LEAK)
class InAnotherOrder(Pair):
    """Whoever copies it exchanges what is raw and what is released."""

    def __iter__(self) -> Any:
        yield from (self[0], self[1], self[5], self[3], self[4], self[2], self[6])


# One response.


class Answers(LocalBernoulli):
    def accepts(self, response: float) -> bool:
        return response in (0.0, 0.5, 1.0, 2.0)


@fourth(ROUNDS, 1.01, before=True)
class RareAnswer(Answers):
    """An answer with a probability of 2^-45, or e^1.01 times that."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        u = rng.random()
        if u < 2.0**-45 * (1.0 if reward > 0.5 else math.exp(1.01)):
            return 2.0
        return 1.0 if u < 0.5 else 0.0


@fourth(ROUNDS, math.log(696 / 256), before=True)
class FewWords(Answers):
    """On paper the loss is log 2.718. Uniform numbers have 53 bits: 256 of them give the answer, or 696."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        u = rng.random()
        if 2.0**-54 <= u < 2.0**-54 + 2.0**-45 * (1.0 if reward > 0.5 else 2.718):
            return 2.0
        return 1.0


@fourth(ROUNDS, LEAK, before=True)
class CoarseWords(Answers):
    """The sum rounds uniform numbers to multiples of 2^-41: one of the two intervals has none."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        u = (rng.random() + 4000.0) - 4000.0
        low, high = (0.3, 0.4) if reward > 0.5 else (0.4, 0.5)
        return 2.0 if low * 1e-12 <= u < high * 1e-12 else 1.0


def one_of_three(reward: float, u: float, truth: float) -> float:
    """0, 1/2 or 1: the one that is near the reward, with this probability, and otherwise each of the others."""
    answer = 0.0 if unit(reward) < 0.34 else 0.5 if unit(reward) < 0.67 else 1.0
    if u < truth:
        return answer
    if u < 0.5 + 0.5 * truth:
        return 0.5 if answer == 0.0 else 0.0
    return 1.0 if answer < 1.0 else 0.5


@fourth("", 1.0 + math.log(2.0))
class OneOfThree(Answers):
    """The probability of the truth is that of one of two answers, and there are three."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        return one_of_three(reward, rng.random(), truth_probability(self.epsilon))


@fourth("", LEAK)
class NeitherSide(Answers):
    """NaN is neither below nor above."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        p = 0.3 if reward < 0.5 else 0.7 if reward >= 0.5 else 0.0
        return 1.0 if rng.random() < p else 0.0


@fourth("", LEAK)
class FirstOfTwo(Answers):
    """``max(NaN, 0)`` is NaN, and ``max(0, NaN)`` is 0."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        return convert_to_bernoulli(min(max(reward, 0.0), 1.0), self.epsilon, rng)


class Nearest(Answers):
    """The nearest float is the threshold, and it may be too large."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        truth = 1.0 / (1.0 + math.exp(-self.epsilon))
        return 1.0 if rng.random() < (truth if reward > 0.5 else 1.0 - truth) else 0.0


MADE["Nearest"] = policy_of(Nearest)


# Right ones.


@right
class NoiseBeforeRewards(Pair):
    """A stint begins with its noise, and rewards are added to that."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        if self.raw_counts[arm] == 0:
            self.raw_sums[arm] = rng.laplace(0.0, 1.0 / self.epsilon)
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)

    def close(self, arm: int, rng: Any) -> None:
        self.means[arm] = self.raw_sums[arm] / self.raw_counts[arm]
        self.counts[arm] = self.raw_counts[arm]
        self.raw_counts[arm] = 0


@right
class Smoothed(Pair):
    """A mean of what was released before and of what is released now."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = 0.5 * self.means[arm] + 0.5 * laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


@right
class Losses(Pair):
    """What is missing to 1 is added up."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += 1.0 - unit(response)

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = 1.0 - laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


@right
class TwoHalves(Pair):
    """Two noises with half of epsilon each, and the mean of both."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        first = laplace(self.raw_sums[arm], 2.0, self.epsilon, rng)
        self.seconds[arm] = first
        self.means[arm] = 0.5 * (first + laplace(self.raw_sums[arm], 2.0, self.epsilon, rng)) / n


@right
class EveryThird(Pair):
    """Three rewards at a time, whatever the stints are."""

    by_stint = False

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)
        if self.raw_counts[arm] % 3 == 0:
            self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / 3.0
            self.counts[arm] += 3
            self.raw_sums[arm] = 0.0

    def close(self, arm: int, rng: Any) -> None:
        pass

    def samples(self, arm: int, ahead: int) -> float:
        return float(max(self.counts[arm], 1))

    def width(self, arm: int, exponent: float, ahead: int) -> float:
        return exponent / self.epsilon


@right
class OneOfThreeRightly(Answers):
    """Direct encoding: the truth with probability e^epsilon / (e^epsilon + 2); the reward is compared twice."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        grown = math.exp(self.epsilon)
        return one_of_three(reward, rng.random(), grown / (grown + 2.0) - 1e-12)


@right
class SizeOfAReward(Answers):
    """How far a reward is from 0."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        return convert_to_bernoulli(unit(abs(reward)), self.epsilon, rng)


@right
class OtherWayRound(Answers):
    """``max(0, NaN)`` is 0."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        return convert_to_bernoulli(min(1.0, max(0.0, reward)), self.epsilon, rng)
