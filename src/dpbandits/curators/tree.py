"""The central model, with a release at every round: one binary tree of partial sums for each arm."""

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
    nodes: Floats, releases: Floats, row: int, item: int, value: float, depth: int, epsilon: float, rng: Rng
) -> None:
    """Enter the ``item``-th value into the binary mechanism of a row; ``releases[row, 0]`` is then its private sum.

    Chan, Shi & Song 2011: the value enters the node that closes now, and later at most one node of each height below
    ``depth``. Each node has noise of scale depth/epsilon, drawn when it closes and kept. ``nodes[row, i]`` is the exact
    sum of the open node of height i; ``releases[row, i]`` the private sum of the open nodes of heights >= i.
    """
    height = 0
    while item & 1 == 0:  # the height of the node that closes is the position of the lowest set bit
        item >>= 1
        value += nodes[row, height]
        nodes[row, height] = 0.0
        height += 1
    nodes[row, height] = value
    total = releases[row, height + 1] + laplace(value, float(depth), epsilon, rng)
    for lower in range(height + 1):
        releases[row, lower] = total


class TreeFields(NamedTuple):
    """The fields of ``Tree``."""

    claim: float
    epsilon: float
    depth: int  # of a tree: how many of its nodes a reward can be in
    width_factor: float
    log_spread: float  # log(arms * horizon * log(horizon))
    log_failure: float  # log(1/gamma)
    follows_agent: bool  # then the agent's exponent is used in place of log_failure
    counts: Integers
    raw_nodes: Floats  # (arms, depth)
    releases: Floats  # (arms, depth + 1): private sums, from each height up


class Tree(Trusted, TreeFields):
    """Private running sums of at most ``horizon`` rewards of each arm: the curator of Private-UCB.

    >>> curator = Tree.start(2, epsilon=1.0, horizon=8, width_factor=1.0)
    >>> curator.depth
    4
    """

    __slots__ = ()

    @classmethod
    def start(
        cls,
        arms: int,
        *,
        epsilon: float,
        horizon: int,
        split_over: int = 1,
        width_factor: float,
        log_failure: float | None = None,
    ) -> Self:
        """A fresh curator whose trees get epsilon / ``split_over`` each.

        The width of a sum is ``width_factor`` * log(arms * horizon * log(horizon) / gamma), as in Mishra & Thakurta's
        bound. ``log_failure`` is log(1/gamma); without it, the agent's exponent is log(1/gamma).
        """
        epsilon, horizon = positive("epsilon", epsilon), at_least("horizon", horizon, 2)
        depth = top_bit(horizon) + 1
        return cls(
            epsilon,
            epsilon / split_over,
            depth,
            width_factor,
            math.log(arms * horizon * math.log(horizon)),
            0.0 if log_failure is None else log_failure,
            log_failure is None,
            np.zeros(arms, np.int64),
            np.zeros((arms, depth)),
            np.zeros((arms, depth + 1)),
        )

    def guarantee(self) -> Guarantee:
        return Guarantee.central(self.claim).under(f"at most {2**self.depth - 1} rewards of an arm")

    def add(self, arm: int, response: float, level: float, rng: Rng) -> None:
        self.counts[arm] += 1
        feed_tree(self.raw_nodes, self.releases, arm, self.counts[arm], unit(response), self.depth, self.epsilon, rng)

    def mean(self, arm: int) -> float:
        return self.releases[arm, 0] / self.counts[arm]

    def width(self, arm: int, exponent: float, ahead: int) -> float:
        log_failure = exponent if self.follows_agent else self.log_failure
        return self.width_factor * (self.log_spread + log_failure) / (self.counts[arm] + ahead)
