"""Sources of exact noise. They have their own type, so that a live service cannot use simulation noise by mistake."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Protocol, final

from dpbandits.errors import InputError
from dpbandits.exact.probability import WORD, Entropy, logistic
from dpbandits.exact.sampling import DiscreteGaussian, DiscreteLaplace, Flip, Window

#: Grid steps per unit.
GRID_STEPS = 1 << 16

#: The factor by which a scale is enlarged, so that rounding never makes the noise too small.
ENLARGED = 1 + Fraction(1, 1 << 50)

SAMPLERS_KEPT = 512  # at most this many samplers are cached, one for each scale


class Noise(Protocol):
    """What curators need from a source of noise: uniform bits, and three mechanisms."""

    def uniform(self, bits: int) -> int:
        """A uniform integer of ``bits`` bits, at most 64."""

    def randomised_response(self, epsilon: Fraction) -> Callable[[bool], bool]:
        """A function that flips a bit with probability 1 / (1 + e^epsilon)."""

    def discrete_laplace(self, epsilon: Fraction, sensitivity: int) -> Callable[[int], int]:
        """A function that adds noise to an integer of this sensitivity, and so makes it epsilon-private."""

    def window(self, epsilon: Fraction) -> Callable[[int], int]:
        """A function that makes an integer from 0 to 2^16 epsilon-private by the piecewise mechanism."""


class GridNoise:
    """Noise as an integer number of steps of 2^-16. It can only be added to a value on that grid.

    The sum is computed exactly, and only then rounded to a float. So the float depends on the private sum alone.

    >>> 0.25 + GridNoise(65536)
    1.25
    """

    __slots__ = ("steps",)
    __array_ufunc__ = None  # makes NumPy scalars use __radd__

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def __radd__(self, value: float) -> float:
        scaled = float(value) * GRID_STEPS
        if not scaled.is_integer():  # this refuses infinities and NaN too
            raise TypeError("exact noise must be added to a multiple of 2^-16; this value is not one")
        return (int(scaled) + self.steps) / GRID_STEPS


class _AsGenerator(ABC):
    """The generator methods that curators call, with exact noise: a uniform number, Laplace and Gaussian noise."""

    @abstractmethod
    def uniform(self, bits: int) -> int:
        """See ``Noise``."""

    @abstractmethod
    def discrete_laplace(self, epsilon: Fraction, sensitivity: int) -> Callable[[int], int]:
        """See ``Noise``."""

    def window(self, epsilon: Fraction) -> Callable[[int], int]:
        """See ``Noise``."""
        return Window(epsilon, self._bytes)

    def random(self) -> float:
        """A uniform number in [0, 1) with 53 bits. It is below a multiple p of 2^-53 with probability exactly p."""
        return self.uniform(53) * 2.0**-53

    def laplace(self, loc: float, scale: float) -> GridNoise:
        """Discrete Laplace noise on the grid of 2^-16. Its scale is never smaller than the given one.

        ``scale`` is a quotient of floats. It may have been rounded down, and the epsilon in it rounded up. Together
        these relative errors are less than 2^-51, so the scale is enlarged by a factor of 1 + 2^-50.
        """
        if loc != 0.0 or not 0.0 < scale < math.inf:
            raise InputError("scale", f"must be positive and finite, around 0, got {scale:g}")  # loc may be a reward
        return GridNoise(self._sampler(scale)(0))

    def normal(self, loc: float, scale: float) -> GridNoise:
        """Discrete Gaussian noise on the grid of 2^-16. Its scale is never smaller than the given one."""
        if loc != 0.0 or not 0.0 < scale < math.inf:
            raise InputError("scale", f"must be positive and finite, around 0, got {scale:g}")  # loc may be a reward
        variance = (Fraction(scale) * ENLARGED * GRID_STEPS) ** 2
        return GridNoise(DiscreteGaussian(variance, self._bytes)(0))

    def _bytes(self, count: int) -> bytes:
        """Random bytes."""
        return b"".join(self.uniform(64).to_bytes(8, "little") for _ in range(-(-count // 8)))[:count]

    def _sampler(self, scale: float) -> Callable[[int], int]:
        samplers: dict[float, Callable[[int], int]] = self.__dict__.setdefault("_samplers", {})
        sampler = samplers.get(scale)
        if sampler is None:
            if len(samplers) >= SAMPLERS_KEPT:
                samplers.clear()  # another thread keeps the sampler that it is using
            sampler = samplers[scale] = self.discrete_laplace(1 / (Fraction(scale) * ENLARGED), GRID_STEPS)
        return sampler


class ExactNoise(_AsGenerator):
    """Noise for deployment: exact, from the operating system's entropy, without a seed or memory.

    A class that inherits from this one promises these properties. A numpy ``Generator`` and ``RiggedNoise`` do not.
    """

    @abstractmethod
    def randomised_response(self, epsilon: Fraction) -> Callable[[bool], bool]:
        """See ``Noise``."""


class _FromBytes(_AsGenerator):
    """The methods of ``Noise``, from random bytes. No byte is kept."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy

    def uniform(self, bits: int) -> int:
        return int.from_bytes(self._entropy(WORD // 8), "little") >> WORD - bits

    def randomised_response(self, epsilon: Fraction) -> Callable[[bool], bool]:
        return Flip(logistic(epsilon), self._entropy)

    def discrete_laplace(self, epsilon: Fraction, sensitivity: int) -> Callable[[int], int]:
        return DiscreteLaplace(epsilon / sensitivity, self._entropy)

    def window(self, epsilon: Fraction) -> Callable[[int], int]:
        return Window(epsilon, self._entropy)


@final
class SystemNoise(_FromBytes, ExactNoise):
    """Exact noise from ``os.urandom``. Nothing is buffered, so forked workers and threads share no random bits.

    >>> SystemNoise().uniform(48) < 2**48
    True
    """

    def __init__(self) -> None:
        super().__init__(os.urandom)


@final
class RiggedNoise(_FromBytes):
    """FOR TESTS ONLY: the same noise from bytes that the test chooses. No live service accepts it.

    >>> RiggedNoise(bytes).uniform(48)
    0
    """


def require_exact(source: object) -> ExactNoise:
    """Returns ``source`` if it is exact noise. A live service calls this before it accepts a reward.

    >>> require_exact(RiggedNoise(bytes))
    Traceback (most recent call last):
    dpbandits.errors.InputError: noise must be exact where rewards are real, got RiggedNoise
    """
    if not isinstance(source, ExactNoise):
        raise InputError("noise", f"must be exact where rewards are real, got {type(source).__name__}")
    return source
