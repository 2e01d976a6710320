"""Exactly once: answers that come again beside new ones, noise that is drawn, and counts that are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from calls import create, decide, folded, read, respond, served
from starlette.testclient import TestClient

from dpbandits.exact import SystemNoise
from dpbandits.service import tokens
from dpbandits.service.responses import ACCEPTED, DUPLICATED, Item, Tell
from dpbandits.service.store import Database

Open = Callable[..., TestClient]


def test_new_answers_beside_old_ones(client: TestClient) -> None:
    """SQLite stores answers as if they were new. Where one is not, all are stored once all the same."""
    create(client, max_responses_per_user=100)
    leased = [one["token"] for one in decide(client, count=40, user="ann")["decisions"]]

    def told(*items: tuple[int, int]) -> list[str]:
        sent = [{"token": leased[item], "response": response} for item, response in items]
        return [one["status"] for one in client.post("/v1/responses", json=sent).json()]

    assert set(told(*((item, 1) for item in range(20)))) == {"accepted"}
    assert told((19, 1), (20, 0), (18, 0), (21, 1), (21, 1), (22, 0), (22, 1)) == [
        "duplicate", "accepted", "conflict", "accepted", "duplicate", "accepted", "conflict",
    ]  # fmt: skip
    assert set(told(*((item, 1) for item in range(23, 40)))) == {"accepted"}
    found = folded(client)
    assert found["responses"]["used"] == 40
    assert (found["responses"]["duplicate"], found["responses"]["refused"]) == (2, 2)
    assert found["users"]["epsilon"]["1.0"] == "42"  # two conflicting answers left the device, and are spent
    assert client.get("/v1/experiments/shop/export.csv").text.count(",used,") == 40


def test_a_stored_decision_is_shown_while_none_is_made(client: TestClient) -> None:
    create(client)
    first, lease = decide(client, decision="one", user="ann"), decide(client, decision="many", count=3)
    for change in ({"status": "paused"}, None):
        if change is None:
            assert client.post("/v1/experiments/shop:stop").status_code == 200
        else:
            assert client.patch("/v1/experiments/shop", json=change).status_code == 200
        assert decide(client, decision="one", user="ann") == first
        assert decide(client, decision="many", count=3) == lease
        for asked in ({}, {"decision": "new"}, {"count": 2}, {"user": "ann"}):
            answer = client.post("/v1/experiments/shop/decisions", json=asked)
            assert (answer.status_code, "makes no decisions" in answer.json()["detail"]) == (409, True)
    assert folded(client)["decisions"] == 4


@pytest.mark.parametrize("other", [{"count": 3}, {"count": 1}, {"level": "2"}, {"level": "0"}, {"user": "bob"}])
def test_the_name_of_a_decision_is_good_for_one_request(client: TestClient, other: dict[str, Any]) -> None:
    create(client, policy="heldp-ucb-b", levels=["0", "1/2", "2"], options={"epsilon_min": "auto"})
    for decision, count in (("one", {}), ("many", {"count": 2})):
        asked: dict[str, Any] = {"decision": decision, "user": "ann", "level": "1/2", **count}
        first = decide(client, **asked)
        answer = client.post("/v1/experiments/shop/decisions", json=asked | other)
        assert (answer.status_code, answer.json()["parameter"]) == (409, "decision")
        assert f"another {next(iter(other))}" in answer.json()["detail"]
        assert decide(client, **asked) == first
    assert folded(client)["decisions"] == 3


def test_an_answer_that_fills_the_cap_may_come_again(client: TestClient) -> None:
    create(client, max_responses_per_user=1)
    token, other = (decide(client, user="ann")["token"] for _ in range(2))
    assert [respond(client, token, response) for response in (1, 1, 0, 1)] == [
        "accepted", "duplicate", "conflict", "duplicate",
    ]  # fmt: skip
    assert [respond(client, other, response) for response in (1, 1, 0)] == ["invalid"] * 3
    found = folded(client)["responses"]
    assert (found["used"], found["duplicate"], found["refused"], found["missing"]) == (1, 2, 2, 0)


def test_no_noise_is_drawn_in_vain(embedded: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where noise may be drawn, earlier answers are looked for first: whatever is drawn is stored."""
    create(embedded, "central", policy="adap-ucb")
    create(embedded, "local")
    books = served(embedded).books
    drawn: list[object] = []
    laplace = SystemNoise.laplace

    def counted(self: SystemNoise, *given: Any) -> Any:
        drawn.append(given)
        return laplace(self, *given)

    monkeypatch.setattr(SystemNoise, "laplace", counted)
    for _ in range(6):
        mine, old = tokens.read([decide(embedded, name)["token"] for name in ("central", "local")], books.keys)
        assert mine is not None
        assert old is not None
        response, reward = Tell([Item(old, 1, 1.0)], rewards=False), Tell([Item(mine, None, 1.0)], rewards=True)
        assert books.commit([response]) == [[ACCEPTED]]
        assert books.commit([response, reward]) == [[DUPLICATED], [ACCEPTED]]
    assert len(drawn) == read(embedded, "summary", "central")["version"] > 0


