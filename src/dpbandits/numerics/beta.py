"""The density of a beta distribution near its peak, accurate for any number of rewards."""

from __future__ import annotations

import math

from dpbandits.numerics.logarithms import log_ratio

__all__ = ["beta_deficit", "log_beta_peak", "stirling_error"]


def log_beta_peak(n: float, p: float) -> float:
    """The log of the largest density of Beta(p n + 1, (1 - p) n + 1), which is at p.

    The density is (n + 1) times a binomial probability, which is accurate for any n in the form of Loader (2000).

    >>> round(math.exp(log_beta_peak(2.0, 0.5)), 12), round(math.exp(log_beta_peak(9.0, 1.0)), 12)
    (1.5, 10.0)
    """
    ones, zeros = p * n, (1.0 - p) * n
    if min(ones, zeros) < 1e-200:
        return math.log(n + 1.0)
    near = stirling_error(n) - stirling_error(ones) - stirling_error(zeros)
    return near + 0.5 * math.log((n + 1.0) * (n + 1.0) * n / (2.0 * math.pi * ones * zeros))


def beta_deficit(n: float, p: float, x: float) -> float:
    """By how much the log density of Beta(p n + 1, (1 - p) n + 1) is less at x than at p: n kl(p, x).

    Unlike ``kl``, it is accurate where x is near p: to about 1e-16 n |x - p|.

    >>> round(beta_deficit(2.0, 0.5, 0.25) / math.log(4.0 / 3.0), 12), round(beta_deficit(1e12, 0.5, 0.5 + 1e-6), 9)
    (1.0, 2.0)
    """
    total = 0.0
    if p > 0.0:
        total -= p * log_ratio(x, p, (x - p) / p)
    if p < 1.0:
        total -= (1.0 - p) * log_ratio(1.0 - x, 1.0 - p, (p - x) / (1.0 - p))
    return n * total


def stirling_error(n: float) -> float:
    """log Gamma(n + 1) - (n + 1/2) log n + n - log(2 pi)/2 for n > 0: what Stirling's formula leaves out.

    >>> stirling = 10.5 * math.log(10.0) - 10.0 + 0.5 * math.log(2.0 * math.pi)
    >>> abs(stirling_error(10.0) - (math.lgamma(11.0) - stirling)) < 1e-14
    True
    """
    less = 0.0
    while n < 16.0:
        less += (n + 0.5) * math.log1p(1.0 / n) - 1.0
        n += 1.0
    part = 1.0 / n
    square = part * part
    return less + part * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0)))
