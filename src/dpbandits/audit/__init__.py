"""Audits of privacy guarantees: ``verify`` proves them or finds a witness, ``attack`` tries to refute them."""

from dpbandits.audit.attack import attack, attack_responder
from dpbandits.audit.curators import own_subject, responder, verify_curator
from dpbandits.audit.verdict import Verdict
from dpbandits.audit.verify import verify

__all__ = [
    "Verdict",
    "attack",
    "attack_responder",
    "own_subject",
    "responder",
    "verify",
    "verify_curator",
]
