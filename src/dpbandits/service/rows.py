"""One transaction's worth of rows, and the statements that store them, in SQLite and in PostgreSQL."""

from __future__ import annotations

from collections import Counter, defaultdict
from operator import itemgetter
from typing import Any

from dpbandits.service.books import SILENT, LiveRun, Made
from dpbandits.service.experiment import HOLDOUT
from dpbandits.service.responses import CONFLICT, DUPLICATED, ItemAnswer
from dpbandits.service.state import LiveState
from dpbandits.service.statements import Insert, Lookup
from dpbandits.service.tokens import Lease

__all__ = [
    "ANSWERED",
    "ANSWERS",
    "COUNTS",
    "DECIDED",
    "HANDED_OUT",
    "MINUTE",
    "NEW_ANSWERS",
    "OUTCOMES",
    "SENT",
    "WRITTEN",
    "Rows",
    "released_rows",
]

MINUTE = 60_000

#: The columns of the table ``traffic``.
COUNTS = ("decisions", "silent", "used", "apart", "late", "duplicate", "refused")
DECISIONS, SILENT_ONES, USED, APART, LATE, DUPLICATE, REFUSED = range(7)

#: Where a response counts, by what became of it.
OUTCOMES = {"used": USED, "apart": APART, "late": LATE, "refused": REFUSED}
#: Where one counts that came before; one that was not taken then counts no more.
AGAIN = {DUPLICATED: DUPLICATE, CONFLICT: REFUSED}

ANSWERS = (
    "experiment", "decision", "item", "arm", "stint", "kind", "level", "made", "received", "outcome", "response",
    "digest", "sealed", "folded",
)  # fmt: skip


def _added(table: str, *names: str) -> str:
    return ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in names)


#: What is stored already is left. The key is named: without it, as while a database is restored, all would be new.
NEW_DECISIONS = "on conflict (experiment, decision, first) do nothing"
NEW_ANSWERS = "on conflict (experiment, decision, item) do nothing"
DECIDE = Insert("decisions", Made._fields, NEW_DECISIONS)
#: The first rows of leases, where others decide too: it returns those whose names were not taken.
BEGIN_LEASE = Insert("decisions", Made._fields, f"{NEW_DECISIONS} returning experiment, decision")
#: Where one process folds what comes in the transaction that stores it: nothing waits, and all came at the same time.
FOLDED = ("received", "folded", "outcome")
#: What a lease says of an answer, and what the token says beside that.
LEASE, OWN = ("experiment", "decision", "level", "kind", "made"), ("item", "arm", "stint")
#: By the column of what is kept of an answer. The others are null and are not sent: to send one None
#: takes Python's driver longer than to send four numbers.
KEPT = ("response", "digest")
ANSWER = {kept: Insert("answers", (*LEASE, *OWN, kept), NEW_ANSWERS, shared=FOLDED) for kept in KEPT}
#: For answers of one lease, if there are so many that a statement of their own takes less time.
LEASED = {kept: Insert("answers", (*OWN, kept), NEW_ANSWERS, shared=(*FOLDED, *LEASE)) for kept in KEPT}
MANY = 64
_key = itemgetter(0, 1, 2)  # experiment, decision, first
_arm = itemgetter(OWN.index("arm"))
_whose = itemgetter(LEASE.index("experiment"), len(LEASE) + OWN.index("arm"))
PERSON = Insert(
    "people",
    ("experiment", "person", "level", "responses"),
    f"on conflict (experiment, person, level) do update set {_added('people', 'responses')}",
)
TRAFFIC = Insert(
    "traffic",
    ("experiment", "minute", "arm", *COUNTS),
    f"on conflict (experiment, minute, arm) do update set {_added('traffic', *COUNTS)}",
)
HELD = ("decisions", "responses", "total")
HOLD_OUT = Insert(
    "held_out",
    ("experiment", "level", *HELD),
    f"on conflict (experiment, level) do update set {_added('held_out', *HELD)}",
)
RELEASE = Insert("releases", ("experiment", "number", "arm", "responses", "reason", "at", "mean", "epsilon"))

#: What is stored already: decisions by their names, the answers to them, and how much users have sent.
DECIDED = Lookup("decisions", ("experiment", "decision"), Made._fields, "order by t.first")
ANSWERED = Lookup("answers", ANSWERS[:3], (*ANSWERS[:4], "made", "outcome", "response", "digest"))
#: By what a token is recognised as that of a decision. The rows of a lease may be as many as its items: only the row in
#: which the item lies is read.
HANDED_OUT = Lookup(
    "decisions",
    ("experiment", "decision", "first"),
    ("experiment", "decision", "k.k2", "arm", "made"),
    on="experiment = k0 and decision = k1 and first + items > k2 and first = (select d.first from decisions d "
    "where d.experiment = k0 and d.decision = k1 and d.first <= k2 order by d.first desc limit 1)",
)
#: How often the states of experiments were written.
WRITTEN = Lookup("states", ("experiment",), ("experiment", "changed"))
SENT = Lookup("people", ("experiment", "person"), ("experiment", "person", "responses"))


#: Item, arm, stint, and what is kept of an answer.
Answer = tuple[int, int, int, int | bytes | None]


