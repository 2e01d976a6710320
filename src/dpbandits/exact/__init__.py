"""Exact noise for deployment: pure epsilon-privacy of integers, with no floating point between reward and release.

Standard library only, and a package of its own: ``mechanisms`` draws simulation noise and imports numpy, which a user's
device need not have; ``client`` and the live curators both stand on this.
"""

from dpbandits.exact.curators import (
    BernoulliCurator,
    LaplaceCurator,
    LocalCurator,
    RandomisedResponse,
    SigmoidCurator,
    on_grid,
)
from dpbandits.exact.noise import ExactNoise, Noise, RiggedNoise, SystemNoise, require_exact
from dpbandits.exact.probability import Probability, exponential, logistic
from dpbandits.exact.rational import Exactly, rational
from dpbandits.exact.sampling import DiscreteLaplace, Flip
from dpbandits.exact.sums import IntegerSum

__all__ = [
    "BernoulliCurator",
    "DiscreteLaplace",
    "ExactNoise",
    "Exactly",
    "Flip",
    "IntegerSum",
    "LaplaceCurator",
    "LocalCurator",
    "Noise",
    "Probability",
    "RandomisedResponse",
    "RiggedNoise",
    "SigmoidCurator",
    "SystemNoise",
    "exponential",
    "logistic",
    "on_grid",
    "rational",
    "require_exact",
]
