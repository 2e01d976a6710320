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
from dpbandits.service.books import (
    ACCEPTED,
    NOT_TAKEN,
    SILENT,
    Ask,
    Choices,
    Item,
    LiveRun,
    Made,
    Outcome,
    Tell,
    choose,
    foldable,
    said_again,
    shown,
    spends,
    taken,
)  # fmt: skip
from dpbandits.service.clock import Clock
from dpbandits.service.experiment import HOLDOUT, POLICY
from dpbandits.service.keyring import Keyring
from dpbandits.service.metrics import Metrics
from dpbandits.service.problems import Refusal, not_running
from dpbandits.service.recent import Recent
from dpbandits.service.rows import (
    ANSWERED,
    DECIDED,
    DECISIONS,
    SENT,
    SILENT_ONES,
    Rows,
)  # fmt: skip
from dpbandits.service.state import LiveState
from dpbandits.service.store import Database, discard
from dpbandits.service.tally import Tally
from dpbandits.service.tokens import Token
from dpbandits.service.writer import Unavailable, Untallied

__all__ = ["Control", "Embedded", "Tick", "released_rows"]

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
        self,
        store: Database,
        keys: Keyring,
        recent: Recent,
        clock: Clock,
        tally: Tally,
        runs: dict[int, LiveRun],
        metrics: Metrics,
    ) -> None:
        self.store, self.keys, self.recent, self.clock, self.tally, self.runs = store, keys, recent, clock, tally, runs
        self.metrics = metrics
        self.noise, self.choices = SystemNoise(), Choices()
        self._connection: Connection | None = None
        self._file: tuple[int, int] | None = None
        self._doubts = False  # whether the last answers that came had come before

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
        try:
            return self._commit_all(self._opened(), jobs)
        except Exception as error:
            if isinstance(error, (*LOST, Unavailable)) and not isinstance(error, Untallied):
                raise
            return [error] if len(jobs) == 1 else [answer for job in jobs for answer in self._commit_hot([job])]

    def _lost(self, error: Exception) -> Unavailable:
        """Nothing was stored: the next commit tries a new connection."""
        self.metrics.failures.inc()
        discard(self._connection)
        self._connection = None
        return Unavailable(f"the database cannot be written: {getattr(error, 'orig', None) or error}")

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
        """In one transaction. Looking for earlier answers costs as much as storing: most answers come once.

        So they are stored as if they were new. If one is not, all of it is undone, and done again with a look first.
        Where noise is drawn the look always comes first: nothing is drawn and then thrown away.
        """
        driver: sqlite3.Connection = connection.connection.driver_connection  # type: ignore[assignment]
        looks = self._doubts or any(self._draws(job) for job in jobs)
        try:
            return self._commit_work(driver, jobs, looks=looks)
        except _LookFirst:
            return self._commit_work(driver, jobs, looks=True)

    def _draws(self, job: Ask | Tell | Tick) -> bool:
        """Whether a job may draw noise."""
        if isinstance(job, Tell):
            return job.rewards
        return isinstance(job, Tick) or self.runs[job.experiment].experiment.server_draws

    def _commit_work(self, driver: sqlite3.Connection, jobs: list[Ask | Tell | Tick], *, looks: bool) -> list[Any]:
        cursor = driver.cursor()
        cursor.execute("BEGIN IMMEDIATE")
        try:
            work = _Work(self, cursor, Rows(self.clock()), looks=looks)
            self._doubts = work.read(jobs)
            answers = [work.do(job) for job in jobs]
            changed = work.finish()
            cursor.execute("COMMIT")
        except BaseException:
            if driver.in_transaction:
                cursor.execute("ROLLBACK")
            raise
        for run, state, drawn in changed:
            run.state, run.draws, run.changed = state, run.draws + drawn, run.changed + 1
        try:
            for run, _, _ in changed:
                self.tally.count(run)
        except Untallied as error:  # it is stored, and nobody is told, nor the metrics
            self.metrics.failures.inc()
            return [error if self._draws(job) else answer for job, answer in zip(jobs, answers, strict=True)]
        self.metrics.count(work.rows, self.runs)
        return answers


