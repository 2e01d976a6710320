"""What runs on a user's device: curators with exact noise, a budget, and responses that are made once.

Standard library only: a device need not have numpy.
"""

from dpbandits.client.budget import Budget, BudgetError
from dpbandits.client.device import Device
from dpbandits.client.store import Store
from dpbandits.exact import BernoulliCurator, LaplaceCurator, LocalCurator, RandomisedResponse, SigmoidCurator

__all__ = [
    "BernoulliCurator",
    "Budget",
    "BudgetError",
    "Device",
    "LaplaceCurator",
    "LocalCurator",
    "RandomisedResponse",
    "SigmoidCurator",
    "Store",
]
