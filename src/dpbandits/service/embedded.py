"""SQLite: one process that decides, folds and writes, all in one transaction for everybody who is waiting."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from dpbandits.exact import SystemNoise
from dpbandits.service.batch import APART, DECISIONS, DUPLICATE, LATE, REFUSED, SILENT_ONES, USED, Batch, Contents, Sql
from dpbandits.service.books import SILENT, Ask, Choices, Item, Made, Run, Tell, choose, foldable, shown
from dpbandits.service.clock import Clock
from dpbandits.service.keyring import Keyring
from dpbandits.service.metrics import Metrics
from dpbandits.service.problems import Problem, not_running
from dpbandits.service.state import State
from dpbandits.service.store import Store
from dpbandits.service.tally import Tally
from dpbandits.service.writer import Unavailable

__all__ = ["CAPPED", "Control", "Embedded", "Tick", "released_rows"]

CAPPED = "this user has sent as many responses as max_responses_per_user allows; nothing was taken"
SQL = Sql.of("?")
LOST = (sqlite3.Error, DBAPIError, OSError)


@dataclass(slots=True)
class Tick:
    """Time has passed: stints whose window is over are closed."""


@dataclass(slots=True)
class Control:
    """Something else that is written, in a transaction of its own."""

    act: Callable[[Connection], Any]
    then: Callable[[], None] | None = None  # what changes in memory, once it is on disk


Job = Ask | Tell | Tick | Control


class Embedded:
    """The commits of a server with SQLite. Only the writer's thread calls it."""

    def __init__(
        self, store: Store, keys: Keyring, clock: Clock, tally: Tally | None, runs: dict[int, Run], metrics: Metrics
    ) -> None:
        self.store, self.keys, self.clock, self.tally, self.runs = store, keys, clock, tally, runs
        self.metrics = metrics
        self._noise, self._choices, self._contents = SystemNoise(), Choices(), Contents()
        self._connection: Connection | None = None
        self._file: tuple[int, int] | None = None
        self._untallied: dict[str, int] = {}

    def commit(self, jobs: list[Job]) -> list[Any]:
        """Store what the jobs ask for; the answer to each."""
        try:
            hot = [job for job in jobs if not isinstance(job, Control)]
            answers = iter(self._commit_hot(hot) if hot else [])
        except LOST as error:
            answers = iter([self._lost(error)] * len(jobs))
        return [self._control(job) if isinstance(job, Control) else next(answers) for job in jobs]

    def _commit_hot(self, jobs: list[Ask | Tell | Tick]) -> list[Any]:
        """In one transaction; where one of them fails for a reason of its own, each in one of its own."""
        self._count_draws()
        try:
            return self._commit_all(self._opened(), jobs)
        except (*LOST, Unavailable):
            raise
        except Exception as error:
            return [error] if len(jobs) == 1 else [answer for job in jobs for answer in self._commit_hot([job])]

    def _lost(self, error: Exception) -> Unavailable:
        """Nothing was stored: the next commit tries a new connection."""
        self.metrics.failures.inc()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()
        return Unavailable(f"the database cannot be written: {getattr(error, 'orig', None) or error}")

    def _count_draws(self) -> None:
        """Count every draw outside the database before anything that depends on it is shown."""
        if self._untallied and self.tally is not None:
            self.tally.record(self._untallied)
        self._untallied = {}

    def _opened(self) -> Connection:
        if self.store.path is not None:
            try:
                found = os.stat(self.store.path)
            except FileNotFoundError:
                raise Unavailable(f"the database is gone: {self.store.path}") from None
            if self._file not in (None, (found.st_dev, found.st_ino)):
                raise Unavailable("the database was replaced by another file: restart the server")
            self._file = (found.st_dev, found.st_ino)
        if self._connection is None:
            self._connection = self.store.engine.connect()
        return self._connection

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def _control(self, job: Control) -> Any:
        try:
            connection = self._opened()
            with connection.begin():
                answer = job.act(connection)
        except LOST as error:
            return self._lost(error)
        except Exception as error:  # refused: the transaction is undone, and the caller is told why
            return error
        if job.then is not None:
            job.then()
        return answer

    def _commit_all(self, connection: Connection, jobs: list[Ask | Tell | Tick]) -> list[Any]:
        driver: sqlite3.Connection = connection.connection.driver_connection  # type: ignore[assignment]
        cursor = driver.cursor()
        cursor.execute("BEGIN IMMEDIATE")
        try:
            work = _Work(self, cursor, Batch(self.clock()))
            answers = [work.do(job) for job in jobs]
            changed = work.finish()
            cursor.execute("COMMIT")
        except BaseException:
            if driver.in_transaction:
                cursor.execute("ROLLBACK")
            raise
        for run, state, drawn in changed:
            run.state, run.draws, run.changed = state, run.draws + drawn, run.changed + 1
        self._untallied = {run.experiment.tallied: run.draws for run, _, drawn in changed if drawn}
        self._count_draws()
        for keep in work.contents:
            self._contents.keep(*keep)
        self.metrics.count(work.batch, self.runs)
        return answers


