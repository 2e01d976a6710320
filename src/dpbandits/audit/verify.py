"""The verdict on a policy: a proof where there is one, otherwise a search for a witness."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from dpbandits.audit import actions, beyond, local, witness
from dpbandits.audit.accounts import Deviations
from dpbandits.audit.kinds import of_package
from dpbandits.audit.proof import Proof, prove
from dpbandits.audit.reading import Looks
from dpbandits.audit.refusals import Refused, Used
from dpbandits.audit.releases import accounted, accounted_adaptively, accounted_by_zcdp
from dpbandits.audit.subjects import ARMS, claim_of, for_arms, same_part, subject, try_out, users_fault, with_arms
from dpbandits.audit.verdict import (
    FAR_BELOW,
    NOT_REFUTED,
    OFF_GRID,
    PROVED,
    REFUSED,
    ROUNDING,
    SUMMING,
    VACUOUS,
    VIOLATED,
    Verdict,
    judged,
    to_digits,
)
from dpbandits.audit.verify_response import verify_response
from dpbandits.audit.watch import rest, watched
from dpbandits.checks import at_least, known
from dpbandits.curators.common import Local, PerResponse
from dpbandits.errors import InputError
from dpbandits.policies import lookup
from dpbandits.policies.policy import Policy
from dpbandits.privacy.users import delta_of_reward

__all__ = ["verify"]

ROUNDS = 64  # for which releases are verified, unless a horizon is given
DELTA_ROUNDS = 2000  # the same for claims with a delta, unless a stint releases as a whole: other releases are rare
MOST_ROUNDS = 20_000
MOST_ARMS_ROUNDS = 24  # rounds with more than three arms
LONGER = 40  # rounds of a shorter search in plays of many rounds
SMALL = 1e-6  # relative: the actions' loss is computed on cells, in floating point


def verify(
    policy: str | lookup.Factory | Policy,
    *,
    epsilon: float | str | None = None,
    options: Mapping[str, Any] | None = None,
    rewards_per_user: int | None = None,
    user_delta: float | None = None,
    horizon: int | None = None,
    claim: float | None = None,
    delta: float | None = None,
    view: str | None = None,
) -> Verdict:
    """Prove a policy's claim, or find a witness against it, or say why neither was possible.

    A promise for users with at most m rewards is proved from the loss of one reward: the user's loss is m times that,
    or, for local promises with a delta, what m responses compose to. In the local model the view is one response. In
    the central model it is everything that the curator releases, which covers the actions. Where the loss of the
    actions alone can be computed, for a few rounds, it is given too. ``policy`` is a name, ``module:function``, a
    function that makes a policy, or a policy; ``view`` is response, actions or released.

    >>> verdict = verify("adap-ucb", epsilon=1.0)
    >>> verdict.verdict, verdict.view, round(verdict.epsilon, 3), verdict.released
    ('proved', 'actions', 1.0, 1.0)
    """
    rounds = None if horizon is None else at_least("horizon", horizon, 2)
    given: dict[str, Any] = {
        "epsilon": epsilon,
        "options": options,
        "rewards_per_user": rewards_per_user,
        "user_delta": user_delta,
    }
    with watched():
        made = subject(policy, horizon=rounds or ROUNDS, **given).policy
        claim, delta = claim_of(made, claim, delta)
        other = _other_promise(made)
    is_local = made.guarantee.trust == "local"
    if other:
        sees = "response" if is_local else "released values"
        refused = Verdict(REFUSED, made.name, claim, delta, None, "exact", sees, rounds, "nothing was proved")
        return dataclasses.replace(refused, reason=other, settings=made.settings)
    if view is not None:
        known("view", view, ("response",) if is_local else ("actions", "released"))
    if is_local:
        with watched():
            verdict = _with_device(verify_response(made, claim, delta), made)
    else:
        with watched():
            verdict = _verify_central(made, rounds, claim, delta)
        if view != "released":
            short = subject(policy, horizon=rounds or ROUNDS, **given, short=True)
            verdict = _with_actions(verdict, *short, rounds, required=view == "actions")
    return dataclasses.replace(verdict, settings=made.settings)


def _with_device(verdict: Verdict, policy: Policy) -> Verdict:
    """The verdict; where it is a refusal, its reason says which curator of a device can be audited instead."""
    if verdict.verdict != REFUSED or not isinstance(policy.curator, Local):
        return verdict
    instead = f"{verdict.reason}; audit its device instead: dpbandits audit curator {policy.curator.mechanism} --exact"
    return dataclasses.replace(verdict, reason=instead)


def _other_promise(policy: Policy) -> str:
    """Why this module cannot prove this policy's promise; empty if it can."""
    promise, seen = policy.curator.guarantee(), {"local": "responses", "central": "actions"}
    if promise.trust in seen and (promise.unit, promise.view) != ("one reward", seen[promise.trust]):
        return (
            f"a proof is about one reward and whoever sees the {seen[promise.trust]}, and the promise is about "
            f"{promise.unit} and whoever sees the {promise.view}"
        )
    one, two = users_fault("cannot be made again", lambda: (policy.fresh(), policy.fresh()))
    if not (same_part(one.agent, two.agent) and same_part(one.curator, two.curator)):
        return "the memory of two new policies differs: it has a source of chance of its own, which is not followed"
    return ""


