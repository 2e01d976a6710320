"""One transaction's worth of rows, and the statements that store them, in SQLite and in PostgreSQL."""

from __future__ import annotations

from typing import Any

from dpbandits.service.books import Made
from dpbandits.service.statements import Insert, Lookup

__all__ = ["ANSWERED", "ANSWERS", "COUNTS", "DECIDED", "MINUTE", "OUTCOMES", "SENT", "Rows"]

MINUTE = 60_000

#: The columns of the table ``traffic``.
COUNTS = ("decisions", "silent", "used", "apart", "late", "duplicate", "refused")
DECISIONS, SILENT_ONES, USED, APART, LATE, DUPLICATE, REFUSED = range(7)

#: Where a response counts that was taken.
OUTCOMES = {"used": USED, "apart": APART, "late": LATE}

ANSWERS = (
    "experiment", "decision", "item", "arm", "stint", "kind", "level", "made", "received", "outcome", "response",
    "digest", "sealed", "folded",
)  # fmt: skip

_added = ", ".join(f"{name} = traffic.{name} + excluded.{name}" for name in COUNTS)
DECIDE = Insert("decisions", Made._fields, "on conflict do nothing")
ANSWER = Insert("answers", ANSWERS, "on conflict do nothing")
PERSON = Insert(
    "people",
    ("experiment", "person", "level", "responses"),
    "on conflict (experiment, person, level) do update set responses = people.responses + excluded.responses",
)
TRAFFIC = Insert(
    "traffic",
    ("experiment", "minute", "arm", *COUNTS),
    f"on conflict (experiment, minute, arm) do update set {_added}",
)
RELEASE = Insert("releases", ("experiment", "number", "arm", "responses", "reason", "at", "mean", "epsilon"))

#: What is stored already: decisions by their names, the answers to them, and how much users have sent.
DECIDED = Lookup("decisions", ("experiment", "decision"), Made._fields, "order by t.first")
ANSWERED = Lookup("answers", ANSWERS[:3], (*ANSWERS[:3], "outcome", "response", "digest"))
SENT = Lookup("people", ("experiment", "person"), ("experiment", "person", "responses"))


class Rows:
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

    def write(self, cursor: Any, *, embedded: bool) -> None:
        """Run the statements, but not the commit. Rows that others write too come in one order, against deadlocks."""
        DECIDE.run(cursor, self.decisions, embedded=embedded)
        ANSWER.run(cursor, self.answers, embedded=embedded)
        PERSON.run(cursor, [(*key, n) for key, n in sorted(self.people.items())], embedded=embedded)
        TRAFFIC.run(cursor, [(*key, *counts) for key, counts in sorted(self.traffic.items())], embedded=embedded)
        RELEASE.run(cursor, self.releases, embedded=embedded)
