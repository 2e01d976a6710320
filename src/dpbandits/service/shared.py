"""PostgreSQL with several workers: each decides on its copy of the state and appends what comes; one of them folds.

A worker holds the right to fold an experiment by an advisory lock of its session, and every write of a state checks
the epoch that came with that right. What is to be folded is what is not marked as folded. (What has a higher number
than the last is not enough: rows with lower numbers may become visible later, and would be lost.)
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import psycopg
import structlog
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError, TimeoutError

from dpbandits.exact import SystemNoise
from dpbandits.service.batch import (
    APART,
    DECISIONS,
    DUPLICATE,
    LATE,
    MINUTE,
    REFUSED,
    SILENT_ONES,
    USED,
    Batch,
    Contents,
    Sql,
)
from dpbandits.service.books import SILENT, Ask, Choices, Item, Made, Run, Tell, choose, foldable, shown
from dpbandits.service.clock import Clock
from dpbandits.service.embedded import CAPPED, Control, Tick, released_rows
from dpbandits.service.keyring import Keyring
from dpbandits.service.logs import where
from dpbandits.service.metrics import Metrics
from dpbandits.service.problems import Problem, not_running
from dpbandits.service.state import State
from dpbandits.service.store import Store
from dpbandits.service.tally import Tally
from dpbandits.service.writer import Unavailable

__all__ = ["Shared"]

log = structlog.get_logger("dpbandits")

LEASE = 0x6470  # the first key of the advisory locks under which experiments are folded
IDLE = 0.02  # seconds between looks where nothing is to be folded
MOST_ANSWERS = 5000  # in a fold
SQL = Sql.of("%s")
MARK_DECISIONS = (
    "update decisions set folded = true from unnest(%s::text[], %s::int[]) as one(d, f) "
    "where experiment = %s and decision = d and first = f"
)
MARK_ANSWERS = (
    "update answers set folded = true, sealed = null, outcome = o from unnest(%s::text[], %s::int[], %s::text[]) "
    "as one(d, i, o) where experiment = %s and decision = d and item = i"
)
APPEND = (
    "insert into answers (experiment, decision, item, arm, stint, kind, level, made, received, outcome, response, "
    "sealed, folded) select *, false from unnest(%s::int[], %s::text[], %s::int[], %s::int[], %s::bigint[], "
    "%s::int[], %s::int[], %s::bigint[], %s::bigint[], %s::text[], %s::bigint[], %s::bytea[]) on conflict do nothing "
    "returning experiment, decision, item"
)
LOST = (psycopg.Error, DBAPIError, TimeoutError, OSError)
LATE_REASON = "it came after its window, or after its stint was closed"

Job = Ask | Tell | Tick | Control


class Shared:
    """The commits of one of several workers, and the folds of the experiments that it leads."""

    def __init__(
        self,
        store: Store,
        keys: Keyring,
        clock: Clock,
        tally: Tally | None,
        runs: dict[int, Run],
        metrics: Metrics,
        *,
        reload: Callable[..., None],
    ) -> None:
        self.store, self.keys, self.clock, self.tally, self.runs = store, keys, clock, tally, runs
        self.metrics, self._reload = metrics, reload
        self._choices, self._contents = Choices(), Contents()
        self._connection: Connection | None = None
        self._folder = Folder(self)

    def lead(self) -> None:
        """Begin to fold."""
        self._folder.thread.start()

    def close(self) -> None:
        """Stop folding, and give the rights to fold back."""
        self._folder.stop()
        if self._connection is not None:
            self._connection.close()

    def commit(self, jobs: list[Job]) -> list[Any]:
        """Store what the jobs ask for; the answer to each."""
        try:
            if self._connection is None:
                self._connection = self.store.engine.connect()
            connection = self._connection
            hot = [job for job in jobs if isinstance(job, Ask | Tell)]
            answers = iter(self._commit_hot(connection, hot) if hot else [])
            return [
                self._control(connection, job)
                if isinstance(job, Control)
                else None
                if isinstance(job, Tick)
                else next(answers)
                for job in jobs
            ]
        except LOST as error:
            self.metrics.failures.inc()
            connection_, self._connection = self._connection, None
            if connection_ is not None:
                connection_.invalidate()
                connection_.close()
            raise Unavailable(f"the database cannot be reached: {type(error).__name__}") from None

    def _commit_hot(self, connection: Connection, jobs: list[Ask | Tell]) -> list[Any]:
        """In one transaction; where one of them fails for a reason of its own, each in one of its own."""
        try:
            return self._commit_all(connection, jobs)
        except LOST:
            raise
        except Exception as error:
            if len(jobs) == 1:
                return [error]
            return [answer for job in jobs for answer in self._commit_hot(connection, [job])]

    def _control(self, connection: Connection, job: Control) -> Any:
        try:
            with connection.begin():
                answer = job.act(connection)
        except LOST:
            raise
        except Exception as error:  # refused: the transaction is undone, and the caller is told why
            return error
        if job.then is not None:
            job.then()
        return answer

    def refresh(self, connection: Connection, *numbers: int) -> None:
        """Take over what others have written, and keep it as it is until this transaction ends, if it is one."""
        found = connection.exec_driver_sql(
            "select s.experiment, s.changed, e.revision from states s join experiments e on e.id = s.experiment "
            "where s.experiment = any(%s) for update of s",
            (list(numbers),),
        )
        for number, changed, revision in found.all():
            run = self.runs.get(number)
            if run is None or run.changed != changed or run.experiment.revision != revision:
                self._reload(connection, number)

    def catch_up(self, connection: Connection, cursor: Any, numbers: list[int]) -> None:
        """Take over what was folded since."""
        cursor.execute(
            "select s.experiment, s.changed, s.version, s.draws, s.epoch, e.revision, s.state from states s "
            "join experiments e on e.id = s.experiment "
            "join unnest(%s::int[], %s::bigint[], %s::bigint[]) as k(id, c, r) "
            "on k.id = s.experiment where s.changed <> k.c or e.revision <> k.r",
            (
                numbers,
                [self.runs[number].changed for number in numbers],
                [self.runs[number].experiment.revision for number in numbers],
            ),
        )
        for number, changed, _, draws, epoch, revision, sealed in cursor.fetchall():
            run = self.runs[number]
            if run.experiment.revision != revision:
                self._reload(connection, number)
                continue
            state = run.state.copy()
            state.thaw(msgspec.json.decode(self.keys.unseal(bytes(sealed), run.experiment.name.encode())))
            run.state, run.changed, run.draws, run.epoch = state, changed, draws, epoch

    def _commit_all(self, connection: Connection, jobs: list[Ask | Tell]) -> list[Any]:
        with connection.begin():
            cursor = connection.connection.cursor()
            now = self.clock()
            batch = Batch(now)
            numbers = {job.experiment for job in jobs if isinstance(job, Ask)}
            numbers |= {item.token.experiment for job in jobs if isinstance(job, Tell) for item in job.items}
            self.catch_up(connection, cursor, sorted(numbers))
            work = _Append(self, cursor, batch)
            asks = [job for job in jobs if isinstance(job, Ask)]
            tells = [job for job in jobs if isinstance(job, Tell)]
            work.lock_people(asks, tells)
            decided = work.ask_all(asks)
            told = work.tell_all([item for job in tells for item in job.items])
            batch.write(cursor, SQL)
            answers = work.shown(asks, decided)
        for key, value in work.contents:
            self._contents.keep(key, value)
        self.metrics.count(batch, self.runs)
        return self._in_order(jobs, answers, told)

    @staticmethod
    def _in_order(jobs: list[Ask | Tell], answers: list[bytes | Problem], told: list[tuple[str, str]]) -> list[Any]:
        ordered: list[Any] = []
        made, said = iter(answers), iter(told)
        for job in jobs:
            ordered.append(next(made) if isinstance(job, Ask) else [next(said) for _ in job.items])
        return ordered


class _Append:
    """One transaction of a worker: it appends, and reads back what was there before."""

    def __init__(self, books: Shared, cursor: Any, batch: Batch) -> None:
        self.books, self.cursor, self.batch = books, cursor, batch
        self.contents: list[tuple[tuple[int, str, int], float]] = []
        self.capped: list[tuple[int, str, int]] = []

    def lock_people(self, asks: list[Ask], tells: list[Tell]) -> None:
        """Users with a cap are counted by one worker at a time."""
        runs = self.books.runs
        people = {(ask.experiment, ask.person) for ask in asks if ask.person and runs[ask.experiment].experiment.cap}
        told = (item.token for tell in tells for item in tell.items)
        people |= {(one.experiment, one.user) for one in told if one.user and runs[one.experiment].experiment.cap}
        self.sent: dict[tuple[int, bytes], int] = {}
        if people:
            keys = sorted({int.from_bytes(person[:8], "big", signed=True) for _, person in people})
            self.cursor.execute(
                "select pg_advisory_xact_lock(k) from (select unnest(%s::bigint[]) k order by 1) x", (keys,)
            )
            self.cursor.execute(
                "select experiment, person, sum(responses) from people join unnest(%s::int[], %s::bytea[]) as k(e, p) "
                "on e = experiment and p = person group by 1, 2",
                ([number for number, _ in people], [person for _, person in people]),
            )
            self.sent = {(number, bytes(person)): int(n) for number, person, n in self.cursor.fetchall()}

    def ask_all(self, asks: list[Ask]) -> list[list[Made]]:
        """Decide, for those who were not decided for before."""
        named = [(ask.experiment, ask.decision) for ask in asks if ask.decision is not None]
        stored = self.stored(named)
        decided = []
        for ask in asks:
            key = (ask.experiment, ask.decision or "")
            rows = stored.get(key) if ask.decision is not None else None
            run = self.books.runs[ask.experiment]
            if rows is None and run.experiment.status != "running":
                rows = []  # another worker has paused or stopped it
            if rows is None:
                cap = run.experiment.cap
                silent = cap is not None and self.sent.get((ask.experiment, ask.person), 0) >= cap
                rows = choose(run, run.state, ask, silent, self.batch.now, None, self.books._choices)
                self.batch.decisions += [row._replace(folded=False) for row in rows]
                if ask.decision is not None:
                    stored[key] = rows
            decided.append(rows)
        return decided

    def stored(self, named: list[tuple[int, str]]) -> dict[tuple[int, str], list[Made]]:
        found: dict[tuple[int, str], list[Made]] = {}
        if named:
            columns = ", ".join(f"t.{name}" for name in Made._fields)
            self.cursor.execute(
                f"select {columns} from decisions t join unnest(%s::int[], %s::text[]) as k(e, d) "
                "on e = t.experiment and d = t.decision order by t.first",
                ([number for number, _ in named], [decision for _, decision in named]),
            )
            for row in self.cursor.fetchall():
                made = Made(*row)
                found.setdefault((made.experiment, made.decision), []).append(made)
        return {key: sorted(set(rows), key=lambda row: row.first) for key, rows in found.items()}

    def shown(self, asks: list[Ask], decided: list[list[Made]]) -> list[bytes | Problem]:
        """The answers. Where a client chose the name, what is stored counts: another worker may have been quicker."""
        named = [(ask.experiment, ask.decision) for ask in asks if ask.decision is not None]
        stored = self.stored(named)
        answers: list[bytes | Problem] = []
        for ask, rows in zip(asks, decided, strict=True):
            kept = rows if ask.decision is None else stored.get((ask.experiment, ask.decision), [])
            experiment = self.books.runs[ask.experiment].experiment
            answers.append(shown(experiment, kept, self.books.keys) if kept else not_running(experiment))
        return answers

    def tell_all(self, items: list[Item]) -> list[tuple[str, str]]:
        """Append what came; what is to be said about each."""
        fresh: dict[tuple[int, str, int], Item] = {}
        rows: list[tuple[Any, ...]] = []
        for item in items:
            key = item.token.experiment, item.token.decision, item.token.item
            if key not in fresh:
                fresh[key] = item
                rows.append(self.row(item))
        if not rows:
            return []
        self.cursor.execute(APPEND, list(map(list, zip(*rows, strict=True))))
        new = {tuple(row) for row in self.cursor.fetchall()}
        old = self.before([key for key in fresh if key not in new])
        answers = []
        for item in items:
            key = item.token.experiment, item.token.decision, item.token.item
            if key in new and fresh[key] is item:
                answers.append(self.taken(item, key))
            else:
                answers.append(self.again(item, fresh[key], key, old.get(key)))
        for key in self.capped:
            self.cursor.execute("delete from answers where experiment = %s and decision = %s and item = %s", key)
        return answers

    def late(self, item: Item) -> bool:
        token, run = item.token, self.books.runs[item.token.experiment]
        closed = run.experiment.by_stint and 0 < token.stint < run.state.desk.stint[0]
        return not run.experiment.active or closed or self.batch.now > token.made / 1000 + run.experiment.window

    def row(self, item: Item) -> tuple[Any, ...]:
        token = item.token
        about = f"{token.experiment}/{token.decision}/{token.item}".encode()
        late = self.late(item)
        sealed = None
        if item.response is None and not late:
            sealed = self.books.keys.seal(struct.pack("<d", item.value), about)
        return (
            token.experiment, token.decision, token.item, token.arm, token.stint, token.kind, token.level, token.made,
            self.batch.at, "late" if late else "waiting", None if late else item.response, sealed,
        )  # fmt: skip

    def taken(self, item: Item, key: tuple[int, str, int]) -> tuple[str, str]:
        token, batch = item.token, self.batch
        if self.late(item):
            return "late", LATE_REASON
        if token.user:
            cap = self.books.runs[token.experiment].experiment.cap
            sent = self.sent.get((token.experiment, token.user), 0)
            if cap is not None and sent >= cap:
                batch.count(token.experiment, token.arm, REFUSED)
                self.capped.append(key)
                return "invalid", CAPPED
            self.sent[token.experiment, token.user] = sent + 1
            batch.charge(token.experiment, token.user, token.level)
        if item.response is None:
            self.contents.append((key, item.value))
        return "accepted", ""

    def before(self, keys: list[tuple[int, str, int]]) -> dict[tuple[int, str, int], tuple[Any, ...]]:
        if not keys:
            return {}
        self.cursor.execute(
            "select experiment, decision, item, outcome, response, sealed from answers "
            "join unnest(%s::int[], %s::text[], %s::int[]) as k(e, d, i) "
            "on e = experiment and d = decision and i = item",
            list(map(list, zip(*keys, strict=True))),
        )
        return {(row[0], row[1], row[2]): row[3:] for row in self.cursor.fetchall()}

    def again(
        self, item: Item, first: Item, key: tuple[int, str, int], before: tuple[Any, ...] | None
    ) -> tuple[str, str]:
        token = item.token
        if before is not None and before[0] == "late":
            return "late", LATE_REASON
        if before is None:  # it came twice in this batch
            other = first.response != item.response or (item.response is None and first.value != item.value)
        elif item.response is not None:
            other = before[1] != item.response
        elif before[2] is not None:
            about = f"{token.experiment}/{token.decision}/{token.item}".encode()
            other = struct.unpack("<d", self.books.keys.unseal(bytes(before[2]), about))[0] != item.value
        else:
            other = self.books._contents.contradicts(key, item.value)
        if other:
            self.batch.count(token.experiment, token.arm, REFUSED)
            return "conflict", "another answer to this decision is stored, and stands"
        self.batch.count(token.experiment, token.arm, DUPLICATE)
        return "duplicate", ""


@dataclass
class _Lead:
    """The right to fold an experiment."""

    epoch: int
    run: Run


class Folder:
    """The thread that folds the experiments of which this worker has the right."""

    def __init__(self, books: Shared) -> None:
        self.books = books
        self.thread = threading.Thread(target=self._run, name="folder", daemon=True)
        self._stopping = threading.Event()
        self._leads: dict[int, _Lead] = {}
        self._noise, self._choices = SystemNoise(), Choices()

    def stop(self) -> None:
        """Finish the fold that is under way, and stop."""
        self._stopping.set()
        if self.thread.is_alive():
            self.thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                with psycopg.connect(_plain(self.books.store), autocommit=True) as connection:
                    self._fold_all(connection)
            except LOST as error:
                log.warning("cannot fold", reason=type(error).__name__)
            except Exception as error:
                log.error("cannot fold", where=where(error))
            self._leads.clear()
            self.books.metrics.leading.set(0)
            self._stopping.wait(0.5)

    def _fold_all(self, connection: psycopg.Connection[Any]) -> None:
        while not self._stopping.is_set():
            busy = False
            for number in self._active(connection):
                lead = self._leads.get(number) or self._take(connection, number)
                if lead is not None:
                    busy |= self._fold(connection, number, lead)
            if not busy:
                self._stopping.wait(IDLE)

    def _active(self, connection: psycopg.Connection[Any]) -> list[int]:
        found = connection.execute(
            "select id, revision from experiments where status in ('running', 'paused')"
        ).fetchall()
        for number, revision in found:
            run = self.books.runs.get(number)
            if run is None or run.experiment.revision != revision:
                with self.books.store.opened() as other:
                    self.books._reload(other, number)
        return [number for number, _ in found]

    def _take(self, connection: psycopg.Connection[Any], number: int) -> _Lead | None:
        """Become the one who folds an experiment, if nobody else is."""
        row = connection.execute("select pg_try_advisory_lock(%s, %s)", (LEASE, number)).fetchone()
        if row is None or not row[0]:
            return None
        epoch = connection.execute(
            "update states set epoch = epoch + 1 where experiment = %s returning epoch", (number,)
        ).fetchone()
        assert epoch is not None
        state = self.books.runs[number].state.copy()
        state.deputy = False
        lead = self._leads[number] = _Lead(epoch[0], Run(self.books.runs[number].experiment, state, changed=-1))
        self.books.metrics.leading.set(len(self._leads))
        log.info("leading", experiment=lead.run.experiment.name, epoch=lead.epoch)
        return lead

    def _fold(self, connection: psycopg.Connection[Any], number: int, lead: _Lead) -> bool:
        """Fold what is not yet folded; whether there was anything."""
        with connection.transaction(), connection.cursor() as cursor:
            cursor.execute(
                "select epoch, changed, draws, state from states where experiment = %s for update", (number,)
            )
            epoch, changed, draws, sealed = cursor.fetchone()  # type: ignore[misc]
            if epoch != lead.epoch:
                log.warning("no longer leading", experiment=lead.run.experiment.name)
                del self._leads[number]
                connection.execute("select pg_advisory_unlock(%s, %s)", (LEASE, number))
                return False
            experiment = self.books.runs[number].experiment
            if changed != lead.run.changed or experiment.revision != lead.run.experiment.revision:
                state = self.books.runs[number].state.copy()
                state.thaw(msgspec.json.decode(self.books.keys.unseal(bytes(sealed), experiment.name.encode())))
                state.deputy = False
                lead.run = Run(experiment, state, epoch, draws, changed)
            fold = _Fold(lead.run, cursor, Batch(self.books.clock()), self.books.keys)
            made = fold.do(self._noise, self._choices)
        if made is None:
            return False
        drawn = made.draws > lead.run.draws
        lead.run = made
        if drawn and self.books.tally is not None:
            self.books.tally.record({experiment.tallied: made.draws})
        self.books.metrics.count(fold.batch, self.books.runs)
        return True


class _Came(NamedTuple):
    """A response that is to be folded."""

    decision: str
    item: int
    arm: int
    stint: int
    kind: int
    level: int
    made: int
    received: int
    outcome: str
    response: int | None
    sealed: bytes | None


class _Fold:
    """One fold: responses, statistics, releases and version in one transaction."""

    def __init__(self, run: Run, cursor: Any, batch: Batch, keys: Keyring) -> None:
        self.run, self.cursor, self.batch, self.keys = run, cursor, batch, keys
        self.used: dict[tuple[int, int], int] = {}

    def do(self, noise: Any, choices: Any) -> Run | None:
        """The run after the fold; None where nothing was to be done. Answers are read first: each has its decision."""
        number = self.run.experiment.id
        self.cursor.execute(
            f"select {', '.join(_Came._fields)} from answers "
            "where experiment = %s and not folded order by received limit %s",
            (number, MOST_ANSWERS),
        )
        answers = self.cursor.fetchall()
        columns = ", ".join(Made._fields)
        self.cursor.execute(
            f"select {columns} from decisions where experiment = %s and not folded order by made", (number,)
        )
        decisions = [Made(*row) for row in self.cursor.fetchall()]
        state = self.run.state.copy()
        due = state.desk.by_stint and state.desk.asked[0] > 0 and state.desk.closing[0] < self.batch.now
        if not (answers or decisions or due or (state.desk.by_stint and state.desk.asked[0] == 0 and not state.over)):
            return None
        before = state.version
        for row in decisions:
            self.note(state, row)
        outcomes = [self.outcome(state, _Came(*row), noise) for row in answers]
        state.open(self.batch.now, noise, choices)
        drawn = int(self.run.experiment.server_draws and state.version > before)
        made = Run(self.run.experiment, state, self.run.epoch, self.run.draws + drawn, self.run.changed + 1)
        if drawn:
            self.batch.releases += released_rows(made, state, self.used, self.batch.at)
        self.write(made, decisions, answers, outcomes)
        state.released = []
        return made

    def write(self, made: Run, decisions: list[Made], answers: list[Any], outcomes: list[str]) -> None:
        number, state = made.experiment.id, made.state
        if decisions:
            self.cursor.execute(
                MARK_DECISIONS, ([row.decision for row in decisions], [row.first for row in decisions], number)
            )
        if answers:
            self.cursor.execute(
                MARK_ANSWERS, ([row[0] for row in answers], [row[1] for row in answers], outcomes, number)
            )
        self.batch.write(self.cursor, SQL)
        sealed = self.keys.seal(msgspec.json.encode(state.freeze()), made.experiment.name.encode())
        self.cursor.execute(
            "update states set version = %s, draws = %s, changed = %s, at = %s, state = %s "
            "where experiment = %s and epoch = %s",
            (state.version, made.draws, made.changed, self.batch.at, sealed, number, made.epoch),
        )
        if self.cursor.rowcount != 1:
            raise Unavailable("another worker folds this experiment")

    def note(self, state: State, row: Made) -> None:
        experiment, now = self.run.experiment, row.made / 1000
        minute = row.made // MINUTE
        if row.level != SILENT and foldable(experiment, row.kind, row.stint):
            stint = row.stint if experiment.by_stint else 0
            if not (experiment.by_stint and stint == 0):
                for _ in range(row.items):
                    state.note(row.arm, stint, now)
        state.served += row.items
        self.batch.count(row.experiment, row.arm, DECISIONS, row.items, minute)
        if row.level == SILENT:
            self.batch.count(row.experiment, row.arm, SILENT_ONES, row.items, minute)

    def outcome(self, state: State, came: _Came, noise: Any) -> str:
        experiment, made = self.run.experiment, came.made / 1000
        folds = foldable(experiment, came.kind, came.stint)
        if came.outcome == "late":
            if folds:
                state.miss(came.arm, made)
            found = "late"
        elif not folds:
            found = "apart"
        else:
            level = experiment.level_values[came.level]
            now = came.received / 1000
            used = state.receive(came.arm, came.stint, made, self.value(came), level, now, noise)
            found = "used" if used else "late"
            if used:
                key = (experiment.id, came.arm)
                self.used[key] = self.used.get(key, 0) + 1
        what = {"used": USED, "apart": APART, "late": LATE}[found]
        self.batch.count(experiment.id, came.arm, what, 1, came.received // MINUTE)
        return found

    def value(self, came: _Came) -> float:
        experiment = self.run.experiment
        if came.sealed is None:
            return (came.response or 0) / experiment.steps
        about = f"{experiment.id}/{came.decision}/{came.item}".encode()
        return float(struct.unpack("<d", self.keys.unseal(bytes(came.sealed), about))[0])


def _plain(store: Store) -> str:
    return store.url.set(drivername="postgresql").render_as_string(hide_password=False)
