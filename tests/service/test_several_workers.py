"""What several workers on one PostgreSQL must not do to each other."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from calls import create, decide, folded, respond, served
from postgres import Postgres
from starlette.testclient import TestClient

from dpbandits.service import changes, tokens
from dpbandits.service.books import Ask
from dpbandits.service.clock import Clock
from dpbandits.service.responses import ACCEPTED, Item, Tell
from dpbandits.service.shared import _Append

Open = Callable[..., TestClient]


def test_a_lease_that_is_asked_for_at_two_workers_at_once_is_stored_once(
    serve: Open, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second worker looks before the first one commits. That both draw the same arms has probability < 1e-100."""
    store = postgres.database()
    one, other = serve(store), serve(store)
    create(one, floor=0.1)
    first = decide(one, decision="order-77", count=1000)
    look = _Append.stored
    monkeypatch.setattr(_Append, "stored", lambda self, asks: look(self, asks) if self.rows.decisions else {})
    assert decide(other, decision="order-77", count=1000) == first
    assert len(decide(other, count=1000)["decisions"]) == 1000
    monkeypatch.undo()
    assert decide(one, decision="order-77", count=1000) == first
    assert folded(one)["decisions"] == 2000


@pytest.mark.parametrize("changed", [{"add_arm": "new"}, {"paused_arms": ["red"]}])
def test_a_change_before_the_fold_counts_no_decision_twice(
    serve: Open, postgres: Postgres, changed: dict[str, Any]
) -> None:
    store = postgres.database()
    client = serve(store)
    create(client, response_window=3600)
    folded(client)
    served(client)._folder.stop()  # type: ignore[union-attr]
    for _ in range(7):
        decide(client)
    assert client.patch("/v1/experiments/shop", json=changed).status_code == 200
    client.__exit__(None, None, None)
    again = serve(store)
    assert folded(again)["decisions"] == 7
    service = served(again)
    with service.store.reading() as connection:
        state = service.stored(connection, service.find("shop").experiment.id).state
    assert (state.decisions, sum(state.desk.out)) == (7, 7)


def test_a_worker_decides_by_the_status_that_another_one_has_just_set(serve: Open, postgres: Postgres) -> None:
    store = postgres.database()
    one, other = serve(store), serve(store)
    create(one)
    decide(other)
    for status, code in [("paused", 409), ("running", 200)] * 5:
        assert one.patch("/v1/experiments/shop", json={"status": status}).status_code == 200
        assert other.post("/v1/experiments/shop/decisions").status_code == code
    assert folded(one)["decisions"] == 6


@pytest.mark.parametrize(("key", "code"), [(None, 409), ("key-1", 201)])
def test_an_experiment_that_is_begun_at_two_workers_at_once_is_begun_once(
    serve: Open, postgres: Postgres, monkeypatch: pytest.MonkeyPatch, key: str | None, code: int
) -> None:
    """The second worker has checked whether the name is free before the first one commits."""
    store = postgres.database()
    one, other = serve(store), serve(store)
    asked = {"name": "shop", "arms": ["a", "b"], "policy": "ldp-ucb-b", "epsilon": "1"}
    given: dict[str, Any] = {"json": asked, "headers": {} if key is None else {"idempotency-key": key}}
    unused = changes._unused
    quicker: list[Any] = []

    def late(connection: sa.Connection) -> int:
        if not quicker:
            quicker.append(None)
            quicker[0] = one.post("/v1/experiments", **given)
        return unused(connection)

    monkeypatch.setattr(changes, "_unused", late)
    answer = other.post("/v1/experiments", **given)
    assert (quicker[0].status_code, answer.status_code) == (201, code)
    if key is None:
        assert answer.json()["parameter"] == "name"
    else:
        assert answer.json() == quicker[0].json()
    assert decide(other)["arm"] in ("a", "b")
    assert folded(one)["decisions"] == 1


