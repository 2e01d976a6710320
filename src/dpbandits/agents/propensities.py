"""The probability with which an agent that chooses at random plays each arm, for off-policy evaluation."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from dpbandits.agents.doubling import Doubling
from dpbandits.agents.thompson import Thompson
from dpbandits.protocols import Releases
from dpbandits.types import Floats

__all__ = ["propensities"]

NODES = 400  # of Gauss and Legendre's quadrature


@singledispatch
def propensities(agent: Any, releases: Releases, t: int) -> Floats | None:
    """(arms,): the probability of each arm if ``agent`` were asked now; None where it cannot be computed.

    It is written for each class of agents. For agents of your own: ``@propensities.register``.

    >>> from dpbandits.curators import Plain
    >>> propensities(Thompson.start(4), Plain.start(4), 1).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    return None


@propensities.register
def _(agent: Thompson, releases: Releases, t: int) -> Floats:
    """An arm's draw is the largest with the probability E[F_others(X)], integrated over the quantiles of X."""
    from scipy.special import betainc, betaincinv, roots_legendre

    first, second = np.ones((2, agent.arms))
    for arm in range(agent.arms):
        if releases.ready(arm, 0.0):
            n, mean = releases.samples(arm, 0), releases.mean(arm)
            first[arm] += n * mean
            second[arm] += max(n - n * mean, 0.0)
    nodes, weights = roots_legendre(NODES)
    shares = 0.5 * (nodes + 1.0)
    draws = betaincinv(first[:, None], second[:, None], shares)  # (arms, nodes)
    below = betainc(first[:, None, None], second[:, None, None], draws[None])  # (rival, arm, node)
    below[np.arange(agent.arms), np.arange(agent.arms)] = 1.0
    chances = below.prod(axis=0) @ weights / 2.0
    return np.round(chances / chances.sum(), 12)


@propensities.register
def _(agent: Doubling, releases: Releases, t: int) -> Floats | None:  # type: ignore[type-arg]
    return propensities(agent.inner, releases, t)
