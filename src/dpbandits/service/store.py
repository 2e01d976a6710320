"""The database: how it is opened, locked, brought up to date, and asked whether it keeps what it is given."""

from __future__ import annotations

import fcntl
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import structlog
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, OperationalError

from dpbandits.errors import InputError
from dpbandits.service.addresses import driver_words, refuse_odd_address, shown_address
from dpbandits.service.files import (
    REFUSED,
    LostFileError,
    beside,
    held,
    held_open,
    identity,
    refuse_link,
    refuse_log_of_another,
    refuse_no_file,
    refuse_not_open,
    refuse_unwritable,
    resolved,
    size,
)
from dpbandits.service.keyring import alone

__all__ = ["LIVELY", "Database", "discard", "shown_address"]

log = structlog.get_logger("dpbandits")

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

#: The server still has its file open, and keeps it by this name, on Linux.
SAVE = (
    "if the right file is nowhere else, copy it from /proc/{}/fd before the server is stopped, and keep the -wal file"
)
GONE = f"it was deleted, or moved away: put the file back; {SAVE}"
REPLACED = f"it was replaced by another file: {SAVE}; then stop the server, and put the right file back"
NO_LOG = (
    "its log (-wal or -shm) was deleted or replaced while the server ran: stop the server, keep a copy of the folder, "
    "move the .lock file away, and start; restore a backup only if something is missing"
)


