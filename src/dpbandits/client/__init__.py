"""The code for a user's device: curators with exact noise, a budget, and responses that are made only once.

It uses only the standard library, so a device does not need numpy.
"""

from dpbandits.client.budget import Budget, BudgetError
from dpbandits.client.device import Device
from dpbandits.client.store import Store
from dpbandits.exact import (
    BernoulliCurator,
    LaplaceCurator,
    LocalCurator,
    PiecewiseCurator,
    RandomisedResponse,
    SigmoidCurator,
    ThresholdCurator,
)

__all__ = [
    "BernoulliCurator",
    "Budget",
    "BudgetError",
    "Device",
    "LaplaceCurator",
    "LocalCurator",
    "PiecewiseCurator",
    "RandomisedResponse",
    "SigmoidCurator",
    "Store",
    "ThresholdCurator",
]
