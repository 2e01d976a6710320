"""The same verbs by OpenDP (``dpbandits[opendp]``), for who must use a library that others have vetted.

Slower (about 70 microseconds a draw), and not of fixed work for the Laplace. OpenDP takes its parameters as floats, so
they are moved by a few last bits to the private side until OpenDP's own privacy map stays within epsilon.
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

    It enables OpenDP's "contrib" features, without which OpenDP has none of this.
    """

    def __init__(self) -> None:
        try:
            import opendp.prelude as dp  # here, so that who does not use it need not have it
        except ImportError as error:
            raise MissingExtraError("opendp", "opendp") from error
        dp.enable_features("contrib")
        self._dp = dp

    def uniform(self, bits: int) -> int:
        """From the operating system: OpenDP has no verb for it."""
        return int.from_bytes(os.urandom(WORD // 8), "little") >> WORD - bits

    def randomised_response(self, epsilon: Fraction) -> Callable[[bool], bool]:
        """``make_randomized_response_bool``, in constant time. Above 36.7 it keeps at 36.7: doubles end there."""
        truth = min(1.0 / (1.0 + math.exp(-epsilon)), math.nextafter(1.0, 0.0))
        while True:
            measurement = self._dp.m.make_randomized_response_bool(prob=truth, constant_time=True)
            if Fraction(measurement.map(1)) <= epsilon:
                return measurement
            truth = math.nextafter(truth, 0.0)

    def discrete_laplace(self, epsilon: Fraction, sensitivity: int) -> Callable[[int], int]:
        """``make_laplace`` on 64-bit integers: what does not fit is clamped, after the noise."""
        space = self._dp.atom_domain(T="i64"), self._dp.absolute_distance(T="i64")
        scale = float(sensitivity / epsilon)
        while True:
            measurement = self._dp.m.make_laplace(*space, scale=scale)
            if Fraction(measurement.map(sensitivity)) <= epsilon:
                return measurement
            scale = math.nextafter(scale, math.inf)
