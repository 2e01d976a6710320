"""A second batch of broken policies, against the finished verifier, each with its true epsilon at a claim of 1."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import broken_central
import numpy as np
from broken_central import LEAK, Pair, RawLowest, start

from dpbandits.agents import UCB
from dpbandits.curators import LocalBernoulli
from dpbandits.mechanisms import laplace, truth_probability
from dpbandits.numerics import unit
from dpbandits.protocols import NO_LINE

TRUTH: dict[str, float] = {}
broken = functools.partial(broken_central.broken, truths=TRUTH)


class MathStore(Pair):
    """Keeps a reward on the module ``math``."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        math.kept = response  # type: ignore[attr-defined]
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)

    def width(self, arm: int, exponent: float, ahead: int) -> float:
        return 50.0 * math.kept  # type: ignore[attr-defined]


class FakeField(Pair):
    """What looks like a public field is a property that reads raw memory."""

    means = property(lambda self: self[2])


class Twin(Pair):
    """Whoever makes it again from its fields gets an honest twin."""

    @classmethod
    def _make(cls, iterable: Any) -> Any:  # type: ignore[override]
        return Pair(*iterable)

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = self.raw_sums[arm] / n


class Strided(Pair):
    """The raw sums of all arms are one cell: a reward is in the releases of both."""

    @classmethod
    def start(cls, arms: int, *, epsilon: float) -> Any:
        one = np.lib.stride_tricks.as_strided(np.zeros(1), (arms,), (0,))
        return cls(*Pair.start(arms, epsilon=epsilon)._replace(raw_sums=one))

    def close(self, arm: int, rng: Any) -> None:
        n = self.raw_counts[arm]
        self.release(arm, n, rng)
        self.counts[arm] = n
        self.raw_counts[arm] = 0


class Rejects(Pair):
    """One reward is turned down."""

    def accepts(self, response: float) -> bool:
        return response != 0.123


class Overflows(Pair):
    """A positive sum becomes infinite on the way, and a number again on the way back on paper."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        value = float(self.raw_sums[arm])
        for _ in range(4):
            value = value * 1e99
        for _ in range(4):
            value = value / 1e99
        self.means[arm] = laplace(value, 1.0, self.epsilon, rng) / n


class SecondLook(Pair):
    """Large releases are drawn once more: 2 epsilon, where the first one is large."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
        if self.means[arm] > 3.0:
            self.seconds[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng)


class Rare(Pair):
    """Shows the sum where the noise is one that no test draws."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng) / n
        if self.means[arm] > 1e6:
            self.seconds[arm] = self.raw_sums[arm]


class EarlierStint(Pair):
    """Every sum is in two releases."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = laplace(self.raw_sums[arm] + self.raw_noise[arm], 1.0, self.epsilon, rng) / n
        self.raw_noise[arm] = self.raw_sums[arm]


class Decays(Pair):
    """Half of the sum stays: 1 + 1/2 + 1/4 .."""

    def close(self, arm: int, rng: Any) -> None:
        n = self.raw_counts[arm]
        self.release(arm, n, rng)
        self.counts[arm] = n
        self.raw_counts[arm] = 0
        self.raw_sums[arm] *= 0.5


class OneSided(Pair):
    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = (self.raw_sums[arm] + abs(rng.laplace(0.0, 1.0 / self.epsilon))) / n


class ZeroTimes(Pair):
    """0 times an infinite reward is NaN."""

    def add(self, arm: int, response: float, level: float, rng: Any) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response) + 0.0 * response


class AfterSuper(Pair):
    def close(self, arm: int, rng: Any) -> None:
        kept = self.raw_sums[arm]
        super().close(arm, rng)
        self.seconds[arm] = kept


class LastNoise(Pair):
    """Each noise is used for two sums, of which the second has no other."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.seconds[arm] = self.raw_sums[arm] + self.raw_noise[arm]
        self.raw_noise[arm] = rng.laplace(0.0, 1.0 / self.epsilon)
        self.means[arm] = (self.raw_sums[arm] + self.raw_noise[arm]) / n


def look(curator: Any, arms: int, t: int) -> int:
    if t <= arms:
        return t - 1
    return 1 if curator.raw_sums[0] > 0.5 else 0


class ByHelper(NamedTuple):
    arms: int

    def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
        return look(releases, self.arms, t), 1, NO_LINE


class ByKeyword(NamedTuple):
    arms: int

    def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
        return look(t=t, arms=self.arms, curator=releases), 1, NO_LINE


class Unpacks(NamedTuple):
    arms: int

    def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
        _, _, sums, *_ = releases
        return (t - 1 if t <= self.arms else 1 if sums[0] > 0.5 else 0), 1, NO_LINE


class AfterMany(LocalBernoulli):
    """Without noise once there are many responses."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        if self.counts[0] > 50:
            return unit(reward)
        truth = truth_probability(self.epsilon)
        return 1.0 if rng.random() < (1.0 - truth) + unit(reward) * (2.0 * truth - 1.0) else 0.0


math_store = broken(LEAK, start(MathStore))("math_store")
fake_field = broken(LEAK, start(FakeField))("fake_field")
twin = broken(LEAK, start(Twin))("twin")
strided = broken(LEAK, start(Strided))("strided")
rejects = broken(LEAK, start(Rejects))("rejects")
overflows = broken(LEAK, start(Overflows))("overflows")
second_look = broken(2.0, start(SecondLook))("second_look")
rare = broken(LEAK, start(Rare))("rare")
earlier_stint = broken(2.0, start(EarlierStint))("earlier_stint")
decays = broken(2.0, start(Decays))("decays")
one_sided = broken(LEAK, start(OneSided))("one_sided")
zero_times = broken(LEAK, start(ZeroTimes))("zero_times")
after_super = broken(LEAK, start(AfterSuper))("after_super")
last_noise = broken(LEAK, start(LastNoise))("last_noise")
by_helper = broken(LEAK, start(RawLowest), ByHelper)("by_helper")
by_keyword = broken(LEAK, start(RawLowest), ByKeyword)("by_keyword")
unpacks = broken(LEAK, start(RawLowest), Unpacks)("unpacks")
after_many = broken(LEAK, start(AfterMany), lambda arms: UCB.start(arms))("after_many")
