"""Commits: what both stores do alike with the jobs that the writer brings. Only the writer's thread calls it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

import structlog
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from dpbandits.draws import WatchedGenerator
from dpbandits.service.books import LiveRun
from dpbandits.service.clock import Clock
from dpbandits.service.keyring import Keyring
from dpbandits.service.logs import Seldom
from dpbandits.service.metrics import Metrics
from dpbandits.service.recent import Recent
from dpbandits.service.store import Database, discard
from dpbandits.service.tally import Tally
from dpbandits.service.writer import Unavailable

__all__ = ["Commits", "Control"]

log = structlog.get_logger("dpbandits")

Hot = TypeVar("Hot")  # jobs that share a transaction with others


@dataclass(slots=True)
class Control:
    """Something else that is written, in a transaction of its own."""

    act: Callable[[Connection], Any]
    then: Callable[[], None] | None = None  # what changes in memory, once it is on disk


@dataclass(eq=False, repr=False)
class Commits(ABC, Generic[Hot]):
    """Jobs are stored and answered. A job that fails takes no other with it."""

    lost: ClassVar[tuple[type[Exception], ...]]  # what is raised where the database is lost or full

    store: Database
    keys: Keyring
    recent: Recent
    clock: Clock
    tally: Tally
    runs: dict[int, LiveRun]
    metrics: Metrics
    choices: WatchedGenerator = field(default_factory=WatchedGenerator, init=False)
    _connection: Connection | None = field(default=None, init=False)
    _seldom: Seldom = field(default_factory=Seldom, init=False)

    @abstractmethod
    def _commit_all(self, connection: Connection, jobs: list[Hot]) -> list[Any]:
        """Store what the jobs ask for in one transaction, or nothing of it; the answer to each."""

    def commit(self, jobs: list[Hot | Control]) -> list[Any]:
        """Store what the jobs ask for; the answer to each."""
        hot = [job for job in jobs if not isinstance(job, Control)]
        answers = iter(self._commit_hot(hot) if hot else [])
        return [self._control(job) if isinstance(job, Control) else next(answers) for job in jobs]

    def _commit_hot(self, jobs: list[Hot]) -> list[Any]:
        """In one transaction; where one of them fails for a reason of its own, each in one of its own.

        Then some may be stored before the database is lost. So each is answered by itself: those are not lost.
        """
        try:
            return self._commit_all(self._opened(), jobs)
        except self.lost as error:
            return [self._lost(error)] * len(jobs)
        except Exception as error:
            return [error] if len(jobs) == 1 else [answer for job in jobs for answer in self._commit_hot([job])]

    def _control(self, job: Control) -> Any:
        try:
            connection = self._opened()
            with connection.begin():
                answer = job.act(connection)
        except IntegrityError as error:  # somebody else has just stored the same; the connection is sound
            return error
        except self.lost as error:
            return self._lost(error)
        except Exception as error:  # refused: the transaction is undone, and the caller is told why
            return error
        return self._follow(job, answer)

    @staticmethod
    def _follow(job: Control, answer: Any) -> Any:
        """Change memory, too. The job is stored by now: whatever happens here, it was neither refused nor lost."""
        try:
            if job.then is not None:
                job.then()
        except Exception as error:
            failed = RuntimeError("a change is stored, and memory did not follow")
            return failed.with_traceback(error.__traceback__)  # which the log shows
        return answer

    def _opened(self) -> Connection:
        """The connection; raises one of ``lost`` where there is none."""
        if self._connection is None:
            self._connection = self.store.engine.connect()
        return self._connection

    def _lost(self, error: Exception) -> Unavailable:
        """Nothing was stored: the next transaction tries a new connection."""
        self.metrics.failures.inc()
        discard(self._connection)
        self._connection = None
        reason = self._reason(error)
        if self._seldom.allows(reason):
            log.error("cannot write", reason=reason)
        return Unavailable(f"the database cannot be written: {reason}")

    @abstractmethod
    def _reason(self, error: Exception) -> str:
        """Why the database is lost, for the log: nothing of what was to be stored."""

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
