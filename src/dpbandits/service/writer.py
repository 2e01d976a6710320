"""Group commit: one thread writes; whenever a commit has returned, it takes whatever is waiting. No timer."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

__all__ = ["Missing", "Overloaded", "Unavailable", "Untallied", "Writer"]

Job = TypeVar("Job")

LARGEST_BATCH = 2048
MOST_WAITING = 20_000


class Unavailable(RuntimeError):  # noqa: N818  # a state, which ends
    """It cannot be stored now: the database is lost or full. The caller may try again."""


class Overloaded(Unavailable):
    """Too many requests are waiting for the disk."""


class Missing(Unavailable):
    """The database no longer has the experiment: an older copy was restored, or is being restored."""


class Untallied(Unavailable):
    """The tally cannot be written: nothing may be shown that depends on the latest draw, which is stored."""


class Writer(Generic[Job]):
    """``commit`` takes a list of jobs, stores what they ask for in one transaction, and answers each.

    The answer to a job is a value, or an exception that its caller gets. If ``commit`` fails, so does every job.

    >>> async def doubled() -> list[int]:
    ...     writer = Writer(lambda jobs: [2 * job for job in jobs])
    ...     try:
    ...         return await asyncio.gather(*(writer.submit(n) for n in range(3)))
    ...     finally:
    ...         writer.stop()
    >>> asyncio.run(doubled())
    [0, 2, 4]
    """

    def __init__(self, commit: Callable[[list[Job]], list[Any]]) -> None:
        self._commit = commit
        self._waiting: queue.SimpleQueue[tuple[Job, asyncio.Future[Any]] | None] = queue.SimpleQueue()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        return self._waiting.qsize()

    def submit(self, job: Job) -> asyncio.Future[Any]:
        """The answer to a job, once it is on disk."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._stopped or self._waiting.qsize() > MOST_WAITING:
            future.set_exception(Overloaded("too many requests are waiting, or the server stops"))
        else:
            self._waiting.put((job, future))
        return future

    def stop(self) -> None:
        """Finish what is waiting, and stop."""
        self._stopped = True
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        stopping = False
        while not stopping:
            taken = [self._waiting.get()]
            with suppress(queue.Empty):
                while len(taken) < LARGEST_BATCH:
                    taken.append(self._waiting.get_nowait())
            batch = [one for one in taken if one is not None]
            stopping = len(batch) < len(taken)
            if batch:
                self._answer(batch)

    def _answer(self, batch: list[tuple[Job, asyncio.Future[Any]]]) -> None:
        try:
            answers = self._commit([job for job, _ in batch])
        except Exception as error:
            answers = [error] * len(batch)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            batch[0][1].get_loop().call_soon_threadsafe(_resolve, batch, answers)


def _resolve(batch: list[tuple[Any, asyncio.Future[Any]]], answers: list[Any]) -> None:
    for (_, future), answer in zip(batch, answers, strict=True):
        if future.done():
            continue
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)
