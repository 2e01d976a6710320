"""Arms as objects: what each of them pays. ``dp.simulate(..., arms=[dp.arms.beta(4, 1), dp.arms.bernoulli(0.7)])``.

They may be mixed with means, and named by a mapping: ``arms={"red": dp.arms.beta(4, 1), "green": 0.7}``. A distribution
that has no function below gets one that takes its fields, by its name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dpbandits.environments.arms import Arms
from dpbandits.environments.distributions import (
    DISTRIBUTIONS,
    Beta,
    Choice,
    Coin,
    Distribution,
    Normal,
    Uniform,
)
from dpbandits.environments.numbers import real
from dpbandits.environments.replay import read_log
from dpbandits.errors import InputError

__all__ = ["bernoulli", "beta", "choice", "normal", "replay", "uniform"]


def bernoulli(mean: float) -> Coin:
    """1 with this probability, otherwise 0.

    >>> str(bernoulli(0.7))
    'bernoulli(0.7)'
    """
    return Coin(real("mean", mean))


def beta(a: float, b: float) -> Beta:
    """Beta(a, b) on [0, 1].

    >>> beta(4, 1).mean
    0.8
    """
    return Beta(real("a", a), real("b", b))


def uniform(low: float, high: float) -> Uniform:
    """Uniform on [low, high].

    >>> uniform(0, 100).mean
    50.0
    """
    return Uniform(real("low", low), real("high", high))


def normal(mean: float, sd: float) -> Normal:
    """Normal with this mean and standard deviation.

    >>> str(normal(0, 2))
    'normal(0,2)'
    """
    return Normal(real("mean", mean), real("sd", sd))


def choice(*values: float | Iterable[float]) -> Choice:
    """One of these values, each as likely as the others: ``choice(0.4, 1)`` or ``choice(sample)``.

    >>> choice(0.4, 1).mean, choice([0, 0, 1, 1]).mean
    (0.7, 0.5)
    """
    given: Any = values[0] if len(values) == 1 and isinstance(values[0], Iterable) else values
    if isinstance(given, str):
        raise InputError("arms", f": a choice arm needs numbers, got {given!r:.80}")
    return Choice(np.array([real("arms", value) for value in given], np.float64))


def replay(log: Any) -> Arms:
    """The arms of a log, each of whose rewards are resampled: a file or a data frame with columns arm and reward."""
    return Arms.logged(read_log(log))


def __getattr__(name: str) -> Callable[..., Distribution]:
    if name not in DISTRIBUTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    cls = DISTRIBUTIONS[name]
    signature = inspect.signature(cls)

    def distribution(*args: Any, **kwargs: Any) -> Distribution:
        given = signature.bind(*args, **kwargs).arguments
        return cls(**{field: real(field, value) for field, value in given.items()})

    distribution.__name__, distribution.__doc__ = name, cls.__doc__
    distribution.__signature__ = signature  # type: ignore[attr-defined]
    return distribution


def __dir__() -> list[str]:
    return sorted({*__all__, *DISTRIBUTIONS})
