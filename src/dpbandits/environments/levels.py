"""The privacy levels of a population: what share of its users has which epsilon, and draws of users as they come.

This is the one place for users' levels. Others build on it: ``bounds.levels`` has what levels cost by the theorems,
``planning.levels`` shows this cost to a user who plans, and ``curators.bits`` makes responses at a user's level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np

from dpbandits.checks import positive
from dpbandits.environments.distributions import shortest
from dpbandits.environments.numbers import called, real
from dpbandits.errors import InputError
from dpbandits.mechanisms import attenuation
from dpbandits.privacy.users import of_reward
from dpbandits.types import Floats, Rng

#: Where normally distributed levels are clipped, unless a population says otherwise.
HIGHEST = 100.0

__all__ = [
    "HIGHEST",
    "NOBODY",
    "AnyLevels",
    "Levels",
    "ListedUsers",
    "NormalLevels",
    "NormalUsers",
    "levels_of",
    "parse_levels",
    "users_of",
]


@dataclass(frozen=True)
class Levels:
    """A list of equally likely levels: a design, or a sample of users. A user at level 0 sends nothing.

    >>> Levels.of([2, 0, 0.2, 1]).accepted(1.0), str(Levels.of([1]))
    (0.5, 'constant(1)')
    """

    sample: tuple[float, ...]  # ascending

    def __post_init__(self) -> None:
        if not self.sample:
            raise InputError("levels", "must be at least one, got none")
        for level in self.sample:
            if not 0 <= level < math.inf:  # NaN is refused, too
                raise InputError("levels", f"must be finite and not negative, got {level:g}")

    @classmethod
    def of(cls, levels: Iterable[float]) -> Levels:
        """These levels, in any order."""
        return cls(tuple(sorted(real("levels", level) for level in levels)))

    @property
    def largest(self) -> float:
        """The highest level that occurs."""
        return self.sample[-1]

    def divided(self, rewards: int) -> Levels:
        """The levels of single rewards, where a user gives this many."""
        return Levels(tuple(of_reward(level, rewards) if level else 0.0 for level in self.sample))

    def accepted(self, epsilon_min: float, *, strictly: bool = False) -> float:
        """The share of users at or above ``epsilon_min`` (above it, ``strictly``)."""
        side = "right" if strictly else "left"
        return 1.0 - int(np.searchsorted(self.sample, epsilon_min, side)) / len(self.sample)  # type: ignore[call-overload]

    def expected(self, f: Callable[[float], float], epsilon_min: float) -> float:
        """E[f(level)] among the users at or above ``epsilon_min``."""
        kept = self.sample[int(np.searchsorted(self.sample, epsilon_min)) :]
        levels, counts = np.unique(kept, return_counts=True)
        return math.fsum(f(float(x)) * int(n) for x, n in zip(levels, counts, strict=True)) / len(kept)

    def thresholds(self) -> list[float]:
        """The values of ``epsilon_min`` that make a difference."""
        return sorted({level for level in self.sample if level > 0})

    def __str__(self) -> str:
        name = "constant" if len(self.sample) == 1 else "choice"
        return f"{name}({','.join(map(shortest, self.sample))})"


@dataclass(frozen=True)
class NormalLevels:
    """Normally distributed levels, clipped to [0, high]: the second population of the HeLDP paper.

    >>> round(NormalLevels(1.0, 1.0).accepted(1.0), 6), str(NormalLevels(1.0, 0.5)), str(NormalLevels(1, 1, high=3))
    (0.5, 'normal(1,0.5)', 'clipped_normal(1,1,3)')
    """

    mean: float
    sd: float
    high: float = HIGHEST

    def __post_init__(self) -> None:
        if not math.isfinite(self.mean):
            raise InputError("levels", f"must have a finite mean, got {self.mean:g}")
        if not 0 < self.sd < math.inf:
            raise InputError("levels", f": the sd of a normal population must be positive, got {self.sd:g}")
        positive("high", self.high)

    @property
    def largest(self) -> float:
        """The highest level that occurs."""
        return self.high

    def divided(self, rewards: int) -> NormalLevels:
        """The levels of single rewards, where a user gives this many."""
        return NormalLevels(self.mean / rewards, self.sd / rewards, of_reward(self.high, rewards))

    def accepted(self, epsilon_min: float, *, strictly: bool = False) -> float:
        """The share of users at or above ``epsilon_min`` (above it, ``strictly``)."""
        if epsilon_min > self.high or (strictly and epsilon_min == self.high):
            return 0.0
        if epsilon_min < 0 or (epsilon_min == 0 and not strictly):
            return 1.0
        return self._above(epsilon_min)

    def expected(self, f: Callable[[float], float], epsilon_min: float) -> float:
        """E[f(level)] among the users at or above ``epsilon_min``, by Gauss's quadrature in the level's logarithm."""
        top = min(self.high, max(self.mean, epsilon_min) + 12.0 * self.sd)
        nodes, weights = _quadrature()
        low, high = math.log(positive("epsilon_min", epsilon_min)), math.log(top)
        x = np.exp(0.5 * (high - low) * (nodes + 1.0) + low)
        density = np.exp(-0.5 * ((x - self.mean) / self.sd) ** 2) / (self.sd * math.sqrt(2.0 * math.pi))
        values = np.array([f(float(point)) for point in x])
        inside = 0.5 * (high - low) * float(np.dot(weights, values * density * x))
        return (inside + f(self.high) * self._above(self.high)) / self.accepted(epsilon_min)

    def thresholds(self) -> list[float]:
        """Levels at the population's quantiles."""
        from scipy.special import ndtri  # SciPy takes half a second to import, and few runs need it

        none = 1.0 - self._above(0.0)
        shares = none + (1.0 - none) * (np.arange(60) + 0.5) / 60
        levels = self.mean + self.sd * ndtri(shares)
        return sorted({min(float(level), self.high) for level in levels if level > 0.0})

    def _above(self, level: float) -> float:
        """The share of an unclipped population."""
        return 0.5 * math.erfc((level - self.mean) / (self.sd * math.sqrt(2.0)))

    def __str__(self) -> str:
        if self.high == HIGHEST:
            return f"normal({shortest(self.mean)},{shortest(self.sd)})"
        return f"clipped_normal({shortest(self.mean)},{shortest(self.sd)},{shortest(self.high)})"


