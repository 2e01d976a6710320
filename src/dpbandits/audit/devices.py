"""Curators of one reward by name: those of deployment, which are exact, and those of simulation, which are not."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from dpbandits.audit.players import ENDS, Device
from dpbandits.audit.responses import exact_interval, worst_response
from dpbandits.audit.verdict import PROVED, ROUNDING, VIOLATED, Verdict
from dpbandits.curators import LocalBernoulli, LocalLaplace
from dpbandits.errors import InputError, known
from dpbandits.exact import BernoulliCurator, LaplaceCurator, RandomisedResponse, SigmoidCurator
from dpbandits.exact.curators import LAPLACE_GRID
from dpbandits.exact.rational import Exactly, rational

__all__ = ["EXACT", "SIMULATED", "device", "own", "own_device", "verify_device"]

EXACT: dict[str, Callable[[Exactly], Any]] = {
    "randomised-response": RandomisedResponse,
    "bernoulli": BernoulliCurator,
    "laplace": LaplaceCurator,
    "sigmoid-bernoulli": lambda epsilon: SigmoidCurator(BernoulliCurator(epsilon)),
    "sigmoid-laplace": lambda epsilon: SigmoidCurator(LaplaceCurator(epsilon)),
}
SIMULATED: dict[str, Callable[[float], Any]] = {
    "simulated-bernoulli": lambda epsilon: LocalBernoulli.start(2, epsilon=epsilon),
    "simulated-laplace": lambda epsilon: LocalLaplace.start(2, epsilon=epsilon),
}
ENCLOSED = Fraction(1, 10**50)  # the threshold words leave less than this open


def device(name: str, epsilon: Exactly) -> Device:
    """The curator of that name at this level, as something to attack."""
    known("curator", name, [*EXACT, *SIMULATED])
    if name in SIMULATED:
        simulated = SIMULATED[name](float(rational("epsilon", epsilon)))
        return Device(name, lambda reward, rng: simulated.respond(reward, 0.0, rng))
    curator = EXACT[name](epsilon)
    return Device(name, lambda reward, rng: curator.respond(reward), ENDS if name.startswith("sigmoid") else (0.0, 1.0))


def verify_device(name: str, epsilon: Exactly, claim: Exactly | None = None) -> Verdict:
    """The exact worst case of a curator, from the constants that it was made with.

    >>> verdict = verify_device("laplace", "1/3")
    >>> verdict.verdict, round(verdict.epsilon, 6)
    ('proved', 0.333333)
    """
    known("curator", name, [*EXACT, *SIMULATED])
    promised = rational("claim", epsilon if claim is None else claim)
    if name in SIMULATED:
        pair = worst_response(SIMULATED[name](float(rational("epsilon", epsilon))), 0.0)
        kept = pair.epsilon <= float(promised) * (1.0 + ROUNDING) + pair.rounding
        domain = "rewards from -inf to inf and nan; real numbers, not floats: see --view bytes for those"
        witness = {"rewards": list(map(str, pair.rewards)), "responses": [str(law) for law in pair.responses]}
        return _verdict(name, float(promised), pair.epsilon, kept, domain, witness)
    curator = EXACT[name](epsilon)
    inner = getattr(curator, "_within", curator)
    laplace = isinstance(inner, LaplaceCurator)
    low, high = exact_interval(inner._noise, 1 << LAPLACE_GRID) if laplace else exact_interval(inner._flip)
    witness = {"rewards": ["0", "1"], "epsilon": [f"{low:.30f}", f"{high:.30f}"]}
    domain = "every reward; between the two ends of the grid, from 512 bits of every threshold"
    return _verdict(name, float(promised), float(high), Fraction(high) <= promised + ENCLOSED, domain, witness)


def _verdict(name: str, claim: float, epsilon: float, kept: bool, domain: str, witness: dict[str, Any]) -> Verdict:
    shown = float(f"{epsilon:.12g}")
    kind = PROVED if kept else VIOLATED
    return Verdict(kind, name, claim, 0.0, shown, "exact", "response", None, domain, witness=witness)


def own(target: str) -> Callable[..., Any]:
    """The user's function that ``module:function`` names; the working directory is searched first."""
    module, _, name = target.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"target must be module:function, got '{target}': {error}") from None
    if not callable(found):
        raise InputError(f"target must be a function, got '{target}'")
    return found


def own_device(function: Callable[..., Any], name: str, epsilon: float | None) -> Device:
    """A user's function that makes a curator, with a method ``respond(reward)``, or a function of one reward."""
    made = function(epsilon=epsilon) if "epsilon" in inspect.signature(function).parameters else function()
    respond = getattr(made, "respond", made)
    if not callable(respond):
        raise InputError(
            f"{name} must make a policy, or something that responds to a reward, got {type(made).__name__}"
        )
    return Device(name, lambda reward, rng: respond(reward))
