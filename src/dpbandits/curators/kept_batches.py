"""The central model, released once for each stint, and every release kept: one noisy sum for each batch of an arm."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from dpbandits.checks import at_least, positive
from dpbandits.curators.batch import ByStint
from dpbandits.curators.likelihood import MostLikely
from dpbandits.mechanisms import laplace
from dpbandits.numerics import d_eps, d_eps_slope, d_eps_upper, unit
from dpbandits.privacy.guarantee import Guarantee
from dpbandits.types import Floats, Integers, Rng


class BatchesFields(NamedTuple):
    """The fields of both curators."""

    epsilon: float
    raw_counts: Integers  # (arms,): of the open stint
    raw_sums: Floats  # (arms,)
    counts: Integers  # (arms,): rewards in all closed stints
    batches: Integers  # (arms,): closed stints; each has added one noise
    sizes: Integers  # (arms, most): rewards in each
    sums: Floats  # (arms, most): the noisy sum of each


class Batches(ByStint, BatchesFields):
    """The common part of both curators: the noisy sum of each closed stint is released once, and kept.

    Every reward is in one stint, and changes its sum by at most 1. So noise of scale 1/epsilon makes all releases
    together epsilon-private. If an arm has more than ``most`` stints, as after many pauses, the sums of the further
    ones are added to the last entry.
    """

    __slots__ = ()

    @classmethod
    def start(cls, arms: int, *, epsilon: float, most: int = 64) -> Self:
        """A fresh curator with room for ``most`` batches of each arm."""
        counts, most = np.zeros((3, arms), np.int64), at_least("most", most, 1)
        sizes, sums = np.zeros((arms, most), np.int64), np.zeros((arms, most))
        return cls(positive("epsilon", epsilon), counts[0], np.zeros(arms), counts[1], counts[2], sizes, sums)

    def guarantee(self) -> Guarantee:
        return Guarantee.central(self.epsilon)

    def close(self, arm: int, rng: Rng) -> None:
        n, most = self.raw_counts[arm], self.sizes.shape[1]
        noisy = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng)
        entry = min(self.batches[arm], most - 1)
        self.sums[arm, entry] += noisy
        self.sizes[arm, entry] += n
        self.batches[arm] += 1
        self.counts[arm] += n
        self.raw_counts[arm] = 0
        self.raw_sums[arm] = 0.0

    def entries(self, arm: int) -> int:
        """How many entries are in use."""
        return min(self.batches[arm], self.sizes.shape[1])

    def average(self, arm: int) -> float:
        """The sum of all noisy sums, divided by the rewards in them."""
        total = 0.0
        for batch in range(self.entries(arm)):
            total += self.sums[arm, batch]
        return total / self.counts[arm]


class RunningSum(Batches):
    """The curator of DP-KLUCB and DP-IMED: its mean is that of the sum of all noisy sums.

    After m batches it carries m noises, while the divergence d_eps accounts for one.

    >>> curator, rng = RunningSum.start(2, epsilon=1e6), np.random.default_rng(0)
    >>> for reward in (1.0, 0.0):
    ...     curator.add(0, reward, 0.0, rng), curator.close(0, rng)
    (None, None)
    (None, None)
    >>> round(float(curator.mean(0)), 3), curator.samples(0, 0)
    (0.5, 2.0)
    """

    __slots__ = ()

    def mean(self, arm: int) -> float:
        return unit(self.average(arm))

    def evidence(self, arm: int, mean: float, top: float) -> float:
        return self.counts[arm] * d_eps(mean, top, self.epsilon)

    def upper(self, arm: int, budget: float) -> float:
        return d_eps_upper(self.mean(arm), budget / self.counts[arm], self.epsilon)


class BatchLikelihood(MostLikely, Batches):
    """The curator of DP-GLR-IMED: the joint likelihood of all noisy sums.

    Up to a saddle-point approximation, minus the log-likelihood of a noisy sum S of n rewards is n d_eps(S/n, mean),
    with S/n not clipped. Their sum over the batches is convex in the mean. The slope of each is bounded, so a batch
    with a large noise moves the estimate little, and small noisy batches count little beside large ones. An entry that
    holds several batches is treated like one with a single noise.

    >>> curator, rng = BatchLikelihood.start(2, epsilon=1e6), np.random.default_rng(0)
    >>> for reward in (1.0, 0.0):
    ...     curator.add(0, reward, 0.0, rng), curator.close(0, rng)
    (None, None)
    (None, None)
    >>> round(float(curator.mean(0)), 3), curator.samples(0, 0)
    (0.5, 2.0)
    """

    __slots__ = ()

    def guess(self, arm: int) -> float:
        return min(max(self.average(arm), 0.01), 0.99)

    def score(self, arm: int, mean: float) -> tuple[float, float]:
        """The first and second derivative of the misfit."""
        slope, bend = 0.0, 0.0
        for batch in range(self.entries(arm)):
            n = self.sizes[arm, batch]
            first, second = d_eps_slope(self.sums[arm, batch] / n, mean, self.epsilon)
            slope += n * first
            bend += n * second
        return slope, bend

    def evidence(self, arm: int, mean: float, top: float) -> float:
        at_top, at_mean = 0.0, 0.0
        for batch in range(self.entries(arm)):
            n = self.sizes[arm, batch]
            noisy = self.sums[arm, batch] / n
            at_top += n * d_eps(noisy, top, self.epsilon)
            at_mean += n * d_eps(noisy, mean, self.epsilon)
        return at_top - at_mean
