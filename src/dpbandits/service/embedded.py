"""SQLite: one process that decides, folds and writes, all in one transaction for everybody who is waiting."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from dpbandits.exact import SystemNoise
from dpbandits.service.addresses import driver_words
from dpbandits.service.books import Ask, LiveRun, Made, choose, foldable, shown, taken
from dpbandits.service.caps import SentByUsers
from dpbandits.service.commits import Commits
from dpbandits.service.experiment import HOLDOUT, POLICY
from dpbandits.service.files import LostFileError
from dpbandits.service.problems import Refusal, not_running
from dpbandits.service.responses import ACCEPTED, NOT_TAKEN, UNKNOWN, Decided, Item, ItemAnswer, Tell, said_again
from dpbandits.service.rows import ANSWERED, DECIDED, HANDED_OUT, WRITTEN, Rows, released_rows
from dpbandits.service.sealing import seal
from dpbandits.service.state import LiveState
from dpbandits.service.tokens import Token
from dpbandits.service.writer import Unavailable, Untallied

__all__ = ["Embedded", "Tick"]

CHANGED = "it was changed by somebody else, or put back: restart the server"
DAMAGED = "it is damaged, or was overwritten: stop the server, keep a copy of the folder, and restore a backup"
#: What SQLite reports of a file whose log is not its own, or that lacks our tables.
BROKEN = ("SQLITE_IOERR", "SQLITE_ERROR")


@dataclass(slots=True)
class Tick:
    """Time has passed: stints whose window is over are closed."""


Job = Ask | Tell | Tick


@dataclass(eq=False, repr=False)
class Embedded(Commits[Job]):
    """The commits of a server with SQLite."""

    lost = (sqlite3.Error, DBAPIError, OSError)

    noise: SystemNoise = field(default_factory=SystemNoise, init=False)
    #: When this process began, in milliseconds: the file may be a copy that lacks decisions which were made before.
    began: int = field(init=False)
    _broken: bool = field(default=False, init=False)  # whether the last look could not read the file
    _doubts: bool = field(default=False, init=False)  # whether the last answers that came had come before

    def __post_init__(self) -> None:
        self.began = int(1000 * self.clock())

    def look(self) -> None:
        """Look by a new connection whether the file still holds what was stored: it may have been put back, in place.

        What is in memory is read first. From then on the file can only hold more.
        """
        if self.store.path is None or self.store.file.refused is not None:
            return
        known = {number: run.changed for number, run in list(self.runs.items())}
        try:
            with closing(self.store.file.connect("ro", timeout=1.0)) as connection:
                found = dict(connection.execute("select experiment, changed from states").fetchall())
        except sqlite3.OperationalError as error:  # where it is busy or gone, the next commit says so
            before, self._broken = self._broken, error.sqlite_errorname.startswith(BROKEN)
            if before and self._broken:
                raise self.store.file.refuse_all(DAMAGED) from None
            return
        except sqlite3.DatabaseError:
            raise self.store.file.refuse_all(DAMAGED) from None
        self._broken = False
        if any(found.get(number, -1) < changed for number, changed in known.items()):
            raise self.store.file.refuse_all(CHANGED)

    def _opened(self) -> Connection:
        connection = super()._opened()
        self.store.file.look_at_names()
        return connection

    def _lost(self, error: Exception) -> Unavailable:
        if not isinstance(error, LostFileError):  # where the file is gone, SQLite leaves the log as it is
            try:
                self.store.file.forget_log()
            except LostFileError as lost:
                error = lost
        return super()._lost(error)

    def _reason(self, error: Exception) -> str:
        """What SQLite says: that the disk is full, for example. It repeats nothing that was to be stored."""
        return driver_words(self.store.url, error.orig if isinstance(error, DBAPIError) else error)

    def _commit_all(self, connection: Connection, jobs: list[Job]) -> list[Any]:
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

    def _draws(self, job: Job) -> bool:
        """Whether a job may draw noise."""
        if isinstance(job, Tell):
            return job.rewards
        return isinstance(job, Tick) or self.runs[job.experiment].experiment.server_draws

    def _commit_work(self, driver: sqlite3.Connection, jobs: list[Job], *, looks: bool) -> list[Any]:
        cursor = driver.cursor()
        cursor.execute("BEGIN IMMEDIATE")
        try:
            work = _Work(self, cursor, Rows(self.clock()), looks=looks)
            self._doubts = work.read(jobs)
            answers = [work.do(job) for job in jobs]
            changed = work.finish()
            self.store.file.remember(work.rows.now)
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
        #: Which decision an answer that is stored answers, and what became of it, by its key.
        self.told: dict[tuple[int, str, int], tuple[Decided, str, int | None, bytes | None]] = {}
        self.before_start: set[Decided] = set()  # decisions of earlier processes

    def read(self, jobs: list[Job]) -> bool:
        """Read in a few statements what is stored for all of them; whether answers came before, as far as it looks."""
        asks = [job for job in jobs if isinstance(job, Ask)]
        items = [item for job in jobs if isinstance(job, Tell) for item in job.items]
        names = {(ask.experiment, ask.decision) for ask in asks if ask.decision is not None}
        for row in DECIDED.run(self.cursor, list(names), embedded=True):
            made = Made(*row)
            self.asked.setdefault((made.experiment, made.decision), []).append(made)
        old = {one.key for one in items if one.token.lease.made < self.books.began}
        self.before_start = set(HANDED_OUT.run(self.cursor, list(old), embedded=True))
        keys = [one.key for one in items] if self.looks else []
        for row in ANSWERED.run(self.cursor, keys, embedded=True):
            self.told[row[0], row[1], row[2]] = (row[:5], *row[5:])
        again = bool(self.told) or len(set(keys)) < len(keys)
        self.sent = SentByUsers(self.books.runs, asks, items)
        self.sent.read(self.cursor, embedded=True)
        return again

    def do(self, job: Job) -> Any:
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
        silent = self.sent.full(experiment, ask.person)
        made = choose(run, self.state(run), ask, silent, rows.now, books.noise, books.choices)
        if ask.decision is not None:
            self.asked[ask.experiment, ask.decision] = made
        rows.decisions += made
        for row in made:
            rows.count_decisions(row)
        return shown(experiment, made, books.keys)

    def tell(self, item: Item) -> ItemAnswer:
        if self.looks:
            said = self.again(item)
            if said is not None:
                return said
        token, rows = item.token, self.rows
        lease = token.lease
        if lease.made < self.books.began and item.decided not in self.before_start:
            return UNKNOWN
        run = self.books.runs[lease.experiment]
        over = lease.user and self.sent.full(run.experiment, lease.user)  # most tokens name no user
        outcome = self.refuse(run, token) if over else self.outcome(run, token, item.value)
        said = NOT_TAKEN.get(outcome, ACCEPTED)
        response, digest = None, None
        if said is ACCEPTED:
            response = item.response
            if response is None:
                digest = item.digest(self.books.recent)
            if lease.kind == HOLDOUT:
                rows.hold_out(lease.experiment, lease.level, 0, 1, float(response or 0))
        if lease.user:
            self.sent.charge(rows, run.experiment, lease, outcome)
        if self.looks:
            self.told[item.key] = (item.decided, outcome, response, digest)
        rows.answer(lease, outcome, (token.item, token.arm, token.stint, response if digest is None else digest))
        return said

    def again(self, item: Item) -> ItemAnswer | None:
        """What is said to an answer that came before; None to a new one."""
        before = self.told.get(item.key)
        if before is None:
            return None
        decided, outcome, response, digest = before
        if decided != item.decided:  # the answer is to a lost decision, whose name another one has now
            return UNKNOWN
        said = said_again(item, outcome, response, digest, self.books.recent)
        lease = item.token.lease
        self.rows.count_again(lease.experiment, item.token.arm, said)
        self.sent.charge_again(self.rows, self.books.runs[lease.experiment].experiment, lease, said)
        return said

    def refuse(self, run: LiveRun, token: Token) -> str:
        """Take nothing from a user over the cap, and no longer wait for it."""
        lease = token.lease
        if run.experiment.active and foldable(run.experiment, lease.kind, token.stint):
            self.state(run).miss(token.arm, lease.made / 1000)
        self.rows.count_refused(lease.experiment, token.arm, lease.made)
        return "refused"

    def outcome(self, run: LiveRun, token: Token, value: float) -> str:
        lease, now, experiment = token.lease, self.rows.now, run.experiment
        made = lease.made / 1000
        if not experiment.active:
            return "late"
        if lease.kind != POLICY and not foldable(experiment, lease.kind, token.stint):
            return "late" if now > made + experiment.window else "apart"
        state = self.states.get(lease.experiment) or self.state(run)
        level = experiment.level_values[lease.level]
        if not state.receive(token.arm, token.stint, made, value, level, now, self.noise):
            return "late"
        if experiment.server_draws:
            key = (lease.experiment, token.arm)
            self.used[key] = self.used.get(key, 0) + 1
        return "used"

    def finish(self) -> list[tuple[LiveRun, LiveState, int]]:
        """Write everything; the runs that change, with their new state and whether noise was drawn."""
        rows, books = self.rows, self.books
        if not rows.write_answers(self.cursor):
            raise _LookFirst
        changed = []
        for number, state in self.states.items():
            run = books.runs[number]
            drawn = int(run.experiment.server_draws and state.version > self.before[number])
            if drawn:
                rows.releases += released_rows(run, state, self.used, rows.at)
            changed.append((run, state, drawn))
            sealed = seal(books.keys, run.experiment, state)
            self.cursor.execute(
                "update states set version = ?, draws = ?, changed = ?, at = ?, state = ? "
                "where experiment = ? and changed = ?",
                (state.version, run.draws + drawn, run.changed + 1, rows.at, sealed, number, run.changed),
            )
            if self.cursor.rowcount != 1:
                raise books.store.file.refuse_all(CHANGED)
        self.look_at_others()
        rows.write(self.cursor, embedded=True)
        return changed

    def look_at_others(self) -> None:
        """Refuse a file that was put back, also for experiments whose states this transaction does not write."""
        others = {lease.experiment for lease, _, _ in self.rows.answers} - self.states.keys()
        found = dict(WRITTEN.run(self.cursor, [(number,) for number in others], embedded=True))
        if any(found.get(number) != self.books.runs[number].changed for number in others):
            raise self.books.store.file.refuse_all(CHANGED)
