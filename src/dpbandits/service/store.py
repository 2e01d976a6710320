"""The database: how it is opened, brought up to date, and asked whether it keeps what it is given."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DatabaseError, OperationalError

from dpbandits.errors import InputError
from dpbandits.service.addresses import driver_words, read_address, shown_address
from dpbandits.service.files import LostFileError, refuse_log_of_another, refuse_unwritable
from dpbandits.service.held_file import HeldFile

__all__ = ["LIVELY", "Database", "discard"]

#: How long a statement waits for a lock. The server is the only one that writes for long.
BUSY = 5.0

#: How PostgreSQL's driver notices, within some 10 seconds, that the other machine or the way to it is gone.
LIVELY: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}

#: The number of PostgreSQL's advisory lock under which tables are created and changed.
MIGRATING = 0x6470_6261

#: What ``PRAGMA synchronous`` answers.
SYNCHRONOUS = ("off", "normal", "full", "extra")


class Database:
    """A database of SQLite or PostgreSQL.

    >>> store = Database("sqlite://")
    >>> store.embedded, store.durable
    (True, 'a database in memory is gone when the server stops')
    """

    def __init__(
        self,
        url: str,
        *,
        name: str = "store",
        synchronous: str = "full",
        journal: str | None = "wal",
        patience: int | None = None,
    ) -> None:
        self.name = name  # of the setting
        self.url, path = read_address(name, url)
        self.embedded = self.url.get_backend_name() == "sqlite"
        if synchronous not in SYNCHRONOUS:
            raise InputError("synchronous", f"must be one of {', '.join(SYNCHRONOUS)}, got '{synchronous}'")
        self.synchronous, self._journal = synchronous, journal  # None: it stays as it is, and nothing is written
        self._patience = patience  # seconds, where it is to answer or fail soon
        self.file = HeldFile(name, path, read_only=journal is None, patience=patience or BUSY)
        self.engine = self._engine(writes=True)
        self.readers = self._engine(writes=False) if self.path or not self.embedded else self.engine
        #: For what must be read even while all readers are in use.
        self.lookout = self._engine(writes=False) if self.path or not self.embedded else self.engine

    @property
    def path(self) -> Path | None:
        """The file of SQLite; None in memory, and on PostgreSQL."""
        return self.file.path

    def _engine(self, *, writes: bool) -> Engine:
        if not self.embedded:
            seen = {} if writes else {"isolation_level": "REPEATABLE READ"}  # readers see one state throughout
            options = {**LIVELY, **({} if self._patience is None else self._give_up_after(self._patience))}
            pool = {"pool_pre_ping": True, "pool_size": 4, "max_overflow": 8, "pool_timeout": BUSY}
            return sa.create_engine(self.url, connect_args=options, **pool, **seen)
        if self.path is None:
            made = sa.create_engine("sqlite://", poolclass=sa.StaticPool, connect_args={"check_same_thread": False})
        else:
            made = sa.create_engine(self.url, creator=self.file.connect)

        @sa.event.listens_for(made, "connect")
        def prepared(connection: Any, _: object) -> None:
            connection.isolation_level = None  # transactions begin where we say so
            cursor = connection.cursor()
            if writes:
                if self._journal is not None:
                    cursor.execute(f"PRAGMA journal_mode = {self._journal}")
                cursor.execute(f"PRAGMA synchronous = {self.synchronous}")
                cursor.execute("PRAGMA secure_delete = ON")
            else:
                cursor.execute("PRAGMA query_only = ON")
            cursor.close()

        @sa.event.listens_for(made, "begin")
        def begin(connection: Connection) -> None:
            if self.file.refused is not None:
                raise LostFileError(self.file.refused)
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

        return made

    def _give_up_after(self, seconds: int) -> dict[str, Any]:
        """What makes PostgreSQL give up a statement that takes longer, beside the options that its address has."""
        given = self.url.normalized_query.get("options", ())
        return {"options": " ".join([*given, f"-c statement_timeout={seconds}s -c lock_timeout={seconds}s"])}

    def holds(self, other: Connection) -> bool:
        """Whether a connection to PostgreSQL is to this very database, by whatever address and schema.

        Advisory locks are those of one database of one server. So one that is held here can be taken anywhere else.
        """
        if self.embedded or other.dialect.name != "postgresql":
            return False
        number = {"n": secrets.randbits(63)}
        with self.opened() as here, here.begin():
            here.execute(sa.text("select pg_advisory_xact_lock(:n)"), number)
            return not other.execute(sa.text("select pg_try_advisory_xact_lock(:n)"), number).scalar_one()

    def migrate(self) -> None:
        """Bring the tables up to date. After a crash or a restore, look first whether the file is sound."""
        with self.opened() as connection, connection.begin():
            self.file.note_log()  # SQLite has opened its log, and nothing is written into it yet
            if self.file.locked and self.file.unclean and not _sound(connection):
                raise self.file.damaged()
            if not self.embedded:
                connection.execute(sa.text("select pg_advisory_xact_lock(:n)"), {"n": MIGRATING})
            if self.outdated(connection):
                config = _migrations()
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
        self.file.unclean = False

    def outdated(self, connection: Connection) -> bool:
        """Whether the tables must be brought up to date; refuses those of a later version of this package."""
        now = MigrationContext.configure(connection).get_current_revision()
        latest, *before = (one.revision for one in ScriptDirectory.from_config(_migrations()).walk_revisions())
        if now not in (None, latest, *before):
            raise InputError(
                self.name,
                f"was written by a later version of dpbandits: its tables are at {now}, and this version knows "
                f"{latest}; install the later version, or restore a copy from before",
            )
        return now != latest

    @contextmanager
    def opened(self) -> Iterator[Connection]:
        """A connection, or one line that says why there is none."""
        if self.path is not None:
            self.file.refuse_odd()
            if not self.file.opened:
                refuse_log_of_another(self.name, self.path)
        try:
            connection = self.engine.connect()
        except DatabaseError as error:
            where = self.path or shown_address(self.url)
            raise InputError(self.name, f"cannot be opened: {where}: {driver_words(self.url, error.orig)}") from None
        with connection:
            try:
                yield connection
            except OperationalError as error:
                if self.path is None:
                    raise
                raise InputError(self.name, f"cannot be used: {self.path}: {error.orig}") from None
            except DatabaseError as error:
                if self.path is None or type(error) is not DatabaseError:  # those of other kinds are our faults
                    raise
                raise self.file.damaged() from None

    def reached(self) -> None:
        """Refuse what cannot be opened, or a new file in a folder that is not there. No file is made."""
        if self.path is not None and not self.path.exists():
            refuse_log_of_another(self.name, self.path)
            refuse_unwritable(self.name, self.path)
        else:
            with self.opened():
                pass

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction of a connection that cannot write."""
        with self.readers.connect() as connection, connection.begin():
            yield connection

    @property
    def durable(self) -> str:
        """Why what was committed might be lost; empty where it is on disk."""
        if self.embedded:
            if self.path is None:
                return "a database in memory is gone when the server stops"
            with self.engine.connect() as connection:
                kept = SYNCHRONOUS[int(connection.exec_driver_sql("PRAGMA synchronous").scalar_one())]
            return "" if kept in ("full", "extra") else f"synchronous is {kept}, and must be full"
        with self.engine.connect() as connection:
            for setting in ("fsync", "full_page_writes", "synchronous_commit"):
                value = connection.exec_driver_sql(f"show {setting}").scalar_one()
                if value == "off":
                    return f"PostgreSQL's {setting} is off, and must be on"
        return ""

    def wall(self, connection: Connection) -> float:
        """The time on the wall, in seconds since 1970: PostgreSQL's, which all workers share, or this machine's."""
        if self.embedded:
            return time.time()
        return float(connection.exec_driver_sql("select extract(epoch from clock_timestamp())").scalar_one())

    def close(self) -> None:
        """Close all connections, and let others write."""
        self.engine.dispose()
        self.readers.dispose()
        self.lookout.dispose()
        self.file.release()


def _sound(connection: Connection) -> bool:
    """Whether SQLite finds no damage."""
    try:
        return bool(connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one() == "ok")
    except OperationalError:  # it is busy, or the disk fails
        raise
    except DatabaseError:
        return False


def _migrations() -> Config:
    config = Config()
    config.set_main_option("script_location", "dpbandits.service:migrations")
    return config


def discard(connection: Connection | None) -> None:
    """Close a connection that failed, so that nobody gets it again."""
    if connection is not None:
        connection.invalidate()
        connection.close()
