"""A tally outside the database: how often noise was drawn. It tells a restored backup from the latest state."""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import closing

import sqlalchemy as sa
import structlog
from sqlalchemy.exc import DBAPIError, OperationalError, TimeoutError

from dpbandits.errors import InputError
from dpbandits.service.books import LiveRun
from dpbandits.service.store import Database, discard
from dpbandits.service.tables import METADATA as STORE
from dpbandits.service.writer import Untallied

__all__ = ["Tally", "check"]

log = structlog.get_logger("dpbandits")

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
_LACKING = "select k.key from {} as k left join dpbandits_draws on experiment = k.key where coalesce(draws, 0) < {}"
LACKING = {
    "sqlite": sa.text(_LACKING.format("json_each(:counted)", "k.value")),
    "postgresql": sa.text(_LACKING.format("json_each_text(cast(:counted as json))", "cast(k.value as bigint)")),
}
COUNT_WRITE = sa.text(_INSERT.format(1) + "draws = dpbandits_draws.draws + 1 returning draws")


def check(url: str, store: Database) -> str:
    """Refuse a tally that cannot be opened or written, or that is in the store; why it might lose what it is given.

    No file is made.
    """
    with closing(_database(url, store)) as made:
        made.reached()
        if made.path is None or made.path.exists():
            with made.opened() as connection:
                _refuse_store(connection, store)
                _refuse_odd(connection)
            return _lossy(made)
    return ""


def _refuse_store(connection: sa.Connection, store: Database) -> None:
    """By whatever address: the tables of the store are in it, or it is the store's database by another schema."""
    if set(STORE.tables).issubset(sa.inspect(connection).get_table_names()) or store.holds(connection):
        raise InputError("tally", INSIDE)


def _lossy(tally: Database) -> str:
    why = tally.durable
    return f"the tally: {why}" if why else ""


