"""Curators of one reward, by name: for deployment, with exact noise, and of simulations, with floating-point noise."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from dpbandits.audit.devices import is_ours
from dpbandits.audit.targets import ENDS, Responder
from dpbandits.audit.verdict import NOT_REFUTED, PROVED, VIOLATED, Verdict
from dpbandits.audit.verify import verify
from dpbandits.audit.words import REWARDS, SIGNIFICANT, found_law
from dpbandits.checks import known
from dpbandits.errors import InputError
from dpbandits.exact import (
    BernoulliCurator,
    LaplaceCurator,
    LocalCurator,
    PiecewiseCurator,
    RandomisedResponse,
    SigmoidCurator,
)
from dpbandits.exact.rational import Exactly, rational
from dpbandits.formats import plural
from dpbandits.policies import lookup
from dpbandits.policies.policy import Parts, Policy, Traits

__all__ = ["EXACT", "SIMULATED", "own_subject", "responder", "verify_curator"]


class AttackedCurator(NamedTuple):
    """How a curator of one reward is made, and the two rewards between which it is attacked."""

    make: Callable[[Any], Any]
    rewards: tuple[float, float] = (0.0, 1.0)


EXACT = {
    "randomised-response": AttackedCurator(RandomisedResponse),
    "bernoulli": AttackedCurator(BernoulliCurator),
    "laplace": AttackedCurator(LaplaceCurator),
    "piecewise": AttackedCurator(PiecewiseCurator),
    "sigmoid-bernoulli": AttackedCurator(lambda epsilon: SigmoidCurator(BernoulliCurator(epsilon)), ENDS),
    "sigmoid-laplace": AttackedCurator(lambda epsilon: SigmoidCurator(LaplaceCurator(epsilon)), ENDS),
}

LARGEST = 1e6  # epsilon

#: The curators of simulations, by the policies that have them.
SIMULATED = {"simulated-bernoulli": "ldp-ucb-b", "simulated-laplace": "ldp-ucb-l"}


#: What was done with a curator, in the words of a verdict.
DRIVEN = f"the real call, on chosen random words, with rewards {', '.join(f'{reward}' for reward in REWARDS)}"


def responder(name: str, epsilon: Exactly) -> Responder:
    """The responder of the curator with this name and epsilon."""
    known("curator", name, [*EXACT, *SIMULATED])
    if name in SIMULATED:
        simulated = lookup.make(SIMULATED[name], arms=2, epsilon=float(rational("epsilon", epsilon))).curator
        return Responder(name, lambda reward, rng: simulated.respond(reward, 0.0, rng))
    kind = EXACT[name]
    curator = kind.make(epsilon)
    return Responder(name, lambda reward, rng: curator.respond(reward), kind.rewards)


def verify_curator(curator: str | LocalCurator, epsilon: Exactly, claim: Exactly | None = None) -> Verdict:
    """The exact worst case of a curator: by name, or an object that draws its noise by ``dpbandits.exact``.

    An exact curator is made as on a device, and its real call is driven with words that the audit chooses. It is proved
    if its random words are compared with exactly the thresholds of this epsilon, to the last unit. A user's own curator
    is driven in the same way. That can refute it but not prove it: it may answer other rewards differently.

    >>> verdict = verify_curator("laplace", "1/3")
    >>> verdict.verdict, round(verdict.epsilon, 6)
    ('proved', 0.333333)
    """
    level = rational("epsilon", epsilon)
    promised = level if claim is None else rational("claim", claim)
    for name, value in (("epsilon", level), ("claim", promised)):
        if value > LARGEST:
            raise InputError(name, f"must be at most {LARGEST:g} to be verified, got more")
    if isinstance(curator, str):
        known("curator", curator, [*EXACT, *SIMULATED])
        if curator in SIMULATED:
            verdict = verify(SIMULATED[curator], epsilon=float(level), claim=float(promised))
            return dataclasses.replace(verdict, subject=curator)
        return _driven(curator, EXACT[curator].make(epsilon), level, promised)
    return _driven(type(curator).__name__, curator, level, promised)


def _driven(name: str, curator: LocalCurator, level: Fraction, promised: Fraction) -> Verdict:
    law = found_law(curator)
    if curator.epsilon != level:
        law.faults.append(f"the curator is made for epsilon {curator.epsilon}, and not {level}")
    if law.faults or law.epsilon is None:
        kind = VIOLATED if law.loss > promised else NOT_REFUTED
        reason = "; ".join(law.faults[:3])
        return _verdict(kind, name, float(promised), float(law.loss), DRIVEN, law.witness, reason)
    if not is_ours(curator):
        domain = f"{DRIVEN}; other rewards, and later calls, may be answered otherwise"
        reason = "the curator's code is not the package's, and was driven, but not read"
        kind = NOT_REFUTED if level <= promised else VIOLATED
        return _verdict(kind, name, float(promised), float(level), domain, law.witness, reason)
    low, high = law.epsilon
    domain = f"every reward on the grid; {DRIVEN}; {plural(law.thresholds, 'threshold')}, to {SIGNIFICANT * 64} bits"
    witness = {**law.witness, "epsilon": [f"{low:.30f}", f"{high:.30f}"]}
    return _verdict(PROVED if level <= promised else VIOLATED, name, float(promised), float(level), domain, witness)


def _verdict(
    kind: str, name: str, claim: float, epsilon: float, domain: str, witness: dict[str, Any], reason: str = ""
) -> Verdict:
    shown = float(f"{epsilon:.12g}")
    return Verdict(kind, name, claim, 0.0, shown, "exact", "response", None, domain, witness=witness, reason=reason)


def own_subject(
    function: Callable[..., Any], name: str, epsilon: float | None, horizon: int, options: Mapping[str, Any]
) -> lookup.Factory | Policy | Responder:
    """What to audit of a user's function: itself if it is ``@published``, else the policy or responder it makes."""
    if isinstance(getattr(function, "traits", None), Traits):
        return function
    made = _made(function, {"arms": 2, "epsilon": epsilon, "horizon": horizon, **options})
    if isinstance(made, Parts):
        raise InputError("policy", f"must be made by a function with @published, got {name}")
    return made if isinstance(made, Policy) else _responder(made, name)


def _made(function: Callable[..., Any], settings: Mapping[str, Any]) -> Any:
    """What a function returns, given those of the settings that it has as parameters."""
    asked = {name: one for name, one in inspect.signature(function).parameters.items() if name in settings}
    return function(**{name: lookup.valued(name, settings[name], one.annotation) for name, one in asked.items()})


def _responder(made: Any, name: str) -> Responder:
    respond = getattr(made, "respond", made)
    if not callable(respond):
        raise InputError(name, f"must make a policy, or something that responds to a reward, got {type(made).__name__}")
    return Responder(name, lambda reward, rng: respond(reward))
