"""A file of SQLite that is replaced, moved away or deleted, under a server that runs or after it was killed.

SQLite keeps its log by the name of the file. Beside another file that log is damage, and beside none it is deleted.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from calls import create, decide, folded, respond, served
from servers import Server
from starlette.testclient import TestClient

from dpbandits.errors import InputError
from dpbandits.service.service import Service
from dpbandits.service.serving import check
from dpbandits.service.settings import ServerSettings

Command = Callable[..., tuple[int, str, str]]
Open = Callable[..., TestClient]

PATHS = ("summary", "ledger", "export.csv")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "test.db"


def copied(file: Path) -> Path:
    """A copy as the documentation says, by another process's connection."""
    copy = file.with_name("copy.db")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"vacuum into '{copy}'")
    return copy


def contents(file: Path) -> dict[str, bytes]:
    """What the file, its log and the lock hold; only where no connection of this process has the file open."""
    return {
        path.name: path.read_bytes()
        for path in (file, *(file.with_name(f"{file.name}{end}") for end in ("-wal", ".lock")))
        if path.exists()
    }


def settings(folder: Path) -> dict[str, Any]:
    return {
        "store": f"sqlite:///{folder}/test.db",
        "keys": folder / "keys",
        "tally": f"sqlite:///{folder}/tally",
        "port": 0,
    }


def refused(folder: Path, said: str) -> None:
    """Neither the check nor a start nor another command takes the file; and nothing is written."""
    before = contents(folder / "test.db")
    (found,) = check(ServerSettings.read(**settings(folder)))
    assert (found.level, said in found.text, "\n" in found.text) == ("problem", True, False)
    for _ in range(2):
        with pytest.raises(InputError, match=said):
            Service(ServerSettings.read(**settings(folder))).open()
    assert contents(folder / "test.db") == before


def without_log(file: Path) -> None:
    for end in ("-wal", "-shm"):
        file.with_name(f"{file.name}{end}").unlink()


@pytest.mark.parametrize("noticed", ["by the commit", "by the look", "by a reader"])
def test_a_file_that_was_replaced_is_neither_used_nor_damaged(
    serve: Open, dpbandits: Command, file: Path, capsys: pytest.CaptureFixture[str], noticed: str
) -> None:
    client = serve(f"sqlite:///{file}")
    create(client)
    tokens = [decide(client)["token"] for _ in range(20)]
    copy = copied(file)
    assert {respond(client, token, 1) for token in tokens} == {"accepted"}
    assert folded(client)["responses"]["used"] == 20  # now some readers have the old file open
    service = served(client)
    kept = copy.read_bytes()
    os.replace(copy, file)
    if noticed == "by the commit":
        assert client.post("/v1/experiments/shop/decisions").status_code == 503
    elif noticed == "by the look":
        with pytest.raises(FileNotFoundError, match="replaced by another file"):
            service._read_elsewhere()
    else:
        service.store.readers.dispose()
        assert client.get("/v1/experiments/shop/summary").status_code == 503
    for _ in range(2):
        assert client.get("/readyz").status_code == 503
        assert client.post("/v1/experiments/shop/decisions").status_code == 503
        assert client.post("/v1/responses", json={"token": tokens[0], "response": 1}).status_code == 503
        assert [client.get(f"/v1/experiments/shop/{path}").status_code for path in PATHS] == [503] * 3
    assert client.get("/livez").status_code == 200
    client.__exit__(None, None, None)
    logged = capsys.readouterr().out
    lines = ("refuses to write", "cannot write", "cannot read", "broken off")
    assert [logged.count(line) for line in lines] == [1, 1, 1, 0]
    assert file.read_bytes() == kept
    assert b"clean" not in file.with_name("test.db.lock").read_bytes()

    refused(file.parent, "the log beside it belongs to another file: put that back")
    code, _, said = dpbandits("key", "create", "ops", "--role", "admin", "--store", f"sqlite:///{file}")
    assert (code, "belongs to another file" in said, file.read_bytes() == kept) == (2, True, True)
    without_log(file)
    client = serve(f"sqlite:///{file}")
    assert {respond(client, token, 1) for token in tokens} == {"accepted"}  # the copy has none of them
    assert folded(client)["responses"]["used"] == 20