def _refuse_odd(connection: sa.Connection) -> None:
    """Refuse a table of this name that is another one, holds no numbers, or cannot be written. Nothing is written."""
    found = sa.inspect(connection)
    if draws.name not in (*found.get_table_names(), *found.get_view_names()):
        return
    try:
        held = [row.draws for row in connection.execute(sa.select(draws))]
        connection.execute(COUNT_WRITE, {"name": WRITES})
    except DBAPIError as error:
        raise InputError("tally", f"cannot be written: {error.orig}") from None
    finally:
        connection.rollback()
    if not all(isinstance(number, int) for number in held):
        raise InputError("tally", "must hold numbers of draws: it is damaged, or another table has this name")


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
            self._make(store)
        except BaseException:
            self._store.close()
            raise
        self._file = self._found()
        self._connection: sa.Connection | None = None
        self._counted: dict[str, int] = {}
        self._writes = 0  # how many this process knows of, by whomever: an older tally has fewer
        self._lacks = False  # whether the tally was found to lack what this process has counted
        self._guard, self._retry = threading.Lock(), 0.0

    def _make(self, store: Database) -> None:
        self._store.file.make()
        with self._store.opened() as connection:
            try:
                with connection.begin():
                    if not self._store.embedded:
                        connection.execute(sa.text("select pg_advisory_xact_lock(:n)"), {"n": MAKING})
                    _refuse_store(connection, store)
                    METADATA.create_all(connection)
            except DBAPIError as error:
                raise InputError("tally", f"cannot be written: {error.orig}; start again") from None
            _refuse_odd(connection)

    @property
    def durable(self) -> str:
        """Why what was counted might be lost; empty where it is on disk."""
        return _lossy(self._store)

    def counted(self, run: LiveRun) -> int:
        """How many draws this process has counted. Later reads include them, unless an old copy was restored."""
        return self._counted.get(run.experiment.tallied, 0)

    def seen(self) -> dict[str, int]:
        """The number of draws of each experiment, by its name and number.

        What this process has counted is among them: an older tally may have been put back with an older database.
        """
        known = dict(self._counted)
        try:
            with self._store.reading() as connection:
                held = {row.experiment: row.draws for row in connection.execute(sa.select(draws))}
        except LOST as error:
            raise Untallied(f"the tally cannot be read: {type(error).__name__}") from None
        names = (held.keys() | known.keys()) - {PROBED, WRITES}
        return {name: max(held.get(name, 0), known.get(name, 0)) for name in names}

    def ahead_of(self, run: LiveRun) -> bool:
        """Whether more draws were counted than a stored state knows of: it is an old copy."""
        return run.experiment.server_draws and self.seen().get(run.experiment.tallied, 0) > run.draws

    def count(self, *runs: LiveRun) -> None:
        """See to it that the draws of experiments are counted, on disk; raises ``Untallied`` if they cannot be."""
        drawn = {}
        for run in runs:
            experiment = run.experiment
            if experiment.server_draws and run.draws > (0 if self._lacks else self._counted.get(experiment.tallied, 0)):
                drawn[experiment.tallied] = run.draws
        if drawn:
            self._count(drawn)

    def probe(self) -> None:
        """Store something; raises ``Untallied`` if that cannot be."""
        self._count({PROBED: time.time_ns()})

    def look(self) -> None:
        """Look whether the tally still has what this process has counted; raises ``Untallied`` if not."""
        if self._counted:
            self._count({})

    def _count(self, drawn: dict[str, int]) -> None:
        with self._guard:
            if time.monotonic() < self._retry:
                raise Untallied("the tally cannot be written")
            try:
                self._write(drawn)
            except LOST as error:
                discard(self._connection)
                self._connection = None
                self._retry = time.monotonic() + RETRY
                self._lacks = self._lacks or _is_loss(error)
                reason = error.orig if isinstance(error, DBAPIError) else error
                log.error("the tally cannot be written", reason=f"{type(error).__name__}: {reason}")
                raise Untallied(f"the tally cannot be written: {type(error).__name__}") from None
            self._lacks = False
            for name, number in drawn.items():  # another thread may have counted more
                self._counted[name] = max(number, self._counted.get(name, 0))

    def _write(self, drawn: dict[str, int]) -> None:
        """Store what is not stored yet. Another process may have done it, and a look does not keep others waiting."""
        if self._found() != self._file:
            raise FileNotFoundError("it was replaced by another file")
        with self._store.reading() as connection:
            self._compare(connection)
            lacking = {
                *_lacking(connection, drawn),
                *({PROBED} & drawn.keys()),
            }  # a probe writes, whatever the clock says
        if not lacking:
            return
        new = sorted(lacking)  # others write them in the same order, against deadlocks
        if self._connection is None:
            self._connection = self._store.engine.connect()
        with self._connection.begin():
            self._compare(self._connection)
            self._connection.execute(COUNT, [{"name": name, "draws": drawn[name]} for name in new])
            writes = self._connection.execute(COUNT_WRITE, {"name": WRITES}).scalar_one()
        self._writes = writes

    def _compare(self, connection: sa.Connection) -> None:
        """Raise where the tally lacks what this process knows of: all that it has counted, and what others wrote.

        The number of writes alone would not show it: others may write on in an older tally.
        """
        lost = _lacking(connection, self._counted)
        writes = connection.execute(sa.select(draws.c.draws).where(draws.c.experiment == WRITES)).scalar() or 0
        if lost or writes < self._writes:
            raise FileNotFoundError(f"an older one was put in its place; it lacks draws of {len(lost)} experiments")
        self._writes = writes

    def _found(self) -> tuple[int, int] | None:
        """Which file it is; None in a database of PostgreSQL or in memory."""
        if self._store.path is None:
            return None
        found = os.stat(self._store.path)
        if found.st_size == 0:
            raise FileNotFoundError("it was emptied")
        return found.st_dev, found.st_ino

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
        self._store.close()


def _lacking(connection: sa.Connection, counted: dict[str, int]) -> list[str]:
    """Those of which the tally holds fewer draws, in one statement, however many there are."""
    if not counted:
        return []
    return list(connection.execute(LACKING[connection.dialect.name], {"counted": json.dumps(counted)}).scalars())


def _is_loss(error: Exception) -> bool:
    """Whether a tally lacks what was counted, or is damaged. One that is out of reach or full still has it."""
    damaged = isinstance(error, DBAPIError) and not isinstance(error, OperationalError)
    return damaged or isinstance(error, FileNotFoundError)
