"""The central model, with a release at every round and no horizon: Chan, Shi & Song's hybrid mechanism for each arm."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from dpbandits.checks import positive
from dpbandits.curators.common import Trusted
from dpbandits.mechanisms import laplace
from dpbandits.numerics import top_bit, unit
from dpbandits.privacy.guarantee import Guarantee
from dpbandits.types import Floats, Integers, Rng

__all__ = ["Hybrid", "HybridOfAll", "feed_hybrid"]

HEIGHTS = 53  # of nodes: enough for as many items as a float can count


def feed_hybrid(
    nodes: Floats, releases: Floats, row: int, item: int, value: float, log: float, tree: float, rng: Rng
) -> None:
    """Enter the ``item``-th value into the hybrid mechanism of a row; ``releases[row, 0]`` is then its private sum.

    The items after 2^k and before 2^(k+1) are in a binary tree of depth k at ``tree``, as in ``feed_tree``. The item
    2^(k+1) closes that tree: the sum of the whole block is released once more, by the logarithmic mechanism, with noise
    of scale 1/``log`` that stays in all later releases. A value is in one block and in one tree, so the whole is
    (log + tree)-private.
    """
    k = top_bit(item - 1) if item > 1 else 0
    offset = item - (1 << k) if item > 1 else 1
    closing = offset == 1 << k
    height = 0
    while offset & 1 == 0:
        offset >>= 1
        value += nodes[row, height]
        nodes[row, height] = 0.0
        height += 1
    total = releases[row, height + 1] + laplace(value, 1.0 if closing else float(k), log if closing else tree, rng)
    if closing:
        height += 2  # up to where the next block will close
    else:
        nodes[row, height] = value
    for lower in range(height + 1):
        releases[row, lower] = total


class HybridFields(NamedTuple):
    """The fields of both curators."""

    epsilon_log: float
    epsilon_tree: float
    counts: Integers
    raw_nodes: Floats  # (arms, HEIGHTS): exact sums of the open nodes
    releases: Floats  # (arms, HEIGHTS + 1): private sums of what is closed and of the open nodes from each height up


class Hybrid(Trusted, HybridFields):
    """One hybrid mechanism for each arm, fed when the arm is played: the curator of DP-UCB-BOUND.

    >>> curator, rng = Hybrid.start(2, epsilon_log=1e6, epsilon_tree=1e6), np.random.default_rng(0)
    >>> for reward in (1.0, 0.0, 1.0):
    ...     curator.add(0, reward, 0.0, rng)
    >>> round(float(curator.mean(0)), 3)
    0.667
    """

    __slots__ = ()

    @classmethod
    def start(cls, arms: int, *, epsilon_log: float, epsilon_tree: float) -> Self:
        """A fresh curator whose promise is epsilon_log + epsilon_tree."""
        return cls(
            positive("epsilon", epsilon_log),
            positive("epsilon", epsilon_tree),
            np.zeros(arms, np.int64),
            np.zeros((arms, HEIGHTS)),
            np.zeros((arms, HEIGHTS + 1)),
        )

    def guarantee(self) -> Guarantee:
        return Guarantee.central(self.epsilon_log + self.epsilon_tree)

    def add(self, arm: int, response: float, level: float, rng: Rng) -> None:
        self.counts[arm] += 1
        self.feed(arm, self.counts[arm], unit(response), rng)

    def feed(self, arm: int, item: int, value: float, rng: Rng) -> None:
        """Enter the ``item``-th value into the mechanism of an arm."""
        feed_hybrid(self.raw_nodes, self.releases, arm, item, value, self.epsilon_log, self.epsilon_tree, rng)

    def mean(self, arm: int) -> float:
        return self.releases[arm, 0] / self.counts[arm]

    def width(self, arm: int, exponent: float, ahead: int) -> float:
        """TD16, Lemma B.2: the two parts' deviations, the tree's only where it holds anything."""
        n = self.counts[arm]
        deviation = math.sqrt(8.0) * (math.log(4.0) + exponent)
        bound = deviation / self.epsilon_log
        k = top_bit(n)
        if n > 1 << k and n + ahead < 2 << k:
            bound += k * deviation / self.epsilon_tree
        return bound / (n + ahead)


class HybridOfAll(Hybrid):
    """One hybrid mechanism for each arm, all fed at every round, with 0 where the arm was not played: DP-UCB.

    >>> curator, rng = HybridOfAll.start(2, epsilon_log=1e6, epsilon_tree=1e6), np.random.default_rng(0)
    >>> curator.add(0, 1.0, 0.0, rng), curator.add(1, 1.0, 0.0, rng), curator.add(0, 0.0, 0.0, rng)
    (None, None, None)
    >>> round(float(curator.mean(0)), 3), round(float(curator.mean(1)), 3)
    (0.5, 1.0)
    """

    __slots__ = ()

    others_stand = False

    def add(self, arm: int, response: float, level: float, rng: Rng) -> None:
        self.counts[arm] += 1
        rounds = 0
        for other in range(len(self.counts)):
            rounds += self.counts[other]
        for other in range(len(self.counts)):
            self.feed(other, rounds, unit(response) if other == arm else 0.0, rng)

    def width(self, arm: int, exponent: float, ahead: int) -> float:
        return 0.0
