"""What is taken from a user, what they have spent, and what is counted of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from calls import create, decide, folded, read, respond, reward, served
from postgres import Postgres
from starlette.testclient import TestClient

from dpbandits.service import shared
from dpbandits.service.tables import answers

Open = Callable[..., TestClient]
LEVELS: dict[str, Any] = {"policy": "heldp-ucb-b", "levels": ["1", "2"], "options": {"epsilon_min": "auto"}}


def late(client: TestClient) -> None:
    """Let all windows pass."""
    served(client).clock._offset += 61.0


def test_a_late_response_has_been_spent(client: TestClient) -> None:
    """It has left the device: it counts for the user, for the cap and in the ledger."""
    create(client, response_window=60, max_responses_per_user=2)
    tokens = [decide(client, user="ann")["token"] for _ in range(4)]
    late(client)
    assert [respond(client, token, 1) for token in tokens] == ["late", "late", "invalid", "invalid"]
    assert decide(client, user="ann")["token"] is None
    found = folded(client)
    assert (found["responses"]["late"], found["responses"]["refused"], found["responses"]["missing"]) == (2, 2, 0)
    assert (found["users"]["count"], found["users"]["epsilon"]["1.0"]) == (1, "4")
    assert read(client, "ledger")["worst_reward"] == "1"
    assert read(client, "ledger")["users"] == found["users"]


def test_a_late_reward_is_used_for_nothing_and_costs_nothing(client: TestClient) -> None:
    create(client, policy="dp-ucb", response_window=60, max_responses_per_user=1)
    token = decide(client, user="ann")["token"]
    late(client)
    assert reward(client, token, 1) == "late"
    assert folded(client)["users"]["count"] == 0
    assert read(client, "ledger")["worst_reward"] == "0"
    assert reward(client, decide(client, user="ann")["token"], 1) == "accepted"


@pytest.mark.parametrize("ended", [False, True])
def test_in_the_local_model_every_answer_that_came_has_been_spent(client: TestClient, ended: bool) -> None:
    """In time, over the cap, or after the end of the experiment; a repetition costs nothing more."""
    create(client, max_responses_per_user=2, **LEVELS)
    first = decide(client, user="ann", level="1")["token"]
    others = [decide(client, user="ann", level="2")["token"] for _ in range(2)]
    assert respond(client, first, 1) == "accepted"
    if ended:
        assert client.post("/v1/experiments/shop:stop").status_code == 200
    said = [respond(client, token, response) for token in others for response in (1, 1, 1)]
    assert said == (["late"] * 3 if ended else ["accepted", "duplicate", "duplicate"]) + ["invalid"] * 3
    assert folded(client)["users"]["epsilon"]["1.0"] == "5"
    assert read(client, "ledger")["worst_reward"] == "2"
    assert "refused" in client.get("/v1/experiments/shop/export.csv").text


def test_another_answer_to_the_same_decision_has_been_spent(client: TestClient) -> None:
    """The device has drawn noise a second time. The same answer again costs nothing, and a second reward neither."""
    create(client, max_responses_per_user=3)
    token = decide(client, user="ann")["token"]
    assert [respond(client, token, response) for response in (1, 1, 0)] == ["accepted", "duplicate", "conflict"]
    both = [{"token": decide(client, user="ann")["token"], "response": response} for response in (1, 0)]
    both[1]["token"] = both[0]["token"]
    assert [one["status"] for one in client.post("/v1/responses", json=both).json()] == ["accepted", "conflict"]
    assert folded(client)["users"]["epsilon"]["1.0"] == "4"
    assert decide(client, user="ann")["token"] is None
    create(client, "central", policy="dp-ucb")
    token = decide(client, "central", user="ann")["token"]
    assert [reward(client, token, value) for value in (1, 0)] == ["accepted", "conflict"]
    found = folded(client, "central")["users"]
    assert found["epsilon"]["1.0"] == "1"


@pytest.mark.parametrize("policy", ["ldp-ucb-b", "dp-ucb", "adap-ucb"])
def test_a_refused_answer_is_not_missing_and_nothing_of_it_is_kept(client: TestClient, policy: str) -> None:
    create(client, policy=policy, max_responses_per_user=1)
    field, path = ("response", "/v1/responses") if policy == "ldp-ucb-b" else ("reward", "/v1/rewards")
    made = decide(client, user="ann", count=6)["decisions"]
    sent = [{"token": one["token"], field: 1} for one in made[:5]]
    for _ in range(2):
        statuses = [one["status"] for one in client.post(path, json=[*sent, sent[4]]).json()]
        assert statuses[1:] == ["invalid"] * 5
    found = folded(client)
    assert (found["responses"]["used"], found["responses"]["refused"], found["responses"]["missing"]) == (1, 4, 1)
    asked = sum(arm["counts"]["decisions"] - arm["counts"]["silent"] for arm in found["arms"])
    assert asked == 2
    with served(client).store.reading() as connection:
        kept = sa.select(answers.c.response, answers.c.digest, answers.c.sealed).where(answers.c.outcome == "refused")
        assert set(connection.execute(kept).all()) == {(None, None, None)}


def test_where_there_is_a_cap_a_user_must_be_named(client: TestClient) -> None:
    create(client, max_responses_per_user=2)
    for asked in ({}, {"count": 3}, {"user": None}):
        answer = client.post("/v1/experiments/shop/decisions", json=asked)
        assert (answer.status_code, answer.json()["parameter"]) == (422, "user")
        assert "max_responses_per_user=2" in answer.json()["detail"]


def test_a_summary_counts_what_is_not_yet_folded(serve: Open, postgres: Postgres) -> None:
    """As many decisions as are stored, and never fewer than answers."""
    client = serve(postgres.database())
    create(client, response_window=60, max_responses_per_user=2)
    old = decide(client, user="bob")["token"]
    folded(client)
    served(client)._folder.stop()  # type: ignore[union-attr]
    tokens = [decide(client, user="ann")["token"] for _ in range(4)]
    assert [respond(client, token, 1) for token in tokens[:3]] == ["accepted", "accepted", "invalid"]
    assert decide(client, user="ann")["token"] is None
    late(client)
    assert respond(client, old, 1) == "late"
    found = read(client, "summary")
    assert found["decisions"] == 6
    assert found["responses"] == {
        "accepted": 2, "used": 0, "apart": 0, "waiting": 2, "late": 1, "duplicate": 0, "refused": 1, "missing": 1,
    }  # fmt: skip


def test_a_list_of_many_users_takes_few_locks(serve: Open, postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """The locks of all connections of a PostgreSQL server are a few thousand: a lock for each user used them up."""
    client = serve(postgres.database())
    create(client, max_responses_per_user=5)
    users = [decide(client, user=f"user-{number}")["token"] for number in range(300)]
    taken: list[int] = []
    lock_people = shared._Append.lock_people

    def counted(self: Any, asks: Any, tells: Any) -> None:
        lock_people(self, asks, tells)
        self.cursor.execute("select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()")
        taken.append(self.cursor.fetchone()[0])

    monkeypatch.setattr(shared._Append, "lock_people", counted)
    sent = [{"token": token, "response": 1} for token in users]
    assert {one["status"] for one in client.post("/v1/responses", json=sent).json()} == {"accepted"}
    assert 1 <= max(taken) <= shared.PEOPLE_LOCKS
