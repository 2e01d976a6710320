"""Convert-to-Bernoulli: a reward in [0, 1] becomes one private bit (Ren et al. 2020, Curator 3)."""

from __future__ import annotations

import math

from numpy.random import Generator


def response_probability(reward: float, epsilon: float) -> float:
    """The probability that the response is 1: (r e^epsilon + 1 - r) / (1 + e^epsilon), in a form that never overflows.

    Also the mean response to rewards of mean ``reward``, because it is linear. Pure epsilon-privacy on [0, 1]: the
    ratio e^epsilon is reached between rewards 0 and 1.

    >>> round(response_probability(1.0, 1.0), 6), response_probability(0.0, 1000.0)
    (0.731059, 0.0)
    """
    rare = math.exp(-epsilon)
    return (reward + (1.0 - reward) * rare) / (1.0 + rare)


def convert_to_bernoulli(reward: float, epsilon: float, rng: Generator) -> float:
    """One private bit, 0.0 or 1.0.

    >>> import numpy as np
    >>> convert_to_bernoulli(1.0, 3.0, np.random.default_rng(0))
    1.0
    """
    return 1.0 if rng.random() < response_probability(reward, epsilon) else 0.0


def successes(n: int, p: float, rng: Generator) -> float:
    """How many of n independent bits are 1, each being so with probability p.

    >>> import numpy as np
    >>> successes(1000, 0.9, np.random.default_rng(0))
    908.0
    """
    if n == 1:
        return 1.0 if rng.random() < p else 0.0
    return float(rng.binomial(n, p))


def bits_above(total: float, count: int, line: float, most: int, p: float, rng: Generator) -> tuple[int, float]:
    """Draw up to ``most`` bits, until the mean of all ``count`` + drawn ones is no longer above ``line``: (drawn, sum).

    With slack a = total - line * count the mean can reach the line only after a / line zeros, in whatever order they
    come. So a number of bits is drawn at once that will hardly hold so many zeros; if it does, its order is drawn too,
    and the bits after a crossing are left undrawn, which changes nothing because they are independent.

    >>> import numpy as np
    >>> bits_above(90.0, 100, 0.8, 1000, 0.9, np.random.default_rng(0))
    (62, 55.0)
    """
    n = most
    zeros_needed = float(most) + 1.0
    if line > 0.0:
        zeros_needed = (total / line - count) * (1.0 - 1e-12)
        likely = math.sqrt(1.5625 + max(zeros_needed, 0.0)) - 1.25  # likely^2 + 2.5 likely = zeros_needed
        longest = max(zeros_needed, likely * likely / (1.0 - p + 1e-300))
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


def attenuation(epsilon: float) -> float:
    """tanh(epsilon/2), by which convert-to-Bernoulli shrinks differences of means.

    >>> round(attenuation(1.0), 6), attenuation(1000.0)
    (0.462117, 1.0)
    """
    return math.tanh(0.5 * epsilon)


def attenuate(mean: float, slope: float) -> float:
    """The mean response to rewards of this mean, at attenuation ``slope``: ``response_probability`` written otherwise.

    >>> round(attenuate(1.0, attenuation(1.0)), 6), attenuate(0.0, attenuation(1000.0))
    (0.731059, 0.0)
    """
    return 0.5 + (mean - 0.5) * slope


def debias(response: float, slope: float) -> float:
    """The value whose expectation is the reward, from a response with attenuation ``slope``: g(x; epsilon) of HeLDP.

    >>> round(debias(1.0, attenuation(1.0)), 6), debias(0.0, attenuation(1000.0))
    (1.581977, 0.0)
    """
    return 0.5 + (response - 0.5) / slope


def debias_variance(slope: float) -> float:
    """The factor by which debiasing at attenuation ``slope`` inflates the squared range: beta(epsilon) of HeLDP.

    >>> round(debias_variance(attenuation(1.0)), 6), debias_variance(attenuation(1000.0))
    (4.682694, 1.0)
    """
    return 1.0 / (slope * slope)