class Known(NamedTuple):
    """What is known of the releases of a policy, for some numbers of arms."""

    proofs: list[tuple[int, Proof]]  # by the number of arms
    reason: str  # why there is no proof; empty if there is
    looks: bool = False  # whether the agent was read to look at more than releases


def _verify_central(policy: Policy, horizon: int | None, claim: float, delta: float) -> Verdict:
    most = math.inf if policy.horizon is None else policy.horizon
    rare = delta > 0.0 and not users_fault("has no by_stint", lambda: policy.curator.by_stint)
    rounds = horizon or int(min(DELTA_ROUNDS if rare else ROUNDS, most))
    if rounds > most:
        raise InputError("horizon", f"must be at most {most}, for which {policy.name} was made, got {rounds}")
    if rounds > MOST_ROUNDS:
        raise InputError("horizon", f"must be at most {MOST_ROUNDS} to verify releases, got {rounds}")
    try_out(policy, rounds)
    found = _proofs(policy, rounds)
    rewards = policy.rewards_per_user or 1
    delta_each = delta_of_reward(claim, delta, rewards)
    worst = rewards * max((_accounted(proof, delta_each) for _, proof in found.proofs), default=0.0)
    verdict = Verdict(
        judged(worst, claim),
        policy.name,
        claim,
        delta,
        to_digits(worst),
        "exact",
        "released values",
        rounds,
        _domain(found, delta, rewards),
        reason=found.reason,
        covered=_covered(found),
    )
    kept = worst <= claim * (1.0 + (ROUNDING if delta else SUMMING))
    if kept and not found.reason and all(proof.complete for _, proof in found.proofs):
        little = "the worst case is far below the claim: little is released" if verdict.verdict == VACUOUS else ""
        return dataclasses.replace(verdict, released=verdict.epsilon, reason=little)
    if not kept:
        _, largest = max(found.proofs, key=lambda pair: _accounted(pair[1], delta_each))
        verdict = dataclasses.replace(verdict, reason=f"only epsilon {worst:.6g} can be shown: {largest.text}")
    elif not found.reason:
        upto = min(proof.horizon for _, proof in found.proofs)
        reason = f"all choices of arms and stints were tried for {upto} rounds only"
        verdict = dataclasses.replace(verdict, reason=reason, horizon=upto)
    return _searched(policy, verdict, found, rounds)


def _accounted(proof: Proof, delta: float) -> float:
    """The epsilon of a proof at this delta."""
    if not delta or proof.leaks:
        return proof.epsilon
    if any(isinstance(cost, Deviations) for costs in proof.costs for cost in costs):
        return accounted_by_zcdp(proof.costs, delta)
    if not proof.fixed:
        return accounted_adaptively(proof.costs, delta)
    return max((accounted(costs, delta) for costs in proof.costs), default=0.0)


