"""Logarithms for counts of rounds, and of ratios near 1."""

from __future__ import annotations

import math

__all__ = ["log_ratio", "positive_log", "top_bit"]


def positive_log(t: float) -> float:
    """log(t), never below zero."""
    return math.log(t) if t > 1 else 0.0


def top_bit(n: int) -> int:
    """Position of the highest set bit of a positive integer below 2^53: floor(log2 n).

    >>> [top_bit(n) for n in (1, 2, 3, 4, 12)]
    [0, 1, 1, 2, 3]
    """
    return math.frexp(n)[1] - 1


def log_ratio(x: float, y: float, change: float) -> float:
    """log(x / y), where ``change`` is x / y - 1."""
    return math.log1p(change) if abs(change) < 0.5 else math.log(x) - math.log(y)
