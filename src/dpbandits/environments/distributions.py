"""What one arm pays: a distribution by name and parameters, with the expectations that the simulator needs.

To add one: a subclass here, and its branch in ``draw``. Texts, simulation and bounds find it in ``DISTRIBUTIONS``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from dpbandits.display import shortened
from dpbandits.errors import InputError
from dpbandits.numerics import sigmoid
from dpbandits.types import Floats, Rng

__all__ = ["DISTRIBUTIONS", "Beta", "Choice", "Coin", "Distribution", "Normal", "Uniform", "draw", "shortest"]

BERNOULLI, BETA, UNIFORM, NORMAL, CHOICE = range(5)
NARROW = 1e-12  # of its ends: a narrower interval is integrated by Gauss's rule


def draw(code: int, first: float, second: float, values: Floats, start: int, size: int, rng: Rng) -> float:
    """One reward of the distribution with this code and parameters; ``Choice`` draws from ``values[start:start+size]``.

    >>> draw(UNIFORM, 2.0, 2.5, np.zeros(1), 0, 0, np.random.default_rng(0)) < 2.5
    True
    """
    if code == BERNOULLI:
        return 1.0 if rng.random() < first else 0.0
    if code == BETA:
        return rng.beta(first, second)
    if code == UNIFORM:
        return first + (second - first) * rng.random()
    if code == NORMAL:
        return first + second * rng.standard_normal()
    if code == CHOICE:
        return values[start + int(rng.random() * size)]
    raise ValueError("no branch draws from a distribution with this code")


def shortest(x: float) -> str:
    """The shortest text that reads as exactly this number.

    >>> shortest(0.1), shortest(2.0), shortest(1e300)
    ('0.1', '2', '1e+300')
    """
    return repr(float(x)).removesuffix(".0")


def _integral(function: Callable[[float], float], low: float, high: float, breaks: tuple[float, ...] = ()) -> float:
    from scipy.integrate import quad  # importing SciPy takes half a second, and most arms do not need it

    def piece(a: float, b: float) -> float:
        if b - a < NARROW * max(abs(a), abs(b)):  # too few numbers lie between them for quad
            half, (nodes, weights) = 0.5 * (b - a), np.polynomial.legendre.leggauss(10)
            return half * math.fsum(w * function(a + half * (1.0 + x)) for x, w in zip(nodes, weights, strict=True))
        return float(quad(function, a, b, epsabs=1e-14, epsrel=1e-13)[0])

    inside = sorted({low, high, *(x for x in breaks if low < x < high)})
    return math.fsum(piece(a, b) for a, b in pairwise(inside))


@dataclass(frozen=True)
class Distribution:
    """One arm. Subclasses say what differs; ``code`` tells ``draw`` which one it is."""

    code: ClassVar[int]
    name: ClassVar[str]
    arity: ClassVar[int]  # how many parameters
    from_log: ClassVar[bool] = False  # whether its rewards are those of a user's log

    @property
    def parameters(self) -> tuple[float, ...]:
        raise NotImplementedError

    @property
    def mean(self) -> float:
        raise NotImplementedError

    @property
    def support(self) -> tuple[float, float]:
        """The least and the largest reward."""
        raise NotImplementedError

    @property
    def atoms(self) -> tuple[Floats, Floats] | None:
        """The values of a discrete distribution and their probabilities; None for a continuous one."""
        return None

    @property
    def binary(self) -> bool:
        """Whether every reward is 0 or 1."""
        return self.atoms is not None and bool(np.isin(self.atoms[0], (0.0, 1.0)).all())

    def above(self, x: float) -> float:
        """The probability of a reward above x."""
        raise NotImplementedError

    def quantile(self, share: float) -> float:
        """The reward that this share of the rewards does not exceed, of a continuous distribution."""
        raise NotImplementedError

    def clipped_mean(self, low: float, high: float) -> float:
        """The mean of the reward clipped to [low, high] and mapped to [0, 1]."""
        if low <= self.support[0] and self.support[1] <= high:
            return (self.mean - low) / (high - low)
        if self.atoms is not None:
            values, weights = self.atoms
            return float(np.dot(weights, (np.clip(values, low, high) - low) / (high - low)))
        return _integral(self.above, low, high, self.support) / (high - low)

    def sigmoid_mean(self, low: float = -math.inf, high: float = math.inf) -> float:
        """The mean of the logistic function of the reward, which a finite range first clips and maps to [0, 1]."""
        bounded = math.isfinite(low)
        if self.atoms is not None:
            values, weights = self.atoms
            values = (np.clip(values, low, high) - low) / (high - low) if bounded else values
            return math.fsum(float(w) * sigmoid(float(v)) for v, w in zip(values, weights, strict=True))
        factor, shift = (1.0 / (high - low), -low / (high - low)) if bounded else (1.0, 0.0)
        least, most = (low, high) if bounded else self.support

        def slope(x: float) -> float:
            y = sigmoid(factor * x + shift)
            return y * (1.0 - y) * factor * self.above(x)

        return sigmoid(factor * least + shift) + _integral(slope, least, most, self.support)

    def __str__(self) -> str:
        return f"{self.name}({','.join(map(shortest, self.parameters))})"


@dataclass(frozen=True)
class Coin(Distribution):
    """1 with probability p, otherwise 0."""

    p: float
    code, name, arity = BERNOULLI, "bernoulli", 1

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise InputError("arms", f": the mean of a bernoulli arm must be in [0, 1], got {self.p:g}")

    @property
    def parameters(self) -> tuple[float, ...]:
        return (self.p,)

    @property
    def mean(self) -> float:
        return self.p

    @property
    def support(self) -> tuple[float, float]:
        return (0.0, 1.0)

    @property
    def atoms(self) -> tuple[Floats, Floats]:
        return np.array([0.0, 1.0]), np.array([1.0 - self.p, self.p])


@dataclass(frozen=True)
class Beta(Distribution):
    """Beta(a, b) on [0, 1]."""

    a: float
    b: float
    code, name, arity = BETA, "beta", 2

    def __post_init__(self) -> None:
        if not (0 < self.a < math.inf and 0 < self.b < math.inf):
            raise InputError("arms", f": the parameters of a beta arm must be positive and finite, got {self}")

    @property
    def parameters(self) -> tuple[float, ...]:
        return (self.a, self.b)

    @property
    def mean(self) -> float:
        return self.a / (self.a + self.b)

    @property
    def support(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def above(self, x: float) -> float:
        from scipy.special import betainc

        return float(1.0 - betainc(self.a, self.b, min(max(x, 0.0), 1.0)))

    def quantile(self, share: float) -> float:
        from scipy.special import betaincinv

        return float(betaincinv(self.a, self.b, share))


@dataclass(frozen=True)
class Uniform(Distribution):
    """Uniform on [low, high]."""

    low: float
    high: float
    code, name, arity = UNIFORM, "uniform", 2

    def __post_init__(self) -> None:
        if not -math.inf < self.low < self.high < math.inf:
            raise InputError("arms", f": a uniform arm needs low < high, both finite, got {self}")

    @property
    def parameters(self) -> tuple[float, ...]:
        return (self.low, self.high)

    @property
    def mean(self) -> float:
        return 0.5 * (self.low + self.high)

    @property
    def support(self) -> tuple[float, float]:
        return (self.low, self.high)

    def above(self, x: float) -> float:
        return min(max((self.high - x) / (self.high - self.low), 0.0), 1.0)

    def quantile(self, share: float) -> float:
        return self.low + share * (self.high - self.low)


@dataclass(frozen=True)
class Normal(Distribution):
    """Normal with this mean and standard deviation; unbounded."""

    center: float
    sd: float
    code, name, arity = NORMAL, "normal", 2

    def __post_init__(self) -> None:
        if not (math.isfinite(self.center) and 0 < self.sd < math.inf):
            raise InputError("arms", f": a normal arm needs a finite mean and a positive sd, got {self}")

    @property
    def parameters(self) -> tuple[float, ...]:
        return (self.center, self.sd)

    @property
    def mean(self) -> float:
        return self.center

    @property
    def support(self) -> tuple[float, float]:
        return (-math.inf, math.inf)

    def above(self, x: float) -> float:
        return 0.5 * math.erfc((x - self.center) / (self.sd * math.sqrt(2.0)))

    def quantile(self, share: float) -> float:
        from scipy.special import ndtri

        return self.center + self.sd * float(ndtri(share))

    def sigmoid_mean(self, low: float = -math.inf, high: float = math.inf) -> float:
        if math.isfinite(low):
            return super().sigmoid_mean(low, high)
        density = math.sqrt(0.5 / math.pi)
        return _integral(
            lambda z: sigmoid(self.center + self.sd * z) * density * math.exp(-0.5 * z * z), -38.0, 38.0, (0.0,)
        )


@dataclass(frozen=True, eq=False)
class Choice(Distribution):
    """One of these values, each as likely as the others."""

    values: Floats
    code, name, arity = CHOICE, "choice", -1

    def __post_init__(self) -> None:
        if self.values.size == 0 or not np.isfinite(self.values).all():
            raise InputError("arms", f": a choice arm needs at least one value, all finite, got {shortened(str(self))}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Choice) and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash(self.values.tobytes())

    @property
    def parameters(self) -> tuple[float, ...]:
        return tuple(float(v) for v in self.values)

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    @property
    def support(self) -> tuple[float, float]:
        return (float(self.values.min()), float(self.values.max()))

    @property
    def atoms(self) -> tuple[Floats, Floats]:
        values, counts = np.unique(self.values, return_counts=True)
        return values, counts / self.values.size


DISTRIBUTIONS: dict[str, type[Distribution]] = {cls.name: cls for cls in (Coin, Beta, Uniform, Normal, Choice)}
