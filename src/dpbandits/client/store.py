"""The persistent state of a device: the budget that it has spent, and the responses that it has made.

The state is one SQLite file. Every change is one transaction that is synchronised to the disk before the method
returns, so after a crash a change is either complete or absent. Each transaction opens its own connection. So nothing
has to be closed, and the store is safe with threads, forks and several processes. A connection costs little compared
with the synchronisation.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from fractions import Fraction
from pathlib import Path

from dpbandits.client.budget import Budget
from dpbandits.errors import InputError
from dpbandits.exact import Exactly, rational

_TABLES = """
CREATE TABLE IF NOT EXISTS budget (one INTEGER PRIMARY KEY CHECK (one = 1), most TEXT NOT NULL, spent TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS decisions (decision TEXT PRIMARY KEY, epsilon TEXT NOT NULL, response BLOB);
"""

#: How long one process waits for another that is writing, in seconds.
_LOCK_TIMEOUT = 60.0


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
        with suppress(FileExistsError):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            with self._transaction() as database:
                _promise(database, most)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise  # locked, full or read-only: the content of the file is not at fault
            raise InputError("path", f"must be a file of this store or a new one, got {path}") from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=_LOCK_TIMEOUT, isolation_level=None)) as database:
            database.execute("PRAGMA synchronous = EXTRA")
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")

    def budget(self) -> Budget:
        """The limit, and what has been spent."""
        with self._transaction() as database:
            return _budget(database)

    def charge(self, decision: str, epsilon: Fraction) -> bytes | None:
        """The response that was kept for ``decision``. If there is none, charges the budget and returns None.

        A decision that was charged before a crash is not charged again. It must be drawn at the epsilon that was
        charged.
        """
        with self._transaction() as database:
            row = database.execute("SELECT epsilon, response FROM decisions WHERE decision = ?", (decision,)).fetchone()
            if row is None:
                spent = _budget(database).charge(epsilon).spent
                database.execute("UPDATE budget SET spent = ?", (str(spent),))
                database.execute("INSERT INTO decisions VALUES (?, ?, NULL)", (decision, str(epsilon)))
                return None
            charged, response = row
            if response is None and Fraction(charged) != epsilon:
                raise InputError("epsilon", f"must be {charged}, which {decision} was charged, got {epsilon}")
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


def _promise(database: sqlite3.Connection, limit: Fraction) -> None:
    """Store the limit. An earlier limit can only be lowered."""
    for statement in _TABLES.strip().split("\n"):
        database.execute(statement)
    database.execute("INSERT OR IGNORE INTO budget VALUES (1, ?, '0')", (str(limit),))
    promised = _budget(database).limit
    if limit > promised:
        raise InputError("limit", f"must be at most {promised}, which was promised before, got {limit}")
    database.execute("UPDATE budget SET most = ?", (str(limit),))


def _budget(database: sqlite3.Connection) -> Budget:
    most, spent = database.execute("SELECT most, spent FROM budget").fetchone()
    return Budget(Fraction(most), Fraction(spent))
