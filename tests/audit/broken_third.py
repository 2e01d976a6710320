"""Broken policies of a third red team: signs of zero, identity, texts, numbers of two kinds, and hooks that run unread.

``WHY`` says for each what the verifier must say; an empty text means that there is a proof of what is lost, and that it
is more than the claim of 1. ``PROVED_BEFORE`` are those that an earlier version of the verifier called proved.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from broken_central import Pair
from broken_central import start as start_of

from dpbandits.agents import UCB, Doubling
from dpbandits.curators import LocalBernoulli, LocalLaplace, confidence
from dpbandits.curators.common import Local, Trusted
from dpbandits.exact import SystemNoise
from dpbandits.mechanisms import laplace, truth_probability
from dpbandits.numerics import on_grid, sigmoid, unit
from dpbandits.policies.policy import Parts, published
from dpbandits.privacy import Guarantee
from dpbandits.protocols import NO_LINE

WHY: dict[str, str] = {}
MADE: dict[str, Any] = {}
PROVED_BEFORE: set[str] = set()
ARMS: dict[str, int] = {}


def third(why: str, curator: Any, agent: Any = None, *, before: bool = True, arms: int = 2) -> None:
    """Declare a policy with this curator, by the name of its class; it is broken for this many ``arms``."""
    name = (agent or curator).__name__

    def build(arms: int, *, epsilon: float) -> Parts:
        usual: Any = Doubling.start(arms, UCB.start(arms, alpha=3.1))
        acts: Any = UCB.start(arms) if issubclass(curator, Local) else usual if agent is None else agent(arms)
        return Parts(acts, start_of(curator)(arms, epsilon))

    build.__name__ = name
    WHY[name], ARMS[name] = why, arms
    MADE[name] = published("a fault")(build)
    if before:
        PROVED_BEFORE.add(name)


# The sign of zero.


class SignOfZero(Pair):
    """0 times a negative number is -0.0: whether the sum is below 1/2 shows."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
        self.seconds[arm] = 0.0 * (self.raw_sums[arm] - 0.5)


class SignOfNoise(Pair):
    """The sign of the noise is shown."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        noise = rng.laplace(0.0, 1.0 / self.epsilon)
        self.means[arm] = (self.raw_sums[arm] + noise) / n
        self.seconds[arm] = noise * 0


class NegativeZero(Pair):
    """The first stint leaves -0.0 behind, which equals 0.0; all others have no noise."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        if math.copysign(1.0, self.raw_noise[arm]) < 0.0:
            self.means[arm] = self.raw_sums[arm]
        else:
            self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
        self.raw_noise[arm] = -0.0


class RestOfAClamp(Pair):
    """A sum of floats can be above 1, where it is 1 on paper: what a clamp takes away is shown."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += PART * unit(response)

    def release(self, arm: int, n: int, rng: Any) -> None:
        if n == PARTS:
            total = self.raw_sums[arm]
            self.seconds[arm] = 1e16 * (total - unit(total))
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


PARTS = 11
PART = 1.0 / PARTS


# Numbers of Python, and numbers of NumPy. Simulations have the one kind, and sessions the other.


class LargeQuotient(Pair):
    """NumPy rounds an integer to a float before it divides."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        large = n * 0 + 9007199254740993
        clear = large / 3 != 3002399751580331.0
        self.means[arm] = self.raw_sums[arm] if clear else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class LargeEqual(Pair):
    """NumPy rounds an integer to a float before it compares."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        clear = n * 0 + 9007199254740993 == 9007199254740992.0
        self.means[arm] = self.raw_sums[arm] if clear else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class CubeRoot(Pair):
    """A root of a negative number is complex in Python, and NaN in NumPy."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        root = abs((n * 0 - 8) ** (1.0 / 3.0))
        clear = not root > 1.0
        self.means[arm] = self.raw_sums[arm] if clear else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class RoundedQuotient(Pair):
    """A count times a float is a float of Python in the proof, and one of NumPy elsewhere: 2.67 against 2.68."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        clear = round((n * 0 + 1) * 2.675, 2) == 2.68
        self.means[arm] = self.raw_sums[arm] if clear else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class RoundedProduct(Pair):
    """The same with the float first, which asks Python's float."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        clear = round(2.675 * (n * 0 + 1), 2) == 2.68
        self.means[arm] = self.raw_sums[arm] if clear else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class RoundedCell(Pair):
    """The other way round: sessions read memory as numbers of Python."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.raw_noise[arm] = 2.675
        clear = round(self.raw_noise[arm], 2) == 2.67
        self.means[arm] = self.raw_sums[arm] if clear else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class TruthsOfQuotients(Pair):
    """Comparisons of quotients add up to 2 in Python, and to True in NumPy: half of the noise."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        both = (n / 3 > 0.0) + (n / 3 > 0.01)
        self.means[arm] = (self.raw_sums[arm] + rng.laplace(0.0, 0.5 * both / self.epsilon)) / n


