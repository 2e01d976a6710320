"""Distributions of SciPy as arms: those that are drawn from exactly here."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpbandits.environments.distributions import Beta, Choice, Coin, Distribution, Normal, Uniform
from dpbandits.errors import InputError

__all__ = ["from_scipy", "is_scipy"]

KNOWN = "norm, randint, uniform, and bernoulli and beta with loc 0 and scale 1"
MOST_VALUES = 100_000  # of a randint


def is_scipy(value: object) -> bool:
    """Whether a value is a distribution of SciPy: a frozen one, or one of its newer kind."""
    return type(value).__module__.startswith("scipy.stats") and (hasattr(value, "dist") or hasattr(value, "icdf"))


def from_scipy(given: Any) -> Distribution:
    """The arm that a frozen distribution of SciPy describes.

    >>> from scipy import stats
    >>> str(from_scipy(stats.beta(4, 1))), str(from_scipy(stats.uniform(2, 3))), str(from_scipy(stats.bernoulli(0.3)))
    ('beta(4,1)', 'uniform(2,5)', 'bernoulli(0.3)')
    """
    if not hasattr(given, "dist"):
        return _from_new(given)
    name = given.dist.name
    shapes, loc, scale = given.dist._parse_args(*given.args, **given.kwds)
    values = [*shapes, loc, scale]
    if any(np.ndim(value) for value in values):
        raise InputError("arms", f": scipy's {name} must have single numbers as parameters, got arrays")
    shapes, loc, scale = [float(value) for value in shapes], float(loc), float(scale)
    if name == "bernoulli" and loc == 0.0:
        return Coin(shapes[0])
    if name == "beta" and (loc, scale) == (0.0, 1.0):
        return Beta(*shapes)
    if name == "uniform":
        return Uniform(loc, loc + scale)
    if name == "norm":
        return Normal(loc, scale)
    if name == "randint" and shapes[1] - shapes[0] <= MOST_VALUES:
        return Choice(np.arange(shapes[0], shapes[1]) + loc)
    raise _unknown(name)


def _from_new(given: Any) -> Distribution:
    """An arm from one of SciPy's newer distributions, which are classes with named parameters."""
    name, parameters = type(given).__name__, getattr(given, "_parameters", {})
    try:
        if name in ("Normal", "StandardNormal"):
            return Normal(float(parameters.get("mu", 0.0)), float(parameters.get("sigma", 1.0)))
        if name == "Uniform":
            return Uniform(float(parameters["a"]), float(parameters["b"]))
    except (KeyError, TypeError, ValueError):
        pass
    raise _unknown(name)


def _unknown(name: str) -> InputError:
    sample = f"dp.arms.choice({name}(...).rvs(10_000)), a sample of it"
    return InputError("arms", f": of scipy's distributions {KNOWN} are known, got {name}: use {sample}")
