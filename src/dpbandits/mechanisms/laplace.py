"""The Laplace mechanism (Dwork et al. 2006)."""

from __future__ import annotations

from numpy.random import Generator


def laplace(value: float, sensitivity: float, epsilon: float, rng: Generator) -> float:
    """``value`` plus Laplace noise of scale sensitivity / epsilon.

    Pure epsilon-privacy of a value that one reward moves by at most ``sensitivity``. Floating-point noise: for
    simulation only, never for deployment (Mironov 2012).

    >>> import numpy as np
    >>> round(laplace(0.5, 1.0, 2.0, np.random.default_rng(0)), 4)
    0.66
    """
    return value + rng.laplace(0.0, sensitivity / epsilon)
