"""Settings shared by the figures on twenty arms: Figures 1 and 2 of Ren et al. 2020, and Figure 1 of HeLDP."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

from dpbandits.bounds.levels import response_cost
from dpbandits.experiments.claims import ClaimPart, Estimate, between, quotient
from dpbandits.policies.policy import Mechanism

BERNOULLI, MIXED = "@ren2020-bernoulli", "@ren2020-mixed"
SWEEP = (0.2, 0.5, 1.0, 2.0)
HORIZON = {"quick": 10**6, "paper": 10**7}
RUNS = {"quick": 6, "paper": 50}  # the papers' 50
CHEAP_RUNS = {"quick": 10, "paper": 1200}  # where a printed ratio or its limit asks for more, and a run is cheap
L_RUNS = {"quick": 10, "paper": 600}  # the same where a run draws noise in every round
KINDS: dict[str, Mechanism] = {"b": "bernoulli", "l": "laplace"}
LIMITS = {(kind, epsilon): response_cost(epsilon, KINDS[kind]) for epsilon in (2.0, 0.2) for kind in KINDS}

TOLERANCE = "the rounding of the print, half a unit of its second digit; our error must be small against it"
MEASURED = "the ratio of mean regrets against rounds: is it the printed one at some horizon? The horizon is not printed"
ONE_HORIZON = "the horizons at which each ratio is printed like this, interpolated between checkpoints"
ORDER = "three standard errors of the difference"
MUCH_LARGER, NOT_FAR = 5.0, 3.0  # how the papers' "much larger" and "not far away" are read
LARGER = "ratio at epsilon 0.2 over ratio at epsilon 2, at the horizon"
AS_MUCH_LARGER = f"'much larger' is read as at least {MUCH_LARGER:g} times, beyond three standard errors"
AS_NOT_FAR = f"'not far away' is read as at most {NOT_FAR:g} times as large, beyond three standard errors"


def epsilon_steps(names: Mapping[str, str], values: Mapping[str, Estimate]) -> dict[str, tuple[Estimate, Estimate]]:
    """For each policy, each epsilon of the sweep against the next smaller one."""
    return {
        f"{name} at {high:g} and {low:g}": (values[f"{kind}:{high:g}"], values[f"{kind}:{low:g}"])
        for kind, name in names.items()
        for low, high in pairwise(SWEEP)
    }


def grown_ratios(ratios: Mapping[str, tuple[Estimate, float]]) -> list[ClaimPart]:
    """Whether the ratio of B and of L to UCB is much larger at epsilon 0.2 than at 2."""
    return [
        between(quotient(ratios[f"{kind}, ε = 0.2"][0], ratios[f"{kind}, ε = 2"][0]), MUCH_LARGER, math.inf, kind)
        for kind in "BL"
    ]


def near_limits(ratios: Mapping[str, tuple[Estimate, float]]) -> list[ClaimPart]:
    """Whether the limits at epsilon 0.2 are at most three times our ratios."""
    found = []
    for kind in "BL":
        ours, limit = ratios[f"{kind}, ε = 0.2"]
        one = between(ours, limit / NOT_FAR, math.inf, kind)
        found.append(one._replace(ours=f"{ours} (the limit is {limit:.4g})"))
    return found
