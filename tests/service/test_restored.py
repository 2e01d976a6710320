"""A database that is restored: nobody is let in by it, and nothing is accepted that would be lost."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from calls import create, decide, folded, put_back, read, respond, reward, served
from postgres import Postgres
from starlette.testclient import TestClient

from dpbandits.service import access, app
from dpbandits.service.tables import answers, api_keys, decisions, experiments, states

Open = Callable[..., TestClient]


def test_a_running_server_needs_a_key_though_an_older_copy_of_the_database_has_none(client: TestClient) -> None:
    service = served(client)
    with service.store.engine.begin() as connection:
        access.create(connection, "ops", "admin")
    service._read_elsewhere()
    with service.store.engine.begin() as connection:
        connection.execute(sa.delete(api_keys))
    service._read_elsewhere()
    assert client.get("/v1/experiments").status_code == 401


@pytest.mark.parametrize("lacks", [[experiments, states], [states]])
def test_nothing_is_accepted_for_an_experiment_that_the_database_lacks(
    serve: Open, postgres: Postgres, lacks: list[sa.Table]
) -> None:
    """It is served again, with all that was stored, when the database has it again."""
    client = serve(postgres.database())
    create(client)
    create(client, "other")
    tokens = [decide(client)["token"] for _ in range(3)]
    assert folded(client)["decisions"] == 3
    service = served(client)
    number = service.find("shop").experiment.id
    kept: list[Any] = []
    with service.store.engine.begin() as connection:
        for table in lacks:
            key = table.primary_key.columns[0]
            gone = connection.execute(sa.delete(table).where(key == number).returning(table))
            kept += [(table, row._asdict()) for row in gone]

    def code(method: str, path: str, body: Any = None) -> int:
        return int(client.request(method, path, json=body).status_code)

    assert code("POST", "/v1/responses", {"token": tokens[0], "response": 1}) == 503
    for _ in range(2):
        assert code("POST", "/v1/experiments/shop/decisions") == 404
        assert code("POST", "/v1/responses", {"token": tokens[0], "response": 1}) == 404
        assert code("GET", "/v1/experiments/shop/summary") == 404
        assert decide(client, "other")["token"]
    assert [one["name"] for one in client.get("/v1/experiments").json()["experiments"]] == ["other"]
    with service.store.reading() as connection:
        assert connection.execute(sa.select(answers)).all() == []
        assert len(connection.execute(sa.select(decisions).where(decisions.c.experiment == number)).all()) == 3
    with service.store.engine.begin() as connection:
        for table, row in kept:
            connection.execute(sa.insert(table).values(row))
    assert respond(client, tokens[0], 1) == "accepted"
    assert decide(client)["token"]
    assert folded(client)["decisions"] == 4


@pytest.mark.parametrize(("table", "key"), [("answers", "item"), ("decisions", "first")])
def test_nothing_is_stored_twice_while_a_restore_has_not_made_the_keys_yet(
    serve: Open, postgres: Postgres, table: str, key: str
) -> None:
    """``pg_restore`` fills the tables first."""
    client = serve(postgres.database())
    create(client)
    token = decide(client, decision="order-1")["token"]
    assert respond(client, token, 1) == "accepted"
    folded(client)
    with served(client).store.engine.begin() as connection:
        connection.execute(sa.text(f"alter table {table} drop constraint {table}_pkey"))
    said = {
        "answers": client.post("/v1/responses", json={"token": token, "response": 1}),
        "decisions": client.post("/v1/experiments/shop/decisions", json={"decision": "order-2", "count": 9}),
    }
    assert said[table].status_code == 503
    with served(client).store.engine.begin() as connection:
        connection.execute(sa.text(f"alter table {table} add primary key (experiment, decision, {key})"))
    assert respond(client, token, 1) == "duplicate"
    assert folded(client)["responses"]["used"] == 1


@pytest.mark.parametrize("path", ["summary", "ledger", "export.csv", "export.parquet"])
def test_what_is_read_of_an_experiment_that_the_database_lacks_is_refused(client: TestClient, path: str) -> None:
    create(client)
    with served(client).store.engine.begin() as connection:
        connection.execute(sa.delete(states))
    assert client.get(f"/v1/experiments/shop/{path}").status_code in (404, 503)


def test_while_the_tables_are_away_all_are_asked_to_try_again(serve: Open, postgres: Postgres) -> None:
    client = serve(postgres.database())
    create(client)
    token = decide(client)["token"]
    folded(client)
    with served(client).store.engine.begin() as connection:
        connection.execute(sa.text("alter schema public rename to away"))
        connection.execute(sa.text("create schema public"))
    asked = [
        client.post("/v1/experiments/shop/decisions"),
        client.post("/v1/experiments/nothing/decisions"),
        *(client.post("/v1/responses", json={"token": text, "response": 1}) for text in (token, "x")),
        *(client.get(path) for path in ("/v1/experiments", "/v1/overview", "/readyz")),
        *(client.get(f"/v1/experiments/shop/{what}") for what in ("summary", "export.csv", "export.parquet")),
        client.patch("/v1/experiments/shop", json={"status": "paused"}),
    ]
    assert [answer.status_code for answer in asked] == [503] * len(asked)
    with served(client).store.engine.begin() as connection:
        connection.execute(sa.text("drop schema public"))
        connection.execute(sa.text("alter schema away rename to public"))
    assert respond(client, token, 1) == "accepted"


def test_an_old_copy_that_is_noticed_while_no_connection_can_be_had_is_no_fault_of_the_client(
    serve: Open, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = serve(postgres.database())
    put_back(client)

    def full() -> None:
        raise sa.exc.OperationalError("", {}, psycopg.OperationalError("too many clients"))

    for how in ("begin", "connect"):
        monkeypatch.setattr(served(client).store.engine, how, full)
    for answer in (client.post("/v1/experiments/shop/decisions"), client.get("/v1/experiments/shop/ledger")):
        assert answer.status_code == 503
        assert "too many" not in answer.text


def test_a_slow_look_drops_no_experiment_that_was_begun_after_it(
    serve: Open, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = serve(postgres.database())
    service = served(client)
    connect = service.store.readers.connect

    def slow() -> sa.Connection:
        connection = connect()
        assert connection.execute(sa.select(experiments)).all() == []  # from now on it sees no other state
        create(client)
        return connection

    monkeypatch.setattr(service.store.readers, "connect", slow)
    service._load_new()
    assert list(service.names) == ["shop"]


LOCKS = """
    select from pg_locks where locktype = 'advisory'
    and database = (select oid from pg_database where datname = current_database())
