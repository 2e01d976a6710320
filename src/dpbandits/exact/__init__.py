"""Exact noise for deployment: pure epsilon-privacy of integers, and of floats on a grid where their sums are exact.

This package uses only the standard library, because a user's device may not have numpy. It is separate from
``mechanisms``, which draws simulation noise and imports numpy. ``client`` and the live curators use it.
"""

from dpbandits.exact.noise import ExactNoise, GridNoise, Noise, RiggedNoise, SystemNoise, require_exact
from dpbandits.exact.probability import Probability, exponential, logistic
from dpbandits.exact.rational import Exactly, rational, writable
from dpbandits.exact.responses import (
    BernoulliCurator,
    LaplaceCurator,
    LocalCurator,
    PiecewiseCurator,
    RandomisedResponse,
    SigmoidCurator,
    ThresholdCurator,
    as_float,
    grid_steps,
)
from dpbandits.exact.sampling import DiscreteGaussian, DiscreteLaplace, Flip, Window, window_width

__all__ = [
    "BernoulliCurator",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "ExactNoise",
    "Exactly",
    "Flip",
    "GridNoise",
    "LaplaceCurator",
    "LocalCurator",
    "Noise",
    "PiecewiseCurator",
    "Probability",
    "RandomisedResponse",
    "RiggedNoise",
    "SigmoidCurator",
    "SystemNoise",
    "ThresholdCurator",
    "Window",
    "as_float",
    "exponential",
    "grid_steps",
    "logistic",
    "rational",
    "require_exact",
    "window_width",
    "writable",
]
