"""A database that is restored: nobody is let in by it, and nothing is accepted that would be lost."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa
from calls import served
from starlette.testclient import TestClient

from dpbandits.service import access
from dpbandits.service.tables import api_keys

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
