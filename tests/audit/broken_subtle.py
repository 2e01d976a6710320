"""Broken policies of a second red team: what they compute differs from what they say on paper.

An earlier version of the verifier called each of them proved. ``WHY`` says for each what it must say now; an empty text
means that there is a proof of what is lost, and that it is more than the claim of 1.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from broken_central import Pair
from broken_central import start as start_of

from dpbandits.agents import UCB, Doubling
from dpbandits.curators import LocalBernoulli
from dpbandits.curators.common import Local, Trusted
from dpbandits.exact import SystemNoise
from dpbandits.mechanisms import laplace
from dpbandits.numerics import sigmoid, unit
from dpbandits.policies.policy import Parts, published
from dpbandits.privacy import Guarantee

WHY: dict[str, str] = {}
MADE: dict[str, Any] = {}
OFF_GRID = "off the grid"
STORE = [0.0]


def subtle(why: str, curator: Any) -> None:
    """Declare a policy with this curator, by the name of its class."""

    def build(arms: int, *, epsilon: float) -> Parts:
        is_local = issubclass(curator, Local)
        acts: Any = UCB.start(arms) if is_local else Doubling.start(arms, UCB.start(arms, alpha=3.1))
        return Parts(acts, start_of(curator)(arms, epsilon))

    build.__name__ = curator.__name__
    WHY[build.__name__] = why
    MADE[build.__name__] = published("a fault")(build)


# Numbers that are not what they are on paper.


class Underflow(Pair):
    """The noise becomes 0 on the way, and stays 0 on the way back."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        noise = rng.laplace(0.0, 1.0 / self.epsilon)
        for _ in range(4):
            noise = noise * 1e-99
        for _ in range(4):
            noise = noise * 1e99
        self.means[arm] = (self.raw_sums[arm] + noise) / n


class TruthsAdded(Pair):
    """NumPy's True + True is True: half of the noise."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        both = (self.raw_counts[arm] > 0) + (n > 0)
        self.means[arm] = (self.raw_sums[arm] + rng.laplace(0.0, 0.5 * both / self.epsilon)) / n


class TruthsOfFloats(Pair):
    """The same with numbers that are read as NumPy's in the proof, too."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.raw_noise[arm] = 1.0
        both = (self.raw_noise[arm] > 0.0) + (self.raw_noise[arm] > 0.5)
        self.means[arm] = (self.raw_sums[arm] + rng.laplace(0.0, 0.5 * both / self.epsilon)) / n


class Rounded(Pair):
    """NumPy rounds 2.675 to 2.68, and Python to 2.67."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.raw_noise[arm] = 2.675
        clear = round(self.raw_noise[arm], 2) == 2.68
        self.means[arm] = self.raw_sums[arm] if clear else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class TableFields(NamedTuple):
    epsilon: float
    raw_counts: Any
    raw_sums: Any
    raw_table: Any
    counts: Any
    means: Any


class RowWraps(Trusted, TableFields):
    """A whole row of integers wraps around to 0."""

    by_stint = True

    @classmethod
    def start(cls, arms: int, *, epsilon: float) -> Any:
        floats, integers = np.zeros((2, arms)), np.zeros((2, arms), np.int64)
        return cls(epsilon, integers[0], floats[0], np.ones((arms, 2), np.int64), integers[1], floats[1])

    def guarantee(self) -> Guarantee:
        return Guarantee.central(self.epsilon)

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)

    def close(self, arm: int, rng: Any) -> None:
        n, row = self.raw_counts[arm], self.raw_table[arm]
        row *= 1099511627776
        row *= 1099511627776
        clear = self.raw_table[arm, 0] == 0
        self.raw_table[arm, 0] = 1
        self.raw_table[arm, 1] = 1
        self.means[arm] = self.raw_sums[arm] if clear else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
        self.counts[arm] = n
        self.raw_counts[arm] = 0
        self.raw_sums[arm] = 0.0

    def mean(self, arm: int) -> float:
        return self.means[arm]


class Edge(Pair):
    """The sum of ten floats of 0.7 is above what it is on paper."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)
        self.raw_noise[arm] += WEIGHT * unit(response)

    def release(self, arm: int, n: int, rng: Any) -> None:
        if n == TIMES and self.raw_noise[arm] >= SUM:
            self.seconds[arm] = 1.0
        self.raw_noise[arm] = 0.0
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


WEIGHT, TIMES, SUM = 0.7, 10, math.nextafter(7.0, 8.0)  # the sum that floats give


class InATuple(Pair):
    """A tuple finds the same object, and NaN is not equal to itself."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)
        kept = self.raw_sums[arm]
        self.raw_noise[arm] = response
        self.raw_sums[arm] = response
        same = self.raw_sums[arm] in (self.raw_noise[arm],)
        self.raw_sums[arm] = kept
        self.raw_noise[arm] = 0.0
        if not same:
            self.seconds[arm] = 1.0


class TuplesCompared(InATuple):
    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_noise[arm] = response
        self.seconds[arm] = 0.0 if (self.raw_noise[arm], 1) == (self.raw_noise[arm], 1) else 1.0
        self.raw_sums[arm] += unit(response)


class Grows(Pair):
    """A number that is released becomes infinite in the fourth round of a stint, and then its product with 0 is NaN."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)
        if self.raw_counts[arm] == 1:
            self.seconds[arm] = rng.laplace(0.0, 1.0)
        self.seconds[arm] = self.seconds[arm] * 1e90

    def release(self, arm: int, n: int, rng: Any) -> None:
        clear = self.seconds[arm] * 0.0 != 0.0
        self.means[arm] = self.raw_sums[arm] if clear else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class GrowsAndCancels(Grows):
    def release(self, arm: int, n: int, rng: Any) -> None:
        x = self.seconds[arm]
        clear = x - x != 0.0
        self.means[arm] = self.raw_sums[arm] if clear else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class AcceptsLater(Pair):
    """From the third reward of an arm on, low rewards are turned down."""

    def accepts(self, response: float) -> bool:
        return self.counts[0] < 3 or response > 0.5


