"""The distance from a reward distribution to one with a larger mean: in KL, in total variation, and under privacy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from dpbandits.errors import InputError
from dpbandits.numerics import d_eps, kl_across
from dpbandits.types import Floats

__all__ = [
    "RewardLaw",
    "above_mean",
    "d_eps",
    "d_inf",
    "gaussian_d_inf",
    "gaussian_t_inf",
    "kl_across",
    "t_inf",
    "towards_best",
]


@dataclass(frozen=True)
class RewardLaw:
    """A reward distribution on finitely many points of [0, 1].

    >>> RewardLaw.bernoulli(0.25).mean, RewardLaw.of([0.4, 1.0]).mean
    (0.25, 0.7)
    """

    support: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.support or len(self.support) != len(self.weights):
            raise InputError("weights", f"must be one for each point of the support, got {len(self.weights)}")
        for point in self.support:
            if not 0 <= point <= 1:
                raise InputError("support", f"must lie in [0, 1], got {point}")
        if min(self.weights) < 0 or abs(sum(self.weights) - 1.0) > 1e-9:
            raise InputError("weights", f"must be at least 0 and add up to 1, got {sum(self.weights)}")

    @classmethod
    def bernoulli(cls, mean: float) -> RewardLaw:
        """Rewards 0 and 1."""
        return cls((0.0, 1.0), (1.0 - mean, mean))

    @classmethod
    def of(cls, rewards: Iterable[float]) -> RewardLaw:
        """The empirical distribution of a sample."""
        points, counts = np.unique(np.asarray(list(rewards), dtype=np.float64), return_counts=True)
        return cls(tuple(points.tolist()), tuple((counts / counts.sum()).tolist()))

    @classmethod
    def of_quantiles(cls, quantile: Callable[[float], float], points: int = 1000) -> RewardLaw:
        """A continuous distribution, given by its quantile function, as ``points`` equal masses, each at its median."""
        return cls.of(quantile((i + 0.5) / points) for i in range(points))

    @property
    def mean(self) -> float:
        """The mean reward."""
        return math.fsum(x * w for x, w in zip(self.support, self.weights, strict=True))


def d_inf(law: RewardLaw, target: float) -> float:
    """inf of KL(law, Q) over distributions Q on [0, 1] with mean above ``target``; infinite if there is no such Q.

    Honda & Takemura 2010, Theorem 8: the largest value of E log(1 - s (X - target)) over s in [0, 1/(1 - target)], a
    concave function of one variable.

    >>> from dpbandits.numerics import kl
    >>> round(d_inf(RewardLaw.bernoulli(0.3), 0.5) - kl(0.3, 0.5), 12), round(d_inf(RewardLaw.of([0.4, 1.0]), 0.9), 6)
    (0.0, 0.293893)
    """
    if target >= 1.0:
        return math.inf
    if law.mean >= target:
        return 0.0
    x, w = _arrays(law)
    most = 1.0 / (1.0 - target)

    def slope(s: float) -> float:
        return float(np.dot(w, (target - x) / (1.0 - s * (x - target))))

    high = most * (1.0 - 1e-15) if x[-1] >= 1.0 else most
    best = high if slope(high) >= 0.0 else float(brentq(slope, 0.0, high, xtol=1e-14, rtol=1e-14))
    return float(np.dot(w, np.log1p(-best * (x - target))))


def t_inf(law: RewardLaw, target: float) -> float:
    """inf of the total variation from ``law`` over distributions on [0, 1] with mean above ``target``.

    This is the mass that must be moved to 1. A mass moved from x raises the mean by 1 - x per unit of mass, so the
    lowest rewards are moved first.

    >>> round(t_inf(RewardLaw.bernoulli(0.3), 0.5), 12), round(t_inf(RewardLaw.of([0.4, 1.0]), 0.85), 12)
    (0.2, 0.25)
    """
    if target >= 1.0:
        return math.inf
    lacking = target - law.mean
    moved = 0.0
    for x, weight in sorted(zip(law.support, law.weights, strict=True)):
        if lacking <= weight * (1.0 - x):
            return moved + max(lacking, 0.0) / (1.0 - x) if x < 1.0 else moved
        lacking -= weight * (1.0 - x)
        moved += weight
    return moved


def gaussian_d_inf(gap: float, sd: float) -> float:
    """The KL divergence between two normal distributions of standard deviation ``sd`` whose means differ by ``gap``.

    >>> gaussian_d_inf(0.5, 1.0)
    0.125
    """
    return 0.5 * (gap / sd) ** 2


def gaussian_t_inf(gap: float, sd: float) -> float:
    """The total variation between the same two distributions: 2 Phi(gap / (2 sd)) - 1.

    >>> round(gaussian_t_inf(0.5, 1.0), 6)
    0.197413
    """
    return math.erf(gap / (2.0 * math.sqrt(2.0) * sd))


def towards_best(mean: float, gap: float, budget: float) -> float:
    """The c in [0, 1] with kl(mean + c gap, mean + gap) = budget; 0 if kl(mean, mean + gap) is at most the budget."""
    if mean + gap >= 1.0:
        return 1.0

    def excess(c: float) -> float:
        return kl_across(mean + c * gap, (1.0 - c) * gap) - budget

    return float(brentq(excess, 0.0, 1.0, xtol=1e-14)) if excess(0.0) > 0.0 else 0.0


def above_mean(mean: float, gap: float, budget: float) -> float:
    """The c in [0, 1] with kl(mean + c gap, mean) = budget; 1 if kl(mean + gap, mean) is at most the budget."""
    if mean <= 0.0:
        return 0.0

    def excess(c: float) -> float:
        return kl_across(1.0 - mean - c * gap, c * gap) - budget

    return float(brentq(excess, 0.0, 1.0, xtol=1e-14)) if excess(1.0) > 0.0 else 1.0


def _arrays(law: RewardLaw) -> tuple[Floats, Floats]:
    order = np.argsort(law.support)
    x, w = np.asarray(law.support, dtype=np.float64)[order], np.asarray(law.weights, dtype=np.float64)[order]
    return x[w > 0], w[w > 0]
