"""How many rounds pass between a decision and its response."""

from __future__ import annotations

import math
from typing import NamedTuple

from dpbandits.environments.distributions import shortest
from dpbandits.environments.numbers import called
from dpbandits.errors import InputError
from dpbandits.types import Rng

__all__ = ["Delay", "parse_delay"]

CONSTANT, EXPONENTIAL, LOGNORMAL = range(3)
KINDS = {"constant": (CONSTANT, 1), "exponential": (EXPONENTIAL, 1), "lognormal": (LOGNORMAL, 2)}
ALLOWED = "constant(rounds), exponential(mean) or lognormal(median,sigma)"


class Delay(NamedTuple):
    """The law of a delay in rounds. A response that is delayed by less than one round comes before the next decision.

    >>> delay = parse_delay("lognormal(100,1)")
    >>> str(delay), parse_delay("constant(3)").rounds(None)
    ('lognormal(100,1)', 3.0)
    """

    kind: int
    typical: float  # the number, the mean, or the median
    sigma: float  # of the logarithm, where that is normal

    def rounds(self, rng: Rng) -> float:
        """One delay."""
        if self.kind == CONSTANT:
            return self.typical
        if self.kind == EXPONENTIAL:
            return self.typical * rng.standard_exponential()
        if self.kind == LOGNORMAL:
            return self.typical * math.exp(self.sigma * rng.standard_normal())
        raise ValueError("no branch draws from a delay of this kind")

    def __str__(self) -> str:
        name = next(name for name, (kind, _) in KINDS.items() if kind == self.kind)
        return f"{name}({','.join(shortest(x) for x in (self.typical, self.sigma)[: KINDS[name][1]])})"


def parse_delay(text: str) -> Delay:
    """The delay that ``constant(100)``, ``exponential(100)`` or ``lognormal(100,1)`` describes.

    >>> parse_delay("exponential(10)").typical
    10.0
    """
    name, values = called("delay", text)
    if name not in KINDS:
        raise InputError("delay", f"must be {ALLOWED}, got '{text}'")
    kind, arity = KINDS[name]
    if len(values) != arity or not all(0 <= value < math.inf for value in values):
        raise InputError("delay", f"must be {ALLOWED}, with finite numbers of at least 0, got '{text}'")
    return Delay(kind, values[0], values[1] if arity > 1 else 0.0)
