"""The Laplace mechanism (Dwork et al. 2006)."""

from __future__ import annotations

from dpbandits.types import Rng


def laplace(value: float, sensitivity: float, epsilon: float, rng: Rng) -> float:
    """``value`` plus Laplace noise of scale sensitivity / epsilon.

    The result is epsilon-private if one reward changes ``value`` by at most ``sensitivity``. A NumPy generator draws
    floating-point noise, which is for simulation only (Mironov 2012). The exact noise of ``dpbandits.exact`` has the
    same method, for values on the grid of 2^-16.

    >>> import numpy as np
    >>> round(laplace(0.5, 1.0, 2.0, np.random.default_rng(0)), 4)
    0.66
    """
    return value + rng.laplace(0.0, sensitivity / epsilon)
