"""What a client keeps on disk: each user's budget, and the decisions that wait for their answers.

A decision is charged when it is made. Everything else that its answer depends on is kept then, except the reward. The
answer is drawn and kept in one transaction, and sent only afterwards. Once the server has it, only its cost is kept.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from dpbandits.client.budget import Budget
from dpbandits.client.database import create, stored_number, transaction
from dpbandits.exact import Exactly, rational

__all__ = ["LEASE", "Outbox", "Waiting"]

#: Seconds for which no other process sends an answer that one has begun to send.
LEASE = 15.0

#: The longest time between two attempts, in seconds, before chance adds up to as much again.
MOST_WAIT = 3600.0

#: How long one process waits for another that is writing, in seconds. A host waits for it.
LOCK_TIMEOUT = 5.0

_TABLES = (
    "CREATE TABLE people (person TEXT PRIMARY KEY, most TEXT NOT NULL, spent TEXT NOT NULL)",
    "CREATE TABLE waiting (decision TEXT PRIMARY KEY, person TEXT NOT NULL, experiment TEXT NOT NULL,"
    " arm TEXT NOT NULL, epsilon TEXT NOT NULL, curator TEXT NOT NULL, token TEXT NOT NULL, otherwise REAL,"
    " next REAL NOT NULL, most REAL NOT NULL, tries INTEGER NOT NULL, answer TEXT)",
    "CREATE INDEX waiting_next ON waiting (next)",
    "CREATE INDEX waiting_person ON waiting (person, experiment)",
)


class Waiting(NamedTuple):
    """A decision that waits for its answer. Everything but ``answer`` is fixed before the reward is known."""

    decision: str
    person: str
    experiment: str
    arm: str
    epsilon: str
    curator: dict[str, Any]
    token: str
    otherwise: float | None
    next: float  # when to send, by this device's clock
    most: float  # the longest time to wait for that, whatever the clock says
    tries: int
    answer: str | None  # once it is drawn


_COLUMNS = ", ".join(Waiting._fields)

DrawResponse = Callable[[Waiting], str]


class Outbox:
    """The state of a client, in the file ``path``.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> outbox = Outbox(Path(folder.name) / "answers", limit="1")
    >>> outbox.open(Waiting("d1", "ann", "shop", "red", "1/4", {}, "token", 0.0, 90.0, 90.0, 0, None))
    >>> outbox.make("d1", lambda waiting: "first") is None, outbox.make("d1", lambda waiting: "second") is None
    (False, True)
    >>> [(one.decision, one.answer) for one in outbox.claim(90.0, lambda waiting: "third", lambda: 0.5)]
    [('d1', 'first')]
    >>> outbox.done("d1")
    >>> outbox.budget("ann").left
    Fraction(3, 4)
    >>> folder.cleanup()
    """

    def __init__(self, path: Path, limit: Exactly) -> None:
        self.path, self.limit = path.absolute(), rational("limit", limit)
        self._seen = False  # a file that vanishes is not made again: what was spent would be forgotten

    def _transaction(self) -> AbstractContextManager[sqlite3.Connection]:
        if not self._seen and not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            create(self.path, _fill)
        self._seen = True
        return transaction(self.path, LOCK_TIMEOUT)

    def budget(self, person: str) -> Budget:
        """What a user will ever spend, and has spent. An earlier promise of less stands."""
        with self._transaction() as database:
            return self._budget(database, person)

    def _budget(self, database: sqlite3.Connection, person: str) -> Budget:
        row = database.execute("SELECT most, spent FROM people WHERE person = ?", (person,)).fetchone()
        if row is None:
            database.execute("INSERT INTO people VALUES (?, ?, '0')", (person, str(self.limit)))
            return Budget(self.limit)
        promised, spent = map(stored_number, row)
        if self.limit < promised:
            database.execute("UPDATE people SET most = ? WHERE person = ?", (str(self.limit), person))
        return Budget(min(promised, self.limit), spent)

    def open(self, waiting: Waiting) -> None:
        """Charge a decision and keep what its answer needs, or raise BudgetError."""
        with self._transaction() as database:
            budget, cost = self._budget(database, waiting.person), Fraction(waiting.epsilon)
            if cost:
                budget = budget.charge(cost)
                database.execute("UPDATE people SET spent = ? WHERE person = ?", (str(budget.spent), waiting.person))
            row = waiting._replace(curator=json.dumps(waiting.curator))  # type: ignore[arg-type]
            database.execute(f"INSERT INTO waiting VALUES ({', '.join('?' * len(row))})", row)

    def make(self, decision: str, draw: DrawResponse) -> str | None:
        """Draw and keep the answer to a decision. None: there is one already, or none is awaited."""
        with self._transaction() as database:
            rows = _select(database, "decision = ? AND answer IS NULL", decision)
            return _keep(database, rows[0], draw) if rows else None

    def latest(self, person: str, experiment: str, now: float) -> Waiting | None:
        """The newest decision of a user that still waits to be sent."""
        with self._transaction() as database:
            where = "person = ? AND experiment = ? AND next > ? AND tries = 0 ORDER BY next DESC LIMIT 1"
            rows = _select(database, where, person, experiment, now)
            return rows[0] if rows else None

    def claim(self, now: float, draw: DrawResponse, chance: Callable[[], float], again: bool = False) -> list[Waiting]:
        """What is due, with its answer, which is drawn where there is none. Nobody else sends it for a while.

        ``draw`` may return "": then nothing is sent. With ``again``, what failed before is due, too.
        """
        with self._transaction() as database:
            database.execute("UPDATE waiting SET next = ? + most WHERE next > ? + most", (now, now))  # a clock set back
            due = _select(database, "next <= ? OR (? AND tries > 0) ORDER BY next", now, again)
            claimed = []
            for row in due:
                try:
                    answer = row.answer or _keep(database, row, draw)
                except (ArithmeticError, LookupError, TypeError, ValueError):  # it is damaged: InputError is among them
                    answer = ""
                if not answer:
                    database.execute("DELETE FROM waiting WHERE decision = ?", (row.decision,))
                    continue
                wait = min(LEASE * 2 ** min(row.tries, 9), MOST_WAIT) * (1.0 + chance())
                claimed.append(row._replace(next=now + wait, most=wait, tries=row.tries + 1, answer=answer))
                database.execute(
                    "UPDATE waiting SET next = ?, most = ?, tries = ? WHERE decision = ?",
                    (now + wait, wait, row.tries + 1, row.decision),
                )
            return claimed

    def done(self, decision: str) -> None:
        """The server has the answer: only what it cost is kept."""
        with self._transaction() as database:
            database.execute("DELETE FROM waiting WHERE decision = ?", (decision,))

    def next(self) -> float | None:
        """When something is due next, by this device's clock."""
        with self._transaction() as database:
            return database.execute("SELECT min(next) FROM waiting").fetchone()[0]


def _fill(database: sqlite3.Connection) -> None:
    for statement in _TABLES:
        database.execute(statement)


def _select(database: sqlite3.Connection, where: str, *values: Any) -> list[Waiting]:
    rows = database.execute(f"SELECT {_COLUMNS} FROM waiting WHERE {where}", values).fetchall()
    return [found._replace(curator=json.loads(str(found.curator))) for found in map(Waiting._make, rows)]


def _keep(database: sqlite3.Connection, row: Waiting, draw: DrawResponse) -> str:
    answer = draw(row)
    database.execute("UPDATE waiting SET answer = ? WHERE decision = ?", (answer, row.decision))
    return answer
