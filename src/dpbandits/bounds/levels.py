"""The privacy levels of a population, and the threshold below which a response is better thrown away."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import ndtr, ndtri, roots_legendre

from dpbandits.errors import InputError, positive
from dpbandits.mechanisms import attenuation, debias_variance

__all__ = [
    "ClippedNormal",
    "Levels",
    "Mechanism",
    "Population",
    "best_epsilon_min",
    "level_cost",
    "level_curve",
    "response_cost",
]

Mechanism = Literal["laplace", "bernoulli"]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Levels:
    """Finitely many levels; 0 is a user who sends no response.

    >>> Levels.uniform([0, 0.2, 1, 2]).accepted(1.0)
    0.5
    """

    values: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.values or len(self.values) != len(self.weights):
            raise InputError(f"weights must be one for each level, got {len(self.weights)}")
        for value in self.values:
            if not 0 <= value < math.inf:
                raise InputError(f"levels must be at least 0 and finite, got {value}")
        if min(self.weights) < 0 or abs(sum(self.weights) - 1.0) > 1e-9:
            raise InputError(f"weights must be at least 0 and add up to 1, got {sum(self.weights)}")

    @classmethod
    def constant(cls, epsilon: float) -> Levels:
        """Everyone has the same level."""
        return cls((positive("epsilon", epsilon),), (1.0,))

    @classmethod
    def uniform(cls, values: Iterable[float]) -> Levels:
        """Each of ``values`` as likely: a known list, or a sample of users' levels."""
        points, counts = np.unique(np.asarray(list(values), dtype=np.float64), return_counts=True)
        return cls(tuple(points.tolist()), tuple((counts / counts.sum()).tolist()))

    @property
    def largest(self) -> float:
        """The highest level that occurs."""
        return max(value for value, weight in zip(self.values, self.weights, strict=True) if weight > 0)

    def accepted(self, epsilon_min: float, *, strictly: bool = False) -> float:
        """The share of users at or above ``epsilon_min`` (above it, ``strictly``)."""
        return math.fsum(w for x, w in self._pairs() if x > epsilon_min or (x == epsilon_min and not strictly))

    def expected(self, f: Callable[[float], float], epsilon_min: float) -> float:
        """E[f(level)] among the users at or above ``epsilon_min``."""
        kept = [(x, w) for x, w in self._pairs() if x >= epsilon_min]
        return math.fsum(f(x) * w for x, w in kept) / math.fsum(w for _, w in kept)

    def thresholds(self) -> list[float]:
        """The values of ``epsilon_min`` that make a difference."""
        return sorted({x for x, w in self._pairs() if x > 0 and w > 0})

    def _pairs(self) -> list[tuple[float, float]]:
        return list(zip(self.values, self.weights, strict=True))


@dataclass(frozen=True)
class ClippedNormal:
    """Levels drawn from a normal distribution and clipped to [0, high]: the second population of the HeLDP paper.

    >>> round(ClippedNormal(1.0, 1.0).accepted(1.0), 6)
    0.5
    """

    mean: float
    sd: float
    high: float = 100.0

    def __post_init__(self) -> None:
        positive("sd", self.sd)
        positive("high", self.high)

    @property
    def largest(self) -> float:
        """The highest level that occurs."""
        return self.high

    def accepted(self, epsilon_min: float, *, strictly: bool = False) -> float:
        """The share of users at or above ``epsilon_min`` (above it, ``strictly``)."""
        if epsilon_min > self.high or (strictly and epsilon_min == self.high):
            return 0.0
        if epsilon_min < 0 or (epsilon_min == 0 and not strictly):
            return 1.0
        return float(ndtr((self.mean - epsilon_min) / self.sd))

    def expected(self, f: Callable[[float], float], epsilon_min: float) -> float:
        """E[f(level)] among the users at or above ``epsilon_min``, by Gauss's quadrature in the level's logarithm."""
        top = min(self.high, max(self.mean, epsilon_min) + 12.0 * self.sd)
        nodes, weights = _quadrature()
        low, high = math.log(positive("epsilon_min", epsilon_min)), math.log(top)
        x = np.exp(0.5 * (high - low) * (nodes + 1.0) + low)
        density = np.exp(-0.5 * ((x - self.mean) / self.sd) ** 2) / (self.sd * math.sqrt(2.0 * math.pi))
        values = np.array([f(float(point)) for point in x])
        inside = 0.5 * (high - low) * float(np.dot(weights, values * density * x))
        at_high = f(self.high) * float(ndtr((self.mean - self.high) / self.sd))
        return (inside + at_high) / self.accepted(epsilon_min)

    def thresholds(self) -> list[float]:
        """Levels at the population's quantiles."""
        none = float(ndtr(-self.mean / self.sd))
        shares = none + (1.0 - none) * (np.arange(60) + 0.5) / 60
        levels = self.mean + self.sd * ndtri(shares)
        return sorted({min(float(level), self.high) for level in levels if level > 0.0})