def _covered(found: Known) -> str:
    """For how many rounds the proofs hold, in words."""
    if not found.proofs:
        return ""
    rounds = max(proof.horizon for _, proof in found.proofs)
    fewer = [f"{proof.horizon:,} with {arms} arms" for arms, proof in found.proofs if proof.horizon < rounds]
    each = "any number of stints (batches) of " if all(proof.stints for _, proof in found.proofs) else ""
    return f"for {each}up to {rounds:,} rounds" + (f" ({', '.join(fewer)})" if fewer else "")


def _proofs(policy: Policy, rounds: int) -> Known:
    """Proofs for several numbers of arms. The first refusal ends it."""
    found: list[tuple[int, Proof]] = []
    try:
        for made in for_arms(policy):
            found.append((made.arms, prove(made, rounds if made.arms <= 3 else min(rounds, MOST_ARMS_ROUNDS))))
        _check_bulk(policy.curator)
        if not all(proof.on_grid for _, proof in found):
            raise Refused(OFF_GRID)
    except Refused as refusal:
        return Known(found, str(refusal), isinstance(refusal, Looks))
    except Used:
        return Known(found, "memory is used in a way that is not followed")
    except (Exception, SystemExit) as error:
        return Known(found, f"the code fails on symbols: {type(error).__name__}: {' '.join(str(error).split())[:120]}")
    finally:
        rest()
    return Known(found, "")


def _check_bulk(curator: Any) -> None:
    """Bulk draws in simulations must be the package's, and of the same class as the ``add`` that they stand for."""
    names = ("absorb", "add", "respond")
    owner = {name: next(c for c in type(curator).__mro__ if name in vars(c)) for name in names}
    absorb = inspect.getattr_static(curator, "absorb")
    if absorb is PerResponse.__dict__["absorb"]:
        return
    stands = all(issubclass(owner["absorb"], owner[name]) for name in names)
    if not of_package(owner["absorb"]) or not stands:
        raise Refused("the curator has an absorb of its own, which is not followed")


def _domain(found: Known, delta: float, rewards: int) -> str:
    if not found.proofs:
        return "nothing was proved"
    changes = "one" if rewards == 1 else f"{rewards}, whose losses add up"
    arms = ", ".join(f"{arms} arms for {proof.horizon} rounds" for arms, proof in found.proofs)
    how = f", accounted at delta {delta:.3g}" if delta else ""
    costs = [cost for _, proof in found.proofs for every in proof.costs for cost in every]
    noise = "normal" if any(isinstance(cost, Deviations) for cost in costs) else "Laplace"
    ways = ", or ".join(sorted({proof.how for _, proof in found.proofs}))
    return (
        f"an adversary who sees every release{how}; every reward, also NaN and infinite ones, and every change of "
        f"{changes}; {ways}; {arms}; one reward at a time; {noise} noise on real numbers, or exact noise"
    )


def _searched(policy: Policy, verdict: Verdict, found: Known, rounds: int) -> Verdict:
    """The verdict after a search for a witness among the policy's own plays."""
    delta, tried = verdict.delta, min(rounds, witness.ROUNDS)
    rewards = policy.rewards_per_user or 1
    excess = any(proof.tight and rewards * proof.epsilon > verdict.claim for _, proof in found.proofs)
    claim = math.inf if delta else verdict.claim
    try:
        seen = witness.find_witness(policy, claim, rounds=tried)
        for arms in ARMS:
            made = with_arms(policy, arms) if seen is None and arms > policy.arms else None
            if made is not None:
                seen = witness.find_witness(made, claim, rounds=tried, few=True)
        longer = min(rounds, ROUNDS if excess or found.looks else LONGER)
        if seen is None and longer > tried:
            seen = witness.find_witness(policy, claim, rounds=longer, few=True)
            tried = longer
        if delta and (seen is None or not seen.at_once):
            affine = bool(found.proofs) and all(proof.tight for _, proof in found.proofs)
            seen = beyond.find_event(policy, verdict.claim, delta, several=affine)
    except (Refused, Used) as refusal:
        return _unknown(verdict, found, str(refusal))
    except (Exception, SystemExit) as error:
        return _unknown(verdict, found, f"the code fails on chosen noise: {type(error).__name__}")
    if seen is not None and (not delta or seen.at_once):
        return _violated(verdict, seen)
    domain = f"{verdict.domain}; and no witness was found among plays of {tried} rounds that differ in one reward"
    epsilon = verdict.epsilon if _within(verdict, found) else None
    return dataclasses.replace(verdict, verdict=NOT_REFUTED, epsilon=epsilon, domain=domain)