class TruthsOfCells(Pair):
    """The other way round: a truth times 2 and minus 1 is 1, in both; their sum is not."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.raw_noise[arm] = 1.0
        one = (self.raw_noise[arm] > 0.0) + (self.raw_noise[arm] > 0.5) < 2
        scale = 1.0 if one else 0.1
        self.means[arm] = (self.raw_sums[arm] + rng.laplace(0.0, scale / self.epsilon)) / n


class TextOfACount(Pair):
    """A count of NumPy reads np.int64(1)."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        clear = len("%r" % n) > 4  # noqa: UP031
        self.means[arm] = self.raw_sums[arm] if clear else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class TextOfATruth(Pair):
    """A truth of NumPy reads np.True_."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        clear = len("%r" % (n > 0)) > 4
        self.means[arm] = self.raw_sums[arm] if clear else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class TextOfACell(Pair):
    """A float of Python has no np.float64 in its text."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        clear = len("%r" % self.raw_noise[arm]) < 5  # noqa: UP031
        self.means[arm] = self.raw_sums[arm] if clear else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class SmallFields(NamedTuple):
    epsilon: float
    small: Any
    raw_counts: Any
    raw_sums: Any
    counts: Any
    means: Any


class SmallInteger(Trusted, SmallFields):
    """An integer of 32 bits, which one of 64 bits widens, and one of Python does not: it wraps around."""

    __slots__ = ()
    by_stint = True

    @classmethod
    def start(cls, arms: int, *, epsilon: float) -> Any:
        floats, integers = np.zeros((2, arms)), np.zeros((2, arms), np.int64)
        return cls(epsilon, np.int32(2**31 - 1), integers[0], floats[0], integers[1], floats[1])

    def guarantee(self) -> Guarantee:
        return Guarantee.central(self.epsilon)

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)

    def close(self, arm: int, rng: Any) -> None:
        n = self.raw_counts[arm]
        clear = self.small + n < 0
        self.means[arm] = self.raw_sums[arm] if clear else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
        self.counts[arm] = n
        self.raw_counts[arm] = 0
        self.raw_sums[arm] = 0.0

    def mean(self, arm: int) -> float:
        return self.means[arm]


class RowsFields(NamedTuple):
    epsilon: float
    raw_counts: Any
    raw_sums: Any
    raw_other: Any
    counts: Any
    means: Any
    seconds: Any


class Rows(Trusted, RowsFields):
    """Right: a curator with rows of one number."""

    __slots__ = ()
    by_stint = True

    @classmethod
    def start(cls, arms: int, *, epsilon: float) -> Any:
        floats, integers = np.zeros((4, arms, 1)), np.zeros((2, arms), np.int64)
        return cls(epsilon, integers[0], floats[0], floats[1], integers[1], floats[2], floats[3])

    def guarantee(self) -> Guarantee:
        return Guarantee.central(self.epsilon)

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm, 0] += unit(response)

    def close(self, arm: int, rng: Any) -> None:
        n = self.raw_counts[arm]
        self.release(arm, n, rng)
        self.counts[arm] = n
        self.raw_counts[arm] = 0
        self.raw_sums[arm, 0] = 0.0

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm, 0] = laplace(self.raw_sums[arm, 0], 1.0, self.epsilon, rng) / n

    def mean(self, arm: int) -> float:
        return self.means[arm, 0]


class RowsCompared(Rows):
    """Rows are compared as a whole: whether the sum is 0 shows."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm, 0] = laplace(self.raw_sums[arm, 0], 1.0, self.epsilon, rng) / n
        if self.raw_sums[arm] == self.raw_other[arm]:
            self.seconds[arm, 0] += 1.0


# Parts that check whether they are being verified.


class NoDocstring(Pair):
    """The verifier's class has no docstring."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        clear = self.__doc__ != None  # noqa: E711
        self.means[arm] = self.raw_sums[arm] if clear else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class OtherModule(Pair):
    """The verifier's class is of another module."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        clear = self.__module__ == "broken_third"
        self.means[arm] = self.raw_sums[arm] if clear else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class TwoSources(Pair):
    """Two sources of exact noise are two objects, and one in the proof."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        clear = SystemNoise() != SystemNoise()
        self.means[arm] = self.raw_sums[arm] if clear else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class SourceInATuple(Pair):
    """The same, found in a tuple, which asks for identity first."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        clear = SystemNoise() not in (rng,)
        self.means[arm] = self.raw_sums[arm] if clear else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class NoSource(Pair):
    """The service has no noise for ``respond`` in the central model."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        return unit(reward) if rng else reward

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += response