class Rows:
    """What a transaction will store."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.at = int(now * 1000)
        self.minute = self.at // MINUTE
        self.decisions: list[Made] = []
        self.answers: list[tuple[Lease, str, list[Answer]]] = []  # by lease and outcome, as they come
        self._lease: Lease | None = None  # of the last of them, with its outcome and its list
        self._outcome = ""
        self._rows: list[Answer] = []
        self.answered = 0  # answers that were written
        self.people: dict[tuple[int, bytes, int], int] = {}
        self.traffic: dict[tuple[int, int, int], list[int]] = {}
        self.held: dict[tuple[int, int], tuple[int, int, float]] = {}
        self.releases: list[tuple[Any, ...]] = []

    def count(self, experiment: int, arm: int, what: int, number: int = 1, minute: int | None = None) -> None:
        """Count something for an arm, now or in an earlier minute."""
        key = (experiment, self.minute if minute is None else minute, arm)
        row = self.traffic.get(key)
        if row is None:
            row = self.traffic[key] = [0] * len(COUNTS)
        row[what] += number

    def count_decisions(self, made: Made) -> None:
        """Count decisions that are alike, in the minute in which they were made."""
        minute = made.made // MINUTE
        self.count(made.experiment, made.arm, DECISIONS, made.items, minute)
        if made.level <= SILENT:
            self.count(made.experiment, made.arm, SILENT_ONES, made.items, minute)
        if made.kind == HOLDOUT:
            self.hold_out(made.experiment, made.level, made.items)

    def count_again(self, experiment: int, arm: int, said: ItemAnswer) -> None:
        """Count an answer that came before."""
        if said in AGAIN:
            self.count(experiment, arm, AGAIN[said])

    def count_refused(self, experiment: int, arm: int, made: int) -> None:
        """Count a decision whose answer was refused as one to which none is taken: it is not missing."""
        self.count(experiment, arm, SILENT_ONES, minute=made // MINUTE)

    def answer(self, lease: Lease, outcome: str, row: Answer) -> None:
        """Store an answer. Those of one lease come one after the other, if they come in one list."""
        if lease is not self._lease or outcome != self._outcome:
            self._lease, self._outcome, self._rows = lease, outcome, []
            self.answers.append((lease, outcome, self._rows))
        self._rows.append(row)

    def charge(self, experiment: int, person: bytes, level: int) -> None:
        """One more response of a user."""
        key = (experiment, person, level)
        self.people[key] = self.people.get(key, 0) + 1

    def hold_out(self, experiment: int, level: int, decisions: int, responses: int = 0, total: float = 0.0) -> None:
        """Count decisions for users who are held out, or their responses; the total is of what devices sent."""
        before = self.held.get((experiment, level), (0, 0, 0.0))
        self.held[experiment, level] = (before[0] + decisions, before[1] + responses, before[2] + total)

    def write_answers(self, cursor: Any) -> bool:
        """Write the answers, and count each for its arm; whether all were new."""
        stored = 0
        others: dict[tuple[str, str], list[tuple[Any, ...]]] = defaultdict(list)
        for lease, outcome, rows in self.answers:
            self.answered += len(rows)
            kept = "response" if type(rows[0][-1]) is not bytes else "digest"
            same = (lease.experiment, lease.decision, lease.level, lease.kind, lease.made)
            if len(rows) < MANY:
                others[kept, outcome] += [same + row for row in rows]
                continue
            for arm, number in Counter(map(_arm, rows)).items():
                self.count(lease.experiment, arm, OUTCOMES[outcome], number)
            stored += LEASED[kept].run(cursor, rows, embedded=True, shared=(self.at, True, outcome, *same))
        for (kept, outcome), several in others.items():
            for (experiment, arm), number in Counter(map(_whose, several)).items():
                self.count(experiment, arm, OUTCOMES[outcome], number)
            stored += ANSWER[kept].run(cursor, several, embedded=True, shared=(self.at, True, outcome))
        return stored == self.answered

    def write(self, cursor: Any, *, embedded: bool) -> None:
        """Run the other statements, but not the commit.

        Rows that others write too come in one order, against deadlocks.
        """
        self._write_decisions(cursor, embedded=embedded)
        PERSON.run(cursor, [(*key, n) for key, n in sorted(self.people.items())], embedded=embedded)
        TRAFFIC.run(cursor, [(*key, *counts) for key, counts in sorted(self.traffic.items())], embedded=embedded)
        HOLD_OUT.run(cursor, [(*key, *counts) for key, counts in sorted(self.held.items())], embedded=embedded)
        RELEASE.run(cursor, self.releases, embedded=embedded)

    def _write_decisions(self, cursor: Any, *, embedded: bool) -> None:
        """Insert the decisions. If another worker has just used the name of a lease, none of its rows are inserted.

        The rows of two leases of one name may begin at different items, and would then not conflict. But both leases
        have a row that begins at item 0: where that row is new, all are.
        """
        if not embedded:
            self.decisions.sort(key=_key)
        rest = [] if embedded else [row for row in self.decisions if row.first > 0]
        if not rest:
            DECIDE.run(cursor, self.decisions, embedded=embedded)
            return
        BEGIN_LEASE.run(cursor, [row for row in self.decisions if row.first == 0], embedded=False)
        new = set(cursor.fetchall())
        DECIDE.run(cursor, [row for row in rest if (row.experiment, row.decision) in new], embedded=False)


def released_rows(run: LiveRun, state: LiveState, used: dict[tuple[int, int], int], at: int) -> list[tuple[Any, ...]]:
    """What was released, for the ledger: each stint; or for each arm, how many responses changed its release."""
    experiment = run.experiment
    cost = str(experiment.epsilon)
    if experiment.by_stint:
        return [
            (experiment.id, one.stint, one.arm, one.responses, one.reason, at, one.mean, cost) for one in state.released
        ]
    return [
        (experiment.id, state.version, arm, n, "response", at, float(state.curator.mean(arm)), cost)
        for (number, arm), n in used.items()
        if number == experiment.id
    ]
