"""Folding: one worker at a time takes what all workers have appended into the state of an experiment.

A worker holds the right to fold an experiment by an advisory lock of its session, and every write of a state checks
the epoch that came with that right. What is to be folded is what is not marked as folded. (What has a higher number
than the last is not enough: rows with lower numbers may become visible later, and would be lost.)
"""

from __future__ import annotations

import struct
import threading
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import psycopg
import structlog

from dpbandits.draws import WatchedGenerator
from dpbandits.errors import InputError
from dpbandits.exact import SystemNoise
from dpbandits.service.books import SILENT, LiveRun, Made, foldable
from dpbandits.service.experiment import HOLDOUT, RANDOM
from dpbandits.service.keyring import Keyring
from dpbandits.service.logs import where
from dpbandits.service.responses import NOT_TAKEN
from dpbandits.service.rows import MINUTE, OUTCOMES, Rows, released_rows
from dpbandits.service.sealing import opened, seal
from dpbandits.service.shared import LOST, Shared
from dpbandits.service.state import LiveState
from dpbandits.service.store import LIVELY, Database
from dpbandits.service.writer import Unavailable, Untallied

__all__ = ["Folder"]

log = structlog.get_logger("dpbandits")

LEASE = 0x6470  # the first key of the advisory locks under which experiments are folded
IDLE = 0.02  # seconds between looks where nothing is to be folded
MOST_ANSWERS = 5000  # in a fold
RETRY = 5.0  # seconds until a fold that failed is tried again
PATIENCE = 60.0  # seconds for which the folds of an experiment that was put away may fail
#: What waits is given up, and no reward stays.
GIVE_UP = (
    "update answers set folded = true, sealed = null, outcome = 'late' where experiment = %s and not folded",
    "update decisions set folded = true where experiment = %s and not folded",
)
ACTIVE = (
    "select id, revision from experiments e where status in ('running', 'paused') "
    "or exists (select from answers where experiment = e.id and not folded) "
    "or exists (select from decisions where experiment = e.id and not folded)"
)
MARK_DECISIONS = (
    "update decisions set folded = true from unnest(%s::text[], %s::int[]) as one(d, f) "
    "where experiment = %s and decision = d and first = f"
)
MARK_ANSWERS = (
    "update answers set folded = true, sealed = null, outcome = o from unnest(%s::text[], %s::int[], %s::text[]) "
    "as one(d, i, o) where experiment = %s and decision = d and item = i"
)


@dataclass
class _Lead:
    """The right to fold an experiment."""

    epoch: int
    run: LiveRun | None = None  # as this worker has folded it; None until it is read
    restored: bool = False  # whether noise was drawn that the database does not know of