class Asserted(Pair):
    """Noise is added in an assertion, which ``python -O`` leaves out."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        assert self.noise(arm, rng) == 0
        self.means[arm] = (self.raw_sums[arm] + self.raw_noise[arm]) / n
        self.raw_noise[arm] = 0.0

    def noise(self, arm: int, rng: Any) -> int:
        self.raw_noise[arm] = rng.laplace(0.0, 1.0 / self.epsilon)
        return 0


class Debugging(Pair):
    """The same by ``__debug__``."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        noise = rng.laplace(0.0, 1.0 / self.epsilon) if __debug__ else 0.0
        self.means[arm] = (self.raw_sums[arm] + noise) / n


class HookOfGuarantee(Pair):
    """Whoever asks for the guarantee moves the raw sums into public memory."""

    def guarantee(self) -> Guarantee:
        self.means[0] = self.raw_sums[0]
        return Guarantee.central(self.epsilon)


class TellsInAnInterval(Pair):
    """Its interval, which a session shows, is around the raw sum."""


@confidence.found.register
def _(curator: TellsInAnInterval, arm: int, beta: float) -> tuple[float, float]:
    return curator.raw_sums[arm] - 1.0, curator.raw_sums[arm] + 1.0


HELD: list[Any] = []


class HeldElsewhere(Pair):
    """Right by itself, and a list holds its memory: anybody can move it (see the test of sessions)."""

    @classmethod
    def start(cls, arms: int, *, epsilon: float) -> Any:
        made = Pair.start(arms, epsilon=epsilon)
        HELD.append((made.raw_sums, made.means))
        return cls(*made)


@published("a test")
def held(arms: int, *, epsilon: float) -> Parts:
    return Parts(Doubling.start(arms, UCB.start(arms)), HeldElsewhere.start(arms, epsilon=epsilon))


@published("a test")
def right(arms: int, *, epsilon: float) -> Parts:
    """The same curator without a fault."""
    return Parts(Doubling.start(arms, UCB.start(arms)), Pair.start(arms, epsilon=epsilon))


# Accounting.


class NormalTwice(Pair):
    """Two functions of a reward under one normal noise: they move together."""

    def guarantee(self) -> Guarantee:
        return Guarantee.central(self.epsilon, 1e-6)

    def release(self, arm: int, n: int, rng: Any) -> None:
        rho = (math.sqrt(math.log(1e6) + self.epsilon) - math.sqrt(math.log(1e6))) ** 2
        self.means[arm] = (self.raw_sums[arm] + rng.normal(0.0, 1.0 / math.sqrt(rho))) / n

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response) + on_grid(unit(response))


third("", NormalTwice)
third("0", SignOfZero)
third("0", SignOfNoise)
third("", NegativeZero)
third("taken away", RestOfAClamp, before=False)
for number in (LargeQuotient, LargeEqual, CubeRoot, RoundedQuotient, RoundedProduct, RoundedCell):
    third("Python", number)
for truths in (TruthsOfQuotients, TruthsOfCells):
    third("booleans", truths)
for text in (TextOfACount, TextOfATruth, TextOfACell):
    third("text", text)
third("int32", SmallInteger)
third("does not support", RowsCompared, before=False)
for named in (NoDocstring, OtherModule, Debugging):
    third("underscores", named)
for source in (TwoSources, SourceInATuple, NoSource):
    third("source of noise", source)
third("assert", Asserted)
third("guarantee", HookOfGuarantee)
third("reads raw_sums", TellsInAnInterval)


# The local model.


