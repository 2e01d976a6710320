"""A file of SQLite that is replaced, moved away or deleted, under a server that runs or after it was killed.

SQLite keeps its log by the name of the file. Beside another file that log is damage, and beside none it is deleted.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import click
import pytest
from calls import create, decide, folded, respond, served
from servers import Server
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DatabaseError, OperationalError
from starlette.testclient import TestClient

from dpbandits.errors import InputError
from dpbandits.service import files, held_file, logs
from dpbandits.service.files import generation, refuse_no_file
from dpbandits.service.held_file import HeldFile
from dpbandits.service.keyring import alone
from dpbandits.service.service import Service
from dpbandits.service.serving import check
from dpbandits.service.settings import ServerSettings
from dpbandits.service.store import Database

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
        if path.is_file()
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
    assert (found.level, bool(re.search(said, found.text)), "\n" in found.text) == ("problem", True, False)
    for _ in range(2):
        with pytest.raises(InputError, match=said):
            Service(ServerSettings.read(**settings(folder))).open()
    assert contents(folder / "test.db") == before


def without_log(file: Path) -> None:
    for end in ("-wal", "-shm"):
        file.with_name(f"{file.name}{end}").unlink()


@pytest.mark.usefixtures("by_hand")
@pytest.mark.parametrize("noticed", ["by the commit", "by the look", "by a reader"])
def test_a_file_that_was_replaced_is_neither_used_nor_damaged(
    serve: Open,
    dpbandits: Command,
    file: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    noticed: str,
) -> None:
    monkeypatch.setattr(logs, "SELDOM", 1e6)
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
    with file.with_name("test.db-wal").open("rb"):  # while it is open, the system gives its number to no other file
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


@pytest.mark.usefixtures("by_hand")
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


@pytest.mark.parametrize("end", ["-wal", "-shm"])
def test_a_log_or_its_index_that_is_deleted_before_the_first_commit_is_noticed_by_it(
    serve: Open, file: Path, end: str
) -> None:
    client = serve(f"sqlite:///{file}")
    create(client)
    client.__exit__(None, None, None)
    client = serve(f"sqlite:///{file}")
    file.with_name(f"{file.name}{end}").unlink()
    assert client.post("/v1/experiments/shop/decisions").status_code == 503


@pytest.mark.parametrize("used", [False, True])
def test_a_log_is_known_before_anything_is_in_it(
    server: Server, file: Path, tmp_path_factory: pytest.TempPathFactory, used: bool
) -> None:
    """The server is killed before its first commit: on a new file, or on one to which another process adds a key."""
    if used:
        filled(server)
        server.stop()
        server.start()
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("create table another (number)")
    server.kill()
    assert file.with_name("test.db-wal").stat().st_size > 0
    copy = tmp_path_factory.mktemp("elsewhere") / "copy.db"
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("create table kept (number)")
    shutil.copy(copy, file.with_name("new"))
    os.replace(file.with_name("new"), file)
    refused(file.parent, "the log beside it belongs to another file: put that back")


def test_a_journal_of_another_file_is_refused(serve: Open, file: Path) -> None:
    """A server that is killed while it makes a new file leaves a journal, which SQLite would write into this one."""
    client = serve(f"sqlite:///{file}")
    create(client)
    client.__exit__(None, None, None)
    journal, lock = file.with_name("test.db-journal"), file.with_name("test.db.lock")
    journal.write_bytes(b"\0" * 600)  # of zeros it is no journal, and SQLite leaves the file as it is
    lock.write_text(f"open {file.stat().st_ino + 1} {lock.stat().st_ino} 0")
    refused(file.parent, "the log beside it belongs to another file: put that back")
    refused(file.parent, "if this is a backup that was restored and not used yet, move .*-journal to another folder")
    assert journal.exists()
    lock.write_text(f"open {file.stat().st_ino} {lock.stat().st_ino} 0")
    client = serve(f"sqlite:///{file}")
    assert client.get("/v1/experiments/shop/summary").status_code == 200


def test_a_log_is_not_read_where_the_lock_cannot_be(
    server: Server, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(server)
    server.kill()
    before = contents(file)

    opened = os.open

    def denied(path: Any, *given: Any, **more: Any) -> int:
        if str(path).endswith(".lock"):
            raise PermissionError(13, "Permission denied")
        return opened(path, *given, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", denied)
        (found,) = check(ServerSettings.read(**settings(file.parent)))
    assert "store cannot be locked: " in found.text
    assert found.text.endswith("test.db.lock: Permission denied")
    assert contents(file) == before


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_lock_that_is_a_link_is_refused_and_what_it_leads_to_is_kept(
    serve: Open, file: Path, link: Callable[[Path, Path], None]
) -> None:
    stopped(serve, file)
    other = file.with_name("other")
    other.write_text("what is kept")
    file.with_name("test.db.lock").unlink()
    link(other, file.with_name("test.db.lock"))
    refused(file.parent, "is a link: delete the link")
    assert other.read_text() == "what is kept"


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
def test_a_folder_in_the_place_of_a_log(serve: Open, file: Path, end: str) -> None:
    stopped(serve, file)
    file.with_name(f"test.db{end}").mkdir()
    refused(file.parent, f"store must be a file, got .*test.db{end}, which is none")


def test_a_journal_that_another_process_deletes_meanwhile_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the journal of a tally, which two workers write. It goes after the first look at it."""
    journal, stat = tmp_path / "tally-journal", os.stat
    journal.touch()

    def look(path: Any, **how: Any) -> os.stat_result:
        found = stat(path, **how)
        if path == journal:
            journal.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(os, "stat", look)
    refuse_no_file("tally", journal)
    assert not os.path.lexists(journal)


