"""What one arm pays: a distribution by name and parameters, with the expectations that the simulator needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from dpbandits.errors import InputError
from dpbandits.numerics import sigmoid
from dpbandits.protocols import Floats

__all__ = ["DISTRIBUTIONS", "Beta", "Choice", "Coin", "Distribution", "Normal", "Uniform"]


def _integral(function: Callable[[float], float], low: float, high: float, breaks: tuple[float, ...] = ()) -> float:
    from scipy.integrate import quad  # half a second of imports that most arms do not need

    inside = sorted({low, high, *(x for x in breaks if low < x < high)})
    return math.fsum(quad(function, a, b, epsabs=1e-14, epsrel=1e-13)[0] for a, b in pairwise(inside))


@dataclass(frozen=True)
class Distribution:
    """One arm. Subclasses say what differs; ``code`` tells compiled code which one it is."""

    code: ClassVar[int]
    name: ClassVar[str]
    arity: ClassVar[int]

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

    def above(self, x: float) -> float:
        """The probability of a reward above x."""
        raise NotImplementedError

    def clipped_mean(self, low: float, high: float) -> float:
        """The mean of the reward clipped to [low, high] and mapped to [0, 1]."""
        if low <= self.support[0] and self.support[1] <= high:
            return (self.mean - low) / (high - low)
        return _integral(self.above, low, high, self.support) / (high - low)

    def sigmoid_mean(self, low: float = -math.inf, high: float = math.inf) -> float:
        """The mean of the logistic function of the reward, which a finite range first clips and maps to [0, 1]."""
        if math.isinf(low):
            low, high, scale, shift = self.support[0], self.support[1], 1.0, 0.0
        else:
            scale, shift = 1.0 / (high - low), -low / (high - low)

        def slope(x: float) -> float:
            y = sigmoid(scale * x + shift)
            return y * (1.0 - y) * scale * self.above(x)

        return sigmoid(scale * low + shift) + _integral(slope, low, high, self.support)

    def __str__(self) -> str:
        return f"{self.name}({','.join(f'{p:g}' for p in self.parameters)})"


@dataclass(frozen=True)
class Coin(Distribution):
    """1 with probability p, otherwise 0."""

    p: float
    code, name, arity = 0, "bernoulli", 1

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise InputError(f"the mean of a bernoulli arm must be in [0, 1], got {self.p:g}")

    @property
    def parameters(self) -> tuple[float, ...]:
        return (self.p,)

    @property
    def mean(self) -> float:
        return self.p

    @property
    def support(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def above(self, x: float) -> float:
        return 1.0 if x < 0 else self.p if x < 1 else 0.0


@dataclass(frozen=True)
class Beta(Distribution):
    """Beta(a, b) on [0, 1]."""

    a: float
    b: float
    code, name, arity = 1, "beta", 2

    def __post_init__(self) -> None:
        if not (0 < self.a < math.inf and 0 < self.b < math.inf):
            raise InputError(f"the parameters of a beta arm must be positive and finite, got {self}")

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


@dataclass(frozen=True)
class Uniform(Distribution):
    """Uniform on [low, high]."""

    low: float
    high: float
    code, name, arity = 2, "uniform", 2

    def __post_init__(self) -> None:
        if not -math.inf < self.low < self.high < math.inf:
            raise InputError(f"a uniform arm needs low < high, both finite, got {self}")

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


@dataclass(frozen=True)
class Normal(Distribution):
    """Normal with this mean and standard deviation; unbounded."""

    center: float
    sd: float
    code, name, arity = 3, "normal", 2

    def __post_init__(self) -> None:
        if not (math.isfinite(self.center) and 0 < self.sd < math.inf):
            raise InputError(f"a normal arm needs a finite mean and a positive sd, got {self}")

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

    def sigmoid_mean(self, low: float = -math.inf, high: float = math.inf) -> float:
        if math.isfinite(low):
            return super().sigmoid_mean(low, high)
        density = math.sqrt(0.5 / math.pi)
        return _integral(
            lambda z: sigmoid(self.center + self.sd * z) * density * math.exp(-0.5 * z * z), -38.0, 38.0, (0.0,)
        )


@dataclass(frozen=True, eq=False)
class Choice(Distribution):
    """One of these values, each as likely as the others; also a user's log, resampled."""

    values: Floats
    label: str = ""
    code, name, arity = 4, "choice", -1

    def __post_init__(self) -> None:
        if self.values.size == 0 or not np.isfinite(self.values).all():
            raise InputError(f"a choice arm needs at least one value, all finite, got {self}")

    @property
    def parameters(self) -> tuple[float, ...]:
        return tuple(float(v) for v in self.values)

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    @property
    def support(self) -> tuple[float, float]:
        return (float(self.values.min()), float(self.values.max()))

    def above(self, x: float) -> float:
        return float(np.mean(self.values > x))

    def clipped_mean(self, low: float, high: float) -> float:
        return float(np.mean((np.clip(self.values, low, high) - low) / (high - low)))

    def sigmoid_mean(self, low: float = -math.inf, high: float = math.inf) -> float:
        values = self.values if math.isinf(low) else (np.clip(self.values, low, high) - low) / (high - low)
        return math.fsum(sigmoid(float(v)) for v in values) / values.size

    def __str__(self) -> str:
        return self.label or super().__str__()


DISTRIBUTIONS: dict[str, type[Distribution]] = {cls.name: cls for cls in (Coin, Beta, Uniform, Normal, Choice)}