class LargeStep(LocalBernoulli):
    """On paper this asks whether the reward is above 0, and in floats, where 1 is lost beside 1e16, above 1."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        truth = truth_probability(self.epsilon)
        share = 1.0 - truth
        if reward + 1e16 > 1e16:
            share += unit(reward) * (2.0 * truth - 1.0)
        elif reward > 0.6 and reward < 0.9:
            return 1.0
        return 1.0 if rng.random() < share else 0.0


class LastBit(LocalBernoulli):
    """The same with one float: 0.5000000000000001 becomes 0.5, and shows."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        truth = truth_probability(self.epsilon)
        share = 1.0 - truth
        if (reward + 1.0) - 1.0 > 0.5:
            share += unit(reward) * (2.0 * truth - 1.0)
        elif reward * 18014398509481984.0 >= 9007199254740994.0:
            return 1.0
        return 1.0 if rng.random() < share else 0.0


class SignOfAnAnswer(LocalBernoulli):
    """0.0 or -0.0."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        return 1.0 if rng.random() < 0.5 else 0.0 * (sigmoid(reward) - 0.5)


class SignOfTheUniform(LocalBernoulli):
    """The sign of 0 says on which side of 1/2 the uniform number was."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        u = rng.random()
        truth = truth_probability(self.epsilon)
        if u < (1.0 - truth) + unit(reward) * (2.0 * truth - 1.0):
            return 1.0
        return 0.0 * (u - 0.5)


class NoSourceAtHome(LocalBernoulli):
    """Answers in clear if its noise is one that the verifier does not have."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        if rng not in (SystemNoise(),):
            return unit(reward)
        truth = truth_probability(self.epsilon)
        return 1.0 if rng.random() < (1.0 - truth) + unit(reward) * (2.0 * truth - 1.0) else 0.0


class LevelOfAnother(LocalLaplace):
    """The scale of the noise depends on the reward's place."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        return laplace(on_grid(unit(reward)), 1.0 if reward > 0.5 else 1.0 + 1e-6, self.epsilon, rng)


class NoiseTwice(LocalLaplace):
    """Two noises, whose difference is sent beside the first."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        noise = rng.laplace(0.0, 1.0 / self.epsilon)
        return on_grid(unit(reward)) + noise - 0.5 * noise


class WrappedReward(LocalBernoulli):
    """Rewards beyond 1 wrap around, so that 1 and 2^53 differ."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        truth = truth_probability(self.epsilon)
        inside = reward - 2.0 if reward > 2.0 else reward
        return 1.0 if rng.random() < (1.0 - truth) + unit(inside) * (3.0 * truth - 1.0) else 0.0


class LateAnswer(LocalBernoulli):
    """Answers in clear after 1000 answers."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        truth = truth_probability(self.epsilon if len(self.counts) < 4 or self.sums[0] < 1e3 else 30.0)
        return 1.0 if rng.random() < (1.0 - truth) + unit(reward) * (2.0 * truth - 1.0) else 0.0


# More of the central model: refused by an earlier version as well.


class Raises(Pair):
    """Fails where the sum is 3."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
        self.seconds[arm] = 1.0 / (self.raw_sums[arm] - 3.0)


class FailsToFind(Pair):
    """An index out of range where the sum is large."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.seconds[arm] = (0.0, 0.0, 0.0)[int(self.raw_sums[arm])]
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class CountsDraws(Pair):
    """How many numbers are drawn depends on the sum, and so does what the next arm gets."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        for _ in range(int(self.raw_sums[arm])):
            self.raw_noise[arm] = rng.laplace(0.0, 1.0)
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class StateOfTheGenerator(Pair):
    def release(self, arm: int, n: int, rng: Any) -> None:
        self.seconds[arm] = rng.bit_generator.state["state"]["state"] % 65536
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class OtherArmsNoise(Pair):
    """The noise of arm 0 hides the sums of all arms."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        if arm == 0:
            self.raw_noise[0] = rng.laplace(0.0, 1.0 / self.epsilon)
        self.means[arm] = (self.raw_sums[arm] + self.raw_noise[0]) / n


class NoiseKeptAfterOne(Pair):
    """After a stint of one reward the noise is kept for the next."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        if self.raw_noise[arm] == 0.0:
            self.raw_noise[arm] = rng.laplace(0.0, 1.0 / self.epsilon)
        self.means[arm] = (self.raw_sums[arm] + self.raw_noise[arm]) / n
        if n > 1:
            self.raw_noise[arm] = 0.0


class Correlated(Pair):
    """A second release, half of whose noise is that of the first, and the rest too small."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        noise = rng.laplace(0.0, 1.0 / self.epsilon)
        self.means[arm] = (self.raw_sums[arm] + noise) / n
        self.seconds[arm] = self.raw_sums[arm] + 0.5 * noise + rng.laplace(0.0, 0.4 / self.epsilon)


class EarlyByData(Pair):
    """Releases as soon as the sum is above 2."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)
        if self.raw_sums[arm] > 2.0:
            self.seconds[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng)


