"""The code for a user's device: curators with exact noise, a budget, responses that are made only once, and HTTP.

It uses only the standard library, so a device does not need numpy.
"""

from dpbandits.client.budget import Budget, BudgetError
from dpbandits.client.client import Client, ClientDecision
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
    "Client",
    "ClientDecision",
    "Device",
    "LaplaceCurator",
    "LocalCurator",
    "PiecewiseCurator",
    "RandomisedResponse",
    "SigmoidCurator",
    "Store",
    "ThresholdCurator",
]
