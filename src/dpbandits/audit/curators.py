"""Curators of one reward, by name: for deployment, with exact noise, and of simulations, with floating-point noise."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from dpbandits.audit.responses import enclosed_epsilon, worst_response
from dpbandits.audit.targets import ENDS, Responder
from dpbandits.audit.verdict import PROVED, ROUNDING, VIOLATED, Verdict
from dpbandits.checks import known
from dpbandits.curators import LocalBernoulli, LocalLaplace
from dpbandits.errors import InputError
from dpbandits.exact import BernoulliCurator, LaplaceCurator, RandomisedResponse, SigmoidCurator
from dpbandits.exact.rational import Exactly, rational
from dpbandits.exact.responses import LAPLACE_GRID

__all__ = ["EXACT", "SIMULATED", "own_curator", "responder", "verify_curator"]


class Kind(NamedTuple):
    """How a curator of one reward is made, and the two rewards between which it is attacked."""

    make: Callable[[Any], Any]
    rewards: tuple[float, float] = (0.0, 1.0)


EXACT = {
    "randomised-response": Kind(RandomisedResponse),
    "bernoulli": Kind(BernoulliCurator),
    "laplace": Kind(LaplaceCurator),
    "sigmoid-bernoulli": Kind(lambda epsilon: SigmoidCurator(BernoulliCurator(epsilon)), ENDS),
    "sigmoid-laplace": Kind(lambda epsilon: SigmoidCurator(LaplaceCurator(epsilon)), ENDS),
}
SIMULATED = {
    "simulated-bernoulli": Kind(lambda epsilon: LocalBernoulli.start(2, epsilon=epsilon)),
    "simulated-laplace": Kind(lambda epsilon: LocalLaplace.start(2, epsilon=epsilon)),
}
UNCERTAINTY = Fraction(1, 10**50)  # epsilon is computed from the threshold words to within less than this


def responder(name: str, epsilon: Exactly) -> Responder:
    """The responder of the curator with this name and epsilon."""
    known("curator", name, [*EXACT, *SIMULATED])
    if name in SIMULATED:
        simulated = SIMULATED[name].make(float(rational("epsilon", epsilon)))
        return Responder(name, lambda reward, rng: simulated.respond(reward, 0.0, rng))
    kind = EXACT[name]
    curator = kind.make(epsilon)
    return Responder(name, lambda reward, rng: curator.respond(reward), kind.rewards)


def verify_curator(name: str, epsilon: Exactly, claim: Exactly | None = None) -> Verdict:
    """The exact worst case of a curator, from the constants that it was made with.

    >>> verdict = verify_curator("laplace", "1/3")
    >>> verdict.verdict, round(verdict.epsilon, 6)
    ('proved', 0.333333)
    """
    known("curator", name, [*EXACT, *SIMULATED])
    promised = rational("claim", epsilon if claim is None else claim)
    if name in SIMULATED:
        pair = worst_response(SIMULATED[name].make(float(rational("epsilon", epsilon))), 0.0)
        kept = pair.epsilon <= float(promised) * (1.0 + ROUNDING) + pair.rounding
        domain = "rewards from -inf to inf, and NaN; noise as real numbers: use --view bytes to attack floats"
        witness = {"rewards": list(map(str, pair.rewards)), "responses": [str(law) for law in pair.responses]}
        return _verdict(name, float(promised), pair.epsilon, kept, domain, witness)
    curator = EXACT[name].make(epsilon)
    inner = getattr(curator, "_within", curator)
    laplace = isinstance(inner, LaplaceCurator)
    low, high = enclosed_epsilon(inner._noise, 1 << LAPLACE_GRID) if laplace else enclosed_epsilon(inner._flip)
    witness = {"rewards": ["0", "1"], "epsilon": [f"{low:.30f}", f"{high:.30f}"]}
    domain = "every reward; worst case at the two ends of the grid, from 512 bits of every threshold"
    return _verdict(name, float(promised), float(high), Fraction(high) <= promised + UNCERTAINTY, domain, witness)


def _verdict(name: str, claim: float, epsilon: float, kept: bool, domain: str, witness: dict[str, Any]) -> Verdict:
    shown = float(f"{epsilon:.12g}")
    kind = PROVED if kept else VIOLATED
    return Verdict(kind, name, claim, 0.0, shown, "exact", "response", None, domain, witness=witness)


def own_curator(function: Callable[..., Any], name: str, epsilon: float | None) -> Responder:
    """The responder of a user's function, which returns a curator with ``respond(reward)`` or a function of rewards."""
    made = function(epsilon=epsilon) if "epsilon" in inspect.signature(function).parameters else function()
    respond = getattr(made, "respond", made)
    if not callable(respond):
        raise InputError(name, f"must make a policy, or something that responds to a reward, got {type(made).__name__}")
    return Responder(name, lambda reward, rng: respond(reward))
