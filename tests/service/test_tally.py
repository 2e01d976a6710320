"""Draws are counted outside the database before anything of them is shown, and an old copy is noticed."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from calls import create, decide, folded, put_back, read, reward, served, wait_for
from postgres import Postgres
from starlette.testclient import TestClient

from dpbandits.errors import InputError
from dpbandits.service import tally as tallies
from dpbandits.service.books import Ask, Made
from dpbandits.service.shared import _Append
from dpbandits.service.store import Database
from dpbandits.service.tally import RETRY, WRITES, Tally, check
from dpbandits.service.writer import Untallied

Open = Callable[..., TestClient]
NONE = Database("sqlite://")  # where a tally stands alone


@contextmanager
def locked(tally: Path) -> Iterator[None]:
    """Nobody can write the tally meanwhile."""
    other = sqlite3.connect(tally, isolation_level=None)
    other.execute("begin immediate")
    yield
    other.close()


def test_nothing_is_shown_of_a_draw_that_cannot_be_counted(client: TestClient, tmp_path: Path) -> None:
    create(client, policy="adap-ucb")
    create(client, "local")
    token = decide(client, decision="order-1")["token"]
    folded(client)
    service = served(client)
    service.probe.ask = service.probe.store_something  # type: ignore[method-assign]  # no answer is remembered
    assert client.get("/readyz").status_code == 200
    with locked(tmp_path / "tally"):
        client.post("/v1/rewards", json={"token": token, "reward": 1})
        wait_for(lambda: client.get("/v1/experiments/shop/ledger").status_code != 200)
        for path in ("summary", "series", "ledger", "export.csv", "export.parquet"):
            assert client.get(f"/v1/experiments/shop/{path}").status_code == 503
        for again in ({}, {"decision": "order-1"}):
            assert client.post("/v1/experiments/shop/decisions", json=again).status_code == 503
        assert 'event="used",experiment="shop"' not in client.get("/metrics").text
        assert client.get("/readyz").status_code == 503
        decide(client, "local")
        read(client, "summary", "local")
        assert service.tally.seen().get(service.names["shop"].experiment.tallied, 0) == 0
    wait_for(lambda: client.get("/v1/experiments/shop/ledger").status_code != 503)  # it tries again after a second
    assert reward(client, token, 1) == "duplicate"
    assert len(read(client, "ledger")["entries"]) == 1
    assert service.tally.seen()[service.names["shop"].experiment.tallied] == 1
    assert client.get("/readyz").status_code == 200


def test_draws_that_a_killed_server_did_not_count_are_counted_at_the_start(serve: Open, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/test.db"
    client = serve(store)
    create(client, policy="adap-ucb")
    assert reward(client, decide(client)["token"], 1) == "accepted"
    client.__exit__(None, None, None)
    with closing(sqlite3.connect(tmp_path / "tally")) as tally, tally:
        tally.execute("delete from dpbandits_draws")
    assert list(served(serve(store)).tally.seen().values()) == [1]


def test_a_tally_that_is_deleted_is_missed(embedded: TestClient, tmp_path: Path) -> None:
    create(embedded, policy="adap-ucb")
    token = decide(embedded)["token"]
    (tmp_path / "tally").unlink()
    assert embedded.post("/v1/rewards", json={"token": token, "reward": 1}).status_code == 503
    assert embedded.get("/v1/experiments/shop/ledger").status_code == 503


@pytest.mark.parametrize("older", [False, True])
def test_a_tally_whose_content_is_lost_is_missed(embedded: TestClient, tmp_path: Path, older: bool) -> None:
    """The file is the same: it was truncated, or an older copy was written over it."""
    file = tmp_path / "tally"
    create(embedded, policy="adap-ucb")
    create(embedded, "other", policy="adap-ucb")
    before = file.read_bytes() if older else b""
    assert reward(embedded, decide(embedded, "other")["token"], 1) == "accepted"
    token = decide(embedded)["token"]
    with file.open("r+b") as written:
        written.truncate(len(before))
        written.write(before)
    assert embedded.post("/v1/rewards", json={"token": token, "reward": 1}).status_code == 503
    assert embedded.get("/readyz").status_code == 503


def test_all_that_was_counted_is_in_one_file(embedded: TestClient, tmp_path: Path) -> None:
    create(embedded, policy="adap-ucb")
    assert reward(embedded, decide(embedded)["token"], 1) == "accepted"
    shutil.copy(tmp_path / "tally", tmp_path / "copy")
    assert {path.name for path in tmp_path.glob("tally*")} == {"tally"}
    copied = Tally(f"sqlite:///{tmp_path}/copy", served(embedded).store)
    assert list(copied.seen().values()) == [1]
    copied.close()


def test_a_tally_with_a_log_of_an_earlier_version_is_taken_over(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "old")) as old:
        old.execute("pragma journal_mode = wal")
        old.execute("create table dpbandits_draws (experiment text primary key, draws bigint not null)")
        old.execute("insert into dpbandits_draws values ('shop@1', 7)")
        old.commit()
        for end in ("", "-wal"):  # as a server leaves them that is killed
            shutil.copy(tmp_path / f"old{end}", tmp_path / f"tally{end}")
    tally = Tally(f"sqlite:///{tmp_path}/tally", NONE)
    assert tally.seen() == {"shop@1": 7}
    assert {path.name for path in tmp_path.glob("tally*")} == {"tally"}
    tally.close()


def test_a_database_that_is_put_back_under_a_running_worker_is_noticed(serve: Open, postgres: Postgres) -> None:
    """As by a restore, or when a replica that lags takes over: the worker connects again by itself."""
    store = postgres.database()
    name = store.rpartition("/")[2]
    client = serve(store)
    create(client, policy="adap-ucb")
    token = decide(client)["token"]
    folded(client)

    def put(*statements: str) -> None:
        away = (
            f"alter database {name} allow_connections false",
            f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'",
        )
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            for statement in (*away, *statements, f"alter database {name} allow_connections true"):
                connection.execute(statement)

    def sent() -> str:
        """What is said to the reward, once the worker is connected again."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            answer = client.post("/v1/rewards", json={"token": token, "reward": 1})
            if answer.status_code != 503:
                return answer.json()["status"]
            time.sleep(0.1)
        raise AssertionError("the worker does not connect again")

    put(f"create database {name}_copy template {name}")
    assert sent() == "accepted"
    folded(client)
    assert len(read(client, "ledger")["entries"]) == 1
    put(f"drop database {name}", f"alter database {name}_copy rename to {name}")
    wait_for(lambda: client.get("/v1/experiments/shop").json().get("status") == "halted", 120)
    assert sent() == "late"
    folded(client)
    assert read(client, "ledger")["entries"] == []