class _Work:
    """One transaction: rows to be written, and copies of the states that it changes."""

    def __init__(self, books: Embedded, cursor: sqlite3.Cursor, batch: Batch) -> None:
        self.books, self.cursor, self.batch = books, cursor, batch
        self.states: dict[int, State] = {}
        self.before: dict[int, int] = {}
        self.used: dict[tuple[int, int], int] = {}  # responses by experiment and arm
        self.asked: dict[tuple[int, str], list[Made]] = {}
        self.told: dict[tuple[int, str, int], tuple[str, int | None]] = {}
        self.read: set[tuple[int, str]] = set()  # decisions of which all answers are in ``told``
        self.contents: list[tuple[tuple[int, str, int], float]] = []

    def do(self, job: Ask | Tell | Tick) -> Any:
        if isinstance(job, Ask):
            return self.ask(job)
        if isinstance(job, Tell):
            self.read_answers(job.items)
            return [self.tell(item) for item in job.items]
        for run in self.books.runs.values():
            desk = run.state.desk
            if run.experiment.active and desk.by_stint and desk.asked[0] > 0 and desk.closing[0] < self.batch.now:
                self.state(run).tick(self.batch.now, self.books._noise)
        return None

    def state(self, run: Run) -> State:
        number = run.experiment.id
        found = self.states.get(number)
        if found is None:
            found = self.states[number] = run.state.copy()
            self.before[number] = found.version
        return found

    def ask(self, ask: Ask) -> bytes | Problem:
        books, batch = self.books, self.batch
        run = books.runs[ask.experiment]
        if ask.decision is not None:
            rows = self.stored(ask.experiment, ask.decision)
            if rows:
                return shown(run.experiment, rows, books.keys)
        experiment = run.experiment
        if experiment.status != "running":  # it was paused or stopped meanwhile
            return not_running(experiment)
        silent = (
            experiment.cap is not None and ask.person != b"" and self.sent(ask.experiment, ask.person) >= experiment.cap
        )
        rows = choose(run, self.state(run), ask, silent, batch.now, books._noise, books._choices)
        if ask.decision is not None:
            self.asked[ask.experiment, ask.decision] = rows
        batch.decisions += rows
        for row in rows:
            batch.count(row.experiment, row.arm, DECISIONS, row.items)
            if row.level == SILENT:
                batch.count(row.experiment, row.arm, SILENT_ONES, row.items)
        return shown(experiment, rows, books.keys)

    def stored(self, experiment: int, decision: str) -> list[Made]:
        found = self.asked.get((experiment, decision))
        if found is None:
            columns = ", ".join(Made._fields)
            self.cursor.execute(
                f"select {columns} from decisions where experiment = ? and decision = ? order by first",
                (experiment, decision),
            )
            found = [Made(*row) for row in self.cursor.fetchall()]
        return found

    def sent(self, experiment: int, person: bytes) -> int:
        self.cursor.execute(
            "select coalesce(sum(responses), 0) from people where experiment = ? and person = ?", (experiment, person)
        )
        stored: int = self.cursor.fetchone()[0]
        return stored + sum(n for key, n in self.batch.people.items() if key[:2] == (experiment, person))

    def read_answers(self, items: list[Item]) -> None:
        """Read what is stored for these decisions: a lease in one look, a single decision by its key."""
        leases = {(item.token.experiment, item.token.decision) for item in items}
        for experiment, decision in leases - self.read:
            self.read.add((experiment, decision))
            self.cursor.execute(
                "select item, outcome, response from answers where experiment = ? and decision = ?",
                (experiment, decision),
            )
            for item, outcome, response in self.cursor:
                self.told[experiment, decision, item] = (outcome, response)

    def tell(self, item: Item) -> tuple[str, str]:
        """(status, reason)."""
        token, batch = item.token, self.batch
        key = (token.experiment, token.decision, token.item)
        before = self.told.get(key)
        if before is not None:
            return self.again(item, key, *before)
        run = self.books.runs[token.experiment]
        experiment = run.experiment
        if experiment.cap is not None and token.user and self.sent(token.experiment, token.user) >= experiment.cap:
            batch.count(token.experiment, token.arm, REFUSED)
            return "invalid", CAPPED
        outcome = self.outcome(run, item)
        batch.count(token.experiment, token.arm, {"used": USED, "apart": APART, "late": LATE}[outcome])
        if token.user and outcome != "late":
            batch.charge(token.experiment, token.user, token.level)
        self.told[key] = (outcome, item.response)
        if item.response is None:
            self.contents.append((key, item.value))
        batch.answers.append(
            (
                *key, token.arm, token.stint, token.kind, token.level, token.made, batch.at, outcome,
                None if outcome == "late" else item.response, None, True,
            )
        )  # fmt: skip
        return (
            ("late", "it came after its window, or after its stint was closed")
            if outcome == "late"
            else ("accepted", "")
        )

    def again(self, item: Item, key: tuple[int, str, int], outcome: str, response: int | None) -> tuple[str, str]:
        token = item.token
        if outcome == "late":
            return "late", "it came after its window, or after its stint was closed"
        known = [value for one, value in self.contents if one == key] if item.response is None else []
        other = known[0] != item.value if known else self.books._contents.contradicts(key, item.value)
        if (item.response is not None and response != item.response) or (item.response is None and other):
            self.batch.count(token.experiment, token.arm, REFUSED)
            return "conflict", "another answer to this decision is stored, and stands"
        self.batch.count(token.experiment, token.arm, DUPLICATE)
        return "duplicate", ""

    def outcome(self, run: Run, item: Item) -> str:
        token, now, experiment = item.token, self.batch.now, run.experiment
        made = token.made / 1000
        if not experiment.active:
            return "late"
        if not foldable(experiment, token.kind, token.stint):
            return "late" if now > made + experiment.window else "apart"
        level = experiment.level_values[token.level]
        state = self.state(run)
        used = state.receive(token.arm, token.stint, made, item.value, level, now, self.books._noise)
        if used:
            key = (token.experiment, token.arm)
            self.used[key] = self.used.get(key, 0) + 1
        return "used" if used else "late"

    def finish(self) -> list[tuple[Run, State, int]]:
        """Write everything; the runs that change, with their new state and whether noise was drawn."""
        batch, books = self.batch, self.books
        changed = []
        for number, state in self.states.items():
            run = books.runs[number]
            drawn = int(run.experiment.server_draws and state.version > self.before[number])
            if drawn:
                batch.releases += released_rows(run, state, self.used, batch.at)
            changed.append((run, state, drawn))
            sealed = books.keys.seal(msgspec.json.encode(state.freeze()), run.experiment.name.encode())
            self.cursor.execute(
                "update states set version = ?, draws = ?, changed = ?, at = ?, state = ? where experiment = ?",
                (state.version, run.draws + drawn, run.changed + 1, batch.at, sealed, number),
            )
        batch.write(self.cursor, SQL)
        return changed


def released_rows(run: Run, state: State, used: dict[tuple[int, int], int], at: int) -> list[tuple[Any, ...]]:
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
