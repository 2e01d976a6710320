"""A statistical audit: find the worst neighbours, train a guesser, test it on fresh runs, report what is refuted."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dpbandits.audit.game import Guesser, check_trials, epsilon_at_least, sequential_bound, train
from dpbandits.audit.subjects import claim_of, subject, users_fault, with_arms
from dpbandits.audit.targets import (
    CENTRAL_VIEWS,
    LOCAL_VIEWS,
    Neighbours,
    PolicyTarget,
    Responder,
    ResponseTarget,
    Target,
)
from dpbandits.audit.verdict import NOT_REFUTED, VIOLATED, Verdict
from dpbandits.audit.watch import watched
from dpbandits.checks import at_least, known, positive
from dpbandits.errors import InputError
from dpbandits.policies import lookup
from dpbandits.policies.policy import Policy
from dpbandits.privacy.users import of_reward
from dpbandits.types import Bools, Integers

__all__ = ["ALPHA", "HORIZON", "TRIALS", "attack", "attack_responder", "attack_target"]

ALPHA, TRIALS, HORIZON = 1e-3, 200_000, 30
SEARCH_PART = 40  # the search for the worst pair uses 1/40 of the trials for each pair of neighbours
MIN_SEARCH = 2000  # .. but at least 2000 trials
BATCHES = 20  # interim tests of a sequential audit


class Aim(NamedTuple):
    """The claim that is attacked, and the error probability of the attack."""

    claim: float
    delta: float
    alpha: float


def attack(
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
    trials: float = TRIALS,
    alpha: float = ALPHA,
    seed: int = 0,
    anytime: bool = False,
) -> Verdict:
    """Try to refute a policy's claim from its actions or released means, or from one response in the local model.

    ``policy`` is a name, ``module:function``, a function that makes a policy, or a policy.

    >>> verdict = attack("ldp-ucb-b", epsilon=1.0, claim=0.5, trials=20_000)
    >>> verdict.verdict, 0.8 < verdict.epsilon < 1.0
    ('violated', True)
    """
    rounds = at_least("horizon", horizon or HORIZON, 1)
    with watched():
        made = subject(
            policy,
            epsilon=epsilon,
            horizon=rounds,
            options=options,
            rewards_per_user=rewards_per_user,
            user_delta=user_delta,
        ).policy
        claim, delta = claim_of(made, claim, delta)
    seed = at_least("seed", seed, 0)
    local = made.guarantee.trust == "local"
    views = LOCAL_VIEWS if local else CENTRAL_VIEWS
    view = known("view", view or views[0], views)
    rewards = (made.rewards_per_user or 1) if local else 1
    aim = Aim(of_reward(claim, rewards), delta, alpha)
    if local and made.user_delta is not None:
        aim = Aim(positive("claim", made.curator.guarantee().epsilon or claim), 0.0, alpha)
    check_trials(trials, aim.claim, alpha, aim.delta)

    def attacked() -> Verdict:
        if local:
            targets: list[Target] = [ResponseTarget(Responder.of(made, aim.claim), view)]
        else:
            targets = [PolicyTarget(made, rounds, view)]
            more = with_arms(made, made.arms + 1)
            if more is not None and targets[0].compiled:  # plain Python would take too long
                targets.append(PolicyTarget(more, rounds, view, few=True))
        return attack_target(targets, made.name, aim, int(trials), seed, None if local else rounds, anytime)

    verdict = dataclasses.replace(users_fault("fails when it is played", attacked), settings=made.settings)
    if rewards == 1:
        return verdict
    domain = f"{verdict.domain}; one response of a user, who sends {rewards} of them"
    if aim.delta != delta:  # they compose to the promise: what is attacked is that of one response
        return dataclasses.replace(verdict, domain=domain)
    return dataclasses.replace(verdict, claim=claim, epsilon=rewards * (verdict.epsilon or 0.0), domain=domain)


def attack_responder(
    responder: Responder,
    *,
    claim: float,
    delta: float = 0.0,
    view: str = "response",
    trials: float = TRIALS,
    alpha: float = ALPHA,
    seed: int = 0,
    anytime: bool = False,
) -> Verdict:
    """Try to refute the claim of a responder, which turns one reward into one response."""
    check_trials(trials, positive("claim", claim), alpha, delta)
    seed = at_least("seed", seed, 0)
    targets: list[Target] = [ResponseTarget(responder, view)]
    aim = Aim(claim, delta, alpha)
    return users_fault("fails", lambda: attack_target(targets, responder.name, aim, int(trials), seed, None, anytime))


def attack_target(
    targets: Sequence[Target], name: str, aim: Aim, trials: int, seed: int, horizon: int | None, anytime: bool = False
) -> Verdict:
    """Train the guesser on half of the trials, and test it on the other half. The search uses separate runs."""
    if anytime and aim.delta:
        raise InputError("delta", f"must be 0 for an anytime audit, got {aim.delta:g}")
    target, pair, tried = _search(targets, aim, trials, seed)
    sides = _coins(trials // 2, seed, 1)
    rows = target.play(pair, sides, (seed, 2))
    readings = target.codes(rows, len(rows) // 2)
    trained = [(train(codes, sides, aim.alpha, aim.delta), reading) for reading, codes in readings]
    guesser, reading = max(trained, key=lambda found: found[0].trained_bound)
    bound, tested, witness = _test(target, pair, guesser, reading, rows, aim, trials - trials // 2, seed, anytime)
    engine = "" if target.compiled or horizon is None else "; played in plain Python"
    method = "sequential game" if anytime else "game"
    arms = "" if horizon is None else f", with {' and '.join(str(t.policy.arms) for t in targets)} arms"  # type: ignore[attr-defined]
    domain = f"the worst of {tried} pairs of neighbours{arms}; rewards 0, 0.5, 1, 7, -1, NaN and infinite ones{engine}"
    return Verdict(
        VIOLATED if bound > aim.claim else NOT_REFUTED,
        name,
        aim.claim,
        aim.delta,
        bound,
        method,
        "released values" if target.view == "released" else target.view,
        horizon,
        domain,
        confidence=1.0 - aim.alpha,
        trials=trials // 2 + tested,
        witness=witness,
        seed=seed,
    )


def _coins(count: int, seed: int, stage: int) -> Integers:
    return np.random.default_rng([seed, stage, 77]).integers(0, 2, count)


def _search(targets: Sequence[Target], aim: Aim, trials: int, seed: int) -> tuple[Target, Neighbours, int]:
    """The target and the pair of neighbours on which a guesser does best in training, and how many were tried."""
    pairs = [(target, pair) for target in targets for pair in target.neighbours()]
    count = max(trials // SEARCH_PART, min(MIN_SEARCH, trials))
    bounds = []
    for number, (target, pair) in enumerate(pairs):
        sides = _coins(count, seed, 100 + number)
        rows = target.play(pair, sides, (seed, 100 + number))
        readings = target.codes(rows, count // 2)
        bounds.append(max(train(codes, sides, aim.alpha, aim.delta).trained_bound for _, codes in readings))
    return *pairs[int(np.argmax(bounds))], len(pairs)


def _test(
    target: Target,
    pair: Neighbours,
    guesser: Guesser,
    reading: str,
    trained: Any,
    aim: Aim,
    trials: int,
    seed: int,
    anytime: bool,
) -> tuple[float, int, dict[str, Any]]:
    """Test the guesser on fresh runs; return the bound, the number of runs, and the witness."""
    looks = BATCHES if anytime else 1
    rights: list[Bools] = []
    bound, played, right, wrong = 0.0, 0, 0, 0
    event: dict[str, Any] = {}
    for look in range(looks):
        count = trials * (look + 1) // looks - trials * look // looks
        sides = _coins(count, seed, 3 + 1000 * look)
        rows = target.play(pair, sides, (seed, 4 + 1000 * look))
        codes = _read(target, reading, trained, rows)
        good, bad = guesser.outcome(codes, sides)
        rights.append(good[good | bad])
        played, right, wrong = played + count, right + int(good.sum()), wrong + int(bad.sum())
        event = event or _event(target, guesser, reading, rows, codes)
        if looks == 1:
            bound = epsilon_at_least(right, wrong, played, aim.alpha, aim.delta)
        else:
            bound = sequential_bound(np.concatenate(rights), aim.alpha)
            if bound > aim.claim:
                break
    witness = {"input": pair.text[0], "neighbour": pair.text[1], **event, "right": right, "wrong": wrong}
    return bound, played, witness


def _read(target: Target, reading: str, trained: Any, rows: Any) -> Integers:
    """The codes of fresh rows, with the bins that were made in training."""
    both = np.concatenate([trained, rows])
    codes = next(codes for name, codes in target.codes(both, len(trained) // 2) if name == reading)
    return codes[len(trained) :]


def _event(target: Target, guesser: Guesser, reading: str, rows: Any, codes: Integers) -> dict[str, Any]:
    """The outcome that the guesser is most certain about, and its guess."""
    score = guesser.score(codes)
    zero, one = guesser.guesses(codes)
    if not (zero | one).any():
        return {}
    surest = int(np.argmax(np.where(zero | one, np.abs(score), -1.0)))
    says = 1 if score[surest] > 0.0 else 0
    return {"event": target.describe(rows[surest], reading), "says": "neighbour" if says else "input"}