def test_a_worker_whose_machine_is_days_ahead_spoils_nothing(
    serve: Open, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = postgres.database()
    right = serve(store)
    create(right, response_window=60)
    tokens = [decide(right)["token"] for _ in range(2)]
    with monkeypatch.context() as patch:
        days_ahead = (0.0, lambda: time.time() + 2 * 86_400, time.monotonic)
        patch.setattr(Clock.__init__, "__defaults__", days_ahead)  # the clock of the machine
        ahead = serve(store)
        assert respond(ahead, decide(ahead)["token"], 1) == "accepted"
    assert abs(served(ahead).clock() - served(right).clock()) < 30
    assert [respond(client, token, 1) for client, token in zip((right, ahead), tokens, strict=True)] == ["accepted"] * 2
    assert folded(right)["responses"]["used"] == 3


def test_while_the_file_of_secrets_is_away_a_token_that_may_be_of_a_new_key_is_to_be_sent_again(
    serve: Open, postgres: Postgres, tmp_path: Path
) -> None:
    client = serve(postgres.database())
    create(client)
    token = decide(client)["token"]
    (tmp_path / "keys").rename(tmp_path / "away")
    sent = [{"token": text, "response": 1} for text in (token, "x")]
    assert client.post("/v1/responses", json=sent).status_code == 503
    assert client.get("/v1/experiments").status_code == 200
    assert client.get("/v1/experiments/nothing").status_code == 404
    (tmp_path / "away").rename(tmp_path / "keys")
    said = client.post("/v1/responses", json=sent).json()
    assert [one["status"] for one in said] == ["accepted", "unknown"]


def test_two_workers_that_are_asked_at_once_are_both_ready(serve: Open, postgres: Postgres) -> None:
    store = postgres.database()
    clients = [serve(store), serve(store)]
    with ThreadPoolExecutor(2) as threads:
        for _ in range(20):
            for client in clients:
                served(client).probe._succeeded = -math.inf
            assert [code.status_code for code in threads.map(lambda one: one.get("/readyz"), clients)] == [200, 200]


WRITE_ANSWER = (
    "insert into answers (experiment, decision, item, arm, stint, kind, level, made, received, outcome, folded) "
    "values (%s, %s, 0, 0, 0, 0, 0, 0, 0, 'late', true)"
)
WRITE_DECISION = (
    "insert into decisions (experiment, decision, first, items, lease, arm, stint, kind, level, made, version, folded) "
    "values (%s, %s, 0, 1, 0, 0, 0, 0, 0, 0, 0, true)"
)
WAITS = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


@pytest.mark.parametrize("what", ["answers", "decisions"])
def test_two_workers_that_write_the_same_in_other_orders_do_not_stop_each_other(
    serve: Open, postgres: Postgres, what: str
) -> None:
    """A transaction here writes the first and then the last; the worker is given the last and then the first."""
    store = postgres.database()
    client = serve(store)
    create(client)
    service = served(client)
    number = service.find("shop").experiment.id
    names = ["order-1", "order-9"]
    jobs: list[Any]
    statement, jobs = WRITE_DECISION, [Ask(number, name, b"", 0, 0) for name in reversed(names)]
    if what == "answers":
        made = tokens.read([decide(client, decision=name)["token"] for name in reversed(names)], service.keys)
        statement, jobs = WRITE_ANSWER, [Tell([Item(token, 1, 1.0) for token in made if token], rewards=False)]
    with psycopg.connect(store) as other, psycopg.connect(store, autocommit=True) as watch, ThreadPoolExecutor(1) as at:
        other.execute(statement, (number, names[0]))
        committed = at.submit(service.books.commit, jobs)
        deadline = time.monotonic() + 60
        while watch.execute(WAITS).fetchone() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        other.execute(statement, (number, names[1]))
        other.rollback()
        found = committed.result(60)
    assert found == [[ACCEPTED] * 2] if what == "answers" else all(b"token" in one for one in found)


def test_a_response_to_an_arm_that_another_worker_has_just_added_is_taken(serve: Open, postgres: Postgres) -> None:
    store = postgres.database()
    one = serve(store)
    create(one)
    two = serve(store)
    folder = served(two)._folder
    assert folder is not None
    folder.stop()  # which would look for changes, too
    assert one.patch("/v1/experiments/shop", json={"add_arm": "new"}).status_code == 200
    found = {made["arm"]: made["token"] for made in (decide(one) for _ in range(50))}
    assert respond(two, found["new"], 1) == "accepted"


def test_one_experiment_is_shown_as_another_worker_has_just_changed_it(serve: Open, postgres: Postgres) -> None:
    store = postgres.database()
    one, two = serve(store), serve(store)
    create(one)
    assert two.get("/v1/experiments/shop").json()["status"] == "running"
    for what, status in ((":stop", "stopped"), (":archive", "archived")):
        assert one.post(f"/v1/experiments/shop{what}").status_code == 200
        assert two.get("/v1/experiments/shop").json()["status"] == status