def test_a_file_that_was_replaced_after_a_crash_is_refused(server: Server, serve: Open, file: Path) -> None:
    tokens = filled(server)
    copy = copied(file)
    server.kill()
    os.replace(copy, file)
    refused(file.parent, "the log beside it belongs to another file: put that back")
    without_log(file)
    client = serve(f"sqlite:///{file}")
    assert {respond(client, token, 1) for token in tokens} == {"duplicate"}


def filled(server: Server) -> list[str]:
    """The tokens of an experiment with some answers, which are in the log."""
    asked = {"name": "shop", "arms": ["a", "b"], "policy": "ldp-ucb-b", "epsilon": "1"}
    assert server.call("POST", "/v1/experiments", asked)[0] == 201
    made = [server.call("POST", "/v1/experiments/shop/decisions", {})[1]["token"] for _ in range(20)]
    for token in made:
        said = server.call("POST", "/v1/responses", {"token": token, "response": 1})
        assert said == (200, {"status": "accepted"})
    return made


def copied_after_a_crash(server: Server, file: Path, factory: pytest.TempPathFactory) -> tuple[list[str], Path]:
    """The tokens of accepted answers, and a copy of the server's whole folder."""
    tokens = filled(server)
    server.kill()
    folder = factory.mktemp("elsewhere") / "copy"
    shutil.copytree(file.parent, folder)
    return tokens, folder


def holds(serve: Open, folder: Path, tokens: list[str]) -> None:
    """A server starts in this folder, and has the answers."""
    given = settings(folder)
    assert check(ServerSettings.read(**given)) == []
    client = serve(given.pop("store"), **given)
    assert {respond(client, token, 1) for token in tokens} == {"duplicate"}


