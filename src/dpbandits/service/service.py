"""A server without its network: it opens the store, holds the running experiments, and takes what is asked of it."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack, suppress
from typing import Any

import sqlalchemy as sa
import structlog
from sqlalchemy.engine import Connection

from dpbandits.errors import InputError
from dpbandits.service import access, changes, demo
from dpbandits.service.addresses import shown_address
from dpbandits.service.books import LiveRun
from dpbandits.service.clock import Clock
from dpbandits.service.embedded import Embedded, Tick
from dpbandits.service.folding import Folder
from dpbandits.service.keyring import Keyring, alone
from dpbandits.service.logs import where
from dpbandits.service.metrics import Metrics
from dpbandits.service.planner import WAITING, Planner
from dpbandits.service.probing import Probe
from dpbandits.service.problems import Refusal, not_loaded
from dpbandits.service.recent import Recent
from dpbandits.service.sealing import fit, not_lost, opened
from dpbandits.service.settings import ServerSettings
from dpbandits.service.shared import Shared
from dpbandits.service.starting import read_experiment, refuse_shared_files, refuse_unkept
from dpbandits.service.store import Database
from dpbandits.service.tables import experiments, states
from dpbandits.service.tally import Tally
from dpbandits.service.tending import Tending
from dpbandits.service.threads import Threads
from dpbandits.service.writer import Missing, Unavailable, Untallied, Writer

__all__ = ["Service"]

log = structlog.get_logger("dpbandits")

TICK = 0.25  # seconds between looks at what is due
REREAD = 2.0  # seconds between looks at keys that were made or revoked elsewhere
AHEAD = 60.0  # seconds by which a stored time may be later than the clock without a word in the log
EXPORTS = 2  # that are made at the same time
RESTORED = "an old copy of the database was restored: noise would be drawn a second time; start a new experiment"


class Service:
    """One process of a server."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.runs: dict[int, LiveRun] = {}
        self.names: dict[str, LiveRun] = {}
        self.aside: dict[int, str] = {}  # the names of experiments that cannot be loaded, until the server restarts
        self.valid: dict[str, access.ApiKey] = {}
        self.guarded = False  # whether a key is needed: once one was ever made, even if none is left
        self.store = Database(settings.store, synchronous=settings.synchronous)
        self.clock = Clock(wall=lambda: 0.0)  # until the database is open; it never goes back when that is opened again
        self.planner = Planner()
        self.ready = False
        self.stopping = False
        self.probe = Probe(self)
        self._looking = asyncio.Lock()
        self.exporting, self.sending = asyncio.Semaphore(EXPORTS), asyncio.Semaphore(EXPORTS)  # Parquet, pages of CSV
        self._opened = ExitStack()  # what is to be closed, the latest first
        self.tending = Tending()

    def open(self) -> None:
        """Open and check everything; raises what is wrong, and then leaves nothing open."""
        try:
            self._open()
        except BaseException as error:
            if isinstance(error, Untallied):
                error = InputError("tally", f": {error}")
            self._opened.close()  # or this process would keep its own lock, and could not start again
            raise error from None
        self._rereading = Threads("reread", 1)
        self.looks = Threads("look", 4)
        self.plans = Threads("plan", WAITING + 1)  # one more says that the planner is busy
        self.exports = Threads("export", 2 * EXPORTS)
        self.ready = True

    def _open(self) -> None:
        """Nothing is left of an earlier start."""
        for held in (self.runs, self.names, self.aside):
            held.clear()
        self._opened.callback(self.store.close)
        refuse_shared_files(self.settings, self.store)
        self.store.file.lock()
        self.store.migrate()
        self._open_keys()
        self.tally = Tally(self.settings.tally, self.store)
        self._opened.callback(self.tally.close)
        self.lasting = self.store.durable or self.tally.durable
        self.rotate_if_due()
        seen = self.tally.seen()  # before the states: other workers go on meanwhile
        with self.store.opened() as connection, connection.begin():
            latest = connection.execute(sa.select(sa.func.max(states.c.at))).scalar() or 0
            # Decisions are dated in milliseconds.
            since = max(latest / 1000, self.store.file.latest + 0.001, self.clock())
            wall = self.store.wall(connection)
            self.clock = Clock(not_before=since, wall=lambda: wall)
            if since > wall + AHEAD:
                log.warning("the clock was set back: time goes on from the last commit", seconds=round(since - wall))
            self.load(connection)
            self._read_keys(connection)
            for number, run in sorted(self.runs.items()):  # other workers that start lock them in the same order
                if _restored(run, seen):
                    self._halt(connection, number, seen)
            self.tally.count(  # the last process may have been killed before it did
                *(run for run in self.runs.values() if not _restored(run, seen))
            )
        refuse_unkept((run.experiment for run in self.runs.values()), self.lasting)
        self.recent = Recent(self.settings.recent)
        parts = (self.store, self.keys, self.recent, self.clock, self.tally, self.runs, self.metrics)
        self.books = (
            Embedded(*parts) if self.store.embedded else Shared(*parts, reload=self.load, halt=self.halt_restored)
        )
        self._folder = Folder(self.books) if isinstance(self.books, Shared) else None
        self.writer: Writer[Any] = Writer(self.books.commit)

    def _open_keys(self) -> None:
        """New keys are made for a new database only: they would not open the states of another."""
        with self.store.opened() as connection:
            not_lost(self.settings.keys, connection)
        self.keys = Keyring.open(self.settings.keys)
        self._keys_at = self.settings.keys.stat().st_mtime_ns

    async def start(self) -> None:
        """Open, and look after what is due."""
        if not self.ready:
            await asyncio.to_thread(self.open)
        self.tending.start(TICK, self._tick)
        self.tending.start(REREAD, self._reread)
        if self._folder is not None:
            self._folder.start()
        if self.settings.demo and demo.NAME not in self.names:
            with suppress(Refusal):  # another worker has just made it
                await changes.create(self, demo.SETTINGS, "dpbandits", None)
        log.info("started", store=shown_address(self.store.url), experiments=len(self.runs))

    async def stop(self) -> None:
        """Finish what is waiting, and close everything."""
        if not self.ready:
            return
        self.ready = False
        await self.tending.stop()
        await asyncio.to_thread(self.close)
        log.info("stopped")

    def close(self) -> None:
        """Close everything."""
        self.planner.close()  # first: plans end with it
        for threads in (self._rereading, self.looks, self.plans, self.exports):
            threads.close()
        self.writer.stop()
        if self._folder is not None:
            self._folder.stop()
        self.books.close()
        self._opened.close()

    # Looking after things

    async def _tick(self) -> None:
        now = self.clock()
        due = [run for run in list(self.runs.values()) if run.experiment.active and run.state.desk.closing[0] < now]
        if self.store.embedded and due and any(run.experiment.by_stint and run.state.desk.asked[0] for run in due):
            await self.writer.submit(Tick())

    async def _reread(self) -> None:
        await self._rereading.run(self._read_elsewhere)

    def _read_elsewhere(self) -> None:
        """Each step is tried, whatever becomes of the others: revoked keys and old secrets must not stay."""
        failed: Exception | None = None
        for step in (
            self.recent.refresh,
            self._reread_keys,
            self.rotate_if_due,
            self._reread_secrets,
            self.tally.look,
            self._look_at_file,
        ):
            try:
                step()
            except Exception as error:
                failed = failed or error
        if failed is not None:
            raise failed

    def _look_at_file(self) -> None:
        if isinstance(self.books, Embedded):
            self.books.look()

    def _reread_keys(self) -> None:
        with self.store.lookout.connect() as connection:
            self._read_keys(connection)

    def _reread_secrets(self) -> None:
        """Take over the keys that other processes have renewed."""
        changed = self.settings.keys.stat().st_mtime_ns
        if changed != self._keys_at:
            self._keys_at = changed
            self._take_keys(Keyring.open(self.settings.keys, create=False))

    def rotate_if_due(self) -> None:
        """Renew the key that signs tokens, where it is old enough. Tokens that are out stay valid."""
        period = 86_400 * self.settings.token_key_days
        if time.time() - self.keys.age > period:
            with alone(self.settings.keys):
                keys = Keyring.open(self.settings.keys, create=False)  # another process may have been quicker
                self._take_keys(keys.renewed(self.settings.keys, period, time.time()))

    def _take_keys(self, keys: Keyring) -> None:
        if not keys.goes_on(self.keys):
            raise InputError("keys", "must be the file that this server was started with; it was replaced by another")
        self.keys = keys
        if self.ready:
            self.books.keys = keys

    def _read_keys(self, connection: Connection) -> None:
        made = access.keys(connection)
        self.guarded = self.guarded or self.keys.guarded or bool(made)
        self.valid = {key.id: key for key in made if key.revoked is None}
        if made and not self.keys.guarded:
            with alone(self.settings.keys):
                keys = Keyring.open(self.settings.keys, create=False)
                self._take_keys(keys if keys.guarded else keys.guarding(self.settings.keys))

    def admits(self, key: str | None) -> bool:
        """Whether an answer that takes long may go on: the key that was good at its start may be revoked."""
        return not self.guarded or key in self.valid

    # Experiments

    def load(self, connection: Connection, only: int | None = None) -> None:
        """Read experiments and their states. One that cannot be read is set aside, and the others go on."""
        if only is None:
            fit(self.keys, connection)
        rows = connection.execute(_all(only)).mappings().all()
        if only is not None and not rows:
            self._miss(only)
        for row in rows:
            if row["id"] in self.aside:  # only a start checks whether an old copy of the database was restored
                continue
            try:
                self.hold(self._run(row))
            except Exception as error:
                self._set_aside(row["id"], row["name"], error)

    def _set_aside(self, number: int, name: str, error: Exception) -> None:
        """No longer serve an experiment, and log why. The texts of our own errors hold no reward; others might."""
        self.aside[number] = name
        self._drop(number)
        reason = str(error) if isinstance(error, InputError) else where(error)
        log.error("cannot load", experiment=name, reason=reason)

    def _drop(self, number: int) -> None:
        run = self.runs.pop(number, None)
        if run is not None and self.names.get(run.experiment.name) is run:
            del self.names[run.experiment.name]

    def _miss(self, number: int) -> None:
        """No longer serve an experiment that the database lacks. If it has it again, the next look loads it."""
        run = self.runs.get(number)
        if run is not None and not self.store.embedded:  # a file that lacks it is not written: its server must restart
            self._drop(number)
            log.error("missing", experiment=run.experiment.name, reason="the database no longer has it")

    def stored(self, connection: Connection, number: int) -> LiveRun:
        """An experiment as it is on disk. The transaction must have begun when this process had it already."""
        row = connection.execute(_all(number)).mappings().first()
        if row is None:
            self._miss(number)
            raise Missing("the database no longer has the experiment")
        return self._run(row)

    def _run(self, row: Any) -> LiveRun:
        experiment = read_experiment(row, self.settings, self.keys)
        state = opened(self.keys, experiment, row["state"])
        return LiveRun(experiment, state, row["epoch"], row["draws"], row["changed"])

    def hold(self, run: LiveRun) -> None:
        """Let an experiment that is on disk run."""
        run.state.deputy = not self.store.embedded
        self.runs[run.experiment.id] = run
        self.names[run.experiment.name] = run

    def _halt(self, connection: Connection, number: int, seen: dict[str, int]) -> None:
        """Stop an experiment if noise was drawn of it that this database does not know of."""
        run = changes.locked(self, connection, number)
        if _restored(run, seen):
            changes.write(self, connection, run, "dpbandits", "halt", {"reason": RESTORED}, status="halted")()
            log.error("halted", experiment=run.experiment.name, reason=RESTORED)

    def halt_restored(self, number: int) -> None:
        """Stop an experiment if its database was put back while this server ran."""
        seen = self.tally.seen()  # before the state: other workers go on meanwhile
        with self.store.engine.begin() as connection:
            self._halt(connection, number, seen)

    def find(self, name: str) -> LiveRun:
        """The experiment of this name."""
        run = self.names.get(name)
        if run is None and name in self.aside.values():
            raise not_loaded(name)
        if run is None:
            raise Refusal(404, f"there is no experiment '{name:.100}'")
        return run

    async def look_up(self, name: str) -> LiveRun:
        """The experiment of this name, which another worker may just have made."""
        if name not in self.names and name not in self.aside.values():
            await self.look_again()
        return self.find(name)

    async def look_again(self) -> None:
        """Read the experiments that other workers have made or changed, for one request at a time."""
        if not self.store.embedded:  # where there are other workers
            async with self._looking:
                await self.looks.run(self._load_new)

    async def look_for_tokens(self) -> None:
        """Read the token keys, too, that others have made: without them nobody knows whose a token is."""
        try:
            await self.looks.run(self._reread_secrets)
        except (OSError, InputError) as error:
            raise Unavailable(f"the keys cannot be read: {type(error).__name__}") from None
        await self.look_again()

    def _load_new(self) -> None:
        known = dict(self.runs)  # first: what others begin from now on may not be in what is read
        with self.store.readers.connect() as connection:
            found = connection.execute(_all(None).with_only_columns(experiments.c.id, experiments.c.revision)).all()
            for number in set(known).difference(number for number, _ in found):
                if self.runs.get(number) is known[number]:
                    self._miss(number)
            for number, revision in found:
                run = self.runs.get(number)
                if number not in self.aside and (run is None or run.experiment.revision != revision):
                    self.load(connection, number)


def _restored(run: LiveRun, seen: dict[str, int]) -> bool:
    """Whether more draws were counted than an active experiment knows of: its database is an old copy."""
    return run.experiment.active and seen.get(run.experiment.tallied, 0) > run.draws


def _all(only: int | None) -> sa.Select[Any]:
    query = sa.select(experiments, states).join(states, states.c.experiment == experiments.c.id)
    return query if only is None else query.where(experiments.c.id == only)
