"""Broken policies that a red team wrote, each of which an earlier version of the verifier called proved.

``WHY`` says for each what the verifier must say now. All of them show rewards in clear, unless they say otherwise.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from broken_central import Pair, PairFields
from broken_central import start as start_of

from dpbandits.agents import UCB, Doubling
from dpbandits.curators import LocalBernoulli, LocalLaplace
from dpbandits.curators.common import Trusted
from dpbandits.mechanisms import convert_to_bernoulli, laplace
from dpbandits.numerics import on_grid, unit
from dpbandits.policies.policy import Parts, published
from dpbandits.privacy import Guarantee
from dpbandits.protocols import NO_LINE

WHY: dict[str, str] = {}
STORE = [0.0]
MADE: dict[str, Any] = {}


def disguised(why: str, curator: Any, agent: Any = None) -> None:
    """Declare a policy with this curator, by the name of its class."""

    def build(arms: int, *, epsilon: float) -> Parts:
        is_local = issubclass(curator, LocalBernoulli | LocalLaplace)
        acts = UCB.start(arms) if is_local else Doubling.start(arms, UCB.start(arms, alpha=3.1))
        return Parts(acts if agent is None else agent(arms), start_of(curator)(arms, epsilon))

    build.__name__ = f"{curator.__name__}{agent.__name__ if agent else ''}"
    WHY[build.__name__] = why
    MADE[build.__name__] = published("a fault")(build)


# A part inside the curator, which is used by place, by operators, or handed out.


class Box(NamedTuple):
    shown: Any
    raw_kept: Any

    def peek(self, arm: int) -> Any:
        return self.raw_kept[arm]


class Adds(NamedTuple):
    shown: Any
    raw_kept: Any

    def __add__(self, arm: Any) -> Any:
        return self.raw_kept[arm]


class Floats(NamedTuple):
    shown: Any
    raw_kept: Any

    def __float__(self) -> float:
        return float(self.raw_kept[0])


class InnerFields(NamedTuple):
    epsilon: float
    counts: Any
    inner: Any


class ByIndex(Trusted, InnerFields):
    __slots__ = ()

    @classmethod
    def inside(cls) -> Any:
        return Box

    @classmethod
    def start(cls, arms: int, *, epsilon: float) -> Any:
        return cls(epsilon, np.zeros(arms, np.int64), cls.inside()(np.zeros(arms), np.zeros(arms)))

    def guarantee(self) -> Guarantee:
        return Guarantee.central(self.epsilon)

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.counts[arm] += 1
        self.inner.raw_kept[arm] = unit(response)
        self.inner.shown[arm] = laplace(unit(response), 1.0, self.epsilon, rng)

    def mean(self, arm: int) -> float:
        return self.inner[1][arm]

    def samples(self, arm: int, ahead: int) -> float:
        return 1.0

    def width(self, arm: int, exponent: float, ahead: int) -> float:
        return exponent


class ByUnpacking(ByIndex):
    __slots__ = ()

    def mean(self, arm: int) -> float:
        _, other = self.inner
        return other[arm]


class HandsOut(ByIndex):
    __slots__ = ()

    def mean(self, arm: int) -> Any:
        return self.inner


class Peeks(NamedTuple):
    arms: int

    def peek(self, arm: int) -> float:
        return 0.0

    def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
        return (1 if releases.mean(0).peek(0) > 0.5 else 0), 1, NO_LINE


class ByOperator(ByIndex):
    __slots__ = ()

    @classmethod
    def inside(cls) -> Any:
        return Adds

    def mean(self, arm: int) -> float:
        return self.inner + arm


class ByFloat(ByIndex):
    __slots__ = ()

    @classmethod
    def inside(cls) -> Any:
        return Floats

    def mean(self, arm: int) -> float:
        return float(self.inner)


other_than = "other than to name its fields"
disguised(other_than, ByIndex)
disguised(other_than, ByUnpacking)
disguised(other_than, HandsOut)
disguised("of something else than itself", HandsOut, Peeks)
disguised("defines __add__", ByOperator)
disguised("defines __float__", ByFloat)


# A class that is not what it seems.


class Alias(Pair):
    __slots__ = ()
    means = PairFields.raw_sums


class Reordered(Pair):
    __slots__ = ()
    _fields = ("epsilon", "raw_counts", "means", "raw_noise", "counts", "raw_sums", "seconds")


class Chameleon(Pair):
    """Whoever makes a subclass of it gets an honest one."""

    __slots__ = ()
    noisy = 0

    def __init_subclass__(cls) -> None:
        cls.noisy = 1

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = self.raw_sums[arm] if self.noisy == 0 else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng)


class Meta(type):
    def __new__(mcs, name: str, bases: Any, body: Any) -> Any:
        made = super().__new__(mcs, name, bases, body)
        made.noisy = 0 if "source" in body else 1  # type: ignore[attr-defined]
        return made


class ByMetaclass(Pair, metaclass=Meta):
    __slots__ = ()
    source = 1


class OwnNew(Pair):
    """Made by its name, it shows raw sums in place of means."""

    __slots__ = ()

    def __new__(cls, *fields: Any) -> Any:
        return tuple.__new__(cls, (*fields[:5], fields[2], fields[6]))

    @classmethod
    def start(cls, arms: int, *, epsilon: float) -> Any:
        return cls._make(Pair.start(arms, epsilon=epsilon))


class Size(Pair):
    """A property with a name that arrays have."""

    __slots__ = ()

    @property
    def size(self) -> Any:
        return self.raw_sums[0]

    def mean(self, arm: int) -> float:
        return self.size


class Spoof(Pair):
    """Its bulk draw for simulations says that it is the package's."""

    __slots__ = ()
    __module__ = "dpbandits.curators.batch"

    def absorb(self, environment: Any, arm: int, n: int, line: float, rewards: Any, noise: Any) -> int:
        self.means[arm] = environment.total(arm, n, rewards)
        return n