def _within(verdict: Verdict, found: Known) -> bool:
    """Whether the claim was proved, perhaps for fewer rounds than asked for."""
    worst = verdict.epsilon
    return bool(found.proofs) and not found.reason and worst is not None and worst <= verdict.claim


def _unknown(verdict: Verdict, found: Known, why: str) -> Verdict:
    """The verdict if there is neither a proof nor plays to compare. A proof for fewer rounds is still reported."""
    proved = _within(verdict, found)
    reason = verdict.reason if why in verdict.reason or not why else f"{verdict.reason}; {why}".lstrip("; ")
    if proved:
        return dataclasses.replace(verdict, verdict=NOT_REFUTED, reason=reason)
    return dataclasses.replace(verdict, verdict=REFUSED, epsilon=None, reason=reason, domain="nothing was proved")


def _violated(verdict: Verdict, seen: witness.Witness) -> Verdict:
    shown = {
        "rewards": _text(seen.rewards),
        "changed": _change(seen),
        "arms": "".join(map(str, seen.arms)),
        "event": seen.event,
    }
    return dataclasses.replace(
        verdict,
        verdict=VIOLATED,
        epsilon=to_digits(seen.epsilon),
        view="released values",
        domain=f"the policy's own play of {len(seen.rewards)} rounds, on noise that was chosen; "
        "an adversary who sees every release and every action",
        witness=shown,
        reason="",
    )


def _change(seen: witness.Witness) -> str:
    first, last = seen.changed[0], seen.changed[-1]
    if first == last:
        return f"reward {first + 1}, from {seen.rewards[first]:g} to {seen.value:g}"
    return f"rewards {first + 1} to {last + 1}, from {_text(seen.rewards[first : last + 1])} to {seen.value:g}"


def _with_actions(verdict: Verdict, short: Policy, note: str, horizon: int | None, *, required: bool) -> Verdict:
    """The same verdict with the loss of the actions, where it can be computed."""
    rounds = horizon or int(min(actions.MOST_ROUNDS, short.horizon or math.inf))
    try:
        if verdict.delta:
            raise Refused(f"delta is {verdict.delta:g}")
        if verdict.claim > local.LARGEST:
            raise Refused(f"epsilon is above {local.LARGEST:g}, where floats round probabilities to 0")
        if rounds > actions.MOST_ROUNDS:
            raise Refused(f"the horizon is above {actions.MOST_ROUNDS}")
        if verdict.verdict not in (PROVED, VACUOUS):
            return verdict
        worst = actions.worst_actions(short, rounds)
    except (Refused, Exception, SystemExit) as refusal:
        if required:
            raise InputError("view", f"must be released for this policy and horizon, got actions: {refusal}") from None
        return verdict
    if worst.epsilon > verdict.claim * (1.0 + SMALL):
        reason = "the proof and the enumeration of actions disagree; please report it"
        return dataclasses.replace(verdict, verdict=REFUSED, epsilon=None, reason=reason)
    little = worst.sequences == 1 or worst.epsilon < FAR_BELOW * verdict.claim
    if little and not required:
        return verdict
    return dataclasses.replace(
        verdict,
        verdict=VACUOUS if little else verdict.verdict,
        epsilon=to_digits(worst.epsilon),
        view="actions",
        horizon=rounds,
        witness={
            "rewards": _text(worst.rewards),
            "neighbour": _text(worst.neighbour),
            "event": f"actions {_text(worst.actions)}",
            "probabilities": list(worst.probabilities),
        },
        domain=f"{verdict.domain}; the actions: 2 arms, {rounds} rounds, rewards 0 and 1, all {worst.sequences} action "
        f"sequences, with released means rounded to cells{note}",
        reason=f"there is little to see in {worst.sequences} action sequences" if little else verdict.reason,
    )


def _text(numbers: Any) -> str:
    """Rewards in a row; those other than 0 and 1 with spaces between."""
    texts = [f"{number:g}" for number in numbers]
    return ("" if all(len(text) == 1 for text in texts) else " ").join(texts)
