"""What the tests of the service share: both databases, a client in this process, and servers in others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from postgres import Postgres
from servers import server, zygote
from starlette.testclient import TestClient

from dpbandits.service import app

__all__ = ["server", "zygote"]

Client = TestClient
Open = Callable[..., TestClient]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database, of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/test.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.database()


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server looks by itself at keys and files, as it does every two seconds: the test counts the looks it takes."""
    monkeypatch.setattr("dpbandits.service.service.REREAD", 1e6)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Open]:
    """Open a client of a service in this process; it is closed at the end."""
    opened: list[TestClient] = []

    def serving(store: str, **settings: Any) -> TestClient:
        given = {"keys": tmp_path / "keys", "tally": f"sqlite:///{tmp_path}/tally", **settings}
        client = TestClient(app(store=store, **given), base_url="http://test")
        client.__enter__()
        opened.append(client)
        return client

    yield serving
    for client in opened:
        client.__exit__(None, None, None)


@pytest.fixture
def client(serve: Open, store: str) -> TestClient:
    """A client of a service on each kind of database."""
    return serve(store)


@pytest.fixture
def embedded(serve: Open, tmp_path: Path) -> TestClient:
    """A client of a service on SQLite."""
    return serve(f"sqlite:///{tmp_path}/test.db")


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """One service for the tests of a module that store nothing, or names of their own."""
    folder = tmp_path_factory.mktemp("service")
    made = app(store=f"sqlite:///{folder}/test.db", keys=folder / "keys", tally=f"sqlite:///{folder}/tally")
    with TestClient(made, base_url="http://test") as client:
        yield client