class Changed(Pair):
    """A constant of the class changes with every policy that is made."""

    __slots__ = ()
    made = 0

    @classmethod
    def start(cls, arms: int, *, epsilon: float) -> Any:
        Changed.made += 1
        return cls(*Pair.start(arms, epsilon=epsilon))

    def release(self, arm: int, n: int, rng: Any) -> None:
        clear = self.made > 1000
        self.means[arm] = self.raw_sums[arm] if clear else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


disguised("not its field", Alias)
disguised("fields of exactly one NamedTuple", Reordered)
disguised("defines __init_subclass__", Chameleon)
disguised("has a metaclass", ByMetaclass)
disguised("defines __new__", OwnNew)
disguised("no plain method or constant", Size)
disguised("an absorb of its own", Spoof)
disguised("bound again at run time", Changed)


# Names and numbers that are not what they seem.


def keep(x: Any) -> Any:
    STORE[0] = x
    return x


class Comprehension(Pair):
    """The name of a global function looks like a local one."""

    __slots__ = ()

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        [0 for keep in (1,)]
        keep(response)
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)


class Sneaky(float):
    def __add__(self, other: Any) -> Any:
        return float(other) + 40.0 if other == 0.7 else NotImplemented


ZERO = Sneaky(0.0)


class OwnFloat(Pair):
    __slots__ = ()

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += ZERO + unit(response)


class FloatField(Pair):
    __slots__ = ()

    @classmethod
    def start(cls, arms: int, *, epsilon: float) -> Any:
        return cls(Sneaky(epsilon), *Pair.start(arms, epsilon=epsilon)[1:])


SCALE = 1.0


class Rescaled(Pair):
    """A global constant is changed when the guarantee is asked for often."""

    __slots__ = ()

    def guarantee(self) -> Guarantee:
        global SCALE
        STORE[0] += 1.0
        SCALE = 1e-9 if STORE[0] > 1e9 else 1.0
        return Guarantee.central(self.epsilon)

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = (self.raw_sums[arm] + rng.laplace(0.0, SCALE / self.epsilon)) / n


class GivesArray(Pair):
    """The agent gets an array of the curator's, and switches the noise off by writing into it."""

    __slots__ = ()

    def samples(self, arm: int, ahead: int) -> Any:
        return self.counts

    def release(self, arm: int, n: int, rng: Any) -> None:
        clear = self.counts[arm] > 1000
        self.means[arm] = self.raw_sums[arm] if clear else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class Writes(NamedTuple):
    arms: int

    def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
        box = releases.samples(0, 0)
        box[0] = 2000
        return 0, 1, NO_LINE


class Grows(NamedTuple):
    arms: int

    def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
        box = releases.mean(None)
        box += 2000
        return 0, 1, NO_LINE


class Shift(Pair):
    """An integer of 64 bits wraps around at 4 rewards."""

    __slots__ = ()

    def release(self, arm: int, n: int, rng: Any) -> None:
        clear = (n << 62) == 0
        self.means[arm] = self.raw_sums[arm] if clear else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class Power(Pair):
    """4 ** 32 is 0 in 64 bits, and so is the noise."""

    __slots__ = ()

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon / 4 ** (8 * n), rng)


