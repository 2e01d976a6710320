"""Differentially private multi-armed bandits, from the paper to production.

>>> import dpbandits as dp
>>> trace = dp.simulate("adap-klucb", arms="0.75,0.625,0.5,0.375,0.25", epsilon=1, horizon=100_000, runs=5, seed=0)
>>> trace.regret.shape
(5, 89)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = ["Guarantee", "InputError", "Interrupted", "Session", "Trace", "policies", "simulate"]

if TYPE_CHECKING:
    from dpbandits import policies
    from dpbandits.errors import InputError
    from dpbandits.privacy import Guarantee
    from dpbandits.session import Session
    from dpbandits.simulation import Interrupted, Trace, simulate

_HOMES = {
    "Guarantee": "dpbandits.privacy",
    "InputError": "dpbandits.errors",
    "Interrupted": "dpbandits.simulation",
    "Session": "dpbandits.session",
    "Trace": "dpbandits.simulation",
    "simulate": "dpbandits.simulation",
}


def __getattr__(name: str) -> Any:
    """Import a part when it is first asked for: a device that wants only the client should not load NumPy."""
    if name == "policies":
        return importlib.import_module("dpbandits.policies")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'dpbandits' has no attribute '{name}'")
