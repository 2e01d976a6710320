"""Exact noise drawn by OpenDP (``dpbandits[opendp]``), for users who need an independently vetted library.

It is slower (about 70 microseconds a draw), and its Laplace noise does not take a fixed amount of work. OpenDP takes
its parameters as floats. Each is changed in its last few bits, towards more privacy, until OpenDP's own privacy map
gives at most epsilon.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from fractions import Fraction

from dpbandits.errors import MissingExtraError
from dpbandits.exact.noise import ExactNoise
from dpbandits.exact.probability import WORD


class OpenDPNoise(ExactNoise):
    """Exact noise by OpenDP 0.16 or later; versions 0.9 to 0.14.1 sampled wrongly (opendp issue 2638).

    It enables OpenDP's "contrib" features, which these mechanisms require.
    """

    def __init__(self) -> None:
        try:
            import opendp.prelude as dp  # imported here because it is an optional dependency
        except ImportError as error:
            raise MissingExtraError("opendp", "opendp") from error
        dp.enable_features("contrib")
        self._dp = dp

    def uniform(self, bits: int) -> int:
        """A uniform integer from the operating system, because OpenDP has no function for it."""
        return int.from_bytes(os.urandom(WORD // 8), "little") >> WORD - bits

    def randomised_response(self, epsilon: Fraction) -> Callable[[bool], bool]:
        """``make_randomized_response_bool``, in constant time.

        An epsilon above 36.7 is lowered to 36.7, which is the limit of double precision.
        """
        truth = min(1.0 / (1.0 + math.exp(-epsilon)), math.nextafter(1.0, 0.0))
        while True:
            measurement = self._dp.m.make_randomized_response_bool(prob=truth, constant_time=True)
            if Fraction(measurement.map(1)) <= epsilon:
                return measurement
            truth = math.nextafter(truth, 0.0)

    def discrete_laplace(self, epsilon: Fraction, sensitivity: int) -> Callable[[int], int]:
        """``make_laplace`` on 64-bit integers. A noisy value that does not fit is clamped."""
        space = self._dp.atom_domain(T="i64"), self._dp.absolute_distance(T="i64")
        scale = float(sensitivity / epsilon)
        while True:
            measurement = self._dp.m.make_laplace(*space, scale=scale)
            if Fraction(measurement.map(sensitivity)) <= epsilon:
                return measurement
            scale = math.nextafter(scale, math.inf)
