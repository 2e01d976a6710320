"""Play policies compiled, and check every run against plain Python: a process of its own for the tests of stored code.

``python played.py POLICY ...`` prints, as JSON, how many loops were compiled and how many were found on disk.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from dpbandits import simulate
from dpbandits.simulation import compiled, loop


def settings(policy: str) -> dict[str, Any]:
    """What the policy is played with."""
    private: dict[str, Any] = {} if policy in ("ucb1", "kl-ucb", "thompson", "imed") else {"epsilon": 1.0}
    if policy.startswith("heldp"):
        private = {"levels": "choice(0,1,2)", "options": {"epsilon_min": 1.0}}
    return {"arms": "0.9,0.6,0.5", "horizon": 300, "runs": 2, "checkpoints": 20, "workers": 1, **private}


def check(policies: list[str]) -> dict[str, int]:
    """Raise AssertionError where a compiled run differs; what the compiled loops cost."""
    for policy in policies:
        given = settings(policy)
        quick, plain = (simulate(policy, engine=engine, **given) for engine in ("compiled", "python"))
        assert np.array_equal(quick.pulls, plain.pulls), f"{policy}: the compiled run is another one"
    stats = compiled._dispatcher(loop.play, False).stats  # as it is called: by position
    return {"found": sum(stats.cache_hits.values()), "compiled": sum(stats.cache_misses.values())}


if __name__ == "__main__":
    print(json.dumps(check(sys.argv[1:])))
