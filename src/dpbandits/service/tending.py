"""Tasks that a server repeats as long as it runs. One that fails is tried again, and the log says why it failed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import structlog
from sqlalchemy.exc import SQLAlchemyError

from dpbandits.errors import InputError
from dpbandits.service.files import LostFileError
from dpbandits.service.logs import Seldom, where
from dpbandits.service.writer import Unavailable

__all__ = ["Tending"]

log = structlog.get_logger("dpbandits")


class Tending:
    """The repeated tasks of one server. The same reason is logged at most every ten seconds."""

    def __init__(self) -> None:
        self._seldom = Seldom()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, seconds: float, do: Callable[[], Awaitable[Any]]) -> None:
        """Do this repeatedly, and wait this many seconds before each time."""
        self._tasks.append(asyncio.create_task(self.repeat(seconds, do)))

    async def stop(self) -> None:
        """End all tasks, and wait until they have ended."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
        self._tasks.clear()

    async def repeat(self, seconds: float, do: Callable[[], Awaitable[Any]]) -> None:
        """Do this for ever, whatever fails."""
        while True:
            await asyncio.sleep(seconds)
            try:
                await do()
            except Exception as error:
                self._say_failed(getattr(do, "__name__", "task").strip("_"), error)

    def _say_failed(self, task: str, error: Exception) -> None:
        """Log why a task failed. Of errors that are not ours only the kind is logged: a text might hold a reward."""
        away = isinstance(error, Unavailable | LostFileError)
        if away or isinstance(error, InputError):
            reason = str(error)
        elif isinstance(error, OSError):
            reason = f"{type(error).__name__}: {error.filename}"
        elif isinstance(error, SQLAlchemyError):
            reason = type(error).__name__
        else:
            log.error("failed", task=task, where=where(error))
            return
        if self._seldom.allows(f"{task} {reason}"):
            log.error("unavailable" if away else "failed", task=task, reason=reason)
