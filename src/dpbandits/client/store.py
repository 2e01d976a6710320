"""The persistent state of a device: the budget that it has spent, and the responses that it has made.

The state is one SQLite file. Every change is one transaction that is synchronised to the disk before the method
returns, so after a crash a change is either complete or absent. Each transaction opens its own connection. So nothing
has to be closed, and the store is safe with threads, forks and several processes. A connection costs little compared
with the synchronisation.

A file that is empty, cut short or changed is refused, and no response is made: what was spent cannot be known. So a new
file is prepared under another name, and appears under its own only when it is complete.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path

from dpbandits.client.budget import Budget
from dpbandits.errors import InputError
from dpbandits.exact import Exactly, rational, writable
from dpbandits.exact.wire import named

_TABLES = (
    "CREATE TABLE budget (one INTEGER PRIMARY KEY CHECK (one = 1), most TEXT NOT NULL, spent TEXT NOT NULL)",
    "CREATE TABLE decisions (decision TEXT PRIMARY KEY, epsilon TEXT NOT NULL, response BLOB)",
)

#: How long one process waits for another that is writing, in seconds.
_LOCK_TIMEOUT = 60.0

#: What was spent may have so many digits. Many charges with denominators of their own would make it grow for ever.
_MAX_DIGITS = 4000


class Store:
    """The budget and the responses of one user, in the file ``path``.

    ``limit`` is the total epsilon that the user will ever spend. It is stored in the file: opening the file with a
    lower limit lowers it, and a higher limit is refused. A file that is restored from a backup does not contain what
    was spent since: do not back it up apart from the device.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = Store(Path(folder.name) / "responses", limit="1")
    >>> store.charge("d1", Fraction(1, 4)), store.keep("d1", b"first"), store.keep("d1", b"second")
    (None, b'first', b'first')
    >>> store.charge("d1", Fraction(1, 4)), store.budget().left
    (b'first', Fraction(3, 4))
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], limit: Exactly) -> None:
        self.path = Path(path).absolute()
        most = rational("limit", limit)
        if not self.path.exists():
            _create(self.path, most)
        try:
            with self._transaction() as database:
                _check(database)
                _promise(database, most)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) and "no such table" not in str(error):
                raise  # locked, full or read-only: the content of the file is not at fault
            raise InputError("path", f"must be a file of this store or a new one, got {path}") from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with _transaction(self.path) as database:
            yield database

    def budget(self) -> Budget:
        """The limit, and what has been spent."""
        with self._transaction() as database:
            return _budget(database)

    def charge(self, decision: str, epsilon: Exactly) -> bytes | None:
        """The response that was kept for ``decision``. If there is none, charges the budget and returns None.

        A decision that was charged before a crash is not charged again. It must be drawn at the epsilon that was
        charged.
        """
        name, level = named(decision), writable("epsilon", epsilon)
        with self._transaction() as database:
            row = database.execute("SELECT epsilon, response FROM decisions WHERE decision = ?", (name,)).fetchone()
            if row is None:
                spent = _budget(database).charge(level).spent
                if max(spent.numerator, spent.denominator) >= 10**_MAX_DIGITS:
                    raise InputError("epsilon", f"must not make the sum longer than {_MAX_DIGITS} digits, got {level}")
                database.execute("UPDATE budget SET spent = ?", (str(spent),))
                database.execute("INSERT INTO decisions VALUES (?, ?, NULL)", (name, str(level)))
                return None
            charged, response = row
            if response is None and _number(charged) != level:
                raise InputError("epsilon", f"must be {charged}, which {name} was charged, got {level}")
            return None if response is None else bytes(response)

    def keep(self, decision: str, response: bytes) -> bytes:
        """Keep the response to a charged decision, unless one is already kept. Returns the kept response."""
        with self._transaction() as database:
            database.execute(
                "UPDATE decisions SET response = ? WHERE decision = ? AND response IS NULL", (response, decision)
            )
            row = database.execute("SELECT response FROM decisions WHERE decision = ?", (decision,)).fetchone()
            if row is None:
                raise InputError("decision", f"must be charged before its response is kept, got {decision}")
            return bytes(row[0])


@contextmanager
def _transaction(path: Path) -> Iterator[sqlite3.Connection]:
    """One transaction on a file that exists. SQLite would make a missing one, with nothing spent."""
    where = f"{path.as_uri()}?mode=rw"
    with closing(sqlite3.connect(where, timeout=_LOCK_TIMEOUT, isolation_level=None, uri=True)) as database:
        database.execute("PRAGMA synchronous = EXTRA")
        database.execute("BEGIN IMMEDIATE")
        try:
            yield database
        except BaseException:
            if database.in_transaction:  # SQLite itself rolls back when the disk is full
                database.execute("ROLLBACK")
            raise
        database.execute("COMMIT")


def _create(path: Path, limit: Fraction) -> None:
    """A complete new file, unless another process is first."""
    handle, name = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".new", dir=path.parent)  # only the user may read it
    os.close(handle)
    new = Path(name)
    try:
        with _transaction(new) as database:
            for statement in _TABLES:
                database.execute(statement)
            database.execute("INSERT INTO budget VALUES (1, ?, '0')", (str(limit),))
        try:
            os.link(new, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            if not path.exists():
                new.rename(path)
    finally:
        new.unlink(missing_ok=True)


def _promise(database: sqlite3.Connection, limit: Fraction) -> None:
    """Store the limit. An earlier limit can only be lowered."""
    promised = _budget(database).limit
    if limit > promised:
        raise InputError("limit", f"must be at most {promised}, which was promised before, got {limit}")
    database.execute("UPDATE budget SET most = ?", (str(limit),))


def _check(database: sqlite3.Connection) -> None:
    """Refuse a file in which the sum of what the decisions were charged is not what was spent."""
    charged = database.execute("SELECT epsilon, COUNT(*) FROM decisions GROUP BY epsilon").fetchall()
    if sum((_number(epsilon) * count for epsilon, count in charged), Fraction(0)) != _budget(database).spent:
        raise _damaged()


def _budget(database: sqlite3.Connection) -> Budget:
    row = database.execute("SELECT most, spent FROM budget").fetchone()
    if row is None:
        raise _damaged()
    return Budget(*map(_number, row))


def _number(text: object) -> Fraction:
    """A number of the file; whatever cannot be read is a refusal, and never a budget that is unspent."""
    try:
        number = Fraction(text) if isinstance(text, str) else None
    except (ValueError, ZeroDivisionError):
        number = None
    if number is None or number < 0:
        raise _damaged()
    return number


def _damaged() -> InputError:
    return InputError("path", "must be an undamaged store; in this one it cannot be read what was spent")
