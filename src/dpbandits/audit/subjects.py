"""The subject of an audit: a policy for two arms, given by name or as an object, and the claim to check."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from dpbandits.checks import fraction, positive
from dpbandits.errors import InputError
from dpbandits.policies import lookup
from dpbandits.policies.policy import Policy

__all__ = ["Subject", "claim_of", "subject"]


class Subject(NamedTuple):
    """A policy to audit, and a note on the options that were set to shorten its schedule."""

    policy: Policy
    note: str


def subject(
    policy: str | lookup.Factory | Policy,
    *,
    epsilon: float | None = None,
    horizon: int,
    options: Mapping[str, Any] | None = None,
    short: bool = True,
) -> Subject:
    """The policy to audit, for two arms. A ``Policy`` object is used as it is.

    With ``short``, the options that its declaration names for this purpose shorten its schedule, unless given.

    >>> subject("dp-se", epsilon=1.0, horizon=8).note
    '; scale 1e-06, which shortens its schedule'
    """
    if isinstance(policy, Policy):
        return Subject(policy, "")
    given = dict(options or {})
    added = {name: value for name, value in lookup.traits(policy).short.items() if short and name not in given}
    made = lookup.make(policy, arms=2, epsilon=epsilon, horizon=horizon, given={**given, **added})
    note = "".join(f"; {option} {value:g}, which shortens its schedule" for option, value in added.items())
    return Subject(made, note)


def claim_of(policy: Policy, claim: float | None, delta: float | None) -> tuple[float, float]:
    """The claim to check: the given one, or else the policy's guarantee."""
    promise = policy.guarantee
    if claim is None:
        claim = policy.settings.get("epsilon_min", 1.0) if promise.epsilon is None else promise.epsilon
        if claim is None or math.isinf(claim):
            raise InputError("claim", f"is required, because {policy.name} promises nothing, got none")
    if delta is None:
        delta = promise.delta
    return positive("claim", claim), fraction("delta", delta, zero=True)