def test_counts_of_held_out_users_outlive_an_update(serve: Open, store: str) -> None:
    """A database of the version before, which counted them anew for every summary, gets the same counts."""
    client = serve(store)
    create(client, holdout=0.5, baseline="blue")
    for number in range(30):
        token = decide(client, user=f"user {number}")["token"]
        assert respond(client, token, number % 2) == "accepted"
    before = folded(client)["holdout"]
    assert 0 < before["responses"] == before["decisions"] < 30
    client.__exit__(None, None, None)
    old = Database(store)
    with old.engine.begin() as connection:
        connection.execute(sa.text("drop table held_out"))
        connection.execute(sa.text("update alembic_version set version_num = '0002'"))
    old.close()
    assert folded(serve(store))["holdout"] == before


@pytest.mark.parametrize("policy", ["ldp-ucb-l", "adap-ucb"])
def test_what_is_kept_of_held_out_users(embedded: TestClient, policy: str) -> None:
    """Of devices the sum of their responses, which are private; of rewards nothing but their number.

    One of the 8 users is not held out with probability 8e-9.
    """
    create(embedded, policy=policy, holdout=1 - 1e-9, baseline="blue")
    field, path = ("reward", "/v1/rewards") if policy == "adap-ucb" else ("response", "/v1/responses")
    for number in range(8):
        token = decide(embedded, user=f"user {number}")["token"]
        assert embedded.post(path, json={"token": token, field: 12_345}).json() == {"status": "accepted"}
    with served(embedded).store.readers.connect() as connection:
        ((_, _, decisions, responses, total),) = connection.execute(sa.text("select * from held_out")).all()
    assert (decisions, responses) == (8, 8)
    assert total == (0 if policy == "adap-ucb" else 8 * 12_345)


@pytest.mark.parametrize("first", ["0", "1", "2"])
def test_a_name_is_taken_at_one_level_also_where_nothing_is_taken(client: TestClient, first: str) -> None:
    """At level 0, at another one, and over the cap."""
    create(client, policy="heldp-ucb-b", levels=["1", "0", "2"], options={"epsilon_min": 1}, max_responses_per_user=1)
    path = "/v1/experiments/shop/decisions"
    for name in ("within-the-cap", "over-the-cap"):
        if name == "over-the-cap":
            assert respond(client, decide(client, user="ann", level="1")["token"], 1) == "accepted"
        asked = {"decision": name, "user": "ann", "level": first}
        made = client.post(path, json=asked).json()
        assert (made["token"] is None) == (first == "0" or name == "over-the-cap")
        for level in ("0", "1", "2"):
            again = client.post(path, json={**asked, "level": level})
            assert again.status_code == (200 if level == first else 409)
            assert level != first or again.json() == made


def test_a_name_that_a_decision_of_a_lease_has_is_taken_from_nobody(embedded: TestClient) -> None:
    create(embedded)
    leased = [one["decision"] for one in decide(embedded, decision="a", count=2)["decisions"]]
    for name in (*leased, "a.b.10", ".0"):
        answer = embedded.post("/v1/experiments/shop/decisions", json={"decision": name})
        assert (answer.status_code, answer.json()["parameter"]) == (422, "decision")
    for name in ("a.1b", "a-1", "1", "1.5a"):
        decide(embedded, decision=name)
