"""Rényi and zero-concentrated differential privacy, and their conversion to (epsilon, delta)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr

from dpbandits.checks import fraction, positive
from dpbandits.errors import InputError
from dpbandits.types import Floats

__all__ = [
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_rdp",
    "laplace_rdp",
    "pure_to_zcdp",
    "rdp_to_dp",
    "zcdp_to_dp",
]


def laplace_rdp(epsilon: float | Floats, order: float) -> Floats:
    """Rényi divergence at ``order`` of the Laplace mechanism that is epsilon-private (Mironov 2017, Proposition 6).

    log(a/(2a-1) e^((a-1) epsilon) + (a-1)/(2a-1) e^(-a epsilon)) / (a-1). Under composition these divergences add up.

    >>> float(laplace_rdp(0.5, 2.0)).__round__(6), float(laplace_rdp(0.5, 1e6)).__round__(4)
    (0.200304, 0.5)
    """
    if not order > 1:
        raise InputError("order", f"must be above 1, got {order}")
    e = np.asarray(epsilon, dtype=np.float64)
    up, down = order / (2.0 * order - 1.0), (order - 1.0) / (2.0 * order - 1.0)
    if np.max((order - 1.0) * e, initial=0.0) < 30.0:
        log = np.log1p(up * np.expm1((order - 1.0) * e) + down * np.expm1(-order * e))
    else:
        log = np.logaddexp(math.log(up) + (order - 1.0) * e, math.log(down) - order * e)
    return np.asarray(log / (order - 1.0))


def gaussian_rdp(rho: float, order: float) -> float:
    """Rényi divergence at ``order`` of a Gaussian mechanism that is rho-zCDP: order * rho (Mironov 2017, Corollary 3).

    The mechanism adds noise of variance 1/(2 rho) to a sum of sensitivity 1.

    >>> gaussian_rdp(0.25, 4.0)
    1.0
    """
    if not order > 1:
        raise InputError("order", f"must be above 1, got {order}")
    return order * positive("rho", rho)


def pure_to_zcdp(epsilon: float) -> float:
    """The rho at which every epsilon-private mechanism is rho-zCDP: epsilon tanh(epsilon/2), at most epsilon^2/2.

    Bun & Steinke 2016, Proposition 1.4, give epsilon^2/2. This is sharper. The worst mechanism, randomised response,
    has (order - 1) D = log cosh(epsilon u) - log cosh(epsilon/2) with u = order - 1/2. The right side is concave in
    u^2, and order (order - 1) = u^2 - 1/4. So D/order is largest as the order tends to 1, where D is the KL divergence.

    >>> round(pure_to_zcdp(1.0), 6), round(pure_to_zcdp(0.01), 12)
    (0.462117, 4.9999583e-05)
    """
    epsilon = positive("epsilon", epsilon)
    return epsilon * math.tanh(0.5 * epsilon)


def rdp_to_dp(rdp: Callable[[float], float], delta: float) -> float:
    """The least epsilon at ``delta`` that follows from the Rényi curve ``rdp(order)``.

    rdp(a) + log(1 - 1/a) - (log delta + log a)/(a - 1), minimised over a > 1 (Canonne, Kamath & Steinke 2020,
    Proposition 12). Every order gives a valid epsilon, so an inexact search only makes the result less tight.

    >>> round(rdp_to_dp(lambda a: 100 * float(laplace_rdp(0.1, a)), 1e-6), 3)
    4.984
    """
    fraction("delta", delta)

    def at(log_lift: float) -> float:
        lift = math.exp(log_lift)
        order = 1.0 + lift
        return rdp(order) + math.log(lift / order) - (math.log(delta) + math.log(order)) / lift

    coarse = np.arange(-5.0, 16.0, 1.0)
    centre = float(coarse[int(np.argmin([at(float(x)) for x in coarse]))])
    found = minimize_scalar(at, bounds=(centre - 1.0, centre + 1.0), method="bounded", options={"xatol": 1e-4})
    return max(0.0, min(float(found.fun), at(centre)))


def zcdp_to_dp(rho: float, delta: float) -> float:
    """The epsilon at ``delta`` of a rho-zCDP mechanism; less than Bun & Steinke's rho + 2 sqrt(rho log(1/delta)).

    >>> round(zcdp_to_dp(0.1, 1e-6), 4), round(0.1 + 2 * math.sqrt(0.1 * math.log(1e6)), 4)
    (2.1419, 2.4508)
    """
    positive("rho", rho)
    return rdp_to_dp(lambda order: order * rho, delta)


def gaussian_delta(rho: float, epsilon: float) -> float:
    """The exact delta of a Gaussian mechanism that is rho-zCDP (Balle & Wang 2018, Theorem 8).

    Phi(m/2 - epsilon/m) - e^epsilon Phi(-m/2 - epsilon/m), with m = sqrt(2 rho) the sensitivity in standard deviations.

    >>> round(gaussian_delta(0.5, 1.0), 6)
    0.126937
    """
    m = math.sqrt(2.0 * positive("rho", rho))
    inner, outer = float(log_ndtr(0.5 * m - epsilon / m)), float(log_ndtr(-0.5 * m - epsilon / m))
    return math.exp(inner) * -math.expm1(min(0.0, epsilon + outer - inner))


def gaussian_epsilon(rho: float, delta: float) -> float:
    """The exact epsilon at ``delta`` of a Gaussian mechanism that is rho-zCDP.

    >>> round(gaussian_epsilon(0.5, 0.126937), 4)
    1.0
    """
    fraction("delta", delta)
    low, high = 0.0, zcdp_to_dp(rho, delta)
    if gaussian_delta(rho, 0.0) <= delta:
        return 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if gaussian_delta(rho, middle) <= delta:
            high = middle
        else:
            low = middle
    return high
