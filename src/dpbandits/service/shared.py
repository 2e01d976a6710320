"""PostgreSQL with several workers: each decides on its copy of the state and appends what comes; one of them folds.

What a worker appends is the inbox of the fold: see ``folding``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import msgspec
import psycopg
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError, IntegrityError, TimeoutError

from dpbandits.service.books import (
    ACCEPTED,
    CONFLICT,
    DUPLICATED,
    NOT_TAKEN,
    Ask,
    Choices,
    Item,
    LiveRun,
    Made,
    Outcome,
    Tell,
    choose,
    said_again,
    shown,
    spends,
    taken,
)  # fmt: skip
from dpbandits.service.clock import Clock
from dpbandits.service.embedded import Control, Tick
from dpbandits.service.experiment import Experiment
from dpbandits.service.keyring import Keyring
from dpbandits.service.metrics import Metrics
from dpbandits.service.problems import Refusal, not_running
from dpbandits.service.recent import Recent
from dpbandits.service.rows import ANSWERED, ANSWERS, DECIDED, NEW_ANSWERS, SENT, Rows
from dpbandits.service.statements import Insert
from dpbandits.service.store import Database, discard
from dpbandits.service.tally import Tally
from dpbandits.service.writer import Missing, Unavailable

__all__ = ["Shared"]

APPEND = Insert("answers", ANSWERS, f"{NEW_ANSWERS} returning experiment, decision, item")
REFUSE = (
    "update answers set outcome = 'refused', response = null, digest = null, sealed = null "
    "where experiment = %s and decision = %s and item = %s"
)
LOST = (psycopg.Error, DBAPIError, TimeoutError, OSError)

Job = Ask | Tell | Tick | Control


class Shared:
    """The commits of one of several workers, and the folds of the experiments that it leads."""

    def __init__(
        self,
        store: Database,
        keys: Keyring,
        recent: Recent,
        clock: Clock,
        tally: Tally,
        runs: dict[int, LiveRun],
        metrics: Metrics,
        *,
        reload: Callable[..., None],
        halt: Callable[[int], None],
    ) -> None:
        self.store, self.keys, self.recent, self.clock, self.tally, self.runs = store, keys, recent, clock, tally, runs
        self.metrics, self.reload, self.halt = metrics, reload, halt
        self.choices = Choices()
        self.appended: Callable[[], None] = lambda: None  # is called when there is something to be folded
        self._connection: Connection | None = None

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def commit(self, jobs: list[Job]) -> list[Any]:
        """Store what the jobs ask for; the answer to each."""
        hot = [job for job in jobs if isinstance(job, Ask | Tell)]
        answers = iter(self._commit_hot(hot) if hot else [])
        return [
            self._control(job) if isinstance(job, Control) else None if isinstance(job, Tick) else next(answers)
            for job in jobs
        ]

    def _commit_hot(self, jobs: list[Ask | Tell]) -> list[Any]:
        """In one transaction; where one of them fails for a reason of its own, each in one of its own."""
        try:
            return self._commit_all(self._opened(), jobs)
        except LOST as error:
            return [self._lost(error)] * len(jobs)
        except Exception as error:
            if len(jobs) == 1:
                return [error]
            return [answer for job in jobs for answer in self._commit_hot([job])]

    def _control(self, job: Control) -> Any:
        try:
            connection = self._opened()
            with connection.begin():
                answer = job.act(connection)
            if job.then is not None:
                job.then()
        except IntegrityError as error:  # another worker has just stored the same; the connection is sound
            return error
        except LOST as error:
            return self._lost(error)
        except Exception as error:  # refused: the transaction is undone, and the caller is told why
            return error
        return answer

    def _opened(self) -> Connection:
        if self._connection is None:
            self._connection = self.store.engine.connect()
        return self._connection

    def _lost(self, error: Exception) -> Unavailable:
        """Nothing was stored: the next transaction tries a new connection."""
        self.metrics.failures.inc()
        discard(self._connection)
        self._connection = None
        return Unavailable(f"the database cannot be reached: {type(error).__name__}")

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
            state.thaw(msgspec.json.decode(self.keys.unseal(bytes(sealed), run.experiment.name.encode())))
            run.state, run.changed, run.draws, run.epoch = state, changed, draws, epoch
        found = {number: run for number in known if (run := self.runs.get(number)) is not None}
        if len(found) < len(numbers):
            raise Missing("an experiment cannot be loaded, or the database no longer has it")
        for number, run in found.items():
            if run.experiment.active and run.draws < before[number]:
                self.halt(number)
                raise Unavailable("an old copy of the database was restored")
            self.tally.count(run)
        return found

    def _commit_all(self, connection: Connection, jobs: list[Ask | Tell]) -> list[Any]:
        with connection.begin():
            cursor = connection.connection.cursor()
            rows = Rows(self.clock())
            numbers = {job.experiment for job in jobs if isinstance(job, Ask)}
            numbers |= {item.token.experiment for job in jobs if isinstance(job, Tell) for item in job.items}
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
    def _in_order(jobs: list[Ask | Tell], answers: list[bytes | Refusal], told: list[Outcome]) -> list[Any]:
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
        runs = self.runs
        people = {(ask.experiment, ask.person) for ask in asks if ask.person and runs[ask.experiment].experiment.cap}
        told = (item.token for tell in tells for item in tell.items)
        people |= {(one.experiment, one.user) for one in told if one.user and runs[one.experiment].experiment.cap}
        self.sent: dict[tuple[int, bytes], int] = {}
        if people:
            keys = sorted({int.from_bytes(person[:8], "big", signed=True) for _, person in people})
            self.cursor.execute(
                "select pg_advisory_xact_lock(k) from (select unnest(%s::bigint[]) k order by 1) x", (keys,)
            )
            for number, person, responses in SENT.run(self.cursor, list(people), embedded=False):
                user = (number, bytes(person))
                self.sent[user] = self.sent.get(user, 0) + responses

    def full(self, experiment: Experiment, person: bytes) -> bool:
        """Whether nothing more is taken from a user."""
        return experiment.cap is not None and self.sent.get((experiment.id, person), 0) >= experiment.cap

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
                silent = self.full(run.experiment, ask.person)
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

    def tell_all(self, items: list[Item]) -> list[Outcome]:
        """Append what came; what is to be said about each."""
        fresh: dict[tuple[int, str, int], Item] = {}
        for item in items:
            fresh.setdefault(item.key, item)
        if not fresh:
            return []
        ordered = [self.row(fresh[key]) for key in sorted(fresh)]  # as others write them too, against deadlocks
        APPEND.run(self.cursor, ordered, embedded=False)
        new = {tuple(row) for row in self.cursor.fetchall()}
        old = {
            (row[0], row[1], row[2]): row[3:]
            for row in ANSWERED.run(self.cursor, [key for key in fresh if key not in new], embedded=False)
        }
        answers = []
        for item in items:
            key = item.key
            if key in new and fresh[key] is item:
                answers.append(self.taken(item, key))
            else:
                answers.append(self.again(item, fresh[key], old.get(key)))
        for key, outcome in self.became.items():
            if outcome == "refused":
                self.cursor.execute(REFUSE, key)
        return answers

    def late(self, item: Item) -> bool:
        token, run = item.token, self.runs[item.token.experiment]
        closed = run.experiment.by_stint and 0 < token.stint < run.state.desk.stint[0]
        return not run.experiment.active or closed or self.rows.now > token.made / 1000 + run.experiment.window

    def row(self, item: Item) -> tuple[Any, ...]:
        token, late = item.token, self.late(item)
        sealed = None
        if item.response is None and not late:
            sealed = self.books.keys.seal(struct.pack("<d", item.value), item.about)
        return (
            *item.key, token.arm, token.stint, token.kind, token.level, token.made, self.rows.at,
            "late" if late else "waiting", None if late else item.response,
            None if late else item.digest(self.books.recent), sealed, False,
        )  # fmt: skip

    def taken(self, item: Item, key: tuple[int, str, int]) -> Outcome:
        token, experiment = item.token, self.runs[item.token.experiment].experiment
        outcome = "late" if self.late(item) else "waiting"
        if self.full(experiment, token.user):
            outcome = "refused"
        if token.user and spends(experiment, outcome):
            user = (token.experiment, token.user)
            self.sent[user] = self.sent.get(user, 0) + 1
            self.rows.charge(*user, token.level)
        self.became[key] = outcome
        return NOT_TAKEN.get(outcome, ACCEPTED)

    def again(self, item: Item, first: Item, before: tuple[Any, ...] | None) -> Outcome:
        """What is said to a repetition, of something that is stored or that came in the same transaction."""
        if before is not None:
            outcome, response, digest = before
            said = said_again(item, outcome, response, digest and bytes(digest), self.books.recent)
        else:
            same = (first.response, first.value) == (item.response, item.value)
            said = NOT_TAKEN.get(self.became[item.key], DUPLICATED if same else CONFLICT)
        self.rows.count_again(item.token.experiment, item.token.arm, said)
        return said
