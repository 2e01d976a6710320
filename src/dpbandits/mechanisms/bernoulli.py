"""Convert-to-Bernoulli: a reward in [0, 1] becomes one private bit (Ren et al. 2020, Curator 3)."""

from __future__ import annotations

import math

from dpbandits.types import Rng


def truth_probability(epsilon: float) -> float:
    """The probability that randomised response answers truthfully: e^epsilon / (1 + e^epsilon), rounded down.

    The result is a multiple of 2^-53 and is not above the exact value, so there is never less noise than epsilon
    requires. The floating-point operations have a total error of less than 2^-51. A uniform number of 53 bits is below
    the result with exactly this probability.

    >>> round(truth_probability(1.0), 6), truth_probability(1000.0) == 1.0 - 2.0**-51
    (0.731059, True)
    """
    return max(1.0 / (1.0 + math.exp(-epsilon)) - 2.0**-51, 0.5)


def response_probability(reward: float, epsilon: float) -> float:
    """The probability that the response is 1: (r e^epsilon + 1 - r) / (1 + e^epsilon).

    It is linear in r, so it is also the mean response to rewards of mean ``reward``. The response is epsilon-private
    for rewards in [0, 1]. The ratio e^epsilon is reached between rewards 0 and 1, where no operation rounds.

    >>> round(response_probability(1.0, 1.0), 6), round(response_probability(0.0, 1.0), 6)
    (0.731059, 0.268941)
    """
    truth = truth_probability(epsilon)
    return (1.0 - truth) + reward * (2.0 * truth - 1.0)


def convert_to_bernoulli(reward: float, epsilon: float, rng: Rng) -> float:
    """One private bit, 0.0 or 1.0.

    >>> import numpy as np
    >>> convert_to_bernoulli(1.0, 3.0, np.random.default_rng(0))
    1.0
    """
    return 1.0 if rng.random() < response_probability(reward, epsilon) else 0.0


def attenuation(epsilon: float) -> float:
    """tanh(epsilon/2), the factor by which convert-to-Bernoulli shrinks differences of means.

    >>> round(attenuation(1.0), 6), attenuation(1000.0)
    (0.462117, 1.0)
    """
    return math.tanh(0.5 * epsilon)


def attenuate(mean: float, slope: float) -> float:
    """The mean response to rewards of this mean: ``response_probability`` as a function of the attenuation ``slope``.

    >>> round(attenuate(1.0, attenuation(1.0)), 6), attenuate(0.0, attenuation(1000.0))
    (0.731059, 0.0)
    """
    return 0.5 + (mean - 0.5) * slope


def debias(response: float, slope: float) -> float:
    """The unbiased estimate of the reward from a response with attenuation ``slope``: g(x; epsilon) of HeLDP.

    >>> round(debias(1.0, attenuation(1.0)), 6), debias(0.0, attenuation(1000.0))
    (1.581977, 0.0)
    """
    return 0.5 + (response - 0.5) / slope


def debias_variance(slope: float) -> float:
    """The factor by which debiasing at attenuation ``slope`` inflates the squared range: beta(epsilon) of HeLDP.

    >>> round(debias_variance(attenuation(1.0)), 6), debias_variance(attenuation(1000.0))
    (4.682694, 1.0)
    """
    square = slope * slope
    return 1.0 / square if square > 0.0 else math.inf
