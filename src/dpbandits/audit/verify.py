"""Exact verification of a policy, at the strongest level that applies to it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from dpbandits.audit import actions, releases, responses
from dpbandits.audit.instruments import NotVerifiableError
from dpbandits.audit.subjects import claim_of, subject
from dpbandits.audit.verdict import PROVED, ROUNDING, VIOLATED, Verdict
from dpbandits.checks import at_least, known
from dpbandits.errors import InputError
from dpbandits.policies import lookup
from dpbandits.policies.policy import Policy

__all__ = ["DELTA_HORIZON", "HORIZON", "verify"]

HORIZON = 8
MOST_ROUNDS = 20_000
DELTA_HORIZON = 2000  # the default for claims with a delta, whose releases are rare


def verify(
    policy: str | lookup.Factory | Policy,
    *,
    epsilon: float | None = None,
    options: Mapping[str, Any] | None = None,
    horizon: int | None = None,
    claim: float | None = None,
    delta: float | None = None,
    view: str | None = None,
) -> Verdict:
    """The exact worst case: of one response in the local model, of the actions, or else of all released values.

    ``policy`` is a name, ``module:function``, a function that makes a policy, or a policy; ``view`` asks for one of
    response, actions or released.

    >>> verdict = verify("adap-ucb", epsilon=1.0)
    >>> verdict.verdict, verdict.view, round(verdict.epsilon, 3)
    ('proved', 'actions', 1.0)
    """
    made, note = subject(policy, epsilon=epsilon, horizon=horizon or HORIZON, options=options)
    claim, delta = claim_of(made, claim, delta)
    verdict = _strongest(made, horizon, claim, delta, view, note)
    return dataclasses.replace(verdict, settings=made.settings)


def _strongest(policy: Policy, horizon: int | None, claim: float, delta: float, view: str | None, note: str) -> Verdict:
    local = policy.guarantee.trust == "local"
    if view is not None:
        known("view", view, ("response",) if local else ("actions", "released"))
    if local:
        return _verify_response(policy, claim, delta, note)
    most = math.inf if policy.horizon is None else policy.horizon
    rounds = at_least("horizon", horizon or int(min(DELTA_HORIZON if delta else HORIZON, most)), 2)
    if rounds > most:
        raise InputError("horizon", f"must be at most {most}, for which {policy.name} was made, got {rounds}")
    if view == "actions" or (view is None and not delta):
        try:
            return _verify_actions(policy, rounds, claim, delta, note)
        except NotVerifiableError as reason:
            if view is not None:
                raise
            note += f"; checked on released values, not on actions: {reason}"
    return _verify_releases(policy, rounds, claim, delta, note)


def _shown(epsilon: float) -> float:
    """Epsilon without its last digits, which are rounding errors."""
    return float(f"{epsilon:.12g}")


def _verdict(epsilon: float, claim: float, rounding: float = 0.0) -> str:
    return PROVED if epsilon <= claim * (1.0 + ROUNDING) + rounding else VIOLATED


def _verify_actions(policy: Policy, horizon: int, claim: float, delta: float, note: str) -> Verdict:
    if delta:
        raise NotVerifiableError("delta", f"must be 0 to verify actions, got {delta:g}")
    most = actions.largest_horizon(float(policy.settings.get("epsilon", claim)))
    if horizon > most:
        _probe(policy)
        raise InputError("horizon", f"must be at most {most} to verify the actions of {policy.name}, got {horizon}")
    worst = actions.worst_actions(policy, horizon)
    changed = list(worst.rewards)
    if worst.epsilon > 0.0:
        changed[worst.changed] = 1
    domain = (
        "2 arms, rewards 0 and 1, all reward vectors and single changes, "
        f"all {worst.sequences} action sequences; noise on the grid of the reward sums, clamped far in its tails{note}"
    )
    witness = {
        "rewards": _text(worst.rewards),
        "neighbour": _text(changed),
        "event": f"actions {_text(worst.actions)}",
        "probabilities": list(worst.probabilities),
    }
    all_seen = _shown(releases.worst_release(policy, horizon)[0].epsilon)
    return Verdict(
        _verdict(worst.epsilon, claim),
        policy.name,
        claim,
        0.0,
        _shown(worst.epsilon),
        "exact",
        "actions",
        horizon,
        domain,
        witness=witness,
        released=all_seen,
    )


def _probe(policy: Policy) -> None:
    """Raise NotVerifiableError if actions cannot be verified at any horizon."""
    actions.worst_actions(policy, 4)


def _verify_releases(policy: Policy, horizon: int, claim: float, delta: float, note: str) -> Verdict:
    if horizon > MOST_ROUNDS:
        raise InputError("horizon", f"must be at most {MOST_ROUNDS} to verify releases, got {horizon}")
    worst, tried = releases.worst_release(policy, horizon)
    epsilon = worst.epsilon
    if not math.isinf(epsilon):
        epsilon = releases.accounted([cost for _, cost in worst.costs], delta)
    witness: dict[str, Any] = {
        "rewards": f"all {worst.rewards[worst.round]:g}" if len(worst.rewards) > 64 else _text(worst.rewards),
        "changed": f"reward {worst.round + 1}, to {1.0 - worst.rewards[worst.round]:g}",
    }
    if worst.unhidden is not None:
        witness["event"] = f"what is released after round {worst.unhidden + 1} changes, and no noise hides it"
    else:
        costs = ", ".join(f"{cost:.4g}" for _, cost in worst.costs[:16])
        more = ", .." if len(worst.costs) > 16 else ""
        sums = f"the {len(worst.costs)} noisy sums that contain this reward"
        witness["event"] = f"{sums}, far in their tails; losses {costs}{more}"
    if len(worst.steps) <= 64:
        witness["arms"] = _text(step.arm for step in worst.steps)
    how = f", accounted at delta {delta:.3g}" if delta else ""
    domain = f"an adversary who sees every release{how}; {policy.arms} arms, {tried}{note}"
    return Verdict(
        _verdict(epsilon, claim),
        policy.name,
        claim,
        delta,
        _shown(epsilon),
        "exact",
        "released values",
        horizon,
        domain,
        witness=witness,
    )


def _verify_response(policy: Policy, claim: float, delta: float, note: str) -> Verdict:
    levels = [claim]
    if policy.guarantee.epsilon is None:  # each user has their own level, and the claim is one of them
        levels = [claim, 0.1 * claim, 5.0 * claim]
    pairs = [(responses.worst_response(policy.curator, level), level) for level in levels]
    if any(pair.rounding > 0.01 * level for pair, level in pairs):
        raise NotVerifiableError(
            "epsilon", f"must be at most about 30 to be verified in floating point, got {max(levels):g}"
        )
    broken = [found for found in pairs if _verdict(found[0].epsilon, found[1], found[0].rounding) == VIOLATED]
    pair, level = broken[0] if broken else pairs[0]
    witness = {"rewards": list(map(str, pair.rewards)), "responses": [str(law) for law in pair.responses]}
    of_users = f"users at levels {', '.join(f'{one:g}' for one in sorted(levels))}; " if len(levels) > 1 else ""
    domain = f"one response; {of_users}rewards from -inf to inf, and NaN; constants as floats{note}"
    kind = _verdict(pair.epsilon, level, pair.rounding)
    return Verdict(
        kind, policy.name, level, delta, _shown(pair.epsilon), "exact", "response", None, domain, witness=witness
    )


def _text(numbers: Any) -> str:
    return "".join(f"{number:g}" for number in numbers)