def test_a_worker_that_reads_fewer_draws_than_it_has_counted_halts(serve: Open, postgres: Postgres) -> None:
    """Also one that does not fold."""
    client = serve(postgres.database())
    put_back(client)
    assert client.get("/v1/experiments/shop/ledger").status_code == 503
    assert client.get("/v1/experiments/shop").json()["status"] == "halted"
    read(client, "ledger")


def test_a_decision_that_another_worker_made_by_a_later_draw_is_shown_once_that_is_counted(
    serve: Open, postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one draws and decides after this one has looked what was folded."""
    store = postgres.database()
    one, other = serve(store), serve(store, tally=f"sqlite:///{tmp_path}/other")
    create(one, policy="adap-ucb")
    token = decide(other)["token"]
    folder = served(other)._folder
    assert folder is not None
    folder.stop()
    quicker: list[Any] = []
    plain = _Append.ask_all

    def late(work: _Append, asks: list[Ask]) -> list[list[Made]]:
        if work.books is served(other).books and not quicker:
            assert reward(one, token, 1) == "accepted"
            folded(one)
            quicker.append(decide(one, decision="order-1"))
        return plain(work, asks)

    monkeypatch.setattr(_Append, "ask_all", late)
    assert decide(other, decision="order-1") == quicker[0]
    assert quicker[0]["version"] == 1
    assert list(served(other).tally.seen().values()) == [1]


def test_what_was_counted_never_goes_back(embedded: TestClient) -> None:
    """Two threads have looked before either has counted, and the one with more draws is quicker."""
    create(embedded, policy="adap-ucb")
    tally, run = served(embedded).tally, served(embedded).names["shop"]
    tally._count({run.experiment.tallied: 7})
    tally._count({run.experiment.tallied: 6})
    assert tally.counted(run) == 7


def test_a_tally_that_hangs_is_given_up(postgres: Postgres) -> None:
    store = postgres.database()
    tally = Tally(store, NONE)
    tally.probe()
    with psycopg.connect(store) as other:
        other.execute("lock table dpbandits_draws in access exclusive mode")
        began = time.monotonic()
        with pytest.raises(Untallied):
            tally.probe()
        assert time.monotonic() - began < 60
    time.sleep(RETRY)
    wait_for(lambda: _counts(tally))
    tally.close()


def _counts(tally: Tally) -> bool:
    """Whether it can count now: on a busy machine even an answer that need not wait may come too late."""
    with suppress(Untallied):
        tally.probe()
        return True
    return False


def test_several_make_the_table_of_a_tally_at_once(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallies, "PATIENCE", 60)  # they wait for each other
    store = postgres.database()
    with ThreadPoolExecutor(8) as threads:
        for tally in threads.map(Tally, [store] * 8, [NONE] * 8):
            tally.close()


def test_a_tally_that_is_lost_is_noticed_and_what_it_counted_is_no_longer_shown(
    serve: Open, store: str, tmp_path: Path
) -> None:
    """Also while nothing is drawn. It is shown again when the tally is put back."""
    client = serve(store)
    create(client, policy="adap-ucb")
    create(client, "local")
    assert reward(client, decide(client)["token"], 1) == "accepted"
    folded(client)
    (tmp_path / "tally").rename(tmp_path / "away")
    with pytest.raises(Untallied):
        served(client)._read_elsewhere()  # as it does every two seconds
    for path in ("summary", "series", "ledger", "export.csv", "export.parquet"):
        assert client.get(f"/v1/experiments/shop/{path}").status_code == 503
    assert client.post("/v1/experiments/shop/decisions").status_code == 503
    assert decide(client, "local")["token"]
    (tmp_path / "away").rename(tmp_path / "tally")
    wait_for(lambda: client.get("/v1/experiments/shop/ledger").status_code != 503)
    assert decide(client)["token"]


@pytest.mark.parametrize("how", ["deleted", "emptied", "other table", "older"])
def test_a_look_at_the_tally_finds_what_is_lost(tmp_path: Path, how: str) -> None:
    file = tmp_path / "tally"
    tally = Tally(f"sqlite:///{file}", NONE)
    tally.look()
    tally._count({"shop@1": 1})
    older = file.read_bytes()
    tally._count({"shop@1": 2})
    tally.look()
    if how == "deleted":
        file.unlink()
    elif how == "other table":
        with closing(sqlite3.connect(file)) as other, other:
            other.execute("delete from dpbandits_draws where experiment like 'shop%'")
    else:
        file.write_bytes(older if how == "older" else b"")
    with pytest.raises(Untallied):
        tally.look()
    tally.close()


def test_a_tally_that_is_out_of_reach_still_has_what_was_counted(client: TestClient, tmp_path: Path) -> None:
    create(client, policy="adap-ucb")
    assert reward(client, decide(client)["token"], 1) == "accepted"
    folded(client)
    with locked(tmp_path / "tally"):
        with pytest.raises(Untallied):
            served(client).tally.probe()
        read(client, "ledger")


def run_of(name: str, drawn: int) -> Any:
    """As much of a run as the tally looks at."""
    return SimpleNamespace(experiment=SimpleNamespace(server_draws=True, tallied=name), draws=drawn)


def test_an_older_tally_is_missed_also_if_others_have_written_on_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tally"
    one, other = (Tally(f"sqlite:///{file}", NONE) for _ in range(2))
    other.count(run_of("B@1", 1))
    one.count(run_of("A@1", 4))
    older = file.read_bytes()
    for drawn in range(5, 9):
        one.count(run_of("A@1", drawn))
    file.write_bytes(older)
    for drawn in range(2, 12):
        other.count(run_of("B@1", drawn))
    for look in (partial(one.count, run_of("C@1", 1)), one.probe, one.look):
        with pytest.raises(Untallied):
            look()
        assert "an older one was put in its place; it lacks draws of 1 experiments" in capsys.readouterr().out
        one._retry = 0.0
    one.close()
    other.close()


def test_what_this_process_has_counted_is_known_though_the_tally_lacks_it(tmp_path: Path) -> None:
    """The tally and the database may be put back together."""
    tally = Tally(f"sqlite:///{tmp_path}/tally", NONE)
    tally.probe()
    tally.count(run_of("shop@1", 5), run_of("other@1", 2))
    with closing(sqlite3.connect(tmp_path / "tally")) as other, other:
        other.execute("update dpbandits_draws set draws = 3 where experiment = 'shop@1'")
    assert tally.seen() == {"shop@1": 5, "other@1": 2}
    assert [tally.ahead_of(run_of("shop@1", drawn)) for drawn in (4, 5)] == [True, False]
    tally.close()


def test_a_worker_halts_what_was_put_back_together_with_the_tally(
    serve: Open, postgres: Postgres, tmp_path: Path
) -> None:
    client = serve(postgres.database())
    put_back(client)
    with closing(sqlite3.connect(tmp_path / "tally")) as tally, tally:
        tally.execute("update dpbandits_draws set draws = 0 where experiment like 'shop@%'")
    assert client.get("/v1/experiments/shop/ledger").status_code == 503
    assert client.get("/v1/experiments/shop").json()["status"] == "halted"


def test_the_draws_of_all_experiments_are_counted_by_one_write_at_the_start(tmp_path: Path) -> None:
    tally = Tally(f"sqlite:///{tmp_path}/tally", NONE)
    tally.count(*(run_of(f"shop{number}@1", 1) for number in range(1500)))
    assert len(tally.seen()) == 1500
    with closing(sqlite3.connect(tmp_path / "tally")) as other:
        assert other.execute("select draws from dpbandits_draws where experiment = ?", (WRITES,)).fetchall() == [(1,)]
    tally.close()


def with_schema(address: str, name: str) -> str:
    """The address of a schema of a database, which is made."""
    with psycopg.connect(address) as connection:
        connection.execute(f"create schema {name}")
    return f"{address}?options={quote(f'-csearch_path={name}')}"


def test_a_tally_in_another_schema_of_the_store_is_refused(serve: Open, postgres: Postgres) -> None:
    database = postgres.database()
    store = with_schema(database, "bandits")
    for tally in (database, with_schema(database, "tally")):
        with pytest.raises(InputError, match="tally must be another database than the store"):
            serve(store, tally=tally)
        with (
            closing(Database(store)) as made,
            pytest.raises(InputError, match="tally must be another database than the store"),
        ):
            check(tally, made)


def test_options_in_the_address_of_a_tally_hold(serve: Open, postgres: Postgres) -> None:
    database = postgres.database()
    serve(postgres.database(), tally=with_schema(database, "counts"))
    with psycopg.connect(database) as connection:
        found = connection.execute("select schemaname from pg_tables where tablename = 'dpbandits_draws'").fetchall()
    assert found == [("counts",)]


def test_a_tally_in_the_store_is_refused(serve: Open, store: str) -> None:
    with pytest.raises(InputError, match="tally must be another database than the store"):
        serve(store, tally=store)
    with pytest.raises(InputError, match="tally must be another database than the store"):
        check(store, Database(store))


def test_what_another_process_has_counted_is_not_written_again(tmp_path: Path) -> None:
    one, other = (Tally(f"sqlite:///{tmp_path}/tally", NONE) for _ in range(2))
    one._count({"shop@1": 5})
    with locked(tmp_path / "tally"):
        other._count({"shop@1": 5})
        with pytest.raises(Untallied):
            other._count({"shop@1": 6})
    one.close()
    other.close()


def test_a_write_that_is_lost_is_missed_by_the_next_one_of_any_experiment(tmp_path: Path) -> None:
    """Also where the copy that was put in place lacks only the last write."""
    file = tmp_path / "tally"
    tally = Tally(f"sqlite:///{file}", NONE)
    tally._count({"shop@1": 5})
    before = file.read_bytes()
    tally._count({"shop@1": 6})
    file.write_bytes(before)
    with pytest.raises(Untallied):
        tally._count({"other@2": 1})
    tally.close()


@pytest.mark.parametrize("tally", ["sqlite://", "sqlite:///:memory:"])
def test_a_tally_in_memory_is_none(serve: Open, tmp_path: Path, tally: str) -> None:
    client = serve(f"sqlite:///{tmp_path}/test.db", tally=tally)
    asked = {"name": "shop", "arms": ["a", "b"], "policy": "adap-ucb", "epsilon": "1"}
    refused = client.post("/v1/experiments", json=asked)
    assert refused.status_code == 422
    assert "the tally: a database in memory is gone" in refused.json()["detail"]


def test_a_probe_writes_also_where_the_clock_was_set_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Tally(f"sqlite:///{tmp_path}/tally", NONE)) as tally:
        tally.probe()
        monkeypatch.setattr(time, "time_ns", lambda: 1)
        tally.probe()
        with locked(tmp_path / "tally"), pytest.raises(Untallied):
            tally.probe()