subtle("very small or very large", Underflow)
subtle("booleans are used as numbers", TruthsAdded)
subtle("booleans are used as numbers", TruthsOfFloats)
subtle("some digits", Rounded)
subtle("does not support ufuncs", RowWraps)
subtle("branches on reward", Edge)
subtle("not clamped meets itself", InATuple)
subtle("not clamped meets itself", TuplesCompared)
subtle("multiplied by 0", Grows)
subtle("taken away from itself", GrowsAndCancels)
subtle("branches on reward", AcceptsLater)


# Right on real numbers. Exact noise fails on some rewards and not on others, which shows.


class NoiseOnAMean(Pair):
    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm] / n, 1.0 / n, self.epsilon, rng)


class NoiseOnAShare(Pair):
    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(0.3 * self.raw_sums[arm], 0.3, self.epsilon, SystemNoise())  # type: ignore[arg-type]


class NoiseOnASigmoid(Pair):
    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += sigmoid(response)


class NoiseTripled(Pair):
    """Multiples of three steps of the grid do not hide one step."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = (self.raw_sums[arm] + 3.0 * rng.laplace(0.0, 1.0 / self.epsilon)) / n


class NoiseOnAnOffset(Pair):
    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm] + 0.3, 1.0, self.epsilon, rng) / n


for _curator in (NoiseOnAMean, NoiseOnAShare, NoiseOnASigmoid, NoiseTripled, NoiseOnAnOffset):
    subtle(OFF_GRID, _curator)


# Names and objects that are not what they seem.


class _(Pair):  # noqa: N801
    """Python changes no names in a class that is called so."""

    def __look(self, arm: int) -> float:
        return self.means[arm]


class OtherMethod(_):
    """``self.__look`` is another method in this class than in the one that it is read from."""

    def __look(self, arm: int) -> float:
        return self.raw_noise[arm]

    def mean(self, arm: int) -> float:
        return self.__look(arm)

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.raw_noise[arm] = self.raw_sums[arm]
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


def __same(x: Any) -> Any:
    return x


def _OtherFunction__same(x: Any) -> Any:  # noqa: N802
    STORE[0] = x
    return x


class OtherFunction(Pair):
    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(__same(response))


class LikeAll(type):
    """Classes that are equal to all others."""

    def __eq__(cls, other: object) -> bool:
        return True

    def __hash__(cls) -> int:
        return hash(float)


class Keeps(metaclass=LikeAll):
    def __new__(cls, x: Any) -> Any:
        STORE[0] = x
        return x


class KeepsToo(metaclass=LikeAll):
    __array_ufunc__ = None

    def __add__(self, x: Any) -> Any:
        STORE[0] = x
        return x


NOTHING: Any = KeepsToo()


class LikeABuiltin(Pair):
    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(Keeps(response))


class LikeAConstant(Pair):
    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(NOTHING + response)


def look(curator: Any, arm: int) -> float:
    return curator.raw_noise[arm]


class HandsItselfOn(Pair):
    """A function that is given the curator looks at raw memory."""

    def mean(self, arm: int) -> float:
        return look(self, arm)

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.raw_noise[arm] = self.raw_sums[arm]
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


subtle("reads raw_noise", HandsItselfOn)
subtle("two underscores", OtherMethod)
subtle("two underscores", OtherFunction)
subtle("uses Keeps", LikeABuiltin)
subtle("uses NOTHING", LikeAConstant)


# The local model.


class WithTruthsFields(NamedTuple):
    epsilon: float
    sigmoid: bool
    p: float
    counts: Any
    sums: Any


class WithTruths(Local, WithTruthsFields):
    """(u < p) + (u < p) is True of NumPy, and 2 of Python."""

    @classmethod
    def start(cls, arms: int, *, epsilon: float) -> Any:
        return cls(epsilon, False, np.float64(0.1), np.zeros(arms, np.int64), np.zeros(arms))

    def guarantee(self) -> Guarantee:
        return Guarantee.local(self.epsilon)

    def accepts(self, response: float) -> bool:
        return True

    def respond(self, reward: float, level: float, rng: Any) -> float:
        u = rng.random()
        if (u < self.p) + (u < self.p) == 1:
            return 7.0 if reward > 0.5 else 8.0
        return 1.0 if rng.random() < 0.3 + 0.4 * unit(reward) else 0.0


class UniformUnderflow(LocalBernoulli):
    """The uniform number becomes 0."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        u = rng.random()
        for _ in range(4):
            u = u * 1e-99
        for _ in range(4):
            u = u * 1e99
        return 1.0 if u < 0.4 * unit(reward) else 0.0


subtle("booleans are used as numbers", WithTruths)
subtle("very small or very large", UniformUnderflow)
