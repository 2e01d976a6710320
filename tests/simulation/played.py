"""Play policies compiled, and check every run against plain Python: a process of its own for the tests of stored code.

``python played.py POLICY ...`` prints, as JSON, how many loops were compiled and how many were found on disk.
"""

from __future__ import annotations

import inspect
import json
import sys
from typing import Any

import numpy as np

from dpbandits import simulate
from dpbandits.policies import lookup
from dpbandits.simulation import compiled

LOAD = compiled.CodeOnDisk.load_overload


def settings(policy: str) -> dict[str, Any]:
    """What the policy is played with."""
    factory = lookup.find(policy)
    private: dict[str, Any] = {"epsilon": 1.0} if "epsilon" in inspect.signature(factory).parameters else {}
    if lookup.traits(factory).levels is not None:
        private = {"levels": "choice(0,1,2)", "options": dict(lookup.traits(factory).sample)}
    return {"arms": "0.9,0.6,0.5", "horizon": 300, "runs": 2, "checkpoints": 20, "workers": 1, **private}


def one_for_each_curator() -> list[str]:
    """One policy for each class of curators."""
    return list({type(lookup.sample(name).curator): name for name in lookup.names()}.values())


def check(policies: list[str]) -> dict[str, int]:
    """Raise AssertionError where a compiled run differs; how many loops were found on disk, and how many compiled."""
    counts = {"found": 0, "compiled": 0}

    def load(self: Any, sig: Any, context: Any) -> Any:
        code = LOAD(self, sig, context)
        counts["compiled" if code is None else "found"] += 1
        return code

    setattr(compiled.CodeOnDisk, "load_overload", load)  # noqa: B010 (mypy takes an assignment for a mistake)
    for policy in policies:
        given = settings(policy)
        quick, plain = (simulate(policy, engine=engine, **given) for engine in ("compiled", "python"))
        assert np.array_equal(quick.pulls, plain.pulls), f"{policy}: the compiled run is another one"
    return counts


if __name__ == "__main__":
    print(json.dumps(check(sys.argv[1:])))