AnyLevels = Levels | NormalLevels


@cache
def _quadrature() -> tuple[Floats, Floats]:
    """Gauss and Legendre's nodes and weights on [-1, 1]."""
    from scipy.special import roots_legendre

    nodes, weights = roots_legendre(400)  # ten times as fast as NumPy's
    return nodes, weights


def levels_of(value: Any) -> AnyLevels | None:
    """A population as people have it: a list or array of levels, a text, or a population; None is none.

    >>> levels_of([0, 1, 2]), levels_of("constant(1)") == levels_of(np.array([1]))
    (Levels(sample=(0.0, 1.0, 2.0)), True)
    """
    if value is None or isinstance(value, Levels | NormalLevels):
        return value
    if isinstance(value, str):
        return parse_levels(value)
    if isinstance(value, Iterable) and not isinstance(value, Mapping | bytes):
        return Levels.of(value)
    raise InputError("levels", f"must be a list of levels or a text such as 'choice(0,1,2)', got {value!r:.80}")


def parse_levels(text: str) -> AnyLevels:
    """The population of ``constant(1)``, ``choice(0,0.2,1,2,100)``, ``normal(1,1)`` (clipped to [0, 100]) or
    ``clipped_normal(1,1,3)`` (to [0, 3]).

    >>> parse_levels("choice(0,0.2,1,2,100)").accepted(1)
    0.6
    """
    name, values = called("levels", text)
    if (name, len(values)) in (("normal", 2), ("clipped_normal", 3)):
        return NormalLevels(*values)
    if (name == "constant" and len(values) == 1) or name == "choice":
        return Levels.of(values)
    raise InputError(
        "levels",
        f"must be constant(e), choice(e,...), normal(mean,sd) or clipped_normal(mean,sd,highest), got '{text}'",
    )


class ListedUsers(NamedTuple):
    """Every user has one of these levels, each as likely as the others.

    >>> ListedUsers.start([0.2, 1.0]).values.tolist()
    [0.2, 1.0]
    """

    values: Floats  # ascending
    attenuations: Floats  # of a private bit, at each of the levels

    @classmethod
    def start(cls, values: list[float]) -> Self:
        """Users with these levels."""
        ordered = sorted(values)
        return cls(np.array(ordered), np.array([attenuation(value) for value in ordered]))

    def level(self, rng: Rng) -> float:
        if len(self.values) == 1:
            return self.values[0]
        return self.values[int(rng.random() * len(self.values))]

    def bit_slope(self, least: float, rng: Rng) -> float:
        i = int(rng.random() * len(self.values)) if len(self.values) > 1 else 0
        slope = self.attenuations[i]
        return slope if self.values[i] >= least else 0.0

    def bit_slopes(self, least: float) -> tuple[Floats, float]:
        first = 0
        while first < len(self.values) and self.values[first] < least:
            first += 1
        return self.attenuations[first:], 1.0 - first / len(self.values)


class NormalUsers(NamedTuple):
    """Users with normally distributed levels, clipped to [0, high]."""

    mean: float
    sd: float
    high: float
    none: Floats  # (0,): the attenuations that can be listed

    @classmethod
    def start(cls, mean: float, sd: float, high: float) -> Self:
        """Users with these levels."""
        return cls(mean, sd, high, np.zeros(0))

    def level(self, rng: Rng) -> float:
        return min(max(self.mean + self.sd * rng.standard_normal(), 0.0), self.high)

    def bit_slope(self, least: float, rng: Rng) -> float:
        level = self.level(rng)
        return attenuation(level) if level >= least else 0.0

    def bit_slopes(self, least: float) -> tuple[Floats, float]:
        return self.none, 0.0


#: Where nobody has a level: the policy has one epsilon for all, or none.
NOBODY = ListedUsers.start([0.0])


def users_of(levels: AnyLevels | None) -> ListedUsers | NormalUsers:
    """Users with these levels, as they come.

    >>> type(users_of(Levels.of([1.0]))).__name__
    'ListedUsers'
    """
    if levels is None:
        return NOBODY
    if isinstance(levels, Levels):
        return ListedUsers.start(list(levels.sample))
    return NormalUsers.start(levels.mean, levels.sd, levels.high)
