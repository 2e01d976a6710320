"""A statistical audit: search for the worst neighbours, train a guesser, test it on fresh runs, say what is refuted."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from dpbandits.audit.game import Bools, Guesser, check_trials, lower_bound, sequential_bound, train
from dpbandits.audit.players import CENTRAL_VIEWS, LOCAL_VIEWS, Device, DevicePlayer, Neighbours, Player, PolicyPlayer
from dpbandits.audit.verdict import NOT_REFUTED, VIOLATED, Verdict
from dpbandits.errors import InputError, at_least, known
from dpbandits.policies.policy import Policy
from dpbandits.protocols import Integers

__all__ = ["ALPHA", "HORIZON", "TRIALS", "attack", "attack_device", "attack_policy"]

ALPHA, TRIALS, HORIZON = 1e-3, 200_000, 30
SEARCH = 40  # each pair of neighbours is tried on this part of the trials
LEAST = 2000
BATCHES = 20  # looks of a sequential audit


class Aim(NamedTuple):
    """What is attacked: a claim, at an error probability."""

    claim: float
    delta: float
    alpha: float


def attack_policy(
    policy: Policy,
    *,
    claim: float,
    delta: float = 0.0,
    view: str | None = None,
    trials: float = TRIALS,
    alpha: float = ALPHA,
    horizon: int | None = None,
    seed: int = 0,
    anytime: bool = False,
) -> Verdict:
    """Attack a policy's claim: by its actions or released means, or by one response in the local model.

    >>> from dpbandits import policies
    >>> verdict = attack_policy(policies.ldp_ucb_b(2, epsilon=1.0), claim=0.5, trials=20_000)
    >>> verdict.verdict, 0.8 < verdict.epsilon < 1.0
    ('violated', True)
    """
    local = policy.guarantee.trust == "local"
    views = LOCAL_VIEWS if local else CENTRAL_VIEWS
    view = known("view", view or views[0], views)
    check_trials(trials, claim, alpha, delta)
    player: Player
    rounds = None
    if local:
        player = DevicePlayer(Device.of(policy, claim), view)
    else:
        rounds = at_least("horizon", horizon or HORIZON, 1)
        player = PolicyPlayer(policy, rounds, view)
    verdict = attack(player, policy.name, Aim(claim, delta, alpha), int(trials), seed, rounds, anytime)
    return dataclasses.replace(verdict, settings=policy.settings)


def attack_device(
    device: Device,
    *,
    claim: float,
    delta: float = 0.0,
    view: str = "response",
    trials: float = TRIALS,
    alpha: float = ALPHA,
    seed: int = 0,
    anytime: bool = False,
) -> Verdict:
    """Attack the claim of something that makes one response of one reward."""
    check_trials(trials, claim, alpha, delta)
    player = DevicePlayer(device, view)
    return attack(player, device.name, Aim(claim, delta, alpha), int(trials), seed, None, anytime)


def attack(
    player: Player, name: str, aim: Aim, trials: int, seed: int, horizon: int | None, anytime: bool = False
) -> Verdict:
    """Half of the trials train the guesser, the other half test it; the search uses runs of its own."""
    if anytime and aim.delta:
        raise InputError(f"delta must be 0 for an anytime audit, got {aim.delta:g}")
    pair = _search(player, aim, trials, seed)
    sides = _coins(trials // 2, seed, 1)
    rows = player.play(pair, sides, (seed, 2))
    readings = player.codes(rows, len(rows) // 2)
    trained = [(train(codes, sides, aim.alpha, aim.delta), reading) for reading, codes in readings]
    guesser, reading = max(trained, key=lambda found: found[0].trained_bound)
    bound, tested, witness = _test(player, pair, guesser, reading, rows, aim, trials - trials // 2, seed, anytime)
    engine = "" if player.compiled or horizon is None else "; played in plain Python"
    method = "game, looked at as it went" if anytime else "game"
    domain = f"the worst of {len(player.neighbours())} pairs of neighbours{engine}"
    return Verdict(
        VIOLATED if bound > aim.claim else NOT_REFUTED,
        name,
        aim.claim,
        aim.delta,
        bound,
        method,
        "released values" if player.view == "released" else player.view,
        horizon,
        domain,
        confidence=1.0 - aim.alpha,
        trials=trials // 2 + tested,
        witness=witness,
        seed=seed,
    )


def _coins(count: int, seed: int, stage: int) -> Integers:
    return np.random.default_rng([seed, stage, 77]).integers(0, 2, count)


def _search(player: Player, aim: Aim, trials: int, seed: int) -> Neighbours:
    """The pair on which a guesser does best in training."""
    pairs = player.neighbours()
    if len(pairs) == 1:
        return pairs[0]
    count = max(trials // SEARCH, min(LEAST, trials))
    bounds = []
    for number, pair in enumerate(pairs):
        sides = _coins(count, seed, 100 + number)
        rows = player.play(pair, sides, (seed, 100 + number))
        readings = player.codes(rows, count // 2)
        bounds.append(max(train(codes, sides, aim.alpha, aim.delta).trained_bound for _, codes in readings))
    return pairs[int(np.argmax(bounds))]


def _test(
    player: Player,
    pair: Neighbours,
    guesser: Guesser,
    reading: str,
    trained: Any,
    aim: Aim,
    trials: int,
    seed: int,
    anytime: bool,
) -> tuple[float, int, dict[str, Any]]:
    """Play fresh runs and count: the bound, how many were played, and the witness."""
    looks = BATCHES if anytime else 1
    rights: list[Bools] = []
    bound, played, right, wrong = 0.0, 0, 0, 0
    event: dict[str, Any] = {}
    for look in range(looks):
        count = trials * (look + 1) // looks - trials * look // looks
        sides = _coins(count, seed, 3 + 1000 * look)
        rows = player.play(pair, sides, (seed, 4 + 1000 * look))
        codes = _read(player, reading, trained, rows)
        good, bad = guesser.outcome(codes, sides)
        rights.append(good[good | bad])
        played, right, wrong = played + count, right + int(good.sum()), wrong + int(bad.sum())
        event = event or _event(player, guesser, reading, rows, codes)
        if looks == 1:
            bound = lower_bound(right, wrong, played, aim.alpha, aim.delta)
        else:
            bound = sequential_bound(np.concatenate(rights), aim.alpha)
            if bound > aim.claim:
                break
    witness = {"input": pair.text[0], "neighbour": pair.text[1], **event, "right": right, "wrong": wrong}
    return bound, played, witness


def _read(player: Player, reading: str, trained: Any, rows: Any) -> Integers:
    """The codes of fresh rows, in the bins that were made in training."""
    both = np.concatenate([trained, rows])
    codes = next(codes for name, codes in player.codes(both, len(trained) // 2) if name == reading)
    return codes[len(trained) :]


def _event(player: Player, guesser: Guesser, reading: str, rows: Any, codes: Integers) -> dict[str, Any]:
    """The outcome that the guesser is most certain about, and what it says then."""
    score = guesser.score(codes)
    zero, one = guesser.guesses(codes)
    if not (zero | one).any():
        return {}
    surest = int(np.argmax(np.where(zero | one, np.abs(score), -1.0)))
    says = 1 if score[surest] > 0.0 else 0
    return {"event": player.describe(rows[surest], reading), "says": "neighbour" if says else "input"}
