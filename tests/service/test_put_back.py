"""A file of SQLite that is put back, in place, under a server that runs or before it starts again."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from calls import create, decide, folded, respond, served
from starlette.testclient import TestClient

from dpbandits.service import store as stores
from dpbandits.service.rows import HANDED_OUT
from dpbandits.service.serving import _Joined

Open = Callable[..., TestClient]


def copied(source: Path, target: Path) -> None:
    """Copy a database by SQLite's own means, as ``.backup`` and ``.restore`` do."""
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "test.db"


@pytest.mark.usefixtures("by_hand")
@pytest.mark.parametrize("noticed", ["by the answer", "by the look"])
def test_no_answer_is_accepted_once_the_file_was_put_back(serve: Open, file: Path, noticed: str) -> None:
    """Answers of held-out users change no state: they were stored although their decisions were gone."""
    client = serve(f"sqlite:///{file}")
    create(client, holdout=0.9, baseline="red")
    copied(file, file.with_name("copy"))
    lost = [decide(client, user=f"user-{n}")["token"] for n in range(50)]
    copied(file.with_name("copy"), file)
    service = served(client)
    if noticed == "by the look":
        with pytest.raises(FileNotFoundError, match="put back: restart the server"):
            service._read_elsewhere()
    codes = Counter(client.post("/v1/responses", json={"token": token, "response": 1}).status_code for token in lost)
    assert codes == {503: 50}
    assert client.post("/v1/experiments/shop/decisions").status_code == 503
    assert client.get("/readyz").status_code == 503
    assert "dpbandits_failures_total 0.0" not in client.get("/metrics").text
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("select count(*) from answers").fetchone() == (0,)


@pytest.mark.usefixtures("by_hand")
def test_a_file_that_was_overwritten_is_noticed(serve: Open, file: Path) -> None:
    client = serve(f"sqlite:///{file}")
    create(client)
    for _ in range(5):
        decide(client, count=200)
    served(client)._read_elsewhere()
    with closing(sqlite3.connect(file)) as connection:  # what SQLite's log holds would hide it for a while
        assert connection.execute("pragma wal_checkpoint(truncate)").fetchone()[0] == 0
    with file.open("r+b") as opened:
        opened.write(b"no database".ljust(100_000, b"."))
    with pytest.raises(FileNotFoundError, match="it is damaged, or was overwritten"):
        served(client)._look_at_file()
    assert client.post("/v1/experiments/shop/decisions").status_code == 503
    assert client.get("/readyz").status_code == 503


@pytest.mark.usefixtures("by_hand")
@pytest.mark.parametrize("noticed", ["by the commit", "by the look"])
def test_a_log_that_was_deleted_under_the_server_is_noticed(serve: Open, file: Path, noticed: str) -> None:
    """SQLite itself goes on to write into the deleted log, and all of it would be lost."""
    client = serve(f"sqlite:///{file}")
    create(client)
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("pragma wal_checkpoint(truncate)").fetchone()[0] == 0
    shutil.copy(file, file.with_name("copy"))
    tokens = [decide(client)["token"] for _ in range(50)]
    for name in ("test.db-wal", "test.db-shm"):
        file.with_name(name).unlink()
    shutil.copyfile(file.with_name("copy"), file)
    if noticed == "by the commit":
        assert client.post("/v1/responses", json={"token": tokens[0], "response": 1}).status_code == 503
    else:
        served(client)._look_at_file()  # it may be unreadable once for another reason
        with pytest.raises(FileNotFoundError, match=r"its log \(-wal or -shm\) was deleted or replaced"):
            served(client)._look_at_file()
    assert client.post("/v1/experiments/shop/decisions").status_code == 503
    assert client.get("/readyz").status_code == 503
    client.__exit__(None, None, None)
    assert b"clean" not in file.with_name("test.db.lock").read_bytes()


def test_a_file_that_was_replaced_before_the_first_commit_is_noticed(serve: Open, file: Path) -> None:
    client = serve(f"sqlite:///{file}")
    create(client)
    client.__exit__(None, None, None)
    shutil.copy(file, file.with_name("copy"))
    client = serve(f"sqlite:///{file}")
    os.replace(file.with_name("copy"), file)
    assert client.post("/v1/experiments/shop/decisions").status_code == 503
    assert client.get("/readyz").status_code == 503


