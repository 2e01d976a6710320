"""One transaction's worth of rows, and the statements that store them, in SQLite and in PostgreSQL."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from typing import Any, NamedTuple

from dpbandits.service.books import Made

__all__ = ["COUNTS", "Batch", "Contents", "Sql"]

MINUTE = 60_000

#: The columns of the table ``traffic``.
COUNTS = ("decisions", "silent", "used", "apart", "late", "duplicate", "refused")
DECISIONS, SILENT_ONES, USED, APART, LATE, DUPLICATE, REFUSED = range(7)

ANSWERS = (
    "experiment", "decision", "item", "arm", "stint", "kind", "level", "made", "received", "outcome", "response",
    "sealed", "folded",
)  # fmt: skip
RELEASES = ("experiment", "number", "arm", "responses", "reason", "at", "mean", "epsilon")

Key = tuple[int, str, int]


class Sql(NamedTuple):
    """The statements, with the marks of a driver for their parameters."""

    decide: str
    answer: str
    person: str
    traffic: str
    release: str

    @classmethod
    def of(cls, mark: str) -> Sql:
        """The statements for ``?`` or ``%s``."""

        def insert(table: str, columns: tuple[str, ...]) -> str:
            return f"insert into {table} ({', '.join(columns)}) values ({', '.join([mark] * len(columns))})"

        added = ", ".join(f"{name} = traffic.{name} + excluded.{name}" for name in COUNTS)
        return cls(
            insert("decisions", Made._fields) + " on conflict do nothing",
            insert("answers", ANSWERS) + " on conflict do nothing",
            insert("people", ("experiment", "person", "level", "responses"))
            + " on conflict (experiment, person, level) do update"
            + " set responses = people.responses + excluded.responses",
            insert("traffic", ("experiment", "minute", "arm", *COUNTS))
            + f" on conflict (experiment, minute, arm) do update set {added}",
            insert("releases", RELEASES),
        )


class Batch:
    """What a transaction will store."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.at = int(now * 1000)
        self.minute = self.at // MINUTE
        self.decisions: list[Made] = []
        self.answers: list[tuple[Any, ...]] = []
        self.people: dict[tuple[int, bytes, int], int] = {}
        self.traffic: dict[tuple[int, int, int], list[int]] = {}
        self.releases: list[tuple[Any, ...]] = []

    def count(self, experiment: int, arm: int, what: int, number: int = 1, minute: int | None = None) -> None:
        """Count something for an arm, now or in an earlier minute."""
        key = (experiment, self.minute if minute is None else minute, arm)
        row = self.traffic.get(key)
        if row is None:
            row = self.traffic[key] = [0] * len(COUNTS)
        row[what] += number

    def charge(self, experiment: int, person: bytes, level: int) -> None:
        """One more response of a user."""
        key = (experiment, person, level)
        self.people[key] = self.people.get(key, 0) + 1

    def write(self, cursor: Any, sql: Sql) -> None:
        """Run the statements, but not the commit. Rows that others write too come in one order, against deadlocks."""
        if self.decisions:
            cursor.executemany(sql.decide, self.decisions)
        if self.answers:
            cursor.executemany(sql.answer, self.answers)
        if self.people:
            cursor.executemany(sql.person, [(*key, n) for key, n in sorted(self.people.items())])
        if self.traffic:
            cursor.executemany(sql.traffic, [(*key, *counts) for key, counts in sorted(self.traffic.items())])
        if self.releases:
            cursor.executemany(sql.release, self.releases)


class Contents:
    """Digests of the last rewards that came, in memory alone: enough to tell a repetition from a contradiction.

    The key is the process's own and is never stored. What is no longer known counts as a repetition.
    """

    def __init__(self, most: int = 100_000) -> None:
        self._key, self._most = os.urandom(32), most
        self._kept: OrderedDict[Key, bytes] = OrderedDict()

    def keep(self, key: Key, value: float) -> None:
        """Remember what came."""
        self._kept[key] = self._digest(value)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def contradicts(self, key: Key, value: float) -> bool:
        """Whether something else came before."""
        return self._kept.get(key, self._digest(value)) != self._digest(value)

    def _digest(self, value: float) -> bytes:
        return hashlib.blake2b(repr(value).encode(), key=self._key, digest_size=16).digest()
