"""Many draws at once, with the same distribution as single draws, both in plain Python and compiled.

And a generator that knows whether anything was drawn.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpbandits.types import Rng

__all__ = ["WatchedGenerator", "bits_above", "rounds_above", "rounds_within", "successes"]

DEVIATIONS = 2.5  # an event this many standard deviations from the mean counts as rare


class WatchedGenerator:
    """A generator that knows whether it was used; by default a fresh one.

    >>> watched = WatchedGenerator(np.random.default_rng(0))
    >>> watched.used, round(watched.random(), 3), watched.used
    (False, 0.637, True)
    """

    __slots__ = ("generator", "used")

    def __init__(self, generator: np.random.Generator | None = None) -> None:
        self.generator, self.used = np.random.default_rng() if generator is None else generator, False

    def __getattr__(self, name: str) -> Any:
        self.used = True
        return getattr(self.generator, name)


def successes(n: int, p: float, rng: Rng) -> float:
    """The number of ones among n independent bits, each 1 with probability p.

    >>> import numpy as np
    >>> successes(1000, 0.9, np.random.default_rng(0))
    908.0
    """
    if n == 1:
        return 1.0 if rng.random() < p else 0.0
    return float(rng.binomial(n, p))


def rounds_above(total: float, count: int, line: float, most: int) -> int:
    """How many more non-negative values can be added before the mean could fall to ``line``; from 1 to ``most``.

    >>> rounds_above(90.0, 100, 0.8, 1000), rounds_above(90.0, 100, 0.899, 1000), rounds_above(90.0, 100, -1.0, 1000)
    (12, 1, 1000)
    """
    if line * (count + most) < total:
        return most
    if line <= 0.0:
        return 1
    return max(int(total / line * (1.0 - 1e-12)) - count, 1)


def bits_above(total: float, count: int, line: float, most: int, p: float, rng: Rng) -> tuple[int, float]:
    """Draw up to ``most`` bits, until the mean of all values is no longer above ``line``.

    Returns the number of bits drawn and their sum; ``total`` is the sum of the ``count`` earlier values. With slack
    a = total - line * count, the mean can reach the line only after a / line zeros, in any order. So a number of bits
    that rarely contains a / line zeros is drawn at once. If it does contain them, the order of the bits is drawn too,
    and the bits after the crossing are discarded. This changes no distribution, because the bits are independent.

    >>> import numpy as np
    >>> bits_above(90.0, 100, 0.8, 1000, 0.9, np.random.default_rng(0))
    (62, 55.0)
    """
    n = most
    zeros_needed = float(most) + 1.0
    if line > 0.0:
        zeros_needed = (total / line - count) * (1.0 - 1e-12)
        if zeros_needed < most:
            longest = max(zeros_needed, rounds_within(zeros_needed, 1.0 - p + 1e-300, 1.0 - p + 1e-300))
            n = most if longest >= most else max(int(longest), 1)
    elif line == 0.0 and total <= 0.0:
        n = 1  # the first 0 reaches the line
    ones = successes(n, p, rng)
    if n - ones < zeros_needed or n == 1:
        return n, ones
    total_ones = 0.0
    for drawn in range(1, n + 1):
        if rng.random() * (n - drawn + 1) < ones - total_ones:
            total_ones += 1.0
        if total + total_ones <= line * (count + drawn):
            return drawn, total_ones
    return n, ones


def rounds_within(slack: float, drift: float, variance: float) -> float:
    """The n with drift n + DEVIATIONS sqrt(variance n) = slack: the losses of n rounds rarely add up to ``slack``.

    ``drift`` is the mean loss of a round, and ``variance`` is a bound on its variance. A slack below 0 gives 0.

    >>> round(rounds_within(10.0, 0.1, 0.1), 2)
    46.24
    """
    slack = max(slack, 0.0)
    half = 0.5 * DEVIATIONS
    root = slack / (half * math.sqrt(variance) + math.sqrt(half * half * variance + drift * slack))
    return root * root
