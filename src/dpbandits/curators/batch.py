"""The central model: one release for each stint, after which its rewards are forgotten."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from dpbandits.checks import positive
from dpbandits.curators.common import Trusted
from dpbandits.errors import InputError
from dpbandits.mechanisms import gaussian, laplace, zcdp_at
from dpbandits.numerics import unit
from dpbandits.privacy.guarantee import Guarantee
from dpbandits.protocols import Environment
from dpbandits.types import Floats, Integers, Rng


class ByStint(Trusted):
    """Rewards are kept until their stint closes, and released then."""

    __slots__ = ()

    by_stint = True
    counts_ahead = False  # nothing changes while a stint is open

    raw_counts: Integers
    raw_sums: Floats
    counts: Integers

    def add(self, arm: int, response: float, level: float, rng: Rng) -> None:
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += unit(response)

    def absorb(self, environment: Environment, arm: int, n: int, line: float, rewards: Rng, noise: Rng) -> int:
        self.raw_counts[arm] += n
        self.raw_sums[arm] += environment.total(arm, n, rewards)
        return n

    def samples(self, arm: int, ahead: int) -> float:
        return float(self.counts[arm])


class LastStint(ByStint):
    """The common part of both curators: the mean of the last closed stint is released, and its rewards forgotten."""

    __slots__ = ()

    means: Floats

    def private_sum(self, arm: int, rng: Rng) -> float:
        """The sum of the arm's open stint, with fresh noise."""
        raise NotImplementedError

    def close(self, arm: int, rng: Rng) -> None:
        n = self.raw_counts[arm]
        self.means[arm] = self.private_sum(arm, rng) / n
        self.counts[arm] = n
        self.raw_counts[arm] = 0
        self.raw_sums[arm] = 0.0

    def mean(self, arm: int) -> float:
        return self.means[arm]

    def lowest(self, arm: int, ahead: int) -> float:
        return self.means[arm] if ahead == 0 else -math.inf


class BatchFields(NamedTuple):
    """The fields of ``Batch``."""

    epsilon: float
    raw_counts: Integers  # of the open stint
    raw_sums: Floats
    counts: Integers  # of the last closed stint
    means: Floats


class Batch(LastStint, BatchFields):
    """The mean of each closed stint of an arm, with Laplace noise; every reward is in exactly one stint.

    The sum of a stint moves by at most 1 with one of its rewards, so noise of scale 1/epsilon makes it epsilon-private,
    and the mean is that private sum divided by n. The stints are disjoint, so the whole is epsilon-private (Azize &
    Basu 2022, Lemma 1 with n = j-i+1 samples, Theorem 6). The noise is drawn when the stint closes, and kept.

    >>> curator, rng = Batch.start(2, epsilon=1e6), np.random.default_rng(0)
    >>> curator.add(0, 1.0, 0.0, rng), curator.add(0, 0.0, 0.0, rng), curator.close(0, rng)
    (None, None, None)
    >>> round(float(curator.mean(0)), 3), curator.samples(0, 0)
    (0.5, 2.0)
    """

    __slots__ = ()

    @classmethod
    def start(cls, arms: int, *, epsilon: float) -> Self:
        """A fresh curator."""
        counts, sums = np.zeros((2, arms), np.int64), np.zeros((2, arms))
        return cls(positive("epsilon", epsilon), counts[0], sums[0], counts[1], sums[1])

    def guarantee(self) -> Guarantee:
        return Guarantee.central(self.epsilon)

    def private_sum(self, arm: int, rng: Rng) -> float:
        return laplace(self.raw_sums[arm], 1.0, self.epsilon, rng)

    def width(self, arm: int, exponent: float, ahead: int) -> float:
        return exponent / (self.epsilon * self.counts[arm])


class GaussianBatchFields(NamedTuple):
    """The fields of ``GaussianBatch``."""

    epsilon: float
    delta: float
    rho: float
    raw_counts: Integers  # of the open stint
    raw_sums: Floats
    counts: Integers  # of the last closed stint
    means: Floats


class GaussianBatch(LastStint, GaussianBatchFields):
    """``Batch`` with Gaussian noise of variance 1/(2 rho) on each sum, which is rho-zCDP (Azize & Basu 2024).

    >>> curator, rng = GaussianBatch.start(2, epsilon=1e6, delta=1e-6), np.random.default_rng(0)
    >>> curator.add(0, 1.0, 0.0, rng), curator.close(0, rng)
    (None, None)
    >>> round(float(curator.mean(0)), 2)
    1.0
    """

    __slots__ = ()

    @classmethod
    def start(cls, arms: int, *, epsilon: float, delta: float, rho: float | None = None) -> Self:
        """A fresh curator; ``rho`` is the largest at which rho-zCDP implies (epsilon, delta), or a smaller one."""
        most = zcdp_at(epsilon, delta)
        rho = most if rho is None else positive("rho", rho)
        if rho > most * (1.0 + 1e-12):
            raise InputError("rho", f"must be at most {most:.6g}, to be ({epsilon:g}, {delta:.3g})-private, got {rho}")
        counts, sums = np.zeros((2, arms), np.int64), np.zeros((2, arms))
        return cls(epsilon, delta, rho, counts[0], sums[0], counts[1], sums[1])

    def guarantee(self) -> Guarantee:
        return Guarantee.central(self.epsilon, self.delta).under(
            f"the promise is {self.rho:.6g}-zCDP, which implies this"
        )

    def private_sum(self, arm: int, rng: Rng) -> float:
        return gaussian(self.raw_sums[arm], 1.0, self.rho, rng)

    def width(self, arm: int, exponent: float, ahead: int) -> float:
        return math.sqrt(exponent / self.rho) / self.counts[arm]