class UsedError(InputError):
    """Another server holds the lock."""


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
        try:
            parsed = make_url(url)
        except (ArgumentError, ValueError):  # the text is not repeated: it may hold a password
            raise InputError(name, "must be sqlite:///FILE or postgresql://USER@HOST/NAME, got another text") from None
        self.embedded = parsed.get_backend_name() == "sqlite"
        refuse_odd_address(name, parsed)
        if not self.embedded and parsed.get_backend_name() != "postgresql":
            raise InputError(name, f"must be sqlite:///FILE or postgresql://..., got '{shown_address(parsed)}'")
        file = parsed.database if self.embedded and parsed.database != ":memory:" else None
        if self.embedded and (parsed.query or (file or "").startswith("file:")):
            text = "must be sqlite:///FILE with a plain path, without file: and options"
            raise InputError(name, f"{text}, got '{shown_address(parsed)}'")
        if synchronous not in SYNCHRONOUS:
            raise InputError("synchronous", f"must be one of {', '.join(SYNCHRONOUS)}, got '{synchronous}'")
        self.url = parsed if self.embedded else parsed.set(drivername="postgresql+psycopg")
        self.path = resolved(name, Path(file)) if file else None
        self.synchronous, self._journal = synchronous, journal  # None: it stays as it is, and nothing is written
        self._patience = patience  # seconds, where it is to answer or fail soon
        self._lock: int | None = None
        self._file: tuple[int, int] | None = None  # which file the server that this is has opened
        #: Its descriptor, until all is closed: a file that is deleted can be copied, and no other gets its number.
        self._held: int | None = None
        #: Which files SQLite's log and its index are; None where a new connection may find others.
        self.beside: list[tuple[int, int] | None] | None = None
        self.refused: str | None = None  # why that file is not used any more
        self.latest = 0.0  # when the last commit was made, by this process or an earlier one, as far as the lock tells
        self._unclean = True  # whether the last server was killed, the file is another one since, or was not looked at
        self.engine = self._engine(writes=True)
        self.readers = self._engine(writes=False) if self.path or not self.embedded else self.engine
        #: For what must be read even while all readers are in use.
        self.lookout = self._engine(writes=False) if self.path or not self.embedded else self.engine

    def _engine(self, *, writes: bool) -> Engine:
        if not self.embedded:
            seen = {} if writes else {"isolation_level": "REPEATABLE READ"}  # readers see one state throughout
            options = {**LIVELY, **({} if self._patience is None else self._give_up_after(self._patience))}
            pool = {"pool_pre_ping": True, "pool_size": 4, "max_overflow": 8, "pool_timeout": BUSY}
            return sa.create_engine(self.url, connect_args=options, **pool, **seen)
        if self.path is None:
            made = sa.create_engine("sqlite://", poolclass=sa.StaticPool, connect_args={"check_same_thread": False})
        else:
            made = sa.create_engine(self.url, creator=self.connect_file)

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
            if self.refused is not None:
                raise LostFileError(self.refused)
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

        return made

    def connect_file(self, mode: str = "rw", timeout: float | None = None) -> sqlite3.Connection:
        """Open the file that this server has opened before, and no other: the log that lies beside it is of that one.

        SQLite makes no file. In the place of one that was moved away, it would make an empty one and delete the log.
        """
        assert self.path is not None
        self.refuse_another_file()
        if self._journal is None and size(f"{self.path}-wal"):
            mode = "ro"  # or SQLite would write the log into the file when it is closed
        wait = timeout or self._patience or BUSY
        made = sqlite3.connect(f"{self.path.as_uri()}?mode={mode}", uri=True, timeout=wait, check_same_thread=False)
        try:
            self.refuse_another_file()  # it may have been replaced meanwhile; nothing is read of the log before
        except BaseException:
            made.close()
            raise
        return made

    def refuse_another_file(self) -> None:
        """Refuse where another file, or none, has the name of the one that this server has opened.

        One that is gone may come back, with the log that was left. Nobody else may use it by another name meanwhile.
        """
        if self.refused is not None:
            raise LostFileError(self.refused)
        if self.path is None or self._file is None:
            return
        try:
            found = identity(self.path)
        except OSError:  # it cannot be looked at now, nor opened, and SQLite says why
            return
        if found is None:
            self._unclean = True
            raise LostFileError(GONE.format(os.getpid()))
        if found != self._file:
            raise self.refuse_all(REPLACED.format(os.getpid()))

    def refuse_all(self, reason: str) -> LostFileError:
        """Use the file no more: it is not what this process has stored. The next server looks whether it is sound.

        Where the log was deleted, by which other things may be noticed first, the lock tells the next server.
        """
        if self.refused is None:
            if self._log_is_lost():
                reason = NO_LOG
                with suppress(OSError):
                    self._hold(REFUSED)
            log.error("refuses to write", reason=reason)
            self.refused = reason
        self._unclean = True
        return LostFileError(reason)

    def look_at_names(self) -> None:
        """Refuse to write where another file, or another log, has the name now. SQLite would go on with the old one."""
        self.refuse_another_file()
        if self.beside is None:
            self.note_log()
        elif self._log_is_lost():
            raise self.refuse_all(NO_LOG)

    def _log_is_lost(self) -> bool:
        """Whether the file is the one that this server has opened, and its log, or the log's index, is not."""
        if self.path is None or self.beside is None:
            return False
        return beside(self.path) != self.beside and identity(self.path) == self._file

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

    def lock(self, *, or_join: bool = False) -> None:
        """Become the one process that writes this SQLite file, which is made if it is new. Two would starve each other.

        The lock says which file is open before SQLite opens it, and so whose log lies beside it after a crash. With
        ``or_join`` a file that a server has open is used beside that server.
        """
        if self.path is None:
            return
        self._refuse_odd_file(self.path)
        self.refused, self._unclean = None, True
        try:
            self._lock = descriptor = self._locked(os.O_CREAT, wait=not or_join)
        except UsedError:
            if not or_join:
                raise
            refuse_not_open(self.name, self.path)
            self._file = identity(self.path)
            return
        refuse_log_of_another(self.name, self.path, descriptor)
        latest = os.fstat(descriptor).st_mtime
        self._unclean = self.path.exists() and (held(descriptor) != self._mark() or size(f"{self.path}-wal") > 0)
        self.make()
        try:
            self._held = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise InputError(self.name, f"cannot be opened: {self.path}: {error.strerror}") from None
        found = os.fstat(self._held)
        self._file = found.st_dev, found.st_ino
        self.remember(latest)
        try:
            self.note_log()
        except OSError as error:  # the disk is full
            raise self._not_locked(error) from None

    def note_log(self) -> None:
        """Write into the lock which file is open, and which log lies beside it now. Without a lock, look at it."""
        if self.path is None or self._file is None:
            return
        if self._lock is None or self._held is None:
            refuse_not_open(self.name, self.path)
            return
        self.beside = beside(self.path)
        self._hold(held_open(self.path, self._held, self._lock))

    def _hold(self, text: bytes) -> None:
        """Write into the lock what the next server is to know; whoever is killed meanwhile leaves one or the other."""
        assert self._lock is not None
        line = text + b"\n"
        os.pwrite(self._lock, line, 0)
        os.ftruncate(self._lock, len(line))
        with suppress(OSError):
            os.fsync(self._lock)
        self.remember(self.latest)

    def make(self) -> None:
        """Make the file, where there is none. Nothing else makes it."""
        if self.path is None or self._file is not None:
            return
        refuse_log_of_another(self.name, self.path)
        # Only a new file is opened: to close an existing one would end SQLite's own locks on it, in this process.
        with suppress(OSError):  # it exists; or the driver says what is wrong
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))

    def remember(self, now: float) -> None:
        """Keep the time of a commit with the lock, which is outside the file: a copy that is put back is older.

        Where that is not possible, as with the lock of another user, the clock on the wall must not be set back.
        """
        self.latest = max(now, self.latest)
        if self._lock is not None:
            with suppress(OSError):
                os.utime(self._lock, (self.latest, self.latest))

    def _locked(self, how: int, *, wait: bool = True) -> int:
        """The descriptor of the lock, which this process holds until it closes it.

        With ``wait``, a key command that has the lock for a moment is waited for; it holds the folder, too.
        """
        assert self.path is not None
        if wait:
            with suppress(UsedError):
                return self._locked(how, wait=False)
            with alone(self.path):
                return self._locked(how, wait=False)
        lock = Path(f"{self.path}.lock")
        refuse_link(self.name, lock)
        refuse_no_file(self.name, lock)
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | how, 0o600)
        except OSError as error:
            raise self._not_locked(error) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise UsedError(
                self.name, f"is used by another server: {self.path}; stop that one, or use PostgreSQL for several"
            ) from None
        return descriptor

    def _damaged(self) -> InputError:
        text = f"is damaged: {self.path}; move it, its -wal and its -shm away, and restore a backup"
        return InputError(self.name, text)

    def _not_locked(self, error: OSError) -> InputError:
        return InputError(self.name, f"cannot be locked: {self.path}.lock: {error.strerror}")

    def unused(self) -> None:
        """Refuse a SQLite file that another server uses, or beside which lies the log of another. No file is made."""
        if self.path is None or not os.path.lexists(f"{self.path}.lock"):
            return
        self._refuse_odd_file(self.path)
        descriptor = self._locked(0)
        try:
            refuse_log_of_another(self.name, self.path, descriptor)
        finally:
            os.close(descriptor)

    def _mark(self) -> bytes:
        """What the lock holds after a clean stop: which file it was, how large, and when it was last written."""
        if self.path is None or not self.path.exists():
            return b""
        found = self.path.stat()
        return f"clean {found.st_ino} {found.st_size} {found.st_mtime_ns}".encode()

    def migrate(self) -> None:
        """Bring the tables up to date. After a crash or a restore, look first whether the file is sound."""
        with self.opened() as connection, connection.begin():
            self.note_log()  # SQLite has opened its log, and nothing is written into it yet
            if self._lock is not None and self._unclean and not _sound(connection):
                raise self._damaged()
            if not self.embedded:
                connection.execute(sa.text("select pg_advisory_xact_lock(:n)"), {"n": MIGRATING})
            if self.outdated(connection):
                config = _migrations()
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
        self._unclean = False

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
            self._refuse_odd_file(self.path)
            if self._file is None:
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
                raise self._damaged() from None

    def _refuse_odd_file(self, path: Path) -> None:
        """Refuse what cannot be written, and a file of two names.

        SQLite keeps its log by the name of the file: by two names, two processes would not see each other's.
        """
        refuse_no_file(self.name, path)
        if path.exists() and not os.access(path, os.W_OK):
            raise InputError(self.name, f"cannot be written: {path}")
        if path.exists() and path.stat().st_nlink > 1:
            raise InputError(
                self.name,
                f"must be a file of one name, and this one has hard links: {path}; "
                "another server may use it by another name: delete the other names",
            )

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
        if self._lock is not None:
            if self._is_clean():
                with suppress(OSError):  # the disk is full: the next server looks whether the file is sound
                    self._hold(self._mark())
            if self._held is not None:
                os.close(self._held)
            os.close(self._lock)
        self._lock = self._held = self._file = self.beside = None

    def _is_clean(self) -> bool:
        """Whether all that was stored is in the file that has the name."""
        if self._unclean or self.path is None:
            return False
        # A log without contents is that of another process, which may be about to write.
        return identity(f"{self.path}-wal") is None and identity(self.path) == self._file


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
