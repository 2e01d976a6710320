"""The Gaussian mechanism under zero-concentrated differential privacy (Bun & Steinke 2016)."""

from __future__ import annotations

import math

from dpbandits.checks import fraction, positive
from dpbandits.types import Rng


def gaussian(value: float, sensitivity: float, rho: float, rng: Rng) -> float:
    """``value`` plus Gaussian noise of variance sensitivity^2 / (2 rho).

    The result is rho-zCDP if one reward changes ``value`` by at most ``sensitivity``. A NumPy generator draws
    floating-point noise, which is for simulation only; the exact noise of ``dpbandits.exact`` has the same method.

    >>> import numpy as np
    >>> round(gaussian(0.5, 1.0, 2.0, np.random.default_rng(0)), 4)
    0.5629
    """
    return value + rng.normal(0.0, sensitivity / math.sqrt(2.0 * rho))


def zcdp_at(epsilon: float, delta: float) -> float:
    """The rho at which rho-zCDP implies (epsilon, delta)-privacy: the inverse of rho + 2 sqrt(rho log(1/delta)).

    Bun & Steinke 2016, Proposition 1.3. Tighter conversions exist; with this one the promise is certain.

    >>> rho = zcdp_at(1.0, 1e-6)
    >>> round(rho + 2.0 * math.sqrt(rho * math.log(1e6)), 9)
    1.0
    """
    log = -math.log(fraction("delta", delta))
    epsilon = positive("epsilon", epsilon)
    root = epsilon / (math.sqrt(epsilon + log) + math.sqrt(log))
    return root * root
