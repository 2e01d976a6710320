"""The Python client and a real server: every kind of experiment, caps, pauses, and a server that was killed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from moody import Still, until
from servers import Server, Zygote
from sqlalchemy import create_engine

from dpbandits.client import Client
from dpbandits.service import access


@pytest.fixture
def client(server: Server, tmp_path: Path) -> Iterator[Client]:
    with Client(f"http://127.0.0.1:{server.port}", store=tmp_path / "answers", timeout=30) as made:
        yield made


def create(server: Server, **settings: Any) -> None:
    asked = {"name": "shop", "arms": ["red", "green"], "policy": "ldp-ucb-b", **settings}
    if "levels" not in asked and "epsilon" not in asked:
        asked["epsilon"] = "1/2"
    status, answer = server.call("POST", "/v1/experiments", asked)
    assert status == 201, answer


def responses(server: Server) -> dict[str, int]:
    return server.call("GET", "/v1/experiments/shop/summary")[1]["responses"]


LOCAL: list[dict[str, Any]] = [
    {"policy": "ldp-ucb-b"},
    {"policy": "ldp-ucb-l", "reward": {"low": -5, "high": 20}},
    {"policy": "ldp-ucb-bs", "reward": {"kind": "unbounded"}},
    {"policy": "ldp-ucb-ls", "reward": {"kind": "unbounded"}},
    {"policy": "ldp-imed-b", "response_window": None},
    {"policy": "ldp-imed-p", "reward": {"low": -5, "high": 20}},
    {"policy": "heldp-ucb-b", "levels": ["1/2", "2"], "options": {"epsilon_min": 0.5}},
    {"policy": "heldp-weighted-l", "levels": ["1/2", "2"]},
]


@pytest.mark.parametrize("settings", LOCAL, ids=lambda settings: settings["policy"])
def test_every_mechanism_is_accepted(server: Server, client: Client, settings: dict[str, Any]) -> None:
    create(server, **settings)
    level = "1/2" if "levels" in settings else None
    for n in range(4):
        decision = client.decide("shop", otherwise=0, level=level, user=f"u{n}", after=0.1)
        assert (decision.silent, decision.arm in ("red", "green")) == (None, True), decision
        if n % 2:
            client.report(decision, 1)
    until(lambda: responses(server)["accepted"] == 4)
    budget = client.budget("u0")
    assert budget is not None
    assert budget.spent == Fraction(1, 2)


@pytest.mark.parametrize("policy", ["adap-ucb", "ucb1"])
def test_rewards_leave_only_with_leave(server: Server, tmp_path: Path, client: Client, policy: str) -> None:
    create(server, policy=policy, **({"epsilon": None} if policy == "ucb1" else {}))
    assert client.decide("shop", otherwise=0).silent == "trust"
    url = f"http://127.0.0.1:{server.port}"
    with Client(url, store=tmp_path / "others", trust="central", timeout=30) as trusting:
        decision = trusting.decide("shop", otherwise=0, after=0.1)
        assert decision.silent is None
        trusting.report(decision, 1)
        until(lambda: responses(server)["accepted"] == 1)
        budget = trusting.budget()
        assert budget is not None
        assert budget.spent == (0 if policy == "ucb1" else Fraction(1, 2))


def test_a_cap_a_pause_a_wrong_level_and_no_experiment(server: Server, client: Client) -> None:
    create(server, max_responses_per_user=1)
    client.decide("shop", otherwise=0, user="ann", after=0.05)
    until(lambda: responses(server)["accepted"] == 1)
    capped = client.decide("shop", otherwise=0, user="ann", fallback="red")
    assert (capped.silent, capped.arm in ("red", "green")) == ("cap", True)
    wrong = client.decide("shop", otherwise=0, user="bob", level="3", fallback="red")
    assert (wrong.silent, wrong.arm) == ("refused", "red")
    assert wrong.detail.startswith("422 level is not a setting")
    assert server.call("PATCH", "/v1/experiments/shop", {"status": "paused"})[0] == 200
    paused = client.decide("shop", otherwise=0, user="bob", fallback="red")
    assert (paused.silent, paused.detail[:3]) == ("refused", "409")
    assert client.decide("none", otherwise=0, fallback="red").silent == "unknown"


def test_a_killed_server_gets_the_same_answer_when_it_is_back(server: Server, client: Client) -> None:
    create(server)
    decision = client.decide("shop", otherwise=0, after=0.3)
    client.report(decision, 1)
    server.kill()
    assert client.decide("shop", otherwise=0, fallback="red").silent == "unreachable"
    until(lambda: client.current("shop") is None)  # it was due, and tried
    server.start()

    def arrived() -> bool:
        client.flush(again=True)
        return responses(server)["accepted"] == 1

    until(arrived)
    client.flush(again=True)
    assert responses(server)["accepted"] == 1


def test_late_answers_are_the_servers_word(server: Server, tmp_path: Path) -> None:
    """The client has no thread, which would send the answer in time."""
    create(server, response_window=1.0)
    client = Still(f"http://127.0.0.1:{server.port}", store=tmp_path / "answers", timeout=30)
    decision = client.decide("shop", otherwise=0)
    until(lambda: client.current("shop") is None)
    time.sleep(0.5)
    client.flush()
    assert responses(server)["late"] == 1
    assert not client.report(decision, 1)


def test_a_key_with_the_role_decide_is_enough(zygote: Zygote, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/test.db"
    server = Server(zygote, tmp_path, store)
    server.start()
    create(server)
    server.stop()
    engine = create_engine(store)
    with engine.begin() as connection:
        key = access.create(connection, "shop", "decide")
    engine.dispose()
    server.start()
    url = f"http://127.0.0.1:{server.port}"
    try:
        without = Client(url, store=tmp_path / "a", timeout=30)
        assert without.decide("shop", otherwise=0, fallback="red").detail[:3] == "401"
        with Client(url, key, store=tmp_path / "b", timeout=30) as client:
            assert client.decide("shop", otherwise=0, after=0.05).silent is None
            until(lambda: client.current("shop") is None)
    finally:
        server.stop()
