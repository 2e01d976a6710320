"""The cost of a population's privacy levels, and the best threshold below which responses are discarded."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.optimize import minimize_scalar

from dpbandits.checks import positive
from dpbandits.environments import AnyLevels, Levels
from dpbandits.errors import InputError
from dpbandits.mechanisms import attenuation, debias_variance
from dpbandits.policies.policy import Mechanism

__all__ = ["best_epsilon_min", "level_cost", "level_curve", "response_cost"]


def response_cost(epsilon: float, mechanism: Mechanism) -> float:
    """The factor of 8 log T / gap when every user's level is epsilon: (1 + 4/epsilon)^2, or coth(epsilon/2)^2.

    >>> response_cost(2.0, "laplace"), round(response_cost(2.0, "bernoulli"), 4)
    (9.0, 1.7241)
    """
    factor = 1.0 + 4.0 / epsilon
    return factor * factor if mechanism == "laplace" else debias_variance(attenuation(epsilon))


def level_cost(levels: AnyLevels, epsilon_min: float, mechanism: Mechanism) -> float:
    """V_L or V_B of the HeLDP paper, Section 4: the expected cost of a response divided by the share of users accepted.

    The regret grows almost linearly with it. The expectation is over the accepted users only: the paper means this, but
    does not write it.

    >>> five = Levels.of([0, 0.2, 1, 2, 100])
    >>> [round(level_cost(five, e, "laplace"), 1) for e in (0.2, 1, 2, 100)]
    [148.8, 19.5, 12.6, 5.4]
    """
    positive("epsilon_min", epsilon_min)
    share = levels.accepted(epsilon_min)
    if share <= 0.0:
        raise InputError("epsilon_min", f"must be at most the highest level {levels.largest:g}, got {epsilon_min}")
    return levels.expected(lambda epsilon: response_cost(epsilon, mechanism), epsilon_min) / share


def level_curve(levels: AnyLevels, mechanism: Mechanism) -> tuple[list[float], list[float]]:
    """The candidate thresholds, and the cost of each.

    >>> level_curve(Levels.of([1, 2]), "laplace")
    ([1.0, 2.0], [17.0, 18.0])
    """
    thresholds = levels.thresholds()
    if not thresholds:
        raise InputError("levels", "must have a positive one, got none")
    return thresholds, [level_cost(levels, threshold, mechanism) for threshold in thresholds]


@cache
def best_epsilon_min(levels: AnyLevels, mechanism: Mechanism) -> float:
    """The threshold with the least ``level_cost``. The HeLDP policies use it for ``epsilon_min=auto``.

    For a sample of users' levels, pass ``Levels.of(sample)``. Its thresholds are levels that occur in the sample, so
    forced exploration ends.

    >>> five = Levels.of([0, 0.2, 1, 2, 100])
    >>> best_epsilon_min(five, "laplace"), best_epsilon_min(five, "bernoulli")
    (100.0, 2.0)
    >>> from dpbandits.environments import NormalLevels
    >>> round(best_epsilon_min(NormalLevels(1.0, 1.0), "bernoulli"), 2)
    0.99
    """
    thresholds, costs = level_curve(levels, mechanism)
    least = int(np.argmin(costs))
    if isinstance(levels, Levels) or len(thresholds) == 1:
        return thresholds[least]
    around = thresholds[max(least - 1, 0)], thresholds[min(least + 1, len(thresholds) - 1)]
    found = minimize_scalar(
        lambda threshold: level_cost(levels, float(threshold), mechanism),
        bounds=around,
        method="bounded",
        options={"xatol": 1e-6},
    )
    return float(found.x)
