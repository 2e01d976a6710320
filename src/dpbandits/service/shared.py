"""PostgreSQL with several workers: each decides on its copy of the state and appends what comes; one of them folds.

What a worker appends is the inbox of the fold: see ``folding``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError, TimeoutError

from dpbandits.service.addresses import driver_words
from dpbandits.service.books import Ask, LiveRun, Made, choose, shown, taken
from dpbandits.service.caps import SentByUsers
from dpbandits.service.commits import Commits
from dpbandits.service.problems import Refusal, not_running
from dpbandits.service.responses import (
    ACCEPTED,
    CONFLICT,
    DUPLICATED,
    NOT_TAKEN,
    UNKNOWN,
    Item,
    ItemAnswer,
    Tell,
    said_again,
)
from dpbandits.service.rows import ANSWERED, ANSWERS, DECIDED, NEW_ANSWERS, Rows
from dpbandits.service.sealing import unseal
from dpbandits.service.statements import Insert
from dpbandits.service.writer import Missing, Unavailable

__all__ = ["Shared"]

#: Whether the decision of an answer is stored: a copy that was restored may lack it, or have another of its name.
DECIDED_SO = (
    "(select d.arm = k.arm and d.made = k.made and d.first + d.items > k.item from decisions d "
    "where d.experiment = k.experiment and d.decision = k.decision and d.first <= k.item order by d.first desc limit 1)"
)
APPEND = Insert(
    "answers",
    ANSWERS,
    f"as k ({', '.join(ANSWERS)}) where {DECIDED_SO} {NEW_ANSWERS} returning experiment, decision, item, arm, made",
    planned_anew=True,  # a plan from when there were few decisions would read all of them for each answer
)
REFUSE = (
    "update answers set outcome = 'refused', response = null, digest = null, sealed = null "
    "where experiment = %s and decision = %s and item = %s"
)
#: The first key of the advisory locks under which users are counted, and how many there are. Users share them: a list
#: may have a thousand users, and all connections of a PostgreSQL server together have a few thousand locks.
PEOPLE = 0x6471
PEOPLE_LOCKS = 64
LOST = (psycopg.Error, DBAPIError, TimeoutError, OSError)


@dataclass(eq=False, repr=False)
class Shared(Commits[Ask | Tell]):
    """The commits of one of several workers, and the folds of the experiments that it leads."""

    lost = LOST

    reload: Callable[..., None] = field(kw_only=True)
    halt: Callable[[int], None] = field(kw_only=True)
    appended: Callable[[], None] = field(default=lambda: None, init=False)  # there is something to be folded

    def catch_up(self, connection: Connection, cursor: Any, numbers: list[int]) -> dict[int, LiveRun]:
        """Take over what was folded since; the runs, with draws that are counted."""
        known = {number: run for number in numbers if (run := self.runs.get(number)) is not None}
        before = {number: self.tally.counted(run) for number, run in known.items()}
        cursor.execute(
            "select k.id, s.changed, s.draws, s.epoch, e.revision, s.state "
            "from unnest(%s::int[], %s::bigint[], %s::bigint[]) as k(id, c, r) "
            "left join experiments e on e.id = k.id left join states s on s.experiment = k.id "
            "where s.changed is distinct from k.c or e.revision is distinct from k.r",
            (
                list(known),
                [run.changed for run in known.values()],
                [run.experiment.revision for run in known.values()],
            ),
        )
        for number, changed, draws, epoch, revision, sealed in cursor.fetchall():
            run = known[number]
            if changed is None or run.experiment.revision != revision:
                self.reload(connection, number)
                continue
            state = run.state.copy()
            unseal(self.keys, run.experiment, state, sealed)
            run.state, run.changed, run.draws, run.epoch = state, changed, draws, epoch
        found = {number: run for number in known if (run := self.runs.get(number)) is not None}
        if len(found) < len(numbers):
            raise Missing("an experiment cannot be loaded, or the database no longer has it")
        for number, run in found.items():
            if run.experiment.active and run.draws < before[number]:
                self.halt(number)
                raise Unavailable("an old copy of the database was restored")
        self.tally.count(*found.values())
        return found

    def _reason(self, error: Exception) -> str:
        """What the driver says of the connection, which has no state; of a statement only its kind and state.

        What PostgreSQL says of a statement may hold what was to be stored.
        """
        cause = error.orig if isinstance(error, DBAPIError) else error
        kind = type(cause).__name__
        if isinstance(cause, psycopg.Error) and cause.sqlstate is not None:
            return f"{kind} ({cause.sqlstate})"
        return f"{kind}: {driver_words(self.store.url, cause)}" if type(cause) is psycopg.OperationalError else kind

    def _commit_all(self, connection: Connection, jobs: list[Ask | Tell]) -> list[Any]:
        with connection.begin():
            cursor = connection.connection.cursor()
            rows = Rows(self.clock())
            numbers = {job.experiment for job in jobs if isinstance(job, Ask)}
            numbers |= {item.token.lease.experiment for job in jobs if isinstance(job, Tell) for item in job.items}
            work = _Append(self, cursor, rows, self.catch_up(connection, cursor, sorted(numbers)))
            asks = [job for job in jobs if isinstance(job, Ask)]
            tells = [job for job in jobs if isinstance(job, Tell)]
            work.lock_people(asks, tells)
            decided = work.ask_all(asks)
            told = work.tell_all([item for job in tells for item in job.items])
            rows.write(cursor, embedded=False)
            stored = work.stored(asks)  # another worker may have been quicker, and may have decided by a later draw
            later = {made.experiment for rows in stored.values() for made in rows if work.is_behind(made)}
            if later:
                work.runs |= self.catch_up(connection, cursor, sorted(later))
            answers = work.shown(asks, decided, stored)
        self.appended()
        self.metrics.count(rows, work.runs)
        return self._in_order(jobs, answers, told)

    @staticmethod
    def _in_order(jobs: list[Ask | Tell], answers: list[bytes | Refusal], told: list[ItemAnswer]) -> list[Any]:
        ordered: list[Any] = []
        made, said = iter(answers), iter(told)
        for job in jobs:
            ordered.append(next(made) if isinstance(job, Ask) else [next(said) for _ in job.items])
        return ordered


class _Append:
    """One transaction of a worker: it appends, and reads back what was there before."""

    def __init__(self, books: Shared, cursor: Any, rows: Rows, runs: dict[int, LiveRun]) -> None:
        self.books, self.cursor, self.rows = books, cursor, rows
        self.runs = runs  # those of books may change meanwhile
        self.became: dict[tuple[int, str, int], str] = {}  # the outcomes of answers that came in this transaction

    def lock_people(self, asks: list[Ask], tells: list[Tell]) -> None:
        """Users with a cap are counted by one worker at a time."""
        self.sent = SentByUsers(self.runs, asks, [item for tell in tells for item in tell.items])
        if self.sent.people:
            keys = sorted({person[0] % PEOPLE_LOCKS for _, person in self.sent.people})
            self.cursor.execute(
                "select pg_advisory_xact_lock(%s, k) from (select unnest(%s::int[]) k order by 1) x", (PEOPLE, keys)
            )
            self.sent.read(self.cursor, embedded=False)

    def ask_all(self, asks: list[Ask]) -> list[list[Made]]:
        """Decide, for those who were not decided for before."""
        stored = self.stored(asks)
        decided = []
        for ask in asks:
            key = (ask.experiment, ask.decision or "")
            made = stored.get(key) if ask.decision is not None else None
            run = self.runs[ask.experiment]
            if made is None and run.experiment.status != "running":
                made = []
            if made is None:
                silent = self.sent.full(run.experiment, ask.person)
                made = choose(run, run.state, ask, silent, self.rows.now, None, self.books.choices)
                self.rows.decisions += [row._replace(folded=False) for row in made]
                if ask.decision is not None:
                    stored[key] = made
            decided.append(made)
        return decided

    def stored(self, asks: list[Ask]) -> dict[tuple[int, str], list[Made]]:
        """The decisions that are stored under the names that clients chose."""
        found: dict[tuple[int, str], list[Made]] = {}
        names = {(ask.experiment, ask.decision) for ask in asks if ask.decision is not None}
        for row in DECIDED.run(self.cursor, list(names), embedded=False):
            made = Made(*row)
            found.setdefault((made.experiment, made.decision), []).append(made)
        return found

    def is_behind(self, made: Made) -> bool:
        """Whether a decision follows from releases, or is for an arm, that this worker does not know of yet."""
        run = self.runs[made.experiment]
        return made.version > run.state.version or made.arm >= len(run.experiment.arms)

    def shown(
        self, asks: list[Ask], decided: list[list[Made]], stored: dict[tuple[int, str], list[Made]]
    ) -> list[bytes | Refusal]:
        """The answers. Where a client chose the name, what is stored counts."""
        answers: list[bytes | Refusal] = []
        for ask, made in zip(asks, decided, strict=True):
            kept = made if ask.decision is None else stored.get((ask.experiment, ask.decision), [])
            experiment = self.runs[ask.experiment].experiment
            if kept:
                answers.append(taken(experiment, kept[0], ask) or shown(experiment, kept, self.books.keys))
            else:
                answers.append(not_running(experiment))
        return answers

    def tell_all(self, items: list[Item]) -> list[ItemAnswer]:
        """Append what came; what is to be said about each."""
        fresh: dict[tuple[Any, ...], Item] = {}
        for item in items:
            fresh.setdefault(item.decided, item)
        if not fresh:
            return []
        ordered = [self.row(fresh[key]) for key in sorted(fresh)]  # as others write them too, against deadlocks
        APPEND.run(self.cursor, ordered, embedded=False)
        new = {tuple(row) for row in self.cursor.fetchall()}
        old = {
            row[:5]: row[5:]
            for row in ANSWERED.run(self.cursor, [key[:3] for key in fresh if key not in new], embedded=False)
        }
        answers = []
        for item in items:
            key = item.decided
            if key in new and fresh[key] is item:
                answers.append(self.taken(item))
            elif key in new or key in old:
                answers.append(self.again(item, fresh[key], old.get(key)))
            else:
                answers.append(UNKNOWN)
        for answered, outcome in self.became.items():
            if outcome == "refused":
                self.cursor.execute(REFUSE, answered)
        return answers

    def late(self, item: Item) -> bool:
        lease = item.token.lease
        run = self.runs[lease.experiment]
        closed = run.experiment.by_stint and 0 < item.token.stint < run.state.desk.stint[0]
        return not run.experiment.active or closed or self.rows.now > lease.made / 1000 + run.experiment.window

    def row(self, item: Item) -> tuple[Any, ...]:
        token, lease, late = item.token, item.token.lease, self.late(item)
        sealed = None
        if item.response is None and not late:
            sealed = self.books.keys.seal(struct.pack("<d", item.value), item.about)
        return (
            *item.key, token.arm, token.stint, lease.kind, lease.level, lease.made, self.rows.at,
            "late" if late else "waiting", None if late else item.response,
            None if late else item.digest(self.books.recent), sealed, False,
        )  # fmt: skip

    def taken(self, item: Item) -> ItemAnswer:
        lease = item.token.lease
        experiment = self.runs[lease.experiment].experiment
        outcome = "late" if self.late(item) else "waiting"
        if self.sent.full(experiment, lease.user):
            outcome = "refused"
        self.sent.charge(self.rows, experiment, lease, outcome)
        self.became[item.key] = outcome
        return NOT_TAKEN.get(outcome, ACCEPTED)

    def again(self, item: Item, first: Item, before: tuple[Any, ...] | None) -> ItemAnswer:
        """What is said to a repetition, of something that is stored or that came in the same transaction."""
        if before is not None:
            outcome, response, digest = before
            said = said_again(item, outcome, response, digest and bytes(digest), self.books.recent)
        else:
            same = (first.response, first.value) == (item.response, item.value)
            said = NOT_TAKEN.get(self.became[item.key], DUPLICATED if same else CONFLICT)
        lease = item.token.lease
        self.rows.count_again(lease.experiment, item.token.arm, said)
        self.sent.charge_again(self.rows, self.runs[lease.experiment].experiment, lease, said)
        return said