def test_a_folder_that_is_copied_after_a_crash_keeps_what_was_accepted(
    server: Server, serve: Open, file: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The numbers of all its files are other ones, and the log is the right one."""
    tokens, folder = copied_after_a_crash(server, file, tmp_path_factory)
    holds(serve, folder, tokens)


def test_a_file_that_is_put_back_with_its_own_log_keeps_what_was_accepted(
    server: Server, serve: Open, file: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The lock is left, as the documentation says, and names another file and another log."""
    tokens = filled(server)
    server.kill()
    kept = tmp_path_factory.mktemp("kept")
    names = ("test.db", "test.db-wal")
    for name in names:
        shutil.copy(file.with_name(name), kept)
    server.start()
    server.kill()
    without_log(file)
    for name in names:
        shutil.copy(kept / name, file.with_name("new"))
        os.replace(file.with_name("new"), file.with_name(name))
    assert check(ServerSettings.read(**settings(file.parent))) == []
    client = serve(f"sqlite:///{file}")
    assert {respond(client, token, 1) for token in tokens} == {"duplicate"}


def test_a_lock_that_was_copied_says_nothing_even_if_its_number_is_the_same(
    server: Server, serve: Open, file: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """On a new volume the lock of a copy may have the number of the first one. The log has another number then."""
    tokens, folder = copied_after_a_crash(server, file, tmp_path_factory)
    lock = folder / "test.db.lock"
    held = lock.read_text().split()
    lock.write_text(f"open {held[1]} {lock.stat().st_ino} {held[3]}")
    holds(serve, folder, tokens)


@pytest.mark.parametrize("killed", [False, True])
def test_a_file_that_is_moved_away_is_not_made_anew(server: Server, file: Path, killed: bool) -> None:
    """SQLite made an empty one for the next reader, and deleted the log, with what had been accepted."""
    tokens = filled(server)
    away = file.with_name("away.db")
    os.rename(file, away)
    with ThreadPoolExecutor(8) as readers:  # more than have the file open
        for _ in range(2):
            assert server.call("POST", "/v1/experiments/shop/decisions", {})[0] == 503
            asked = [f"/v1/experiments/shop/{path}" for path in PATHS * 8]
            assert {code for code, _ in readers.map(lambda path: server.call("GET", path), asked)} <= {200, 503}
            assert not file.exists()
    if killed:
        server.kill()
        refused(file.parent, "is empty or gone, and its log is not: put")
        assert not file.exists()
    os.rename(away, file)
    if killed:
        server.start()
    said = [server.call("POST", "/v1/responses", {"token": token, "response": 1})[1]["status"] for token in tokens]
    assert said == ["duplicate"] * 20
    assert server.call("POST", "/v1/experiments/shop/decisions", {})[0] == 200
    assert "it was deleted, or moved away" in server.log.read_text()
    server.stop()
    assert b"clean" not in file.with_name("test.db.lock").read_bytes() or killed


def test_a_file_that_is_moved_away_is_not_made_anew_by_the_look(serve: Open, file: Path) -> None:
    client = serve(f"sqlite:///{file}")
    create(client)
    token = decide(client)["token"]
    service = served(client)
    for engine in (service.store.readers, service.store.lookout):
        engine.dispose()
    os.rename(file, file.with_name("away.db"))
    with pytest.raises(FileNotFoundError, match="deleted, or moved away"):
        service._read_elsewhere()
    assert not file.exists()
    assert client.get("/readyz").status_code == 503
    os.rename(file.with_name("away.db"), file)
    service._read_elsewhere()
    assert client.get("/readyz").status_code == 200
    assert respond(client, token, 1) == "accepted"
    client.__exit__(None, None, None)
    assert b"clean" not in file.with_name("test.db.lock").read_bytes()  # somebody may have used its other name
    assert respond(serve(f"sqlite:///{file}"), token, 1) == "duplicate"


@pytest.mark.parametrize("left", ["nothing", "an empty file"])
def test_a_log_without_its_file_is_kept(server: Server, file: Path, left: str) -> None:
    filled(server)
    server.kill()
    file.unlink()
    if left == "an empty file":
        file.touch()
    refused(file.parent, "is empty or gone, and its log is not: put")


@pytest.mark.parametrize("ends", ["-wal", "-shm"])
@pytest.mark.parametrize("commits", [1, 5])
def test_a_log_or_its_index_that_is_deleted_after_any_commit_is_noticed_by_the_next(
    serve: Open, file: Path, ends: str, commits: int
) -> None:
    client = serve(f"sqlite:///{file}")
    create(client)
    for _ in range(commits - 1):
        decide(client)
    file.with_name(f"{file.name}{ends}").unlink()
    assert client.post("/v1/experiments/shop/decisions").status_code == 503
    assert client.get("/readyz").status_code == 503


def test_an_index_that_lacks_rows_is_damage(serve: Open, file: Path, tmp_path: Path) -> None:
    """As where the log of another file was written into this one. A quick check of SQLite does not see it."""
    client = serve(f"sqlite:///{file}")
    create(client)
    create(client, "other")
    client.__exit__(None, None, None)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("create index extra on experiments (name, created)")
        held = connection.execute("select * from sqlite_master where name = 'extra'").fetchone()
        connection.execute("pragma writable_schema = on")
        connection.execute("delete from sqlite_master where name = 'extra'")
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("update experiments set created = created + 1")
        connection.execute("pragma writable_schema = on")
        connection.execute("insert into sqlite_master values (?, ?, ?, ?, ?)", held)
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("pragma quick_check(1)").fetchone() == ("ok",)
    with pytest.raises(InputError, match="store is damaged"):
        Service(ServerSettings.read(**settings(tmp_path))).open()


def test_the_lock_says_which_file_is_open_and_how_it_was_left(serve: Open, file: Path) -> None:
    lock = file.with_name("test.db.lock")
    client = serve(f"sqlite:///{file}")
    create(client)
    log = file.with_name("test.db-wal")
    assert lock.read_text() == f"open {file.stat().st_ino} {lock.stat().st_ino} {log.stat().st_ino}"
    with closing(sqlite3.connect(file)) as other:  # it keeps the log from being written back
        other.execute("select * from states").fetchall()
        client.__exit__(None, None, None)
        assert b"clean" not in lock.read_bytes()
    client = serve(f"sqlite:///{file}")
    client.__exit__(None, None, None)
    found = file.stat()
    assert lock.read_text() == f"clean {found.st_ino} {found.st_size} {found.st_mtime_ns}"
