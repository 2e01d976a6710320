"""Curators for one reward, in the local model: each turns a reward into an integer that may leave the device.

Each curator first maps any reward to one of finitely many inputs, and then randomises that input. The second step is
proved private for every pair of inputs, so privacy does not depend on the first step.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Protocol

from dpbandits.exact.noise import Noise, SystemNoise
from dpbandits.exact.rational import Exactly, rational
from dpbandits.exact.sampling import WINDOW_GRID, window_width

#: Convert-to-Bernoulli rounds a reward to a multiple of 2^-48.
BERNOULLI_GRID = 48

#: The Laplace curator rounds a reward to a multiple of 2^-16.
LAPLACE_GRID = 16


class LocalCurator(Protocol):
    """Makes one private response from one reward."""

    @property
    def epsilon(self) -> Fraction:
        """The level: pure epsilon-privacy of the reward, delta 0."""

    def respond(self, reward: float) -> int:
        """The response. Call it only once for each reward, because every call costs epsilon."""


def as_float(reward: object) -> float:
    """``reward`` as a float; an object that is not a number becomes NaN, which curators treat as the lowest reward.

    It never fails. An error would leave a decision without its response, and the silence would reveal that the reward
    was None, for instance. Whoever waits for the response must not learn even that.

    >>> as_float(1), as_float(None), as_float(-(10**400))
    (1.0, nan, -inf)
    """
    try:
        try:
            return float(reward)  # type: ignore[arg-type]
        except OverflowError:
            return math.inf if reward > 0 else -math.inf  # type: ignore[operator]
    except Exception:  # whatever a stranger's object raises
        return math.nan


def grid_steps(reward: float, bits: int) -> int:
    """``reward`` clamped to [0, 1] and rounded to the nearest multiple of 2^-bits, as an integer from 0 to 2^bits.

    No reward is refused: see ``as_float``. NaN becomes 0.

    >>> [grid_steps(x, 16) for x in (0.25, 7.0, -math.inf, math.nan)]
    [16384, 65536, 0, 0]
    """
    # max returns its first argument unless the second is larger, and NaN is not larger. The scaling is exact.
    return int(min(1.0, max(0.0, as_float(reward))) * (1 << bits) + 0.5)


class _AtLevel:
    """The common part of all curators: a level that is set once, by the call that makes the noise."""

    __slots__ = ("_epsilon",)

    def __init__(self, epsilon: Fraction) -> None:
        self._epsilon = epsilon

    @property
    def epsilon(self) -> Fraction:
        """The level. It cannot be changed: the noise was made for it, and the budget is charged for it."""
        return self._epsilon


class RandomisedResponse(_AtLevel):
    """Randomised response (Warner 1965): a reward of 0 or 1 is kept with probability e^epsilon / (1 + e^epsilon).

    Any other reward is first rounded to the nearer of the two.

    >>> from dpbandits.exact.noise import RiggedNoise
    >>> RandomisedResponse("1/3", RiggedNoise(lambda n: b"\\xff" * n)).respond(1)
    1
    """

    __slots__ = ("_flip",)

    def __init__(self, epsilon: Exactly, noise: Noise | None = None) -> None:
        super().__init__(rational("epsilon", epsilon))
        self._flip = (noise or SystemNoise()).randomised_response(self.epsilon)

    def respond(self, reward: float) -> int:
        """0 or 1."""
        return int(self._flip(as_float(reward) >= 0.5))


class ThresholdCurator(_AtLevel):
    """Whether a reward of any size is above a public threshold, by randomised response. NaN counts as not above.

    >>> ThresholdCurator("1", 20.0).respond(35.0) in (0, 1)
    True
    """

    __slots__ = ("_flip", "_threshold")

    def __init__(self, epsilon: Exactly, threshold: float, noise: Noise | None = None) -> None:
        super().__init__(rational("epsilon", epsilon))
        self._flip, self._threshold = (noise or SystemNoise()).randomised_response(self.epsilon), threshold

    def respond(self, reward: float) -> int:
        """0 or 1."""
        return int(self._flip(as_float(reward) > self._threshold))


class BernoulliCurator(_AtLevel):
    """Convert-to-Bernoulli (Ren et al. 2020, Curator 3): P(1) = (1 + r (e^epsilon - 1)) / (1 + e^epsilon), exactly.

    The reward r in [0, 1], on the 2^-48 grid, becomes a random bit with mean r. Then randomised response is applied to
    that bit.

    >>> BernoulliCurator("0.1").respond(0.3) in (0, 1)
    True
    """

    __slots__ = ("_flip", "_uniform")

    def __init__(self, epsilon: Exactly, noise: Noise | None = None) -> None:
        super().__init__(rational("epsilon", epsilon))
        source = noise or SystemNoise()
        self._uniform = source.uniform
        self._flip = source.randomised_response(self.epsilon)

    def respond(self, reward: float) -> int:
        """0 or 1."""
        return int(self._flip(self._uniform(BERNOULLI_GRID) < grid_steps(reward, BERNOULLI_GRID)))


class LaplaceCurator(_AtLevel):
    """The Laplace curator (Ren et al. 2020, Curator 1) on integers.

    Unlike in the paper, the reward is rounded to the 2^-16 grid. The rounded reward is in [0, 2^16], so two rewards
    differ by at most 2^16 units: rounding does not increase the sensitivity. Rewards within 2^-16 of each other may
    give the same response. The response is unbounded, as in the Laplace mechanism.

    >>> curator = LaplaceCurator("1")
    >>> response = curator.respond(0.3)
    >>> curator.value(response) == response / 65536
    True
    """

    __slots__ = ("_noise",)

    def __init__(self, epsilon: Exactly, noise: Noise | None = None) -> None:
        super().__init__(rational("epsilon", epsilon))
        self._noise = (noise or SystemNoise()).discrete_laplace(self.epsilon, 1 << LAPLACE_GRID)

    def respond(self, reward: float) -> int:
        """The private reward, in units of 2^-16."""
        return self._noise(grid_steps(reward, LAPLACE_GRID))

    @staticmethod
    def value(response: int) -> float:
        """The response in the unit of the reward. This is post-processing, and exact up to 2^37 in size."""
        return response / (1 << LAPLACE_GRID)


class PiecewiseCurator(_AtLevel):
    """The piecewise mechanism (Wang et al. 2019) on integers, for rewards that are not just 0 or 1.

    The reward is rounded to the 2^-16 grid, as j. The response is an integer: with probability w e^epsilon / (w
    e^epsilon + 2^16) one of the w integers from j on, w being 2^16 e^(-epsilon/2) rounded down, and otherwise one of
    the 2^16 others from 0 to 2^16 + w - 1. See ``sampling.Window`` for the proof. From about epsilon 1.5 on it tells
    more about such rewards than a bit does; about rewards of 0 and 1 it tells less.

    >>> curator = PiecewiseCurator("2")
    >>> 0 <= curator.respond(0.3) < 65536 + curator.width
    True
    """

    __slots__ = ("_window", "width")

    def __init__(self, epsilon: Exactly, noise: Noise | None = None) -> None:
        super().__init__(rational("epsilon", epsilon))
        self._window = (noise or SystemNoise()).window(self.epsilon)
        self.width = window_width(self.epsilon)

    def respond(self, reward: float) -> int:
        """The private reward, in units of 2^-16."""
        return self._window(grid_steps(reward, WINDOW_GRID))


class SigmoidCurator(_AtLevel):
    """Applies the logistic function to any real reward, and then another curator (Ren et al. 2020, Curators 5 and 6).

    Privacy does not depend on how accurately ``tanh`` is computed: its result is clamped to the grid, and the inner
    curator is private for every pair of grid points. A less accurate ``tanh`` would only be a slightly different
    function.

    >>> SigmoidCurator(BernoulliCurator("1")).respond(-1e308) in (0, 1)
    True
    """

    __slots__ = ("_within",)

    def __init__(self, within: LocalCurator) -> None:
        super().__init__(rational("epsilon", within.epsilon))
        self._within = within

    def respond(self, reward: float) -> int:
        """The inner curator's response to 1 / (1 + e^-reward)."""
        # Beyond 99 the logistic function is 0 or 1 on both grids; max takes NaN to the lowest.
        return self._within.respond(0.5 + 0.5 * math.tanh(0.5 * min(99.0, max(-99.0, as_float(reward)))))