@pytest.mark.usefixtures("by_hand")
def test_a_server_that_loses_its_connection_goes_on_with_a_new_log(serve: Open, file: Path) -> None:
    client = serve(f"sqlite:///{file}")
    create(client)
    decide(client)
    service = served(client)
    service.books._lost(OSError("the disk was away"))
    for engine in (service.store.engine, service.store.readers, service.store.lookout):
        engine.dispose()
    file.with_name("test.db-wal").unlink(missing_ok=True)
    for _ in range(3):
        assert respond(client, decide(client)["token"], 1) == "accepted"


def test_a_look_at_the_file_finds_nothing_wrong_while_it_is_written(serve: Open, file: Path) -> None:
    client = serve(f"sqlite:///{file}")
    create(client)
    for number in range(100):
        assert respond(client, decide(client)["token"], number % 2) == "accepted"
        served(client)._look_at_file()


@pytest.mark.parametrize("killed", [False, True])
def test_a_copy_does_not_know_lost_decisions_though_the_clock_was_set_back(
    serve: Open, file: Path, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    """The clock was five minutes ahead while the lost decisions were made. The copy is a day old."""

    class Wall:
        ahead = 300.0

        def time(self) -> float:
            return time.time() + self.ahead

    wall = Wall()
    monkeypatch.setattr(stores, "time", wall)
    address = f"sqlite:///{file}"
    client = serve(address)
    create(client)
    client.__exit__(None, None, None)
    shutil.copy(file, file.with_name("copy"))
    client = serve(address)
    lost = [decide(client)["token"] for _ in range(20)]
    if killed:
        monkeypatch.setattr(served(client).store.file, "_mark", lambda: b"")
    client.__exit__(None, None, None)
    shutil.copy(file.with_name("copy"), file)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("update states set at = at - 86400000")
        connection.commit()
    wall.ahead = 0.0
    client = serve(address)
    mine = [decide(client)["token"] for _ in range(20)]
    assert {respond(client, token, 1) for token in lost} == {"unknown"}
    assert {respond(client, token, 1) for token in mine} == {"accepted"}
    assert folded(client)["responses"]["used"] == 20


def test_what_is_stored_is_said_to_be_stored_though_its_time_cannot_be_kept(
    serve: Open, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = serve(f"sqlite:///{file}")
    create(client)

    def utime(*_: Any) -> None:
        raise PermissionError("the lock belongs to another user")

    monkeypatch.setattr(os, "utime", utime)
    assert respond(client, decide(client, decision="one")["token"], 1) == "accepted"
    assert decide(client, decision="one")["decision"] == "one"
    client.__exit__(None, None, None)
    assert decide(serve(f"sqlite:///{file}"), decision="one")["decision"] == "one"


def test_only_the_rows_that_were_asked_for_are_read_of_leases(serve: Open, file: Path) -> None:
    """Each row of a lease is for one arm, and in this experiment the arms take turns: a row for each item."""
    client = serve(f"sqlite:///{file}")
    create(client, burn_in=10**6)
    leases = [decide(client, count=1000)["decisions"] for _ in range(3)]
    client.__exit__(None, None, None)
    client = serve(f"sqlite:///{file}")
    number = served(client).find("shop").experiment.id
    names = [lease[0]["decision"].rpartition(".")[0] for lease in leases]
    keys: list[tuple[Any, ...]] = [(number, name, item) for name in names for item in (0, 499, 999)]
    with served(client).store.engine.begin() as connection:
        cursor: Any = connection.connection.cursor()
        found = HANDED_OUT.run(cursor, [*keys, (number, names[0], 1000), (number, "none", 0)], embedded=True)
        arms = [one["arm"] for lease in leases for one in (lease[0], lease[499], lease[999])]
        assert sorted(row[:3] for row in found) == sorted(keys)
        assert {row[:3]: ["red", "green", "blue"][row[3]] for row in found} == dict(zip(keys, arms, strict=True))
    sent = [{"token": lease[499]["token"], "response": 1} for lease in leases]
    assert {one["status"] for one in client.post("/v1/responses", json=sent).json()} == {"accepted"}


def test_nothing_is_sent_to_a_client_who_has_gone() -> None:
    """It made an error with a traceback in the log, for whoever asked and left at once."""

    class Gone:
        closing, sent = False, b""

        def is_closing(self) -> bool:
            return self.closing

        def write(self, data: bytes) -> None:
            self.sent += data

        def close(self) -> None:
            self.closing = True

    async def sent() -> bytes:
        gone: Any = Gone()
        joined = _Joined(gone, asyncio.get_running_loop())
        joined.write(b"one ")
        joined.write(b"two")
        await asyncio.sleep(0)
        joined.write(b"three")
        gone.close()
        await asyncio.sleep(0)
        joined.close()
        return bytes(gone.sent)

    assert asyncio.run(sent()) == b"one two"
