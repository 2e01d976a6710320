"""A tally outside the database: how often noise was drawn. It tells a restored backup from the latest state."""

from __future__ import annotations

import os
import threading
import time
from contextlib import closing

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, TimeoutError

from dpbandits.errors import InputError
from dpbandits.service.books import LiveRun
from dpbandits.service.store import Database, discard
from dpbandits.service.tables import METADATA as STORE
from dpbandits.service.writer import Untallied

__all__ = ["Tally", "check"]

PATIENCE = 2  # seconds to wait for an answer: everybody waits for it
MAKING = 0x6470_6262  # the number of PostgreSQL's advisory lock under which the table is made
RETRY = 1.0  # seconds between two tries where the tally cannot be written
#: Names under which a probe is stored, and the number of writes so far; no experiment can have them.
PROBED, WRITES = "\nprobe", "\nwrites"

INSIDE = "must be another database than the store: an old copy of the store would bring its own tally along"

LOST = (DBAPIError, TimeoutError, OSError)

METADATA = sa.MetaData()
draws = sa.Table(
    "dpbandits_draws",
    METADATA,
    sa.Column("experiment", sa.Text, primary_key=True),
    sa.Column("draws", sa.BigInteger, nullable=False),
)

_INSERT = "insert into dpbandits_draws (experiment, draws) values (:name, {}) on conflict (experiment) do update set "
COUNT = sa.text(_INSERT.format(":draws") + "draws = excluded.draws where dpbandits_draws.draws < excluded.draws")
COUNT_WRITE = sa.text(_INSERT.format(1) + "draws = dpbandits_draws.draws + 1 returning draws")


def check(url: str, store: Database) -> None:
    """Refuse a tally that cannot be opened, or that is in the store. No file is made."""
    with closing(_database(url, store)) as made:
        made.reached()
        if made.path is None or made.path.exists():
            with made.opened() as connection:
                _refuse_store(connection)


def _refuse_store(connection: sa.Connection) -> None:
    if set(STORE.tables).issubset(sa.inspect(connection).get_table_names()):  # by whatever address
        raise InputError("tally", INSIDE)


def _database(url: str, store: Database) -> Database:
    """Where draws are counted, outside the store.

    A file of SQLite has no log beside it: all that was counted is in the one file, and every write reads that file. If
    an earlier version has left a log, it is written back.
    """
    made = Database(url, name="tally", synchronous="extra", journal="delete", patience=PATIENCE)
    if made.path is not None and made.path == store.path:
        raise InputError("tally", INSIDE)
    return made


class Tally:
    """A small table elsewhere: a file by default, or a database of the operator's choice.

    A draw is counted after its commit, and by each process before it shows anything that depends on the draw. So the
    database may be ahead of the tally after a crash, and is behind it only if it is an old copy.
    """

    def __init__(self, url: str, store: Database) -> None:
        self._store = _database(url, store)
        try:
            self._make()
        except BaseException:
            self._store.close()
            raise
        self._file = self._found()
        self._connection: sa.Connection | None = None
        self._counted: dict[str, int] = {}
        self._writes = 0  # how many this process knows of, by whomever: an older tally has fewer
        self._guard, self._retry = threading.Lock(), 0.0

    def _make(self) -> None:
        with self._store.opened() as connection:
            try:
                with connection.begin():
                    if not self._store.embedded:
                        connection.execute(sa.text("select pg_advisory_xact_lock(:n)"), {"n": MAKING})
                    _refuse_store(connection)
                    METADATA.create_all(connection)
            except DBAPIError as error:
                raise InputError("tally", f"cannot be written: {error.orig}; start again") from None

    @property
    def durable(self) -> str:
        """Why what was counted might be lost; empty where it is on disk."""
        why = self._store.durable
        return f"the tally: {why}" if why else ""

    def counted(self, run: LiveRun) -> int:
        """How many draws this process has counted. Whatever is read from now on knows of them, but for an old copy."""
        return self._counted.get(run.experiment.tallied, 0)

    def seen(self) -> dict[str, int]:
        """The number of draws of each experiment, by its name and number."""
        try:
            with self._store.reading() as connection:
                return _held(connection, draws.c.experiment.not_in((PROBED, WRITES)))
        except LOST as error:
            raise Untallied(f"the tally cannot be read: {type(error).__name__}") from None

    def ahead_of(self, run: LiveRun) -> bool:
        """Whether more draws were counted than a stored state knows of: it is an old copy."""
        return run.experiment.server_draws and self.seen().get(run.experiment.tallied, 0) > run.draws

    def count(self, run: LiveRun) -> None:
        """See to it that the draws of an experiment are counted, on disk; raises ``Untallied`` if they cannot be."""
        if run.experiment.server_draws and run.draws > self._counted.get(run.experiment.tallied, 0):
            self._count(run.experiment.tallied, run.draws)

    def probe(self) -> None:
        """Store something; raises ``Untallied`` if that cannot be."""
        self._count(PROBED, time.time_ns())

    def _count(self, name: str, drawn: int) -> None:
        with self._guard:
            if time.monotonic() < self._retry:
                raise Untallied("the tally cannot be written")
            try:
                self._write(name, drawn)
            except LOST as error:
                discard(self._connection)
                self._connection = None
                self._retry = time.monotonic() + RETRY
                raise Untallied(f"the tally cannot be written: {type(error).__name__}") from None
            self._counted[name] = max(drawn, self._counted.get(name, 0))  # another thread may have counted more

    def _write(self, name: str, drawn: int) -> None:
        """Store what is not stored yet. Another process may have done it, and a look does not keep others waiting."""
        if self._found() != self._file:
            raise FileNotFoundError("the tally is gone, or was replaced by another file")
        with self._store.reading() as connection:
            if self._held(connection, name) >= drawn:
                return
        if self._connection is None:
            self._connection = self._store.engine.connect()
        with self._connection.begin():
            self._held(self._connection, name)
            self._connection.execute(COUNT, {"name": name, "draws": drawn})
            writes = self._connection.execute(COUNT_WRITE, {"name": WRITES}).scalar_one()
        self._writes = writes

    def _held(self, connection: sa.Connection, name: str) -> int:
        """The stored draws of an experiment; raises where the tally lacks what this process knows of."""
        held = _held(connection, draws.c.experiment.in_((name, WRITES)))
        if held.get(WRITES, 0) < self._writes or held.get(name, 0) < self._counted.get(name, 0):
            raise FileNotFoundError("the tally lacks what was counted: an older one was put in its place")
        self._writes = held.get(WRITES, 0)
        return held.get(name, 0)

    def _found(self) -> tuple[int, int] | None:
        """Which file it is; None in a database of PostgreSQL or in memory."""
        if self._store.path is None:
            return None
        found = os.stat(self._store.path)
        return found.st_dev, found.st_ino

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
        self._store.close()


def _held(connection: sa.Connection, which: sa.ColumnElement[bool]) -> dict[str, int]:
    return {row.experiment: row.draws for row in connection.execute(sa.select(draws).where(which))}
