"""Differentially private multi-armed bandits, from the paper to production.

>>> import dpbandits as dp
>>> trace = dp.simulate("adap-klucb", arms="0.75,0.625,0.5,0.375,0.25", epsilon=1, horizon=100_000, runs=5, seed=0)
>>> trace.regret.shape
(5, 89)

``simulate`` plays a policy, ``compare`` several; ``plan`` says which one to take and what privacy will cost; ``bounds``
lists the theorems; ``audit`` checks a promise; ``Session`` runs a policy live. ``policies`` and ``arms`` are what they
play with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

__all__ = [
    "Guarantee",
    "InputError",
    "Interrupted",
    "Session",
    "Trace",
    "Traces",
    "arms",
    "audit",
    "bounds",
    "compare",
    "plan",
    "policies",
    "simulate",
]

if TYPE_CHECKING:
    from dpbandits import arms, audit, policies
    from dpbandits.bounds.asked import bounds
    from dpbandits.errors import InputError
    from dpbandits.experiments.comparison import compare
    from dpbandits.planning.advise import plan
    from dpbandits.privacy import Guarantee
    from dpbandits.session import Session
    from dpbandits.simulation import Interrupted, Trace, Traces, simulate
else:
    #: Where each name is defined. A device that wants only the client should not load NumPy, so they are imported late.
    _HOMES = {
        "Guarantee": "dpbandits.privacy",
        "InputError": "dpbandits.errors",
        "Interrupted": "dpbandits.simulation",
        "Session": "dpbandits.session",
        "Trace": "dpbandits.simulation",
        "Traces": "dpbandits.simulation",
        "compare": "dpbandits.experiments.comparison",
        "plan": "dpbandits.planning",
        "simulate": "dpbandits.simulation",
    }

    def __getattr__(name):
        """Import a part when it is first asked for. Type checkers do not see this: they know every name."""
        import importlib

        if name in _HOMES:
            return getattr(importlib.import_module(_HOMES[name]), name)
        if name in __all__:
            return importlib.import_module(f"dpbandits.{name}")
        from difflib import get_close_matches

        near = get_close_matches(name, __all__, n=1)
        hint = f": did you mean {near[0]}?" if near else ""
        raise AttributeError(f"module 'dpbandits' has no attribute '{name}'{hint}", name=name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
