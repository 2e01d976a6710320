"""Curators of one reward, by name: for deployment, with exact noise, and of simulations, with floating-point noise."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from dpbandits.audit.responses import worst_response
from dpbandits.audit.targets import ENDS, Responder
from dpbandits.audit.verdict import NOT_REFUTED, PROVED, ROUNDING, VIOLATED, Verdict
from dpbandits.audit.words import REWARDS, SIGNIFICANT, law_of
from dpbandits.checks import known
from dpbandits.curators import LocalBernoulli, LocalLaplace
from dpbandits.errors import InputError
from dpbandits.exact import BernoulliCurator, LaplaceCurator, LocalCurator, RandomisedResponse, SigmoidCurator
from dpbandits.exact.rational import Exactly, rational

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


def responder(name: str, epsilon: Exactly) -> Responder:
    """The responder of the curator with this name and epsilon."""
    known("curator", name, [*EXACT, *SIMULATED])
    if name in SIMULATED:
        simulated = SIMULATED[name].make(float(rational("epsilon", epsilon)))
        return Responder(name, lambda reward, rng: simulated.respond(reward, 0.0, rng))
    kind = EXACT[name]
    curator = kind.make(epsilon)
    return Responder(name, lambda reward, rng: curator.respond(reward), kind.rewards)


def verify_curator(curator: str | LocalCurator, epsilon: Exactly, claim: Exactly | None = None) -> Verdict:
    """The exact worst case of a curator: by name, or an object that draws its noise by ``dpbandits.exact``.

    An exact curator is made as on a device, and its real call is driven with words that the audit chooses. It is proved
    if the words that its random words are compared with are those of this epsilon, to the last unit.

    >>> verdict = verify_curator("laplace", "1/3")
    >>> verdict.verdict, round(verdict.epsilon, 6)
    ('proved', 0.333333)
    """
    level = rational("epsilon", epsilon)
    promised = level if claim is None else rational("claim", claim)
    if isinstance(curator, str):
        known("curator", curator, [*EXACT, *SIMULATED])
        if curator in SIMULATED:
            return _simulated(curator, float(level), float(promised))
        return _driven(curator, EXACT[curator].make(epsilon), level, promised)
    return _driven(type(curator).__name__, curator, level, promised)


def _simulated(name: str, epsilon: float, claim: float) -> Verdict:
    pair = worst_response(SIMULATED[name].make(epsilon), 0.0)
    kept = pair.epsilon <= claim * (1.0 + ROUNDING) + pair.rounding
    domain = "rewards from -inf to inf, and NaN; noise as real numbers: use --view bytes to attack floats"
    witness = {"rewards": list(map(str, pair.rewards)), "responses": [str(law) for law in pair.responses]}
    return _verdict(PROVED if kept else VIOLATED, name, claim, pair.epsilon, domain, witness)


def _driven(name: str, curator: LocalCurator, level: Fraction, promised: Fraction) -> Verdict:
    law = law_of(curator)
    if curator.epsilon != level:
        law.faults.append(f"the curator is made for epsilon {curator.epsilon}, and not {level}")
    if law.faults or law.epsilon is None:
        kind = VIOLATED if law.loss > promised else NOT_REFUTED
        domain = f"not proved: {'; '.join(law.faults[:3])}"
        return _verdict(kind, name, float(promised), float(law.loss), domain, law.witness)
    low, high = law.epsilon
    domain = (
        f"every reward on the grid; {law.thresholds} thresholds of the real call, found with chosen entropy, to "
        f"{SIGNIFICANT * 64} bits; driven with {', '.join(f'{reward}' for reward in REWARDS)}"
    )
    witness = {**law.witness, "epsilon": [f"{low:.30f}", f"{high:.30f}"]}
    return _verdict(PROVED if level <= promised else VIOLATED, name, float(promised), float(level), domain, witness)


def _verdict(kind: str, name: str, claim: float, epsilon: float, domain: str, witness: dict[str, Any]) -> Verdict:
    shown = float(f"{epsilon:.12g}")
    return Verdict(kind, name, claim, 0.0, shown, "exact", "response", None, domain, witness=witness)


def own_curator(function: Callable[..., Any], name: str, epsilon: float | None) -> Responder:
    """The responder of a user's function, which returns a curator with ``respond(reward)`` or a function of rewards."""
    made = function(epsilon=epsilon) if "epsilon" in inspect.signature(function).parameters else function()
    respond = getattr(made, "respond", made)
    if not callable(respond):
        raise InputError(name, f"must make a policy, or something that responds to a reward, got {type(made).__name__}")
    return Responder(name, lambda reward, rng: respond(reward))
