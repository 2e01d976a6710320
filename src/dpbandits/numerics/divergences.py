"""Divergences between Bernoulli distributions, without and with privacy, and their inverses."""

from __future__ import annotations

import math

__all__ = ["d_eps", "d_eps_slope", "d_eps_upper", "kl", "kl_across", "kl_lower", "kl_lower_near", "kl_upper"]


def kl(p: float, q: float) -> float:
    """The Kullback-Leibler divergence KL(Bernoulli(p), Bernoulli(q)).

    >>> round(kl(0.5, 0.75), 6), kl(0.0, 0.0), kl(0.5, 1.0)
    (0.143841, 0.0, inf)
    """
    total = 0.0
    if p > 0.0:
        if q <= 0.0:
            return math.inf
        total += p * math.log(p / q)
    if p < 1.0:
        if q >= 1.0:
            return math.inf
        total += (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
    return total if total > 0.0 else 0.0


def kl_upper(p: float, budget: float) -> float:
    """The largest q in [p, 1] with kl(p, q) <= budget.

    Newton's method, started to the right of the root. kl(p, .) is convex and increasing there, so no step passes the
    root. The start is tight: the smaller of Pinsker's bound and the bound that drops the term in log q.

    >>> round(kl_upper(0.5, 0.143841), 5), kl_upper(1.0, 0.1), kl_upper(0.3, 0.0)
    (0.75, 1.0, 0.3)
    """
    if p >= 1.0 or budget <= 0.0:
        return p
    if p <= 0.0:
        return -math.expm1(-budget)
    rest = 1.0 - p
    entropy = p * math.log(p) + rest * math.log(rest)
    q = min(p + math.sqrt(0.5 * budget), -math.expm1((entropy - budget) / rest))
    if q >= 1.0:
        return 1.0
    if q <= p:
        return p
    for _ in range(50):
        excess = entropy - p * math.log(q) - rest * math.log1p(-q) - budget
        step = excess * q * (1.0 - q) / (q - p)
        q -= step
        if step <= 1e-13 * q or q <= p:
            break
    return max(q, p)


def kl_lower(q: float, budget: float) -> float:
    """The smallest p in [0, q] with kl(p, q) <= budget.

    Newton's method, started to the left of the root. kl(., q) is convex and decreasing there, so no step passes the
    root. The start is Pinsker's bound where it is positive; otherwise it is found by halving.

    >>> round(kl_lower(0.75, 0.143841), 5), kl_lower(0.5, 0.7), kl_lower(0.3, 0.0), kl_lower(1e-17, 5e-18)
    (0.5, 0.0, 0.3, 0.0)
    """
    if q <= 0.0 or budget <= 0.0:
        return q
    if q >= 1.0:
        return 1.0
    if -math.log1p(-q) <= budget:
        return 0.0
    p = q - math.sqrt(0.5 * budget)
    if p <= 0.0:
        p = 0.5 * q
        while p > 0.0 and kl(p, q) < budget:
            p *= 0.5
        if p <= 0.0:
            return 0.0  # kl rounds to 0 for such a small q
    for _ in range(50):
        slope = math.log(p / q) - math.log((1.0 - p) / (1.0 - q))
        step = (kl(p, q) - budget) / -slope if slope < 0.0 else 0.0
        p += step
        if step <= 1e-13 * p or p >= q:
            break
    return min(p, q)


def kl_lower_near(p: float, q: float, divergence: float, budget: float) -> float:
    """An upper bound on ``kl_lower(q, budget)``, close to it near ``p``; ``divergence`` is kl(p, q).

    kl(., q) is convex and decreasing, so the root is to the right of that of the tangent at p, and between the two no
    slope is steeper than there. The bound is q where the budget is smaller than the divergence.

    >>> kl_lower_near(0.5, 0.75, kl(0.5, 0.75), 0.15) - kl_lower(0.75, 0.15) < 1e-4
    True
    """
    more = budget - divergence
    if more < 0.0 or p <= 0.0 or p >= q or q >= 1.0:
        return q
    slope = math.log(q * (1.0 - p) / (p * (1.0 - q)))
    left = p - more / slope if slope > 0.0 else 0.0  # the slope may round to 0
    if left <= 0.0:
        return kl_lower(q, budget)
    return p - more / math.log(q * (1.0 - left) / (left * (1.0 - q)))


def kl_across(mean: float, gap: float) -> float:
    """kl(mean, mean + gap), accurate for any gap. ``kl`` suffers from cancellation for gaps below 1e-7.

    >>> round(kl_across(0.5, 0.25), 6), round(kl_across(0.5, 1e-12) / 2e-24, 6)
    (0.143841, 1.0)
    """
    rest = 1.0 - mean
    if 0.0 < gap < 1e-5 * min(mean, rest):
        return 0.5 * gap * gap * (1.0 / (mean * rest) + gap * (2.0 / 3.0) * (rest**-2 - mean**-2))
    return kl(mean, mean + gap)


def d_eps(x: float, y: float, epsilon: float) -> float:
    """inf over z of epsilon |z - x| + kl(z, y), for y in [0, 1] and any x.

    It is the rate at which an epsilon-private policy distinguishes Bernoulli x from Bernoulli y (Azize, Wu, Honda,
    Orabona, Ito & Basu 2025). For x <= y the closed form is kl(x, y) if x >= z = y e^-epsilon / (1 - y + y e^-epsilon),
    and -epsilon x - log(1 - y + y e^-epsilon) otherwise. The case x > y follows by symmetry. The value tends to
    kl(x, y) as epsilon grows, and is about epsilon |x - y| for small epsilon.

    >>> round(d_eps(0.1, 0.8, 0.5), 6), round(d_eps(0.1, 0.8, 50.0) - kl(0.1, 0.8), 6), d_eps(-1.0, 0.0, 2.0)
    (0.328009, 0.0, 2.0)
    >>> d_eps(0.5, 1.0, 50.0)
    25.0
    """
    if x > y:
        x, y = 1.0 - x, 1.0 - y
    shrunk = y * math.exp(-epsilon)
    normal = 1.0 - y + shrunk
    if normal <= 0.0 or x * normal >= shrunk:
        return kl_across(x, y - x)
    log_normal = math.log1p(y * math.expm1(-epsilon)) if normal > 0.5 else math.log(normal)  # both are exact there
    return -epsilon * x - log_normal


def d_eps_slope(x: float, y: float, epsilon: float) -> tuple[float, float]:
    """The first and the second derivative of ``d_eps`` in y, for 0 < y < 1. The second is never negative.

    >>> first, second = d_eps_slope(0.1, 0.8, 0.5)
    >>> change = (d_eps(0.1, 0.8 + 1e-6, 0.5) - d_eps(0.1, 0.8 - 1e-6, 0.5)) / 2e-6
    >>> abs(first - change) < 1e-6, second > 0.0
    (True, True)
    """
    sign = 1.0
    if x > y:
        x, y, sign = 1.0 - x, 1.0 - y, -1.0
    shrunk = y * math.exp(-epsilon)
    normal = 1.0 - y + shrunk
    if normal <= 0.0 or x * normal >= shrunk:
        spread = y * (1.0 - y)
        return sign * (y - x) / spread, (spread - (y - x) * (1.0 - 2.0 * y)) / (spread * spread)
    slope = -math.expm1(-epsilon) / normal
    return sign * slope, slope * slope


def d_eps_upper(x: float, budget: float, epsilon: float) -> float:
    """The largest y in [x, 1] with d_eps(x, y, epsilon) <= budget, for x in [0, 1].

    >>> round(d_eps_upper(0.1, d_eps(0.1, 0.8, 0.5), 0.5), 6), d_eps_upper(0.2, 100.0, 1.0)
    (0.8, 1.0)
    """
    y = kl_upper(x, budget)
    shrunk = y * math.exp(-epsilon)
    if x * (1.0 - y + shrunk) >= shrunk:
        return y
    return min(math.expm1(-(epsilon * x + budget)) / math.expm1(-epsilon), 1.0)
