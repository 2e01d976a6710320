"""The privacy cost of several releases together (basic, advanced and optimal composition), and group privacy.

Everything here holds for adaptively chosen mechanisms. In ``optimal`` and ``heterogeneous`` the argument ``delta`` is
the total, which includes the mechanisms' own deltas; these are passed as ``delta_each`` or ``deltas``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
from scipy.special import gammaln, logsumexp

from dpbandits.checks import at_least, fraction, positive
from dpbandits.errors import InputError
from dpbandits.exact.rational import Exactly, rational
from dpbandits.privacy.loss_distribution import composed_loss, tilt_for_delta, tilt_for_total
from dpbandits.privacy.users import group
from dpbandits.types import Floats

__all__ = [
    "advanced",
    "group",
    "heterogeneous",
    "heterogeneous_delta",
    "optimal",
    "optimal_delta",
    "pure",
]


def pure(epsilons: Iterable[Exactly]) -> Fraction:
    """Basic composition: epsilons add (Dwork et al. 2006), here without rounding.

    >>> pure([0.1] * 10)
    Fraction(1, 1)
    """
    return sum((rational("epsilon", epsilon, zero=True) for epsilon in epsilons), Fraction(0))


def advanced(epsilons: Sequence[float] | Floats, delta: float) -> float:
    """Advanced composition (Dwork, Rothblum & Vadhan 2010, Theorem III.3), one term for each mechanism.

    sum e (e^e - 1) + sqrt(2 ln(1/delta) sum e^2). It is here because papers use it; ``heterogeneous`` is never worse.

    >>> round(advanced([0.1] * 100, 1e-6), 3)
    6.308
    """
    e = _epsilons(epsilons)
    fraction("delta", delta)
    return float(np.sum(e * np.expm1(e)) + math.sqrt(2.0 * math.log(1.0 / delta) * np.sum(e * e)))


def optimal_delta(epsilon: float, count: int, total: float, delta_each: float = 0.0) -> float:
    """The exact delta at epsilon ``total`` of ``count`` composed mechanisms, each (epsilon, delta_each)-private.

    Kairouz, Oh & Viswanath 2015, Theorem 3.3: randomised response is the worst mechanism, so its binomial privacy loss
    gives the exact answer. The sum is computed in logarithms.

    >>> round(optimal_delta(0.1, 100, 4.774568, 0.0), 9)
    1e-06
    """
    epsilon, count = positive("epsilon", epsilon), at_least("count", count, 1)
    fraction("delta_each", delta_each, zero=True)
    flips = np.arange(count + 1)
    log_mass = gammaln(count + 1) - gammaln(flips + 1) - gammaln(count - flips + 1) - flips * epsilon
    log_mass -= count * math.log1p(math.exp(-epsilon))
    excess = (count - 2 * flips) * epsilon - total
    over = excess > 0
    composed = 0.0
    if over.any():
        composed = float(np.exp(logsumexp(log_mass[over] + np.log(-np.expm1(-excess[over])))))
    return _with_own(composed, count * math.log1p(-delta_each))


def optimal(epsilon: float, count: int, delta: float, delta_each: float = 0.0) -> float:
    """The exact least epsilon at ``delta`` of ``count`` composed mechanisms, each (epsilon, delta_each)-private.

    >>> [round(optimal(0.1, k, 1e-6), 6) for k in (10, 100, 1000)]
    [0.999371, 4.774568, 19.344671]
    """
    fraction("delta", delta, zero=True)
    least = _with_own(0.0, at_least("count", count, 1) * math.log1p(-fraction("delta_each", delta_each, zero=True)))
    if least > delta:
        raise InputError("delta", f"must be at least {least:.6g}, what the mechanisms' own add up to, got {delta}")
    low, high = 0.0, count * positive("epsilon", epsilon)
    if optimal_delta(epsilon, count, low, delta_each) <= delta:
        return low
    for _ in range(60):
        middle = 0.5 * (low + high)
        if optimal_delta(epsilon, count, middle, delta_each) <= delta:
            high = middle
        else:
            low = middle
    return high


def heterogeneous_delta(
    epsilons: Sequence[float] | Floats,
    total: float,
    deltas: Sequence[float] = (),
    counts: Sequence[int] | Floats | None = None,
) -> float:
    """An upper bound on the optimal delta at epsilon ``total`` of mechanisms with different epsilons.

    The privacy loss of randomised response takes two values. It is replaced by the best dominating loss on a grid
    (connecting the dots, Doroshenko et al. 2022). The distribution of the sum is computed around ``total`` after
    exponential tilting, so the error is relative. Every approximation rounds up: the result is a valid delta, usually
    within 0.3 % of the optimal one. The exact problem is #P-hard (Murtagh & Vadhan 2016). ``counts`` says how often
    each epsilon occurs.

    >>> 1.0 <= heterogeneous_delta([0.1] * 100, 4.774568) / optimal_delta(0.1, 100, 4.774568) < 1.001
    True
    """
    e, m = _counted(epsilons, counts)
    log_own = sum(math.log1p(-fraction("deltas", delta, zero=True)) for delta in deltas)
    if not total >= 0:
        raise InputError("total", f"must not be negative, got {total}")
    left = float(np.dot(m, e)) - total
    if left <= 0.0:
        return _with_own(0.0, log_own)
    loss = composed_loss(e, m, tilt_for_total(e, m, total))
    return _with_own(min(loss.delta(total), -math.expm1(-left)), log_own)  # no loss exceeds the sum of the epsilons


def heterogeneous(
    epsilons: Sequence[float] | Floats,
    delta: float,
    deltas: Sequence[float] = (),
    counts: Sequence[int] | Floats | None = None,
) -> float:
    """An upper bound on the optimal epsilon at ``delta`` of mechanisms with different epsilons, never above their sum.

    >>> round(heterogeneous([0.1] * 50 + [0.05] * 50, 1e-6), 2)
    3.64
    """
    e, m = _counted(epsilons, counts)
    fraction("delta", delta, zero=True)
    log_own = sum(math.log1p(-fraction("deltas", own, zero=True)) for own in deltas)
    own = _with_own(0.0, log_own)
    if own > delta:
        raise InputError("delta", f"must be at least {own:.6g}, what the mechanisms' own add up to, got {delta}")
    allowed = -math.expm1(math.log1p(-delta) - log_own)
    most = max(0.0, float(np.dot(m, e)) + math.log1p(-max(allowed, 0.0)))
    if allowed <= 0.0 or most == 0.0:
        return most
    best, tilt = most, tilt_for_delta(e, m, allowed)
    for _ in range(5):  # the tilt from Chernoff's bound is too large; each result gives a better one
        found = composed_loss(e, m, tilt).epsilon(allowed)
        if found > 0.9999 * best:
            break
        best, tilt = found, tilt_for_total(e, m, found)
    return min(best, found)


def _with_own(composed: float, log_own: float) -> float:
    """The failure of composition or of a mechanism: 1 - (1 - composed) e^log_own, where e^log_own = prod(1 - delta)."""
    return float(-math.expm1(math.log1p(-composed) + log_own)) if composed < 1.0 else 1.0


def _epsilons(epsilons: Sequence[float] | Floats) -> Floats:
    e = np.asarray(epsilons, dtype=np.float64)
    if e.ndim != 1 or not e.size:
        raise InputError("epsilons", "must be a list of at least one number")
    for wrong in e[~((e > 0) & (e < np.inf))]:
        raise InputError("epsilons", f"must be positive and finite, got {wrong}")
    return e


def _counted(epsilons: Sequence[float] | Floats, counts: Sequence[int] | Floats | None) -> tuple[Floats, Floats]:
    """The distinct epsilons and how often each occurs, most frequent first, because their spectrum is the narrowest."""
    e = _epsilons(epsilons)
    m = np.ones(len(e)) if counts is None else np.asarray(counts, dtype=np.float64)
    if m.shape != e.shape or not (m >= 1).all() or (m != np.floor(m)).any():
        raise InputError("counts", f"must be one whole number of at least 1 for each epsilon, got {counts}")
    different, which = np.unique(e, return_inverse=True)
    often = np.bincount(which, weights=m).astype(np.float64)
    order = np.argsort(-often, kind="stable")
    return different[order], often[order]
