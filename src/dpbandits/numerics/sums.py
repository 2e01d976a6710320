"""Long sums, in closed form."""

from __future__ import annotations

import math

__all__ = ["power_sum"]


def power_sum(first: int, last: int, s: float) -> float:
    """The sum of i^-s for i from ``first`` to ``last``: term by term up to 64, then by the Euler-Maclaurin formula.

    >>> abs(power_sum(5, 900, 1.1) - sum(i**-1.1 for i in range(5, 901))) < 1e-13
    True
    """
    total = 0.0
    i = first
    while i <= last and i <= 64:
        total += float(i) ** -s  # a NumPy integer would use NumPy's power, which differs in the last bit
        i += 1
    if i > last:
        return total
    a, b = float(i), float(last)
    if abs(s - 1.0) < 1e-12:
        total += math.log(b / a)
    else:
        total += (b ** (1.0 - s) - a ** (1.0 - s)) / (1.0 - s)
    total += 0.5 * (a**-s + b**-s)
    total += s / 12.0 * (a ** (-s - 1.0) - b ** (-s - 1.0))
    total -= s * (s + 1.0) * (s + 2.0) / 720.0 * (a ** (-s - 3.0) - b ** (-s - 3.0))
    return total
