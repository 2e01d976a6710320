"""Arms of an experiment that are paused and resumed many times."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from calls import create, decide, folded, read, reward, served
from starlette.testclient import TestClient

from dpbandits.live import Live
from dpbandits.policies import lookup
from dpbandits.service.state import LiveState


@pytest.mark.parametrize("name", ["adap-ucb", "adac-ucb", "dp-glr-imed", "ldp-ucb-b"])
@pytest.mark.parametrize("window", [math.inf, 64.0])
def test_a_state_chooses_as_a_live_run_with_the_same_pauses(name: str, window: float) -> None:
    policy = lookup.sample(name, arms=3, horizon=5000)
    live, state = Live(policy, window=window), LiveState(policy, window)
    noises = [np.random.default_rng(1), np.random.default_rng(1)]
    choices = [np.random.default_rng(2), np.random.default_rng(2)]
    chance = random.Random(name)
    waiting = []
    for step in range(400):
        now = 2.0 * step
        one = live.decide(now, noises[0], choices[0])
        assert state.decide(now, noises[1], choices[1]) == (one.arm, one.stint)
        waiting.append(one)
        if chance.random() < 0.6:
            one = waiting.pop(chance.randrange(len(waiting)))
            status = live.receive(one.number, 1.0, 1.0, now, noises[0])
            assert state.receive(one.arm, one.stint, one.time, 1.0, 1.0, now, noises[1]) is (status == "used")
        if chance.random() < 0.1:
            for arm in live.paused.copy():
                live.resume(arm)
            if chance.random() < 0.8:
                live.pause(one.arm, noises[0])
            newly = live.paused - state.paused
            state.pause(frozenset(live.paused))
            for arm in newly:
                state.close_on(arm, noises[1])
    kept, held = live.freeze(), state.freeze()
    assert all(kept[part] == held[part] for part in ("agent", "curator", "desk"))
    assert live.desk.folded[0] > 20


@pytest.mark.parametrize("policy", ["adap-imed", "dp-klucb"])
def test_stints_stay_as_short_as_what_was_played(client: TestClient, policy: str) -> None:
    create(client, policy=policy, epsilon="10")
    for _ in range(12):
        one = decide(client)
        assert reward(client, one["token"], 1) == "accepted"
        folded(client)
        for paused in ([one["arm"]], []):
            assert client.patch("/v1/experiments/shop", json={"paused_arms": paused}).status_code == 200
    decide(client)
    folded(client)
    service = served(client)
    with service.store.reading() as connection:
        state = service.stored(connection, service.find("shop").experiment.id).state
    assert 0 < state.decisions <= 13
    assert state.desk.asked[0] <= 13
    assert state.parts["agent"].pulls.max() <= 26  # with the open stint


def test_the_ledger_says_that_a_pause_closed_a_stint(client: TestClient) -> None:
    create(client, policy="adap-ucb")
    before: list[dict[str, Any]] = []
    for responses in range(1, 20):  # until a stint has some of the responses that it asked for
        one = decide(client)
        assert reward(client, one["token"], 1) == "accepted"
        folded(client)
        before = read(client, "ledger")["entries"]
        if sum(entry["responses"] for entry in before) < responses:
            break
    assert client.patch("/v1/experiments/shop", json={"paused_arms": [one["arm"]]}).status_code == 200
    (closed,) = [entry for entry in read(client, "ledger")["entries"] if entry not in before]
    assert {entry["closed_by"] for entry in before} == {"count"}
    assert closed["closed_by"] == "pause"
