"""The database: how it is opened, locked, brought up to date, and asked whether it keeps what it is given."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, OperationalError

from dpbandits.errors import InputError

__all__ = ["LIVELY", "Database", "discard", "refuse_no_file", "refuse_unwritable", "resolved", "shown_address"]

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

HIDDEN = "***"
#: Signs of an address in the name of a user or a database: something is not separated as it should be.
ODD = re.compile("[:&;=?/]")


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
        journal: str = "wal",
        patience: int | None = None,
    ) -> None:
        self.name = name  # of the setting
        try:
            parsed = make_url(url)
        except (ArgumentError, ValueError):  # the text is not repeated: it may hold a password
            raise InputError(name, "must be sqlite:///FILE or postgresql://USER@HOST/NAME, got another text") from None
        self.embedded = parsed.get_backend_name() == "sqlite"
        _refuse_odd_address(name, parsed)
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
        self.synchronous, self._journal = synchronous, journal
        self._patience = patience  # seconds, where it is to answer or fail soon
        self._lock: int | None = None
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
            options = {"timeout": self._patience or BUSY, "check_same_thread": False}
            made = sa.create_engine(self.url, connect_args=options)

        @sa.event.listens_for(made, "connect")
        def prepared(connection: Any, _: object) -> None:
            connection.isolation_level = None  # transactions begin where we say so
            cursor = connection.cursor()
            if writes:
                cursor.execute(f"PRAGMA journal_mode = {self._journal}")
                cursor.execute(f"PRAGMA synchronous = {self.synchronous}")
                cursor.execute("PRAGMA secure_delete = ON")
            else:
                cursor.execute("PRAGMA query_only = ON")
            cursor.close()

        @sa.event.listens_for(made, "begin")
        def begin(connection: Connection) -> None:
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

    def lock(self) -> None:
        """Become the one process that writes this SQLite file. Two would starve each other."""
        if self.path is None:
            return
        self._lock = descriptor = self._locked(os.O_CREAT)
        latest = os.fstat(descriptor).st_mtime
        self._unclean = os.pread(descriptor, 200, 0) != self._mark() and self.path.exists()
        os.ftruncate(descriptor, 0)
        self.remember(latest)

    def distrust(self) -> None:
        """Have the next server look whether the file is sound."""
        self._unclean = True

    def remember(self, now: float) -> None:
        """Keep the time of a commit with the lock, which is outside the file: a copy that is put back is older.

        Where that is not possible, as with the lock of another user, the clock on the wall must not be set back.
        """
        self.latest = max(now, self.latest)
        if self._lock is not None:
            with suppress(OSError):
                os.utime(self._lock, (self.latest, self.latest))

    def _locked(self, how: int) -> int:
        """The descriptor of the lock, which this process holds until it closes it."""
        lock = Path(f"{self.path}.lock")
        refuse_no_file(self.name, lock)
        if lock.is_symlink() and not lock.exists():
            raise InputError(self.name, f"cannot be locked: {lock} is a link that leads nowhere: delete it")
        try:
            descriptor = os.open(lock, os.O_RDWR | how, 0o600)
        except OSError as error:
            raise InputError(self.name, f"cannot be locked: {lock}: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise InputError(
                self.name, f"is used by another server: {self.path}; stop that one, or use PostgreSQL for several"
            ) from None
        return descriptor

    def unused(self) -> None:
        """Refuse a SQLite file that another server uses. No file is made."""
        if self.path is not None and os.path.lexists(f"{self.path}.lock"):
            os.close(self._locked(0))

    def _mark(self) -> bytes:
        """What the lock holds after a clean stop: which file it was, how large, and when it was last written."""
        if self.path is None or not self.path.exists():
            return b""
        found = self.path.stat()
        return f"clean {found.st_ino} {found.st_size} {found.st_mtime_ns}".encode()

    def migrate(self) -> None:
        """Bring the tables up to date. After a crash or a restore, look first whether the file is sound."""
        with self.opened() as connection, connection.begin():
            looks = self._lock is not None and self._unclean
            if looks and connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one() != "ok":
                raise InputError(
                    "store", f"is damaged: {self.path}; delete its -wal and -shm files, and restore a copy"
                )
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
            # Only a new file is opened: to close an existing one would end SQLite's own locks on it, in this process.
            with suppress(OSError):  # it exists; or the driver says what is wrong
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            self._refuse_odd_file(self.path)
        try:
            connection = self.engine.connect()
        except DatabaseError as error:
            where = self.path or shown_address(self.url)
            raise InputError(self.name, f"cannot be opened: {where}: {_said(self.url, error)}") from None
        with connection:
            try:
                yield connection
            except OperationalError as error:
                if self.path is None:
                    raise
                raise InputError(self.name, f"cannot be used: {self.path}: {error.orig}") from None

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
            if not self._unclean:
                os.pwrite(self._lock, self._mark(), 0)
                self.remember(self.latest)
            os.close(self._lock)
            self._lock = None


def shown_address(url: URL | str) -> str:
    """An address as people may see it, without the password and the parameters: one of these may be it, too.

    Where another part looks as if a password had got into it, that part is not shown, either.

    >>> shown_address("postgresql://ann:hunter2@db/bandits?sslmode=require")
    'postgresql://ann:***@db/bandits'
    >>> shown_address("postgresql://db/bandits&password=hunter2")
    'postgresql://db/***'
    """
    made = make_url(url).set(query={})
    hidden: dict[str, Any] = dict.fromkeys(_odd_parts(made), HIDDEN)
    return made.set(**hidden).render_as_string().replace(quote(HIDDEN, safe=""), HIDDEN)


def _odd_parts(url: URL) -> list[str]:
    """The parts of an address that may hold more than they should."""
    if url.get_backend_name() == "sqlite":
        return []
    return [part for part in ("username", "database") if ODD.search(getattr(url, part) or "")]


def _said(url: URL, error: DatabaseError) -> str:
    """What the driver says, in one line, without such parts."""
    text = " ".join(str(error.orig).split())
    for part in _odd_parts(url):
        text = text.replace(getattr(url, part), HIDDEN)
    return text


def _refuse_odd_address(name: str, url: URL) -> None:
    """Refuse an address whose parts are not what they seem: an error would show a part of the password."""
    if "@" in (url.host or ""):
        raise InputError(name, "must have one @, before the host: in a user or a password write it as %40")
    if not all(map(str.isprintable, filter(None, (url.username, url.password, url.host, url.database)))):
        raise InputError(name, "must have no characters that cannot be printed, such as %00")
    plain = url.drivername in ("sqlite", "sqlite+pysqlite") and not (url.username or url.password or url.host)
    if url.get_backend_name() == "sqlite" and not plain:
        raise InputError(name, "must be sqlite:///FILE, with three slashes and without a user, a host or a driver")


def _migrations() -> Config:
    config = Config()
    config.set_main_option("script_location", "dpbandits.service:migrations")
    return config


def refuse_unwritable(name: str, path: Path) -> None:
    """Refuse a file in a folder that is not there, or in which nothing may be written."""
    if not os.access(path.absolute().parent, os.W_OK):
        raise InputError(name, f"cannot be written: {path}")


def resolved(name: str, path: Path) -> Path:
    """The file that a path leads to."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # which of them depends on Python
        raise InputError(name, f"must be a file, got {path}, whose links lead nowhere") from None


def refuse_no_file(name: str, path: Path) -> None:
    """Refuse what is there and is no file, such as a folder."""
    if path.exists() and not path.is_file():
        raise InputError(name, f"must be a file, got {path}, which is none")


def discard(connection: Connection | None) -> None:
    """Close a connection that failed, so that nobody gets it again."""
    if connection is not None:
        connection.invalidate()
        connection.close()
