"""The privacy levels of the users who come, as text and as draws."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from dpbandits.environments.numbers import number
from dpbandits.errors import InputError
from dpbandits.mechanisms import attenuation
from dpbandits.protocols import Floats, Rng

__all__ = ["Levels", "NormalLevels", "parse_levels"]

HIGHEST = 100.0


class Levels(NamedTuple):
    """Every user has one of these levels, each as likely as the others.

    >>> Levels.start([0.2, 1.0]).share_of_at_least(0.5)
    0.5
    """

    values: Floats  # ascending
    attenuations: Floats  # of a private bit, at each of the levels

    @classmethod
    def start(cls, values: Sequence[float]) -> Self:
        """The population of users with these levels."""
        ordered = sorted(values)
        return cls(np.array(ordered), np.array([attenuation(value) for value in ordered]))

    def level(self, rng: Rng) -> float:
        if self.values.size == 1:
            return self.values[0]
        return self.values[int(rng.random() * self.values.size)]

    def bit_slope(self, least: float, rng: Rng) -> float:
        i = int(rng.random() * self.values.size) if self.values.size > 1 else 0
        slope = self.attenuations[i]
        return slope if self.values[i] >= least else 0.0

    def bit_slopes(self, least: float) -> tuple[Floats, float]:
        first = 0
        while first < self.values.size and self.values[first] < least:
            first += 1
        return self.attenuations[first:], 1.0 - first / self.values.size

    def share_of_at_least(self, level: float) -> float:
        """The share of users whose level is at least ``level``."""
        return float(np.mean(self.values >= level))


class NormalLevels(NamedTuple):
    """Normally distributed levels, clipped to [0, 100].

    >>> round(NormalLevels(1.0, 1.0).share_of_at_least(1.0), 6)
    0.5
    """

    center: float
    sd: float

    def level(self, rng: Rng) -> float:
        return min(max(self.center + self.sd * rng.standard_normal(), 0.0), HIGHEST)

    def bit_slope(self, least: float, rng: Rng) -> float:
        level = self.level(rng)
        return attenuation(level) if level >= least else 0.0

    def bit_slopes(self, least: float) -> tuple[Floats, float]:
        return np.zeros(0), 0.0

    def share_of_at_least(self, level: float) -> float:
        """The share of users whose level is at least ``level``."""
        if level > HIGHEST:
            return 0.0
        return 0.5 * math.erfc((level - self.center) / (self.sd * math.sqrt(2.0)))


def parse_levels(text: str) -> Levels | NormalLevels:
    """The population that ``constant(1)``, ``choice(0,0.2,1,2,100)`` or ``normal(1,1)`` describes.

    >>> parse_levels("choice(0,0.2,1,2,100)").share_of_at_least(1)
    0.6
    """
    match = re.fullmatch(r"\s*(\w+)\s*\((.*)\)\s*", text)
    if match is None:
        raise InputError(f"levels must be constant(e), choice(e,...) or normal(mean,sd), got '{text}'")
    name, values = match[1], [number("levels", part) for part in match[2].split(",")]
    if not all(math.isfinite(value) for value in values):
        raise InputError(f"levels must be finite and not negative, got '{text}'")
    if name == "normal" and len(values) == 2:
        if not values[1] > 0:
            raise InputError(f"levels: the sd of a normal population must be positive, got {values[1]:g}")
        return NormalLevels(values[0], values[1])
    if (name == "constant" and len(values) == 1) or name == "choice":
        for value in values:
            if value < 0:
                raise InputError(f"levels must be finite and not negative, got {value:g}")
        return Levels.start(values)
    raise InputError(f"levels must be constant(e), choice(e,...) or normal(mean,sd), got '{text}'")
