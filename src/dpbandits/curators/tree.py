"""The central model, released at every round: one binary tree of partial sums for each arm."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from dpbandits.checks import at_least, positive
from dpbandits.curators.common import Trusted
from dpbandits.mechanisms import laplace
from dpbandits.numerics import top_bit, unit
from dpbandits.privacy.guarantee import Guarantee
from dpbandits.types import Floats, Integers, Rng

__all__ = ["Tree", "feed_tree"]


def feed_tree(
    nodes: Floats, releases: Floats, row: int, item: int, value: float, levels: int, epsilon: float, rng: Rng
) -> None:
    """Enter the ``item``-th value into the binary mechanism of a row; ``releases[row, 0]`` is then its private sum.

    Chan, Shi & Song 2011: the value enters the node that closes now, and later at most one node on each of the
    ``levels``, each with noise of scale levels/epsilon, drawn when it closes and kept. ``nodes[row, i]`` is the exact
    sum of the open node of level i; ``releases[row, i]`` the private sum of the open nodes of levels >= i.
    """
    level = 0
    while item & 1 == 0:  # the node that closes is on the level of the lowest set bit
        item >>= 1
        value += nodes[row, level]
        nodes[row, level] = 0.0
        level += 1
    nodes[row, level] = value
    total = releases[row, level + 1] + laplace(value, float(levels), epsilon, rng)
    for lower in range(level + 1):
        releases[row, lower] = total


class TreeFields(NamedTuple):
    """The fields of ``Tree``."""

    claim: float
    epsilon: float
    levels: int
    scale: float
    spread: float
    failure: float
    counts: Integers
    raw_nodes: Floats  # (arms, levels)
    releases: Floats  # (arms, levels + 1): private sums, from each level up


class Tree(Trusted, TreeFields):
    """Private running sums of at most ``horizon`` rewards of each arm: the curator of Private-UCB.

    ``failure`` is log(1/gamma) of Mishra & Thakurta's bound, negative where gamma follows the agent's confidence.

    >>> curator = Tree.start(2, epsilon=1.0, horizon=8, scale=1.0)
    >>> curator.levels
    4
    """

    __slots__ = ()

    @classmethod
    def start(
        cls, arms: int, *, epsilon: float, horizon: int, split_over: int = 1, scale: float, failure: float = -1.0
    ) -> Self:
        """A fresh curator whose trees get epsilon / ``split_over`` each, and whose width is ``scale`` times the log of
        (arms * horizon * log(horizon) / gamma)."""
        epsilon, horizon = positive("epsilon", epsilon), at_least("horizon", horizon, 2)
        levels = top_bit(horizon) + 1
        return cls(
            epsilon,
            epsilon / split_over,
            levels,
            scale,
            math.log(arms * horizon * math.log(horizon)),
            failure,
            np.zeros(arms, np.int64),
            np.zeros((arms, levels)),
            np.zeros((arms, levels + 1)),
        )

    def guarantee(self) -> Guarantee:
        return Guarantee.central(self.claim).under(f"at most {2**self.levels - 1} rewards of an arm")

    def add(self, arm: int, response: float, level: float, rng: Rng) -> None:
        self.counts[arm] += 1
        feed_tree(self.raw_nodes, self.releases, arm, self.counts[arm], unit(response), self.levels, self.epsilon, rng)

    def mean(self, arm: int) -> float:
        return self.releases[arm, 0] / self.counts[arm]

    def width(self, arm: int, confidence: float, ahead: int) -> float:
        failure = confidence if self.failure < 0.0 else self.failure
        return self.scale * (self.spread + failure) / (self.counts[arm] + ahead)