"""  # the server has databases of other tests, too
WAITS = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


def test_a_halt_keeps_a_change_that_is_made_at_the_same_time(serve: Open, postgres: Postgres) -> None:
    store = postgres.database()
    client = serve(store)
    create(client, policy="adap-ucb")
    assert reward(client, decide(client)["token"], 1) == "accepted"
    folded(client)
    service = served(client)
    number = service.find("shop").experiment.id
    assert service._folder is not None
    service._folder.stop()
    with service.store.engine.begin() as connection:
        connection.execute(sa.update(states).values(draws=0))  # as in an old copy
    with psycopg.connect(store) as other, psycopg.connect(store, autocommit=True) as watch, ThreadPoolExecutor(1) as at:
        other.execute("select from states for update")
        other.execute("update experiments set revision = revision + 1, paused = '[2]'")
        halted = at.submit(service.halt_restored, number)
        deadline = time.monotonic() + 60
        while watch.execute(WAITS).fetchone() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        other.commit()
        halted.result(60)
    found = client.get("/v1/experiments/shop").json()
    assert (found["status"], found["paused_arms"]) == ("halted", ["blue"])


def test_an_app_that_is_started_again_serves_what_the_database_has(tmp_path: Path) -> None:
    file = tmp_path / "test.db"
    made = app(store=f"sqlite:///{file}", keys=tmp_path / "keys", tally=f"sqlite:///{tmp_path}/tally")

    def started() -> TestClient:
        return TestClient(made, base_url="http://test")

    with started() as client:
        create(client)
        create(client, "other")
    shutil.copy(file, tmp_path / "copy")
    with started() as client:
        create(client, "later")
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("update states set state = x'00' where experiment = (select min(id) from experiments)")
    with started() as client:
        codes = [client.post(f"/v1/experiments/{name}/decisions").status_code for name in ("shop", "other", "later")]
        assert sorted(codes) == [200, 200, 503]
    shutil.copy(tmp_path / "copy", file)
    with started() as client:
        assert decide(client)["token"]
        assert decide(client, "other")["token"]
        assert client.post("/v1/experiments/later/decisions").status_code == 404


def lock_all(connection: psycopg.Connection[Any]) -> None:
    """As ``pg_restore`` does. It may meet a server that locks in another order: then it is run again, as docs say."""
    while True:
        try:
            connection.execute("lock table experiments, states, decisions, answers, traffic in access exclusive mode")
        except psycopg.errors.DeadlockDetected:
            connection.rollback()
        else:
            return


def test_a_response_to_an_arm_that_a_copy_lacks_is_unknown_also_while_that_copy_is_restored(
    serve: Open, postgres: Postgres
) -> None:
    """The response is checked when it comes, and waits until the transaction of ``pg_restore`` ends."""
    store = postgres.database()
    client = serve(store)
    create(client)
    folded(client)
    kept = {}
    with psycopg.connect(store) as copy:
        for table in ("experiments", "states"):
            kept[table] = copy.execute(f"select * from {table}").fetchall()
    assert client.patch("/v1/experiments/shop", json={"add_arm": "new"}).status_code == 200
    token = {made["arm"]: made["token"] for made in (decide(client) for _ in range(50))}["new"]
    folded(client)
    with psycopg.connect(store) as other, psycopg.connect(store, autocommit=True) as watch, ThreadPoolExecutor(1) as at:
        lock_all(other)
        for table in ("experiments", "states", "decisions", "traffic"):
            other.execute(f"truncate {table}")
        for table, rows in kept.items():
            for row in rows:
                other.execute(f"insert into {table} values ({', '.join(['%s'] * len(row))})", row)
        said = at.submit(respond, client, token, 1)
        deadline = time.monotonic() + 60
        while watch.execute(WAITS).fetchone() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        other.commit()
        assert said.result(60) == "unknown"
    assert respond(client, decide(client)["token"], 1) == "accepted"
    assert folded(client)["responses"]["used"] == 1


UNFOLDED = (
    "insert into answers (experiment, decision, item, arm, stint, kind, level, made, received, outcome, response, "
    "sealed, folded) values (%s, 'x', 0, %s, 1, 0, %s, 0, 0, 'waiting', 1, %s, false)"
)


@pytest.mark.parametrize(("arm", "level", "sealed"), [(9, 0, None), (0, 9, None), (0, 0, b"damaged")])
def test_one_answer_that_cannot_be_folded_is_late_and_the_others_are_used(
    serve: Open, postgres: Postgres, arm: int, level: int, sealed: bytes | None
) -> None:
    store = postgres.database()
    client = serve(store)
    create(client, policy="adap-ucb")
    with psycopg.connect(store) as other:
        other.execute(UNFOLDED, (served(client).find("shop").experiment.id, arm, level, sealed))
    assert reward(client, decide(client)["token"], 1) == "accepted"
    assert folded(client)["responses"]["used"] == 1
    with psycopg.connect(store) as other:
        found = other.execute("select outcome, sealed, folded from answers where decision = 'x'").fetchall()
    assert found == [("late", None, True)]
    for path in ("summary", "series", "shares", "ledger"):
        read(client, path)


def test_answers_to_decisions_that_a_copy_lacks_do_not_take_the_places_of_its_own(
    serve: Open, store: str, tmp_path: Path
) -> None:
    """They were made in the same part of the window, so they would be taken for those that are waited for."""
    client = serve(store)
    create(client)
    mine = [decide(client)["token"] for _ in range(2)]
    mine += [one["token"] for one in decide(client, decision="lease", count=5)["decisions"]]
    named = decide(client, decision="order-1")
    service = served(client)

    def put(*, back: bool) -> TestClient:
        """Copy the database, or put the copy in its place."""
        if service.store.embedded:
            client.__exit__(None, None, None)
            files = [tmp_path / "test.db", tmp_path / "copy"]
            shutil.copy(*(reversed(files) if back else files))
            return serve(store)
        folded(client)
        with psycopg.connect(store) as connection:
            lock_all(connection)
            for name in ("experiments", "states", "decisions", "answers", "traffic"):
                restore = f"truncate {name}; insert into {name} select * from copy_of_{name}"
                connection.execute(restore if back else f"create table copy_of_{name} as table {name}")
        return client

    client = put(back=False)
    lost = [decide(client)["token"] for _ in range(9)]
    lost += [one["token"] for one in decide(client, decision="later", count=5)["decisions"]]
    client = put(back=True)
    again = decide(client, decision="later", count=3)
    sent = [{"token": token, "response": 1} for token in lost]
    assert [one["status"] for one in client.post("/v1/responses", json=sent).json()] == ["unknown"] * 14
    tokens = [*mine, named["token"], *(one["token"] for one in again["decisions"])]
    sent = [{"token": token, "response": 1} for token in tokens]
    assert [one["status"] for one in client.post("/v1/responses", json=sent).json()] == ["accepted"] * 11
    assert [respond(client, tokens[2], value) for value in (1, 0)] == ["duplicate", "conflict"]
    assert folded(client)["responses"]["used"] == 11


def test_a_token_of_an_arm_that_is_lost_is_not_taken_for_the_arm_that_has_its_number(
    serve: Open, tmp_path: Path
) -> None:
    file = tmp_path / "test.db"
    client = serve(f"sqlite:///{file}")
    create(client)
    client.__exit__(None, None, None)
    shutil.copy(file, tmp_path / "copy")
    client = serve(f"sqlite:///{file}")
    assert client.patch("/v1/experiments/shop", json={"add_arm": "lost"}).status_code == 200
    tokens = {one["arm"]: one["token"] for one in (decide(client) for _ in range(50))}
    client.__exit__(None, None, None)
    shutil.copy(tmp_path / "copy", file)
    client = serve(f"sqlite:///{file}")
    assert client.patch("/v1/experiments/shop", json={"add_arm": "other"}).status_code == 200
    assert {one["arm"] for one in (decide(client) for _ in range(50))} == {"red", "green", "blue", "other"}
    assert respond(client, tokens["lost"], 1) == "unknown"


@pytest.mark.parametrize("field", ["response", "reward"])
@pytest.mark.parametrize("way", ["alone", "in a list", "after a duplicate"])
def test_an_answer_to_a_lost_decision_is_unknown_though_another_one_of_its_name_is_answered(
    serve: Open, tmp_path: Path, field: str, way: str
) -> None:
    file = tmp_path / "test.db"
    client = serve(f"sqlite:///{file}")
    create(client, policy="ldp-ucb-b" if field == "response" else "ucb1", max_responses_per_user=9)
    client.__exit__(None, None, None)
    shutil.copy(file, tmp_path / "copy")
    client = serve(f"sqlite:///{file}")
    lost = decide(client, user="ann", decision="order-1")["token"]
    client.__exit__(None, None, None)
    shutil.copy(tmp_path / "copy", file)
    time.sleep(0.01)
    client = serve(f"sqlite:///{file}")
    tokens = [decide(client, user="ann", decision=f"order-{n}")["token"] for n in (1, 2)]

    def said(*sent: tuple[str, int]) -> list[str]:
        body = [{"token": token, field: value} for token, value in sent]
        return [one["status"] for one in client.post(f"/v1/{field}s", json=body).json()]

    assert said((tokens[0], 1)) == ["accepted"]
    if way == "in a list":
        assert said((tokens[1], 1), (tokens[1], 1), (lost, 0)) == ["accepted", "duplicate", "unknown"]
    else:
        if way == "after a duplicate":
            assert said((tokens[0], 1)) == ["duplicate"]
        assert said((lost, 0)) == ["unknown"]
    assert folded(client)["responses"]["refused"] == 0


def test_an_answer_to_a_decision_that_a_running_server_lost_is_unknown_too(serve: Open, store: str) -> None:
    """The server itself made both decisions of this name: the first one is gone from the database."""
    client = serve(store)
    create(client)
    lost = decide(client, decision="order-1")["token"]
    with served(client).store.engine.begin() as connection:
        connection.execute(sa.delete(decisions))
    time.sleep(0.01)
    token = decide(client, decision="order-1")["token"]
    assert [respond(client, *sent) for sent in ((token, 1), (lost, 0), (token, 0))] == [
        "accepted",
        "unknown",
        "conflict",
    ]


def test_a_fold_leaves_no_lock_behind_and_reads_no_state_that_another_thread_changes(
    serve: Open, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = postgres.database()
    client = serve(store)
    create(client)
    service = served(client)
    folder, run = service._folder, service.find("shop")
    assert folder is not None
    folder.stop()
    decide(client)
    number = run.experiment.id
    monkeypatch.setattr(service.runs[number].state, "copy", None)
    with psycopg.connect(store, autocommit=True) as connection:
        folder._leads.clear()
        assert folder._try(connection, number)
        folder._leave(connection, {number})
        held = service.runs.pop(number)  # it is found meanwhile that the database lacks it
        assert not folder._try(connection, number)
        assert connection.execute(LOCKS).fetchall() == []
        service.runs[number] = held