class _LookFirst(Exception):  # noqa: N818  # it is caught, and no error
    """An answer that was taken for new is not, or may not be."""


class _Work:
    """One transaction: what was read before, rows to be written, and copies of the states that it changes."""

    def __init__(self, books: Embedded, cursor: sqlite3.Cursor, rows: Rows, *, looks: bool) -> None:
        self.books, self.cursor, self.rows, self.looks = books, cursor, rows, looks
        self.noise = books.noise
        self.states: dict[int, LiveState] = {}
        self.before: dict[int, int] = {}
        self.used: dict[tuple[int, int], int] = {}  # responses by experiment and arm
        self.asked: dict[tuple[int, str], list[Made]] = {}
        self.told: dict[tuple[int, str, int], tuple[str, int | None, bytes | None]] = {}
        self.sent: dict[tuple[int, bytes], int] = {}  # responses by experiment and user, where there is a cap

    def read(self, jobs: list[Ask | Tell | Tick]) -> bool:
        """Read in a few statements what is stored for all of them; whether answers came before, as far as it looks."""
        asks = [job for job in jobs if isinstance(job, Ask)]
        items = [item for job in jobs if isinstance(job, Tell) for item in job.items]
        names = {(ask.experiment, ask.decision) for ask in asks if ask.decision is not None}
        for row in DECIDED.run(self.cursor, list(names), embedded=True):
            made = Made(*row)
            self.asked.setdefault((made.experiment, made.decision), []).append(made)
        keys = [one.key for one in items] if self.looks else []
        for *key, outcome, response, digest in ANSWERED.run(self.cursor, keys, embedded=True):
            self.told[key[0], key[1], key[2]] = outcome, response, digest
        again = bool(self.told) or len(set(keys)) < len(keys)
        capped = {number for number, run in self.books.runs.items() if run.experiment.cap is not None}
        if capped:
            users = {(ask.experiment, ask.person) for ask in asks if ask.person and ask.experiment in capped}
            told = (item.token for item in items)
            users |= {(one.experiment, one.user) for one in told if one.user and one.experiment in capped}
            for number, person, responses in SENT.run(self.cursor, list(users), embedded=True):
                self.sent[number, person] = self.sent.get((number, person), 0) + responses
        return again

    def do(self, job: Ask | Tell | Tick) -> Any:
        if isinstance(job, Ask):
            return self.ask(job)
        if isinstance(job, Tell):
            return [self.tell(item) for item in job.items]
        for run in self.books.runs.values():
            desk = run.state.desk
            if run.experiment.active and desk.by_stint and desk.asked[0] > 0 and desk.closing[0] < self.rows.now:
                self.state(run).tick(self.rows.now, self.books.noise)
        return None

    def state(self, run: LiveRun) -> LiveState:
        number = run.experiment.id
        found = self.states.get(number)
        if found is None:
            self.books.tally.count(run)
            found = self.states[number] = run.state.copy()
            self.before[number] = found.version
        return found

    def ask(self, ask: Ask) -> bytes | Refusal:
        books, rows = self.books, self.rows
        run = books.runs[ask.experiment]
        experiment = run.experiment
        if ask.decision is not None:
            before = self.asked.get((ask.experiment, ask.decision))
            if before:
                books.tally.count(run)
                return taken(experiment, before[0], ask) or shown(experiment, before, books.keys)
        if experiment.status != "running":
            return not_running(experiment)
        made = choose(
            run, self.state(run), ask, self.full(run, ask.person), rows.now, books.noise, books.choices
        )  # fmt: skip
        if ask.decision is not None:
            self.asked[ask.experiment, ask.decision] = made
        rows.decisions += made
        for row in made:
            rows.count(row.experiment, row.arm, DECISIONS, row.items)
            if row.level == SILENT:
                rows.count(row.experiment, row.arm, SILENT_ONES, row.items)
            if row.kind == HOLDOUT:
                rows.hold_out(row.experiment, row.level, row.items)
        return shown(experiment, made, books.keys)

    def full(self, run: LiveRun, person: bytes) -> bool:
        """Whether nothing more is taken from a user."""
        cap = run.experiment.cap
        return cap is not None and person != b"" and self.sent.get((run.experiment.id, person), 0) >= cap

    def tell(self, item: Item) -> Outcome:
        if self.looks:
            said = self.again(item)
            if said is not None:
                return said
        token, rows = item.token, self.rows
        number, user = token.experiment, token.user
        run = self.books.runs[number]
        outcome = self.refuse(run, token) if self.full(run, user) else self.outcome(run, token, item.value)
        response, digest = None, None
        if outcome not in NOT_TAKEN:
            response = item.response
            if response is None:
                digest = item.digest(self.books.recent)
            if token.kind == HOLDOUT:
                rows.hold_out(number, token.level, 0, 1, float(response or 0))
        if user and spends(run.experiment, outcome):
            rows.charge(number, user, token.level)
            self.sent[number, user] = self.sent.get((number, user), 0) + 1
        if self.looks:
            self.told[item.key] = (outcome, response, digest)
        rows.answers[outcome].append(
            (
                number, token.decision, token.item, token.arm, token.stint, token.kind, token.level, token.made,
                response, digest,
            )
        )  # fmt: skip
        return NOT_TAKEN.get(outcome, ACCEPTED)

    def again(self, item: Item) -> Outcome | None:
        """What is said to an answer that came before; None to a new one."""
        before = self.told.get(item.key)
        if before is None:
            return None
        said = said_again(item, *before, self.books.recent)
        self.rows.count_again(item.token.experiment, item.token.arm, said)
        return said

    def refuse(self, run: LiveRun, token: Token) -> str:
        """Take nothing from a user over the cap, and no longer wait for it."""
        if run.experiment.active and foldable(run.experiment, token.kind, token.stint):
            self.state(run).miss(token.arm, token.made / 1000)
        self.rows.count_refused(token.experiment, token.arm, token.made)
        return "refused"

    def outcome(self, run: LiveRun, token: Token, value: float) -> str:
        now, experiment, made = self.rows.now, run.experiment, token.made / 1000
        if not experiment.active:
            return "late"
        if token.kind != POLICY and not foldable(experiment, token.kind, token.stint):
            return "late" if now > made + experiment.window else "apart"
        state = self.states.get(token.experiment) or self.state(run)
        level = experiment.level_values[token.level]
        if not state.receive(token.arm, token.stint, made, value, level, now, self.noise):
            return "late"
        if experiment.server_draws:
            key = (token.experiment, token.arm)
            self.used[key] = self.used.get(key, 0) + 1
        return "used"

    def finish(self) -> list[tuple[LiveRun, LiveState, int]]:
        """Write everything; the runs that change, with their new state and whether noise was drawn."""
        rows, books = self.rows, self.books
        rows.count_answers()
        changed = []
        for number, state in self.states.items():
            run = books.runs[number]
            drawn = int(run.experiment.server_draws and state.version > self.before[number])
            if drawn:
                rows.releases += released_rows(run, state, self.used, rows.at)
            changed.append((run, state, drawn))
            sealed = books.keys.seal(msgspec.json.encode(state.freeze()), run.experiment.name.encode())
            self.cursor.execute(
                "update states set version = ?, draws = ?, changed = ?, at = ?, state = ? "
                "where experiment = ? and changed = ?",
                (state.version, run.draws + drawn, run.changed + 1, rows.at, sealed, number, run.changed),
            )
            if self.cursor.rowcount != 1:
                raise Unavailable("the database was changed by somebody else: restart the server")
        if not rows.write(self.cursor, embedded=True):
            raise _LookFirst
        return changed


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
