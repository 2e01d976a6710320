"""The piecewise mechanism (Wang et al. 2019) on a grid: a reward in [0, 1] becomes a number in a wider range."""

from __future__ import annotations

import math

from dpbandits.numerics import GRID
from dpbandits.types import Rng

#: By this factor the window is chosen more rarely: places in it, from uniform numbers of 53 bits, are equally likely up
#: to 2^-36.
RARER = 1.0 - 2.0**-35


def window_probability(width: float, epsilon: float) -> float:
    """The probability that the response is in the window: width e^epsilon / (width e^epsilon + 2^16), rounded down.

    >>> round(window_probability(24109.0, 2.0), 6)
    0.731056
    """
    return RARER * (width / (width + GRID * math.exp(-epsilon)) - 2.0**-50)


def piecewise(reward: float, width: float, inside: float, rng: Rng) -> float:
    """The response to a reward in [0, 1] on the grid of 2^-16: a multiple of 2^-16 from 0 to 1 + width / 2^16.

    With probability ``inside`` it is one of the ``width`` grid points from the reward on, and else one of the 2^16
    others. So the least probability of a response is (1 - inside) / 2^16 and the largest is inside / width (1 + 2^-36),
    whatever the reward, and with ``window_probability`` their ratio is at most e^epsilon. It is the law of
    ``exact.Window`` up to 2^-35, and it is private as it is drawn, if the uniform numbers are.

    >>> import numpy as np
    >>> piecewise(0.5, 24109.0, window_probability(24109.0, 2.0), np.random.default_rng(0)) * 65536
    39272.0
    """
    start = reward * GRID
    choice, here, there = rng.random(), rng.random(), rng.random()
    if choice < inside:
        return (start + min(float(int(here * width)), width - 1.0)) / GRID
    place = float(int(there * GRID))
    return (place if place < start else place + width) / GRID


def piecewise_mean(width: float, inside: float) -> tuple[float, float]:
    """(offset, slope): the mean response to a reward r in [0, 1] is offset + slope r.

    >>> offset, slope = piecewise_mean(24109.0, window_probability(24109.0, 2.0))
    >>> round(offset, 4), round(slope, 4)
    (0.3679, 0.6321)
    """
    top = GRID + width  # responses are 0 to top - 1
    rest = 0.5 * (top * (top - 1.0) - width * (width - 1.0)) / GRID
    offset = inside * 0.5 * (width - 1.0) + (1.0 - inside) * rest
    return offset / GRID, inside - (1.0 - inside) * width / GRID
