"""Convert-to-Bernoulli: a reward in [0, 1] becomes one private bit (Ren et al. 2020, Curator 3)."""

from __future__ import annotations

import math

from numpy.random import Generator

from dpbandits.numerics import sigmoid


def response_probability(reward: float, epsilon: float) -> float:
    """The probability that the response is 1: (r e^epsilon + 1 - r) / (1 + e^epsilon), in a form that never overflows.

    Also the mean response to rewards of mean ``reward``, because it is linear. Pure epsilon-privacy on [0, 1]: the
    ratio e^epsilon is reached between rewards 0 and 1.

    >>> round(response_probability(1.0, 1.0), 6), response_probability(0.0, 1000.0)
    (0.731059, 0.0)
    """
    return reward * sigmoid(epsilon) + (1.0 - reward) * sigmoid(-epsilon)


def convert_to_bernoulli(reward: float, epsilon: float, rng: Generator) -> float:
    """One private bit, 0.0 or 1.0.

    >>> import numpy as np
    >>> convert_to_bernoulli(1.0, 3.0, np.random.default_rng(0))
    1.0
    """
    return 1.0 if rng.random() < response_probability(reward, epsilon) else 0.0


def debias(response: float, epsilon: float) -> float:
    """The value whose expectation is the reward: g(x; epsilon) of the heterogeneous-levels paper.

    >>> round(debias(1.0, 1.0), 6), debias(0.0, 1000.0)
    (1.581977, 0.0)
    """
    return 0.5 + (response - 0.5) / math.tanh(0.5 * epsilon)


def debias_variance(epsilon: float) -> float:
    """coth(epsilon/2)^2, the factor by which debiasing inflates the squared range: beta(epsilon) of the paper.

    >>> round(debias_variance(1.0), 6), debias_variance(1000.0)
    (4.682694, 1.0)
    """
    slope = math.tanh(0.5 * epsilon)
    return 1.0 / (slope * slope)
