"""Checks that the store can be written to, by writing to it."""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dpbandits.service.commits import Control

if TYPE_CHECKING:
    from dpbandits.service.service import Service

__all__ = ["Probe"]

HOLDS = 1.0  # seconds for which a success counts
KEY = "\nprobe"  # of what is stored; no header of a request can hold it
STATEMENT = (  # other workers may store theirs at the same time
    "insert into requests (key, digest, answer, at) values (:key, '', '{}', :at) "
    "on conflict (key) do update set at = excluded.at"
)


class Probe:
    """Tries the store of a server. Anybody may ask, so a success counts for a second."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._succeeded = -math.inf  # when something was last stored
        self._trying = asyncio.Lock()

    async def ask(self) -> None:
        """Raises why nothing can be stored."""
        async with self._trying:
            if time.monotonic() >= self._succeeded + HOLDS or self._service.store.file.refused is not None:
                await self.store_something()
                self._succeeded = time.monotonic()

    async def store_something(self) -> None:
        """Store something now, and, where the server draws noise, see whether draws can be counted."""
        service = self._service
        row = {"key": KEY, "at": int(service.clock() * 1000)}

        def act(connection: Connection) -> None:
            connection.execute(sa.text(STATEMENT), row)

        await service.writer.submit(Control(act))
        if any(run.experiment.active and run.experiment.server_draws for run in list(service.runs.values())):
            await service.looks.run(service.tally.probe)
