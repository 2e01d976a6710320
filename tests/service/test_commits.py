"""A job that fails takes no other with it, and what is stored is not said to be lost, on both databases."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from calls import create, decide, folded, served
from starlette.testclient import TestClient

from dpbandits.errors import InputError
from dpbandits.service import logs
from dpbandits.service.books import Ask
from dpbandits.service.commits import Control
from dpbandits.service.files import LostFileError
from dpbandits.service.problems import problem_of
from dpbandits.service.tables import requests
from dpbandits.service.writer import Unavailable


def failed(client: TestClient) -> float:
    """How many transactions failed because the database was lost."""
    found = served(client).metrics.registry.get_sample_value("dpbandits_failures_total")
    assert found is not None
    return found


def test_a_change_that_violates_a_constraint_is_refused_alone(client: TestClient) -> None:
    create(client)
    service = served(client)
    row = sa.insert(requests).values(key="k", digest="", answer="{}", at=1)
    store = Control(lambda connection: connection.execute(row).close())
    ask = Ask(service.find("shop").experiment.id, None, b"", 0, 0)
    decided, stored, refused, asked = service.books.commit([ask, store, store, ask])
    assert (b"token" in decided, stored, b"token" in asked) == (True, None, True)
    assert problem_of(refused).status == 409
    assert failed(client) == 0
    assert folded(client)["decisions"] == 2


@pytest.mark.parametrize("error", [ValueError("wrong"), OSError("the disk is gone")])
def test_where_memory_does_not_follow_a_change_that_is_stored_nothing_is_said_to_be_lost(
    client: TestClient, error: Exception
) -> None:
    """The transaction is over: its caller is told of an error of ours, and the others get their answers."""
    create(client)
    service = served(client)

    def follow() -> None:
        raise error

    def write(key: str) -> Control:
        row = sa.insert(requests).values(key=key, digest="", answer="{}", at=1)
        return Control(lambda connection: connection.execute(row).close(), follow if key == "first" else None)

    ask = Ask(service.find("shop").experiment.id, None, b"", 0, 0)
    wrong, decided, second = service.books.commit([write("first"), ask, write("second")])
    assert problem_of(wrong).status == 500
    assert (b"token" in decided, second, failed(client)) == (True, None, 0)
    with service.store.reading() as connection:
        keys = set(connection.execute(sa.select(requests.c.key)).scalars())
    assert {"first", "second"} <= keys


def test_what_was_stored_before_the_database_was_lost_is_answered(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two requests fail together for a reason of one of them, so each is stored by itself; then the disk is gone."""
    create(client)
    service = served(client)
    first, second = (Ask(service.find("shop").experiment.id, name, b"", 0, 0) for name in ("order-1", "order-2"))
    plain = type(service.books)._commit_all

    def commit(books: Any, connection: sa.Connection, jobs: list[Any]) -> list[Any]:
        if len(jobs) > 1:
            raise ValueError("a reason of its own")
        if jobs == [second]:
            raise OSError("the disk is gone")
        return plain(books, connection, jobs)

    monkeypatch.setattr(type(service.books), "_commit_all", commit)
    decided, lost = service.books.commit([first, second])
    monkeypatch.undo()
    assert b"token" in decided
    assert isinstance(lost, Unavailable)
    assert failed(client) == 1
    assert decide(client, decision="order-1")["decision"] == "order-1"
    assert folded(client)["decisions"] == 1


def test_the_log_says_why_nothing_can_be_stored(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once for each reason in a while, and without what was to be stored."""
    create(client)
    books = served(client).books
    full: Exception = sqlite3.OperationalError("database or disk is full")
    other: Exception = OSError("the disk is gone")
    reasons = ["database or disk is full", "the disk is gone"]
    if not served(client).store.embedded:
        full, other = psycopg.errors.DiskFull("no room for 0.8414"), psycopg.OperationalError("connection\nrefused")
        reasons = ["DiskFull (53100)", "OperationalError: connection refused"]
    errors: list[Exception] = [sa.exc.OperationalError("insert", {"reward": 0.8414}, full), other]

    def commit(_: Any, jobs: list[Any]) -> list[Any]:
        raise errors[0]

    monkeypatch.setattr(books, "_commit_all", commit)
    monkeypatch.setattr(logs, "SELDOM", 1e6)
    capsys.readouterr()
    for _ in range(5):
        assert client.post("/v1/experiments/shop/decisions").status_code == 503
        errors.reverse()
    logged = capsys.readouterr().out
    assert [reason for reason in reasons if logged.count(f"reason={reason!r}") == 1] == reasons
    assert (logged.count("cannot write"), "8414" in logged) == (2, False)
    monkeypatch.setattr(logs, "SELDOM", 0.0)
    assert client.post("/v1/experiments/shop/decisions").status_code == 503
    assert capsys.readouterr().out.count("cannot write") == 1


def test_the_log_says_why_nothing_can_be_read(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    create(client)
    cause = sqlite3.OperationalError("no room for 0.8414")

    def connect() -> None:
        raise sa.exc.OperationalError("select", {"reward": 0.8414}, cause) from cause

    monkeypatch.setattr(served(client).store.readers, "connect", connect)
    monkeypatch.setattr(logs, "SELDOM", 1e6)
    capsys.readouterr()
    for _ in range(3):
        assert client.get("/v1/experiments/shop/summary").status_code == 503
    logged = capsys.readouterr().out
    assert [logged.count(line) for line in ("cannot read", "broken off", "failed", "8414")] == [1, 0, 0, 0]
    assert "reason=OperationalError" in logged


def test_the_log_says_why_a_look_failed(client: TestClient, capsys: pytest.CaptureFixture[str]) -> None:
    """Of our own errors the text, of others no more than the kind and the place: their texts may hold a reward."""
    mine = [InputError("keys", "must be others"), LostFileError("it was replaced"), Unavailable("it is away")]
    theirs = [sa.exc.OperationalError("insert", {"reward": 0.8414}, ValueError("0.8414")), ValueError("0.8414")]
    file = FileNotFoundError(2, "No such file", "/nowhere/keys")
    left: list[Exception] = [*mine, *theirs, file, *mine]
    left.reverse()

    async def look() -> None:
        if not left:
            raise asyncio.CancelledError
        raise left.pop()

    capsys.readouterr()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(served(client).tending.repeat(0.0, look))
    lines = [line for line in capsys.readouterr().out.splitlines() if "task=look" in line]
    said = ["keys must be others", "it was replaced", "it is away", "OperationalError", "where=", "/nowhere/keys"]
    assert [word for word, line in zip(said, lines, strict=True) if word in line] == said
    assert not any("8414" in line for line in lines)
    assert not any("where=" in line for line in [*lines[:4], *lines[5:]])
