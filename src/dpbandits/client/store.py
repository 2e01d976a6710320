"""The persistent state of a device: the budget that it has spent, and the responses that it has made.

The state is one SQLite file. A file that is empty, cut short or changed is refused, and no response is made: what was
spent cannot be known.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from dpbandits.client.budget import Budget
from dpbandits.client.database import create, damaged, stored_number, transaction
from dpbandits.errors import InputError
from dpbandits.exact import Exactly, rational, writable
from dpbandits.exact.wire import named

_TABLES = (
    "CREATE TABLE budget (one INTEGER PRIMARY KEY CHECK (one = 1), most TEXT NOT NULL, spent TEXT NOT NULL)",
    "CREATE TABLE decisions (decision TEXT PRIMARY KEY, epsilon TEXT NOT NULL, response BLOB)",
)


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
            create(self.path, lambda database: _fill(database, most))
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
        with transaction(self.path) as database:
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
                _check(database)
                spent = _budget(database).charge(level).spent
                database.execute("UPDATE budget SET spent = ?", (str(spent),))
                database.execute("INSERT INTO decisions VALUES (?, ?, NULL)", (name, str(level)))
                return None
            charged, response = row
            if response is None and stored_number(charged) != level:
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


def _fill(database: sqlite3.Connection, limit: Fraction) -> None:
    for statement in _TABLES:
        database.execute(statement)
    database.execute("INSERT INTO budget VALUES (1, ?, '0')", (str(limit),))


def _promise(database: sqlite3.Connection, limit: Fraction) -> None:
    """Store the limit. An earlier limit can only be lowered."""
    promised = _budget(database).limit
    if limit > promised:
        raise InputError("limit", f"must be at most {promised}, which was promised before, got {limit}")
    database.execute("UPDATE budget SET most = ?", (str(limit),))


def _check(database: sqlite3.Connection) -> None:
    """Refuse a file in which the sum of what the decisions were charged is not what was spent."""
    charged = database.execute("SELECT epsilon, COUNT(*) FROM decisions GROUP BY epsilon").fetchall()
    if sum((stored_number(epsilon) * count for epsilon, count in charged), Fraction(0)) != _budget(database).spent:
        raise damaged()


def _budget(database: sqlite3.Connection) -> Budget:
    row = database.execute("SELECT most, spent FROM budget").fetchone()
    if row is None:
        raise damaged()
    return Budget(*map(stored_number, row))
