"""Exact verification of a policy, at the strongest level that applies to it."""

from __future__ import annotations

import dataclasses
import inspect
import math
from typing import Any

from dpbandits.audit import actions, releases, responses
from dpbandits.audit.instruments import NotVerifiableError
from dpbandits.audit.verdict import PROVED, ROUNDING, VIOLATED, Verdict
from dpbandits.errors import InputError, at_least, fraction, known, positive
from dpbandits.policies import lookup
from dpbandits.policies.policy import Policy

__all__ = ["HORIZON", "RARE_HORIZON", "SHORT", "claim_of", "subject", "verify"]

HORIZON = 8
MOST_ROUNDS = 20_000
RARE_HORIZON = 2000  # where the claim has a delta, releases are rare

#: Options that shorten a schedule, so that a few rounds show releases; privacy does not depend on them.
SHORT = {"scale": 1e-6}


def subject(
    name: str | lookup.Factory,
    *,
    epsilon: float | None,
    horizon: int,
    options: dict[str, Any] | None = None,
    short: bool = True,
) -> tuple[Policy, str]:
    """The policy to be audited, for two arms, and what was set to make it short enough, if ``short``."""
    factory = lookup.find(name)
    given = dict(options or {})
    wanted = inspect.signature(factory).parameters
    added = {name: value for name, value in SHORT.items() if short and name in wanted and name not in given}
    policy = lookup.make(name, arms=2, epsilon=epsilon, horizon=horizon, given={**given, **added})
    note = "".join(f"; {option} {value:g}, which shortens its schedule" for option, value in added.items())
    return policy, note


def claim_of(policy: Policy, claim: float | None, delta: float | None) -> tuple[float, float]:
    """The claim that is audited: what is given, or else what the policy promises."""
    promise = policy.guarantee
    if claim is None:
        claim = policy.settings.get("epsilon_min") if promise.epsilon is None else promise.epsilon
        if claim is None or math.isinf(claim):
            raise InputError(f"claim is required, because {policy.name} promises nothing, got none")
    if delta is None:
        delta = promise.delta
    return positive("claim", claim), fraction("delta", delta, zero=True)


def verify(
    policy: Policy,
    *,
    horizon: int | None = None,
    claim: float | None = None,
    delta: float | None = None,
    view: str | None = None,
    note: str = "",
) -> Verdict:
    """The exact worst case: of one response in the local model, of the actions, or else of all released values.

    ``view`` asks for one of these: response, actions or released.

    >>> from dpbandits import policies
    >>> verdict = verify(policies.adap_ucb(2, epsilon=1.0))
    >>> verdict.verdict, verdict.view, round(verdict.epsilon, 3)
    ('proved', 'actions', 1.0)
    """
    claim, delta = claim_of(policy, claim, delta)
    verdict = _strongest(policy, horizon, claim, delta, view, note)
    return dataclasses.replace(verdict, settings=policy.settings)


def _strongest(policy: Policy, horizon: int | None, claim: float, delta: float, view: str | None, note: str) -> Verdict:
    local = policy.guarantee.trust == "local"
    if view is not None:
        known("view", view, ("response",) if local else ("actions", "released"))
    if local:
        return _verify_response(policy, claim, delta, note)
    most = math.inf if policy.horizon is None else policy.horizon
    rounds = at_least("horizon", horizon or int(min(RARE_HORIZON if delta else HORIZON, most)), 2)
    if rounds > most:
        raise InputError(f"horizon must be at most {most}, for which {policy.name} was made, got {rounds}")
    if view == "actions" or (view is None and not delta):
        try:
            return _verify_actions(policy, rounds, claim, delta, note)
        except NotVerifiableError as reason:
            if view is not None:
                raise
            note += f"; not by actions: {reason}"
    return _verify_releases(policy, rounds, claim, delta, note)


def _shown(epsilon: float) -> float:
    """Without the last digits, which are rounding."""
    return float(f"{epsilon:.12g}")


def _verdict(epsilon: float, claim: float, rounding: float = 0.0) -> str:
    return PROVED if epsilon <= claim * (1.0 + ROUNDING) + rounding else VIOLATED


def _verify_actions(policy: Policy, horizon: int, claim: float, delta: float, note: str) -> Verdict:
    if delta:
        raise NotVerifiableError(f"delta must be 0 to verify actions, got {delta:g}")
    most = actions.largest_horizon(float(policy.settings.get("epsilon", claim)))
    if horizon > most:
        _probe(policy)
        raise InputError(f"horizon must be at most {most} to verify the actions of {policy.name}, got {horizon}")
    worst = actions.worst_actions(policy, horizon)
    changed = list(worst.rewards)
    if worst.epsilon > 0.0:
        changed[worst.changed] = 1
    domain = (
        "2 arms, rewards 0 and 1, all reward vectors and single changes, "
        f"all {worst.sequences} action sequences; noise on the grid of the rewards' sums, clamped far out{note}"
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
    """Raise NotVerifiableError if actions could not be verified at any horizon."""
    actions.worst_actions(policy, 4)


def _verify_releases(policy: Policy, horizon: int, claim: float, delta: float, note: str) -> Verdict:
    if horizon > MOST_ROUNDS:
        raise InputError(f"horizon must be at most {MOST_ROUNDS} to verify releases, got {horizon}")
    worst, tried = releases.worst_release(policy, horizon)
    epsilon = worst.epsilon
    if not math.isinf(epsilon):
        epsilon = releases.accounted([cost for _, cost in worst.costs], delta)
    witness: dict[str, Any] = {
        "rewards": f"all {worst.rewards[worst.round]:g}" if len(worst.rewards) > 64 else _text(worst.rewards),
        "changed": f"reward {worst.round + 1}, to {1.0 - worst.rewards[worst.round]:g}",
    }
    if worst.unhidden is not None:
        witness["event"] = f"what is released after round {worst.unhidden + 1} changes, with no noise over it"
    else:
        costs = ", ".join(f"{cost:.4g}" for _, cost in worst.costs[:16])
        more = ", .." if len(worst.costs) > 16 else ""
        witness["event"] = f"the {len(worst.costs)} noisy sums that it is in, far in their tails; losses {costs}{more}"
    if len(worst.steps) <= 64:
        witness["arms"] = _text(step.arm for step in worst.steps)
    how = f", accounted at delta {delta:.3g}" if delta else ""
    domain = f"who sees every release{how}; 2 arms, {tried}{note}"
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
    if policy.guarantee.epsilon is None:  # each user's own: the claim is one of many
        levels = [claim, 0.1 * claim, 5.0 * claim]
    pairs = [(responses.worst_response(policy.curator, level), level) for level in levels]
    if any(pair.rounding > 0.01 * level for pair, level in pairs):
        raise NotVerifiableError(
            f"epsilon must be at most about 30 to be verified in floating point, got {max(levels):g}"
        )
    broken = [found for found in pairs if _verdict(found[0].epsilon, found[1], found[0].rounding) == VIOLATED]
    pair, level = broken[0] if broken else pairs[0]
    witness = {"rewards": list(map(str, pair.rewards)), "responses": [str(law) for law in pair.responses]}
    of_users = f"users at levels {', '.join(f'{one:g}' for one in sorted(levels))}; " if len(levels) > 1 else ""
    domain = f"one response; {of_users}rewards from -inf to inf and nan; constants as floats{note}"
    kind = _verdict(pair.epsilon, level, pair.rounding)
    return Verdict(
        kind, policy.name, level, delta, _shown(pair.epsilon), "exact", "response", None, domain, witness=witness
    )


def _text(numbers: Any) -> str:
    return "".join(f"{number:g}" for number in numbers)