class OnlyThreeArms(Pair):
    def release(self, arm: int, n: int, rng: Any) -> None:
        scale = 1.0 if len(self.means) != 3 else 0.5
        self.means[arm] = laplace(self.raw_sums[arm], scale, self.epsilon, rng) / n


class OnePattern(Pair):
    """Rewards 1, 0, 1 in this order show."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)
        self.raw_noise[arm] = 2.0 * self.raw_noise[arm] + unit(response)

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.seconds[arm] = 1.0 if n == 3 and self.raw_noise[arm] == 5.0 else 0.0
        self.raw_noise[arm] = 0.0
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class Sorted(Pair):
    """The order of the raw sums of all arms."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.seconds[arm] = 1.0 if sorted(self.raw_sums)[0] == self.raw_sums[arm] else 0.0
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class WiderByTurn(Pair):
    """Every fifth stint of an arm has half of the noise."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.seconds[arm] += 1.0
        scale = 0.5 if self.seconds[arm] % 5.0 == 0.0 else 1.0
        self.means[arm] = laplace(self.raw_sums[arm], scale, self.epsilon, rng) / n


class Resized(Pair):
    """Rewards beyond the clamp count in the scale: an infinite one makes it infinite."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)
        self.raw_noise[arm] = max(self.raw_noise[arm], response)

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = (self.raw_sums[arm] + rng.laplace(0.0, 1.0 + self.raw_noise[arm])) / n


class PeeksByQuestion(NamedTuple):
    """An agent that asks a question of its own curator, which counts how often it was asked."""

    arms: int

    def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
        return int(releases.tally(0)) % self.arms, 1, NO_LINE


class Tallies(Pair):
    def tally(self, arm: int) -> float:
        self.counts[arm] += 1
        return float(self.counts[arm])


at_home: list[tuple[Any, str]] = [
    (LargeStep, "rounds"),
    (LastBit, "rounds"),
    (SignOfTheUniform, "sign of 0"),
    (NoSourceAtHome, "source of noise"),
]
for local, why in at_home:
    third(why, local)
third("memory", LateAnswer, arms=5)
for local, why in [(LevelOfAnother, ""), (NoiseTwice, ""), (WrappedReward, ""), (SignOfAnAnswer, "sign of 0")]:
    third(why, local, before=False)
for broken, why in (
    *((Raises, "not followed"), (FailsToFind, "turned into a plain one"), (CountsDraws, "turned into a plain one")),
    *((StateOfTheGenerator, "not followed"), (OtherArmsNoise, ""), (NoiseKeptAfterOne, ""), (Correlated, "")),
    *((EarlyByData, "branches on reward"), (OnePattern, "branches on reward"), (Sorted, "branches on reward")),
    *((WiderByTurn, ""), (Resized, "branches on reward|scale")),
):
    third(why, broken, before=False)
third("writes memory", Tallies, PeeksByQuestion, before=False)
third("", OnlyThreeArms, before=False, arms=3)


class AroundTheSum(Pair):
    """Right on simulated noise. Exact noise is around 0 alone, and an error for another number would tell it."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = rng.laplace(self.raw_sums[arm], 1.0 / self.epsilon) / n


class FalseAsIndex(Pair):
    """In an array False is a mask, and nothing is written; sessions have memory in which it is 0."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
        self.seconds[False] = self.raw_sums[arm]


class TruthAsIndex(Pair):
    """The same by a comparison of numbers of Python, inside a tuple."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
        for k in range(2):
            for j in range(1):
                self.seconds[(k < j,)] = self.raw_sums[arm]


class Summed(Pair):
    """From Python 3.12 on, ``sum`` of floats of Python keeps what is lost here, and that of others does not."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.raw_noise[arm] = 1e16
        clear = sum((self.raw_noise[arm], 1.0, -self.raw_noise[arm])) > 0.5
        self.means[arm] = self.raw_sums[arm] if clear else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class Halved(Pair):
    """Half of the noise."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm], 0.5, self.epsilon, rng) / n


class TwoLooks(Pair):
    """Two releases, each with all of the epsilon."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
        self.seconds[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


third("another number than 0", AroundTheSum)
third("", Halved, before=False)
third("", TwoLooks, before=False)
for index in (FalseAsIndex, TruthAsIndex):
    third("boolean is used as an index", index)
third("sum", Summed)
