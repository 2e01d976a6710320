"""The counts at which DP-UCB-INT releases an arm's mean, and the rate of its releases (Tossou & Dimitrakakis 2016)."""

from __future__ import annotations

import math

from dpbandits.numerics import power_sum

__all__ = ["CONSTANT", "EXACT", "SCHEDULES", "X_RULE", "Y_RULE", "interval_rate", "next_release"]

CONSTANT, X_RULE, Y_RULE = 0, 1, 2
SCHEDULES = {"constant": CONSTANT, "x": X_RULE, "y": Y_RULE}

#: The schedule with the shortest constant interval that meets the target at the horizon: ``exact_interval``.
EXACT = "exact"


def next_release(last: int, rate: float, v: float, schedule: int) -> int:
    """The first count after ``last`` at which a mean may be released again.

    The constant schedule of Algorithm 3 waits ceil(1/rate) rewards. Lemma B.1's rules release as soon as the privacy
    already paid for covers the next release: W' = inf{x > W : sum_{W < i <= x} i^-p >= x^-p / rate} with p = v/2
    (x-rule) or p = v (y-rule). The condition only becomes easier as x grows, so bisection finds the infimum.

    >>> w = [next_release(0, 0.0039643, 1.1, Y_RULE)]
    >>> for _ in range(3):
    ...     w.append(next_release(w[-1], 0.0039643, 1.1, Y_RULE))
    >>> [b - a for a, b in zip([0, *w], w)]
    [46, 131, 177, 200]
    """
    constant = math.ceil(1.0 / rate)
    if schedule == CONSTANT:
        return last + constant
    power = 0.5 * v if schedule == X_RULE else v
    low, high = last, last + constant  # no rule waits longer, because no term of the sum is below the last
    while high - low > 1:
        middle = (low + high) // 2
        if power_sum(last + 1, middle, power) >= float(middle) ** -power / rate:
            high = middle
        else:
            low = middle
    return high


def interval_rate(epsilon: float, delta: float, v: float) -> float:
    """Corollary 3.2: the rate at which Algorithm 3 is (epsilon, delta)-private for every horizon.

    >>> round(interval_rate(1.0, math.exp(-10), 1.1), 7)
    0.0039643
    """
    zeta = power_sum(1, 10**9, v) + 1e9 ** (1.0 - v) / (v - 1.0) - 0.5 * 1e9**-v
    log = math.log(1.0 / delta)
    root = (
        4.0 * epsilon / (8.0 * zeta) / (math.sqrt((log + 4.0 * epsilon) / (8.0 * zeta)) + math.sqrt(log / (8.0 * zeta)))
    )
    return root * root
