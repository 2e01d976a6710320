"""Simulate the runs that the results table lacks, in chunks of about a second, on any engine."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from dpbandits.errors import InputError
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.engines import Engine, WorkerLostError
from dpbandits.experiments.results import Chunk, Results
from dpbandits.simulation import Trace
from dpbandits.simulation.runs import Player, result_key

CHUNK_SECONDS = 1.0
GUESS_PER_ROUND = 5e-8  # seconds, until a cell's first chunk is finished
MOST_RUNS = 100  # the most runs in a chunk
ATTEMPTS = 3  # after lost workers, without any progress


class Progress(NamedTuple):
    """How far the work is: runs done, runs in total, and an estimate of the seconds left."""

    done: int
    total: int
    left: float


Watch = Callable[[Progress], None]


def play_chunk(cell: Cell, key: str, runs: list[int]) -> Chunk:
    """Simulate these runs of a cell. This is what a worker calls, perhaps on another machine with other versions."""
    if result_key(cell.simulation) != key:
        raise InputError(
            "cluster", "has a worker with other code or other versions than this process: install the same"
        )
    player = Player.of(cell.simulation, cell.engine)
    pulls, seconds = [], []
    for run in runs:
        started = time.perf_counter()
        pulls.append(player.play(run))
        seconds.append(time.perf_counter() - started)
    return Chunk(key, runs, pulls, seconds)


@dataclass
class _Job:
    """A cell with the runs that it still lacks, and the estimated seconds of one run."""

    cell: Cell
    missing: list[int]
    seconds: float
    open: int = 0  # runs that are given to a worker and not finished

    def take(self) -> list[int]:
        size = min(MOST_RUNS, max(1, int(CHUNK_SECONDS / self.seconds)))
        taken, self.missing = self.missing[:size], self.missing[size:]
        self.open += len(taken)
        return taken


def fill(cells: Iterable[Cell], results: Results, engine: Engine, watch: Watch | None = None) -> None:
    """Simulate the runs that ``results`` lacks. The numbers do not depend on the workers or on the order."""
    cells = list(cells)
    attempts = 0
    while jobs := _missing(cells, results):
        before = _left(jobs)
        try:
            for chunk in engine.map(play_chunk, _chunks(jobs)):
                results.add(chunk)
                _note(jobs[chunk.key], chunk)
                if watch is not None:
                    watch(_progress(cells, jobs, engine.workers))
        except WorkerLostError:
            attempts = 0 if _left(_missing(cells, results)) < before else attempts + 1
            if attempts == ATTEMPTS:
                raise


def traces(cells: Mapping[str, Cell], results: Results) -> dict[str, Trace]:
    """The traces of cells whose runs are all finished."""
    found = {}
    for name, cell in cells.items():
        simulation, done = cell.simulation, results.done(cell.key)
        runs = list(range(cell.runs))
        left = results.pulls(cell.key, runs, simulation.shape)
        found[name] = Trace.of(simulation, left, sum(done[run] for run in runs))
    return found


def _missing(cells: list[Cell], results: Results) -> dict[str, _Job]:
    """For each key, its cell with the most runs, and the runs that are missing. The slowest cells come first."""
    jobs: dict[str, _Job] = {}
    for cell in cells:
        key = cell.key
        done = results.done(key)
        missing = [run for run in range(cell.runs) if run not in done]
        if missing and (key not in jobs or len(missing) > len(jobs[key].missing)):
            taken = list(done.values())
            guess = GUESS_PER_ROUND * cell.simulation.horizon
            jobs[key] = _Job(cell, missing, sum(taken) / len(taken) if taken else guess)
    return dict(sorted(jobs.items(), key=lambda job: -job[1].seconds))


def _chunks(jobs: dict[str, _Job]) -> Iterator[tuple[Cell, str, list[int]]]:
    """A chunk of each cell first, so that its run time is known early; then the rest in turn."""
    order = _mixed(jobs)
    while any(job.missing for job in jobs.values()):
        for key in order:
            if jobs[key].missing:
                yield jobs[key].cell, key, jobs[key].take()


def _mixed(jobs: dict[str, _Job]) -> list[str]:
    """Interleave the first cell of each kind, which has to be compiled by one thread, with cells already compiled."""
    kinds: dict[tuple[Any, ...], list[str]] = {}
    for key, job in jobs.items():
        simulation = job.cell.simulation
        kind = (simulation.factory, type(simulation.environment), type(simulation.levels))
        kinds.setdefault(kind, []).append(key)
    order, known = list[str](), list[str]()
    between = math.ceil(len(jobs) / len(kinds)) - 1
    for first, *others in kinds.values():
        order.append(first)
        order += known[:between]
        known = known[between:] + others
    return order + known


def _note(job: _Job, chunk: Chunk) -> None:
    job.open -= len(chunk.runs)
    job.seconds = max(1e-5, sum(chunk.seconds) / len(chunk.seconds))


def _left(jobs: dict[str, _Job]) -> int:
    return sum(len(job.missing) + job.open for job in jobs.values())


def _progress(cells: list[Cell], jobs: dict[str, _Job], workers: int) -> Progress:
    most: dict[str, int] = {}
    for cell in cells:
        most[cell.key] = max(cell.runs, most.get(cell.key, 0))
    left = sum((len(job.missing) + job.open) * job.seconds for job in jobs.values()) / workers
    total = sum(most.values())
    return Progress(total - _left(jobs), total, left)
