"""A job that fails takes no other with it, and what is stored is not said to be lost, on both databases."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from calls import create, decide, folded, served
from starlette.testclient import TestClient

from dpbandits.service.books import Ask
from dpbandits.service.commits import Control
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
