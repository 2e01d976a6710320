"""Who may draw exact noise: a type of its own, so that simulation noise cannot take its place in a live service."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Protocol, final

from dpbandits.errors import InputError
from dpbandits.exact.probability import WORD, Entropy, logistic
from dpbandits.exact.sampling import DiscreteLaplace, Flip


class Noise(Protocol):
    """What curators ask of a source of noise: uniform bits, and two mechanisms."""

    def uniform(self, bits: int) -> int:
        """A uniform integer of ``bits`` bits, 64 at the most."""

    def randomised_response(self, epsilon: Fraction) -> Callable[[bool], bool]:
        """Turns a bit over with probability 1 / (1 + e^epsilon)."""

    def discrete_laplace(self, epsilon: Fraction, sensitivity: int) -> Callable[[int], int]:
        """Adds to an integer of this sensitivity the noise that makes it epsilon-private."""


class ExactNoise(ABC):
    """Noise fit for deployment: exact, from the operating system's entropy, without seed or memory.

    What inherits from this promises that. A numpy ``Generator``, and ``RiggedNoise``, do not.
    """

    @abstractmethod
    def uniform(self, bits: int) -> int:
        """See ``Noise``."""

    @abstractmethod
    def randomised_response(self, epsilon: Fraction) -> Callable[[bool], bool]:
        """See ``Noise``."""

    @abstractmethod
    def discrete_laplace(self, epsilon: Fraction, sensitivity: int) -> Callable[[int], int]:
        """See ``Noise``."""


class _FromBytes:
    """The verbs of ``Noise`` on top of random bytes, none of which is kept."""

    __slots__ = ("_entropy",)

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy

    def uniform(self, bits: int) -> int:
        return int.from_bytes(self._entropy(WORD // 8), "little") >> WORD - bits

    def randomised_response(self, epsilon: Fraction) -> Callable[[bool], bool]:
        return Flip(logistic(epsilon), self._entropy)

    def discrete_laplace(self, epsilon: Fraction, sensitivity: int) -> Callable[[int], int]:
        return DiscreteLaplace(epsilon / sensitivity, self._entropy)


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
    """FOR TESTS ONLY: the same noise from bytes that the test chooses. No live service takes it.

    >>> RiggedNoise(bytes).uniform(48)
    0
    """


def require_exact(source: object) -> ExactNoise:
    """``source`` if it is exact noise: what a live service asks before it takes a reward.

    >>> require_exact(RiggedNoise(bytes))
    Traceback (most recent call last):
    dpbandits.errors.InputError: noise must be exact where rewards are real, got RiggedNoise
    """
    if not isinstance(source, ExactNoise):
        raise InputError(f"noise must be exact where rewards are real, got {type(source).__name__}")
    return source
