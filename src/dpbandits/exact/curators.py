"""Curators for one reward, in the local model: a reward goes in, an integer that may leave the device comes out.

Every one of them first maps the reward, whatever it is, to one of finitely many inputs, and then randomises over
those. Privacy is proved for the second step from every input to every other, so it holds whatever the first step does.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Protocol

from dpbandits.exact.noise import Noise, SystemNoise
from dpbandits.exact.rational import Exactly, rational

#: Convert-to-Bernoulli sees a reward as a multiple of 2^-48.
BERNOULLI_GRID = 48

#: The Laplace curator and integer sums see a reward as a multiple of 2^-16.
LAPLACE_GRID = 16


class LocalCurator(Protocol):
    """Makes one private response of one reward."""

    @property
    def epsilon(self) -> Fraction:
        """The level: pure epsilon-privacy of the reward, delta 0."""

    def respond(self, reward: float) -> int:
        """The response. Call it once for a reward: every call costs epsilon."""


def on_grid(reward: float, bits: int) -> int:
    """The multiple of 2^-bits nearest to ``reward``, in that unit, from 0 to 2^bits: what is outside is clamped.

    What is not a number becomes 0. Nothing is refused: an error would tell something about the reward.

    >>> [on_grid(x, 16) for x in (0.25, 7.0, -math.inf, math.nan)]
    [16384, 65536, 0, 0]
    """
    # max keeps its first argument unless the second is larger, which NaN is not. The scaling is exact.
    return int(float(min(1.0, max(0.0, reward))) * (1 << bits) + 0.5)


class RandomisedResponse:
    """A reward of 0 or 1 is answered truly with probability e^epsilon / (1 + e^epsilon) (Warner 1965).

    Other rewards count as the nearer of the two.

    >>> from dpbandits.exact.noise import RiggedNoise
    >>> RandomisedResponse("1/3", RiggedNoise(lambda n: b"\\xff" * n)).respond(1)
    1
    """

    __slots__ = ("_flip", "epsilon")

    def __init__(self, epsilon: Exactly, noise: Noise | None = None) -> None:
        self.epsilon = rational("epsilon", epsilon)
        self._flip = (noise or SystemNoise()).randomised_response(self.epsilon)

    def respond(self, reward: float) -> int:
        """0 or 1."""
        return int(self._flip(reward >= 0.5))


class BernoulliCurator:
    """Convert-to-Bernoulli (Ren et al. 2020, Curator 3): P(1) = (1 + r (e^epsilon - 1)) / (1 + e^epsilon), exactly.

    The reward r in [0, 1], on the 2^-48 grid, becomes a fair bit with mean r, and that bit is randomised.

    >>> BernoulliCurator("0.1").respond(0.3) in (0, 1)
    True
    """

    __slots__ = ("_flip", "_uniform", "epsilon")

    def __init__(self, epsilon: Exactly, noise: Noise | None = None) -> None:
        self.epsilon = rational("epsilon", epsilon)
        source = noise or SystemNoise()
        self._uniform = source.uniform
        self._flip = source.randomised_response(self.epsilon)

    def respond(self, reward: float) -> int:
        """0 or 1."""
        return int(self._flip(self._uniform(BERNOULLI_GRID) < on_grid(reward, BERNOULLI_GRID)))


class LaplaceCurator:
    """The Laplace curator (Ren et al. 2020, Curator 1) on integers. Differs: the reward is rounded to the 2^-16 grid.

    Rounding is inside [0, 2^16], so two rewards differ by at most 2^16 units, with nothing to add for it. Rewards
    within 2^-17 of each other may give the same response; the response is unbounded, as the mechanism's is.

    >>> curator = LaplaceCurator("1")
    >>> response = curator.respond(0.3)
    >>> curator.value(response) == response / 65536
    True
    """

    __slots__ = ("_noise", "epsilon")

    def __init__(self, epsilon: Exactly, noise: Noise | None = None) -> None:
        self.epsilon = rational("epsilon", epsilon)
        self._noise = (noise or SystemNoise()).discrete_laplace(self.epsilon, 1 << LAPLACE_GRID)

    def respond(self, reward: float) -> int:
        """The private reward, in units of 2^-16."""
        return self._noise(on_grid(reward, LAPLACE_GRID))

    @staticmethod
    def value(response: int) -> float:
        """The response in the reward's unit: post-processing, exact up to 2^37 in size."""
        return response / (1 << LAPLACE_GRID)


class SigmoidCurator:
    """Any curator, on any real reward, by way of the logistic function (Ren et al. 2020, Curators 5 and 6).

    Privacy does not rest on how well ``tanh`` is computed: whatever it returns is clamped to the grid, from every point
    of which the curator within is private to every other. A worse ``tanh`` would only be a slightly other function.

    >>> SigmoidCurator(BernoulliCurator("1")).respond(-1e308) in (0, 1)
    True
    """

    __slots__ = ("_within", "epsilon")

    def __init__(self, within: LocalCurator) -> None:
        self.epsilon = within.epsilon
        self._within = within

    def respond(self, reward: float) -> int:
        """What the curator within answers to 1 / (1 + e^-reward)."""
        # Beyond 99 it is 0 or 1 on every grid of ours, and a huge integer would not fit a float.
        return self._within.respond(0.5 + 0.5 * math.tanh(0.5 * min(99.0, max(-99.0, reward))))
