"""Regret does not notice whether noise is exact or simulated: sessions with exact noise against compiled simulations.

Each comparison is a two-sample Kolmogorov-Smirnov test of the pulls of the best arm, with its exact distribution, which
is conservative where values are equal. A right policy fails one with probability below 1e-6, and all seeds are
fixed. So that the test can fail, the same sessions must differ from simulations at another epsilon.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpbandits as dp
from dpbandits import Session
from dpbandits.exact.noise import ExactNoise, _FromBytes
from dpbandits.policies import lookup

ARMS, HORIZON, LIVE, SIMULATED, LEAST = "beta(8,2)+beta(3,7)", 120, 120, 2000, 1e-6
LEVELS = (1, 2, 8)

#: Of each kind of curator: the policy, its epsilon (None: ``LEVELS``), another one that must be noticed, and options.
CASES: dict[str, tuple[str, float | None, float, dict[str, Any]]] = {
    "batch": ("adap-ucb", 0.3, 3.0, {}),
    "tree": ("private-ucb", 8.0, 1.0, {}),
    "hybrid": ("dp-ucb-bound", 8.0, 1.0, {}),
    "interval": ("dp-ucb-int", 1.0, 0.1, {}),
    "local Laplace": ("ldp-ucb-l", 4.0, 0.5, {}),
    "local bits": ("ldp-ucb-b", 3.0, 0.3, {}),
    "heterogeneous Laplace": ("heldp-ucb-l", None, 100.0, {"epsilon_min": 1.0}),
    "heterogeneous bits": ("heldp-ucb-b", None, 100.0, {"epsilon_min": 1.0}),
    "kept batches": ("dp-imed", 0.3, 8.0, {"first": 4}),
    "likelihood of batches": ("dp-glr-imed", 0.3, 8.0, {"first": 4}),
    "Gaussian batch": ("adac-ucb", 0.3, 8.0, {}),
    "lazy": ("anytime-lazy-ucb", 0.3, 8.0, {}),
    "weighted bits": ("heldp-weighted-b", None, 0.2, {}),
    "weighted Laplace": ("heldp-weighted-l", None, 0.2, {}),
    "likelihood of bits": ("heldp-glr-b", None, 0.2, {}),
    "piecewise": ("ldp-imed-p", 1.0, 12.0, {}),
}


class Seeded(_FromBytes, ExactNoise):
    """The exact noise of sessions, from bytes that can be repeated."""

    def __init__(self, seed: int) -> None:
        super().__init__(random.Random(seed).randbytes)


def pulled(name: str, epsilon: float | None, options: dict[str, Any], run: int) -> int:
    """How often a session with exact noise decides for the best arm."""
    horizon = HORIZON if lookup.takes(name, "horizon") else None
    session = Session(name, arms=2, epsilon=epsilon, horizon=horizon, options=options)
    session._noise, rng = Seeded(run), np.random.default_rng(run)
    best = 0
    for _ in range(HORIZON):
        decision = session.ask()
        reward = rng.beta(8, 2) if decision.number == 0 else rng.beta(3, 7)
        best += decision.number == 0
        if session.policy.guarantee.trust == "local":
            level = LEVELS[rng.integers(len(LEVELS))] if epsilon is None else None
            session.tell(decision, session.device(level=level).respond(decision, reward).to_bytes())
        else:
            session.tell(decision, reward)
    return best


def simulated(name: str, epsilon: float | None, options: dict[str, Any], levels: tuple[float, ...]) -> Any:
    settings: dict[str, Any] = {"levels": list(levels)} if epsilon is None else {"epsilon": epsilon}
    settings |= {"horizon": HORIZON, "runs": SIMULATED, "seed": 1, "arm_order": "given", "options": options}
    return dp.simulate(name, arms=ARMS, **settings).pulls[:, -1, 0]


@pytest.mark.parametrize("kind", CASES)
def test_regret_does_not_notice_exact_noise(kind: str) -> None:
    name, epsilon, other, options = CASES[kind]
    live = [pulled(name, epsilon, options, run) for run in range(LIVE)]
    same = stats.ks_2samp(live, simulated(name, epsilon, options, LEVELS), method="exact")
    assert same.pvalue > LEAST, f"{np.mean(live)} pulls of the best arm"
    different = stats.ks_2samp(live, simulated(name, epsilon and other, options, (other,)), method="exact")
    assert different.pvalue < LEAST, f"noise of another size is not noticed: {different.pvalue}"