def test_only_the_beginning_of_a_lock_is_read(server: Server, file: Path) -> None:
    """It may be large, or end with what is left of an earlier text, where a server was killed while it wrote."""
    filled(server)
    server.kill()
    lock = file.with_name("test.db.lock")
    os.truncate(lock, 2**40)
    assert check(ServerSettings.read(**settings(file.parent))) == []
    os.truncate(lock, 200)
    held = lock.read_text().splitlines()[0].split()
    lock.write_text(f"open {int(held[1]) + 1} {' '.join(held[2:])}\n 123 456")
    refused(file.parent, "the log beside it belongs to another file: put that back")


def test_a_lock_is_never_without_what_it_held_or_is_to_hold(
    serve: Open, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped(serve, file)
    cut, found = os.ftruncate, []

    def watched(descriptor: int, length: int) -> None:
        found.append(os.pread(descriptor, 200, 0)[:5])
        cut(descriptor, length)

    monkeypatch.setattr(os, "ftruncate", watched)
    stopped(serve, file)
    assert set(found) == {b"open ", b"clean"}
    assert found[0] == b"open "


def test_without_a_lock_that_can_be_written_nothing_is_opened(
    serve: Open, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped(serve, file)

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(InputError, match=r"store cannot be locked: .*test.db.lock: No space left on device$"):
        Service(ServerSettings.read(**settings(file.parent))).open()
    assert not file.with_name("test.db-wal").exists()


def stopped(serve: Open, file: Path) -> None:
    """A server has used the file, and has stopped cleanly."""
    client = serve(f"sqlite:///{file}")
    if not client.get("/v1/experiments").json()["experiments"]:
        create(client)
    client.__exit__(None, None, None)


def test_a_check_changes_neither_a_file_nor_its_journal_mode(serve: Open, file: Path) -> None:
    """A backup that was just restored is not in the mode in which a server uses it."""
    stopped(serve, file)
    os.replace(copied(file), file)
    before = contents(file)
    assert check(ServerSettings.read(**settings(file.parent))) == []
    assert contents(file) == before
    assert not list(file.parent.glob("test.db-*"))


def test_a_check_does_not_write_a_log_into_its_file(server: Server, serve: Open, file: Path) -> None:
    tokens = filled(server)
    server.kill()
    before = contents(file)
    assert check(ServerSettings.read(**settings(file.parent))) == []
    assert contents(file) == before
    holds(serve, file.parent, tokens)


@pytest.mark.parametrize("command", ["serve", "key"])
def test_the_lock_names_a_restored_file_before_it_is_changed(
    serve: Open, dpbandits: Command, file: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Whoever is killed while the journal mode is changed leaves a journal, and it is known whose that is."""
    stopped(serve, file)
    lock, opened = file.with_name("test.db.lock"), HeldFile.connect
    lock.write_text(f"open {file.stat().st_ino} {lock.stat().st_ino} 0")
    os.replace(copied(file), file)
    copy, found = file.read_bytes(), []

    def watched(self: HeldFile, *given: Any) -> sqlite3.Connection:
        if self.path == file and file.read_bytes() == copy:
            found.append(lock.read_text().split()[:2])
        return opened(self, *given)

    assert check(ServerSettings.read(**settings(file.parent))) == []
    assert file.read_bytes() == copy
    with monkeypatch.context() as patch:
        patch.setattr(HeldFile, "connect", watched)
        if command == "serve":
            stopped(serve, file)
        else:
            assert dpbandits("key", "create", "ops", "--store", f"sqlite:///{file}")[0] == 0
    assert found[0] == ["open", str(file.stat().st_ino)]
    assert lock.read_text().startswith("clean ")


KILLED = """
import os
from dpbandits.cli import main
from dpbandits.service import access
create = access.create
def killed(connection, *given):
    create(connection, *given)
    connection.commit()
    os.kill(os.getpid(), 9)
access.create = killed
main()
"""


def test_the_log_of_a_key_command_that_was_killed_is_known(serve: Open, file: Path) -> None:
    stopped(serve, file)
    copy = copied(file)
    words = ["key", "create", "ops", "--role", "admin", "--store", f"sqlite:///{file}"]
    assert subprocess.run([sys.executable, "-c", KILLED, *words]).returncode == -9
    assert file.with_name("test.db-wal").stat().st_size > 0
    os.rename(file, file.with_name("away.db"))
    os.replace(copy, file)
    refused(file.parent, "the log beside it belongs to another file: put that back")
    os.replace(file.with_name("away.db"), file)
    assert serve(f"sqlite:///{file}").get("/v1/experiments").status_code == 401  # there is a key


def test_a_key_command_has_closed_the_file_when_it_prints(
    serve: Open, dpbandits: Command, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped(serve, file)
    printed = click.echo
    left: list[Path] = []

    def watched(*given: Any, **more: Any) -> None:
        left.extend(file.parent.glob("test.db-*"))
        printed(*given, **more)

    monkeypatch.setattr(click, "echo", watched)
    assert dpbandits("key", "create", "ops", "--store", f"sqlite:///{file}")[0] == 0
    assert left == []


def test_a_second_backup_that_gets_the_number_of_the_first_file_is_refused_too(
    server: Server, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of a file that was deleted is given again. The generation then differs, where there is one."""
    filled(server)
    copy, new, lock = copied(file), file.with_name("new"), file.with_name("test.db.lock")
    server.kill()
    with file.open("rb") as opened:
        known = generation(opened.fileno())
    if known == 0:  # on this file system: the test goes on with numbers of its own
        lock.write_text(f"{lock.read_text().rstrip()[:-1]}1\n")
        monkeypatch.setattr(files, "generation", lambda _: 2)
    number = file.stat().st_ino
    for _ in range(3):
        shutil.copy(copy, new)
        os.replace(new, file)
        refused(file.parent, "the log beside it belongs to another file: put that back")
    held = lock.read_text().split()
    lock.write_text(" ".join(["open", str(file.stat().st_ino), *held[2:]]))  # as if it had the number, in any case
    refused(file.parent, "the log beside it belongs to another file: put that back")
    assert held[:2] == ["open", str(number)]


@pytest.mark.parametrize(
    ("before", "now", "known"), [("", 5, True), (" 0", 5, True), (" 5", 0, True), (" 5", 6, False)]
)
def test_a_generation_that_is_not_known_says_nothing(
    server: Server, file: Path, monkeypatch: pytest.MonkeyPatch, before: str, now: int, known: bool
) -> None:
    """Earlier versions wrote none into the lock."""
    filled(server)
    server.kill()
    lock = file.with_name("test.db.lock")
    lock.write_text(" ".join(lock.read_text().split()[:4]) + before)
    monkeypatch.setattr(files, "generation", lambda _: now)
    assert (check(ServerSettings.read(**settings(file.parent))) == []) is known


@pytest.mark.usefixtures("by_hand")
@pytest.mark.parametrize("noticed", ["by the commit", "by the look"])
@pytest.mark.parametrize("ends", [("-wal",), ("-shm",), ("-wal", "-shm")])
def test_after_a_log_was_deleted_under_a_server_the_next_start_says_so(
    serve: Open, dpbandits: Command, file: Path, ends: tuple[str, ...], noticed: str
) -> None:
    client = serve(f"sqlite:///{file}")
    create(client)
    token = decide(client)["token"]
    assert respond(client, token, 1) == "accepted"
    for end in ends:
        file.with_name(f"test.db{end}").unlink()
    if noticed == "by the look":
        for _ in range(3):  # it takes the file for a damaged or an older one
            with suppress(FileNotFoundError):
                served(client)._look_at_file()
    assert client.post("/v1/experiments/shop/decisions").status_code == 503
    client.__exit__(None, None, None)
    refused(file.parent, "lost its log .* while the last server ran.*: keep a copy of the folder")
    code, _, said = dpbandits("key", "list", "--store", f"sqlite:///{file}")
    assert (code, "lost its log" in said, said.count("\n")) == (2, True, 1)
    os.rename(file.with_name("test.db.lock"), file.with_name("away.lock"))
    client = serve(f"sqlite:///{file}")
    if noticed == "by the commit":
        assert respond(client, token, 1) == "duplicate"


@pytest.mark.usefixtures("by_hand")
@pytest.mark.parametrize("noticed", ["by the commit", "by the look"])
@pytest.mark.parametrize("ends", [("-wal",), ("-shm",), ("-wal", "-shm")])
def test_a_log_that_was_deleted_while_the_file_was_away_is_noticed(
    serve: Open, file: Path, ends: tuple[str, ...], noticed: str
) -> None:
    """A request comes meanwhile, after which the server opens the file anew."""
    client = serve(f"sqlite:///{file}")
    create(client)
    assert respond(client, decide(client)["token"], 1) == "accepted"
    folded(client)  # now a reader has the log open, and no other file gets its number
    os.rename(file, file.with_name("away.db"))
    assert client.post("/v1/experiments/shop/decisions").status_code == 503
    for end in ends:
        file.with_name(f"test.db{end}").unlink()
    os.rename(file.with_name("away.db"), file)
    if noticed == "by the look":
        for _ in range(3):  # it takes the file for a damaged or an older one
            with suppress(FileNotFoundError):
                served(client)._look_at_file()
    assert client.post("/v1/experiments/shop/decisions").status_code == 503
    assert client.get("/readyz").status_code == 503
    client.__exit__(None, None, None)
    refused(file.parent, "lost its log .* while the last server ran.*: keep a copy of the folder")


@pytest.mark.parametrize("done", ["moved away", "replaced"])
def test_beside_a_running_server_nobody_advises_to_move_its_files(
    server: Server, dpbandits: Command, file: Path, done: str
) -> None:
    filled(server)
    copy = copied(file)
    if done == "moved away":
        os.rename(file, file.with_name("away.db"))
    else:
        os.replace(copy, file)
    refused(file.parent, "store is used by another server: .*; stop that one")
    before = contents(file)
    code, _, said = dpbandits("key", "create", "ops", "--store", f"sqlite:///{file}")
    assert (code, "store is used by a server that does not have this file open" in said) == (2, True)
    assert not any(word in said for word in ("delete", "move", "-wal"))
    assert contents(file) == before


def test_a_key_command_waits_for_no_server_that_has_not_named_its_file_yet(
    serve: Open, dpbandits: Command, file: Path
) -> None:
    stopped(serve, file)
    before = contents(file)
    with file.with_name("test.db.lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, _, said = dpbandits("key", "create", "ops", "--store", f"sqlite:///{file}")
    assert (code, said.rstrip().endswith("if it was just started or stopped, try again")) == (2, True)
    assert contents(file) == before


def _points_to(descriptor: Path, file: str) -> bool:
    """Whether a descriptor of the running server is this file; it may be closed while we look."""
    try:
        return os.readlink(descriptor) == file
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("deleted", [False, True])
def test_a_file_that_only_the_server_has_is_saved_from_it(server: Server, file: Path, deleted: bool) -> None:
    """As the server's log and the documentation say. It was deleted, or another was moved over it."""
    tokens = filled(server)
    if deleted:
        file.unlink()
    else:
        os.replace(copied(file), file)
    assert server.call("POST", "/v1/experiments/shop/decisions", {})[0] == 503
    held = Path(f"/proc/{server.process}/fd")
    assert f"copy it from {held} before the server is stopped" in server.log.read_text()
    (found, *_) = (one for one in held.iterdir() if _points_to(one, f"{file} (deleted)"))
    shutil.copy(found, file.with_name("saved.db"))
    server.stop()
    os.replace(file.with_name("saved.db"), file)
    refused(file.parent, "if it is the same file, which was moved or copied, move .*test.db.lock away")
    os.rename(file.with_name("test.db.lock"), file.with_name("away.lock"))
    server.start()
    said = [server.call("POST", "/v1/responses", {"token": token, "response": 1})[1]["status"] for token in tokens]
    assert said == ["duplicate"] * 20


@pytest.mark.parametrize(("raised", "damage"), [(DatabaseError, True), (OperationalError, False)])
def test_a_file_on_which_the_check_itself_fails_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: type[DatabaseError], damage: bool
) -> None:
    """Unless it is busy, or the disk fails."""
    store = Database(f"sqlite:///{tmp_path}/test.db")
    execute = Connection.exec_driver_sql

    def failing(self: Connection, statement: str, *more: Any) -> Any:
        if "integrity" in statement:
            raise raised(statement, None, sqlite3.DatabaseError("malformed"))
        return execute(self, statement, *more)

    (tmp_path / "test.db").touch()
    monkeypatch.setattr(Connection, "exec_driver_sql", failing)
    with closing(store):
        store.file.lock()
        with pytest.raises(InputError, match="store is damaged" if damage else "store cannot be used"):
            store.migrate()


def test_a_start_waits_for_a_key_command_that_has_the_lock(serve: Open, file: Path) -> None:
    client = serve(f"sqlite:///{file}")
    create(client)
    client.__exit__(None, None, None)
    key = Database(f"sqlite:///{file}")
    with ExitStack() as held:
        held.enter_context(alone(file))
        held.enter_context(closing(key))
        key.file.lock(or_join=True)
        done = held.pop_all()
    threading.Timer(0.3, done.close).start()
    assert check(ServerSettings.read(**settings(file.parent))) == []
    client = serve(f"sqlite:///{file}")
    assert client.get("/v1/experiments/shop/summary").status_code == 200


def test_a_start_waits_for_a_check_that_has_the_lock(serve: Open, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped(serve, file)
    looks, ends = threading.Event(), threading.Event()

    def slow(*given: Any) -> None:
        if threading.current_thread() is checking:
            looks.set()
            assert ends.wait(60)
        files.refuse_log_of_another(*given)

    monkeypatch.setattr(held_file, "refuse_log_of_another", slow)
    with closing(Database(f"sqlite:///{file}")) as checked, closing(Database(f"sqlite:///{file}")) as started:
        checking = threading.Thread(target=checked.file.unused)
        checking.start()
        assert looks.wait(60)
        threading.Timer(0.3, ends.set).start()
        try:
            started.file.lock()
        finally:
            ends.set()
            checking.join()
        assert started.file.locked


def test_a_damaged_table_is_damage(serve: Open, file: Path) -> None:
    """The check reads the experiments before a start checks the file for damage."""
    client = serve(f"sqlite:///{file}")
    create(client)
    client.__exit__(None, None, None)
    with closing(sqlite3.connect(file)) as connection:
        (root,) = connection.execute("select rootpage from sqlite_master where name = 'experiments'").fetchone()
        (size,) = connection.execute("pragma page_size").fetchone()
    with file.open("r+b") as opened:
        opened.seek((root - 1) * size)
        opened.write(b"\xff" * size)
    (found,) = check(ServerSettings.read(**settings(file.parent)))
    assert (found.level, found.text.startswith("store is damaged: ")) == ("problem", True)


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
    held = f"open {file.stat().st_ino} {lock.stat().st_ino} {log.stat().st_ino}"
    assert re.fullmatch(rf"{held} \d+\n", lock.read_text())
    with closing(sqlite3.connect(file)) as other:  # it keeps the log from being written back
        other.execute("select * from states").fetchall()
        client.__exit__(None, None, None)
        assert b"clean" not in lock.read_bytes()
    client = serve(f"sqlite:///{file}")
    client.__exit__(None, None, None)
    found = file.stat()
    assert lock.read_text() == f"clean {found.st_ino} {found.st_size} {found.st_mtime_ns}\n"