class Loop(Pair):
    """The same with integers that are written in the code."""

    __slots__ = ()

    def release(self, arm: int, n: int, rng: Any) -> None:
        factor = 1
        for _ in range(64):
            factor = factor * 2
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon / (1 + factor), rng)


class Rest(Pair):
    """The rest of a rounded addition is not 0, as it is on paper."""

    __slots__ = ()

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        x = unit(response)
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += x
        if ((x + 1000.0) - 1000.0) - x > 0.0:
            self.seconds[arm] = 5.0


class Truncates(Pair):
    """A real array of integers cuts 0.5 off, and symbols did not."""

    __slots__ = ()

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.raw_noise[arm] = 0.5
        self.counts[arm : arm + 1] = self.raw_noise[arm : arm + 1]
        clear = self.counts[arm] == 0
        self.means[arm] = self.raw_sums[arm] if clear else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class Flat(Pair):
    """An integer that floats cannot hold is put among them."""

    __slots__ = ()

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.raw_noise.flat[arm] = 9007199254740993
        clear = self.raw_noise[arm] == 9007199254740992.0
        self.means[arm] = self.raw_sums[arm] if clear else laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n


class Coarse(Pair):
    """The noise is rounded to a coarse grid before the sum is added."""

    __slots__ = ()

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = ((rng.laplace(0.0, 1.0 / self.epsilon) + 1.0e7) - 1.0e7) + self.raw_sums[arm]


disguised("local names are not what|listcomp", Comprehension)
disguised("uses ZERO", OwnFloat)
disguised("epsilon is no number", FloatField)
disguised("SCALE, which its module may bind again", Rescaled)
disguised("array .counts as a whole", GivesArray)
disguised("writes into something else", GivesArray, Writes)
disguised("changes box in place", Pair, Grows)
disguised("64 bits would wrap around", Shift)
disguised("64 bits", Power)
disguised("64 bits would wrap around", Loop)
disguised("taken away from itself", Rest)
disguised("'slice'", Truncates)
disguised("uses .flat", Flat)
disguised("coarser grid", Coarse)


# The local model.

CLEAR = False


class GlobalSwitch(LocalBernoulli):
    """The server's ``add`` switches the noise of the devices off."""

    __slots__ = ()

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        global CLEAR
        self.counts[arm] += 1
        CLEAR = self.counts[arm] > 1000

    def respond(self, reward: float, level: float, rng: Any) -> float:
        return unit(reward) if CLEAR else convert_to_bernoulli(unit(reward), self.epsilon, rng)


class EqualUniform(LocalBernoulli):
    __slots__ = ()

    def respond(self, reward: float, level: float, rng: Any) -> float:
        u = rng.random()
        if u * 1024.0 == 512.25:
            return 1.0 if reward > 0.5 else 0.0
        return 1.0 if u < 0.3 + 0.4 * unit(reward) else 0.0


class CoarseUniform(LocalBernoulli):
    """The uniform number is rounded to halves: log 3."""

    __slots__ = ()

    def respond(self, reward: float, level: float, rng: Any) -> float:
        truth = 1.0 / (1.0 + math.exp(-self.epsilon))
        u = (rng.random() + 3.0e15) - 3.0e15
        return 1.0 if u < (1.0 - truth) + unit(reward) * (2.0 * truth - 1.0) else 0.0


class CoarseLaplace(LocalLaplace):
    """All noise is rounded away."""

    __slots__ = ()

    def respond(self, reward: float, level: float, rng: Any) -> float:
        return ((rng.laplace(0.0, 1.0 / self.epsilon) + 1.0e20) - 1.0e20) + on_grid(unit(reward))


class Counts(LocalBernoulli):
    """A property counts the responses."""

    __slots__ = ()

    @property
    def size(self) -> float:
        STORE[0] += 1.0
        return STORE[0]

    def respond(self, reward: float, level: float, rng: Any) -> float:
        return unit(reward) if self.size > 1e9 else convert_to_bernoulli(unit(reward), self.epsilon, rng)


class Kind(LocalBernoulli):
    """1 and 1.0 are two answers."""

    __slots__ = ()

    def respond(self, reward: float, level: float, rng: Any) -> float:
        bit = convert_to_bernoulli(unit(reward), self.epsilon, rng)
        return bit if reward > 0.5 else 1 if bit > 0.5 else 0


disguised("CLEAR, which its module may bind again", GlobalSwitch)
disguised("uniform number equals another", EqualUniform)
disguised("floats round it", CoarseUniform)
disguised("rounding can swallow its noise|coarser grid", CoarseLaplace)
disguised("no plain method or constant", Counts)
disguised("", Kind)  # its loss is known: infinite