@cache
def _quadrature() -> tuple[Floats, Floats]:
    """Gauss and Legendre's nodes and weights on [-1, 1]."""
    nodes, weights = roots_legendre(400)  # a tenth of the time that NumPy's takes
    return nodes, weights


Population = Levels | ClippedNormal


def response_cost(epsilon: float, mechanism: Mechanism) -> float:
    """What multiplies 8 log T / gap when everyone's level is epsilon: (1 + 4/epsilon)^2, or coth(epsilon/2)^2.

    >>> response_cost(2.0, "laplace"), round(response_cost(2.0, "bernoulli"), 4)
    (9.0, 1.7241)
    """
    return (1.0 + 4.0 / epsilon) ** 2 if mechanism == "laplace" else debias_variance(attenuation(epsilon))


def level_cost(levels: Population, epsilon_min: float, mechanism: Mechanism) -> float:
    """V_L or V_B of the HeLDP paper, Section 4: the expected cost of an accepted response over the share accepted.

    The regret grows with it almost linearly. The expectation is over the accepted users, which the paper does not
    write but means.

    >>> five = Levels.uniform([0, 0.2, 1, 2, 100])
    >>> [round(level_cost(five, e, "laplace"), 1) for e in (0.2, 1, 2, 100)]
    [148.8, 19.5, 12.6, 5.4]
    """
    positive("epsilon_min", epsilon_min)
    share = levels.accepted(epsilon_min)
    if share <= 0.0:
        raise InputError(f"epsilon_min must be at most the highest level {levels.largest:g}, got {epsilon_min}")
    return levels.expected(lambda epsilon: response_cost(epsilon, mechanism), epsilon_min) / share


def level_curve(levels: Population, mechanism: Mechanism) -> tuple[list[float], list[float]]:
    """Thresholds worth considering, and what each costs.

    >>> level_curve(Levels.uniform([1, 2]), "laplace")
    ([1.0, 2.0], [17.0, 18.0])
    """
    thresholds = levels.thresholds()
    if not thresholds:
        raise InputError("levels must have a positive one, got none")
    return thresholds, [level_cost(levels, threshold, mechanism) for threshold in thresholds]


@cache
def best_epsilon_min(levels: Population, mechanism: Mechanism) -> float:
    """The threshold with the least ``level_cost``: ``epsilon_min=auto`` of the HeLDP policies.

    A sample of users' levels is ``Levels.uniform(sample)``: its thresholds are levels that occur, so that forced
    exploration ends.

    >>> five = Levels.uniform([0, 0.2, 1, 2, 100])
    >>> best_epsilon_min(five, "laplace"), best_epsilon_min(five, "bernoulli")
    (100.0, 2.0)
    >>> round(best_epsilon_min(ClippedNormal(1.0, 1.0), "bernoulli"), 2)
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