class Folder:
    """The thread that folds the experiments of which this worker has the right."""

    def __init__(self, books: Shared) -> None:
        self.books = books
        books.appended = self.wake
        self._thread = threading.Thread(target=self._run, name="folder", daemon=True)
        self._stopping, self._came = threading.Event(), threading.Event()
        self._leads: dict[int, _Lead] = {}
        self._failed: dict[int, float] = {}  # until when an experiment whose fold failed is left alone
        self._failing: dict[int, float] = {}  # since when all folds of an experiment have failed
        self._noise, self._choices = SystemNoise(), WatchedGenerator()

    def start(self) -> None:
        """Begin to fold."""
        self._thread.start()

    def wake(self) -> None:
        """There is something to be folded."""
        self._came.set()

    def stop(self) -> None:
        """Finish the fold that is under way, give the rights to fold back, and stop."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                with psycopg.connect(_plain(self.books.store), autocommit=True, **LIVELY) as connection:
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
            active = self._active(connection)
            self._leave(connection, set(self._leads).difference(active))
            for number in active:
                if self._failed.get(number, 0.0) < time.monotonic():
                    busy |= self._try(connection, number)
            if not busy:
                self._came.wait(IDLE)
                self._came.clear()

    def _try(self, connection: psycopg.Connection[Any], number: int) -> bool:
        """Fold one experiment. Where that fails for a reason of its own, the others go on."""
        try:
            lead = self._leads.get(number) or self._take(connection, number)
            folded = lead is not None and self._fold(connection, number, lead)
        except LOST:
            raise
        except Exception as error:
            self._failed[number] = time.monotonic() + RETRY
            run = self.books.runs.get(number)
            if run is not None and isinstance(error, Untallied):
                log.warning("cannot fold", experiment=run.experiment.name, reason=str(error))
                return False
            self._leave(connection, {number}.intersection(self._leads))
            if run is not None:  # if not, it was found meanwhile that the database lacks it
                log.error("cannot fold", experiment=run.experiment.name, where=where(error))
                self._fail(connection, run)
            return False
        self._failing.pop(number, None)
        return folded

    def _fail(self, connection: psycopg.Connection[Any], run: LiveRun) -> None:
        """What was accepted waits until the error is fixed, also if the experiment is stopped.

        Only if its owner has put the experiment away, and its folds go on to fail, is it given up.
        """
        number = run.experiment.id
        since = self._failing.setdefault(number, time.monotonic())
        if run.experiment.status == "archived" and time.monotonic() - since > PATIENCE:
            for statement in GIVE_UP:
                connection.execute(statement, (number,))
            log.error("given up", experiment=run.experiment.name, reason="what waited could not be folded")

    def _active(self, connection: psycopg.Connection[Any]) -> list[int]:
        """The experiments that run, and those that were stopped and for which something came before that."""
        found = connection.execute(ACTIVE).fetchall()
        for number, revision in found:
            run = self.books.runs.get(number)
            if run is None and self._failed.get(number, 0.0) > time.monotonic():
                continue
            if run is None or run.experiment.revision != revision:
                with self.books.store.opened() as other:
                    self.books.reload(other, number)
                if number not in self.books.runs:  # it cannot be loaded
                    self._failed[number] = time.monotonic() + RETRY
        return [number for number, _ in found if number in self.books.runs]

    def _leave(self, connection: psycopg.Connection[Any], numbers: set[int]) -> None:
        """Give the right to fold experiments back."""
        for number in numbers:
            del self._leads[number]
            connection.execute("select pg_advisory_unlock(%s, %s)", (LEASE, number))
            self.books.metrics.leading.set(len(self._leads))

    def _take(self, connection: psycopg.Connection[Any], number: int) -> _Lead | None:
        """Become the one who folds an experiment, if nobody else is."""
        row = connection.execute("select pg_try_advisory_lock(%s, %s)", (LEASE, number)).fetchone()
        if row is None or not row[0]:
            return None
        epoch = connection.execute(
            "update states set epoch = epoch + 1 where experiment = %s returning epoch", (number,)
        ).fetchone()
        if epoch is None:  # the database lacks it
            connection.execute("select pg_advisory_unlock(%s, %s)", (LEASE, number))
            return None
        lead = self._leads[number] = _Lead(epoch[0])
        self.books.metrics.leading.set(len(self._leads))
        log.info("leading", experiment=self._name(number), epoch=lead.epoch)
        return lead

    def _name(self, number: int) -> str | None:
        """The name of an experiment; None where it was found meanwhile that the database lacks it."""
        run = self.books.runs.get(number)
        return None if run is None else run.experiment.name

    def _fold(self, connection: psycopg.Connection[Any], number: int, lead: _Lead) -> bool:
        """Fold what is not yet folded; whether there was anything."""
        with connection.transaction(), connection.cursor() as cursor:
            cursor.execute(
                "select epoch, changed, draws, state from states where experiment = %s for update", (number,)
            )
            epoch, changed, draws, sealed = cursor.fetchone() or (None, 0, 0, b"")
            if epoch != lead.epoch:  # another worker leads, or the database lacks it
                log.warning("no longer leading", experiment=self._name(number))
                self._leave(connection, {number})
                return False
            experiment = self.books.runs[number].experiment
            cursor.execute("select revision from experiments where id = %s", (number,))
            if cursor.fetchone() != (experiment.revision,):  # it has just been changed: the next look reads it
                return True
            run = lead.run
            if run is None or changed != run.changed or experiment.revision != run.experiment.revision:
                run = LiveRun(experiment, opened(self.books.keys, experiment, sealed), epoch, draws, changed)
                lead.restored = self.books.tally.ahead_of(
                    run
                )  # before lead.run is set: if it fails, the next fold looks again
                lead.run = run
            if not lead.restored:
                self.books.tally.count(run)  # nothing more is drawn before that
            fold = _Fold(run, cursor, Rows(self.books.clock()), self.books.keys, draws=not lead.restored)
            halts = lead.restored and experiment.active
            made = None if halts else fold.do(self._noise, self._choices)
        if halts:
            self.books.halt(number)
        if made is None:
            return halts
        lead.run = made
        self.books.tally.count(made)
        self.books.metrics.count(fold.rows, self.books.runs)
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

    def __init__(self, run: LiveRun, cursor: Any, rows: Rows, keys: Keyring, *, draws: bool) -> None:
        self.run, self.cursor, self.rows, self.keys = run, cursor, rows, keys
        self.draws = draws and run.experiment.status != "halted"  # whether noise may be drawn
        self.used: dict[tuple[int, int], int] = {}

    def do(self, noise: Any, choices: Any) -> LiveRun | None:
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
        stints = self.run.experiment.active and state.desk.by_stint
        due = stints and state.desk.asked[0] > 0 and state.desk.closing[0] < self.rows.now
        if not (answers or decisions or due or (stints and state.desk.asked[0] == 0 and not state.over)):
            return None
        before = state.version
        for row in decisions:
            self.note(state, row)
        outcomes = [self.outcome(state, _Came(*row), noise) for row in answers]
        if self.run.experiment.active:
            state.open(self.rows.now, noise, choices)
        drawn = int(self.run.experiment.server_draws and state.version > before)
        made = LiveRun(self.run.experiment, state, self.run.epoch, self.run.draws + drawn, self.run.changed + 1)
        if drawn:
            self.rows.releases += released_rows(made, state, self.used, self.rows.at)
        self.write(made, decisions, answers, outcomes)
        state.released = []
        return made

    def write(self, made: LiveRun, decisions: list[Made], answers: list[Any], outcomes: list[str]) -> None:
        number, state = made.experiment.id, made.state
        if decisions:
            self.cursor.execute(
                MARK_DECISIONS, ([row.decision for row in decisions], [row.first for row in decisions], number)
            )
        if answers:
            self.cursor.execute(
                MARK_ANSWERS, ([row[0] for row in answers], [row[1] for row in answers], outcomes, number)
            )
        self.rows.write(self.cursor, embedded=False)
        sealed = seal(self.keys, made.experiment, state)
        self.cursor.execute(
            "update states set version = %s, draws = %s, changed = %s, at = %s, state = %s "
            "where experiment = %s and epoch = %s",
            (state.version, made.draws, made.changed, self.rows.at, sealed, number, made.epoch),
        )
        if self.cursor.rowcount != 1:
            raise Unavailable("another worker folds this experiment")

    def note(self, state: LiveState, row: Made) -> None:
        experiment, now = self.run.experiment, row.made / 1000
        if row.level > SILENT and foldable(experiment, row.kind, row.stint):
            stint = row.stint if experiment.by_stint else 0
            if not (experiment.by_stint and stint == 0):
                state.note(row.arm, stint, now, row.items)
        state.random_decisions += row.items * (row.kind == RANDOM)
        self.rows.count_decisions(row)

    def outcome(self, state: LiveState, came: _Came, noise: Any) -> str:
        experiment, made = self.run.experiment, came.made / 1000
        if not experiment.has(came.arm, came.level):  # a copy was restored that is older than the arm
            return "late"
        folds = foldable(experiment, came.kind, came.stint)
        value = self.value(came)
        if came.outcome in NOT_TAKEN or value is None or not self.draws:
            if folds:
                state.miss(came.arm, made)
            found = came.outcome if came.outcome in NOT_TAKEN else "late"
            if found == "refused":
                self.rows.count_refused(experiment.id, came.arm, came.made)
        elif not folds:
            found = "apart"
            if came.kind == HOLDOUT:
                self.rows.hold_out(experiment.id, came.level, 0, 1, float(came.response or 0))
        else:
            level = experiment.level_values[came.level]
            now = came.received / 1000
            used = state.receive(came.arm, came.stint, made, value, level, now, noise)
            found = "used" if used else "late"
            if used:
                key = (experiment.id, came.arm)
                self.used[key] = self.used.get(key, 0) + 1
        self.rows.count(experiment.id, came.arm, OUTCOMES[found], 1, came.received // MINUTE)
        return found

    def value(self, came: _Came) -> float | None:
        """What the curator takes; None if it is damaged: then it must not keep the others waiting."""
        experiment = self.run.experiment
        if came.sealed is None:
            return (came.response or 0) / experiment.steps
        about = f"{experiment.id}/{came.decision}/{came.item}".encode()
        try:
            return float(struct.unpack("<d", self.keys.unseal(bytes(came.sealed), about))[0])
        except InputError:
            log.error("a stored reward is damaged", experiment=experiment.name)
            return None


def _plain(store: Database) -> str:
    return store.url.set(drivername="postgresql").render_as_string(hide_password=False)
