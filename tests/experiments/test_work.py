"""Which engine, which chunks, which restarts: nothing changes a number, and nothing is played twice."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpbandits.errors import InputError
from dpbandits.experiments import work
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.engines import Engine, WorkerLostError, engine
from dpbandits.experiments.results import Chunk, Results
from dpbandits.simulation import simulate_all

Cells = dict[str, Cell]


@pytest.fixture
def cells() -> Cells:
    return {
        "adap": Cell.of("adap-ucb", "0.9,0.6", 2000, 6, 1.0, checkpoints=10),
        "ucb": Cell.of("ucb1", "0.9,0.6", 2000, 4, checkpoints=10),
    }


def played(cells: Cells, results: Results) -> dict[str, list[float]]:
    return {name: trace.final_regret.tolist() for name, trace in work.traces(cells, results).items()}


def direct(cells: Cells) -> dict[str, list[float]]:
    return {name: simulate_all(cell.simulation, runs=cell.runs).final_regret.tolist() for name, cell in cells.items()}


@pytest.mark.parametrize(("cluster", "workers"), [("threads", 1), ("threads", 3), ("processes", 2)])
def test_engines_agree_with_simulate(cells: Cells, cluster: str, workers: int) -> None:
    with engine(cluster, workers) as where, Results() as results:
        work.fill(cells.values(), results, where)
        assert played(cells, results) == direct(cells)


def test_interrupted_work_goes_on_and_plays_nothing_twice(cells: Cells, tmp_path: Path) -> None:
    seen: list[int] = []

    class Stopping(Engine):
        def map(self, function: Any, arguments: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
            for count, (cell, key, runs) in enumerate(arguments):
                if count == 1 and not seen:
                    raise KeyboardInterrupt
                seen.extend(runs)
                yield function(cell, key, runs)

    with Results(tmp_path / "results.sqlite") as results:
        first = [replace(cells["adap"], runs=3)]
        work.fill(first, results, Engine("threading", 1))
        seen.append(-1)
        work.fill(cells.values(), results, Stopping("threading", 1))
        assert sorted(seen) == [-1, 0, 1, 2, 3, 3, 4, 5]  # runs 3 to 5 of adap, 0 to 3 of ucb
        assert played(cells, results) == direct(cells)


def test_a_finished_run_is_kept_when_the_next_chunk_is_interrupted(cells: Cells, tmp_path: Path) -> None:
    class Stopping(Engine):
        def map(self, function: Any, arguments: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
            for count, each in enumerate(arguments):
                if count == 1:
                    raise KeyboardInterrupt
                yield function(*each)

    with Results(tmp_path / "r") as results, pytest.raises(KeyboardInterrupt):
        work.fill(cells.values(), results, Stopping("threading", 1))
    with Results(tmp_path / "r") as results:
        before = sum(len(results.done(cell.key)) for cell in cells.values())
        assert 0 < before < 10
        work.fill(cells.values(), results, Engine("threading", 2))
        assert played(cells, results) == direct(cells)


def test_lost_workers_are_retried_and_then_given_up(cells: Cells) -> None:
    class Losing(Engine):
        losses = 0

        def map(self, function: Any, arguments: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
            yield function(*next(iter(arguments)))
            self.losses += 1
            raise WorkerLostError("gone")

    class Dead(Engine):
        def map(self, function: Any, arguments: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
            raise WorkerLostError("gone")
            yield

    with Results() as results:
        losing = Losing("threading", 1)
        work.fill(cells.values(), results, losing)
        assert losing.losses == 2
        assert played(cells, results) == direct(cells)
    with Results() as results, pytest.raises(WorkerLostError):
        work.fill(cells.values(), results, Dead("threading", 1))


def test_chunks_follow_what_a_run_costs() -> None:
    job = work._Job(Cell.of("ucb1", "0.9,0.6", 10, 1000), list(range(1000)), seconds=0.05)
    assert job.take() == list(range(20))
    job.seconds = 3.0
    assert job.take() == [20]
    job.seconds = 1e-5
    assert len(job.take()) == work.MOST_RUNS


def test_progress_counts_every_run_once(cells: Cells) -> None:
    seen: list[work.Progress] = []
    with Results() as results:
        twice = [*cells.values(), replace(cells["adap"], runs=2)]
        work.fill(twice, results, Engine("threading", 2), seen.append)
    assert seen[-1].done == seen[-1].total == 10
    assert [at.done for at in seen] == sorted(at.done for at in seen)


def test_other_settings_or_another_log_have_another_key(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("arm,reward\na,1\nb,0\n")
    before = Cell.of("ucb1", f"replay({log})", 100, 1).key
    assert Cell.of("ucb1", f"replay({log})", 100, 1, seed=1).key != before
    assert Cell.of("ucb1", f"replay({log})", 100, 7, label="x").key == before
    log.write_text("arm,reward\na,1\nb,1\n")
    assert Cell.of("ucb1", f"replay({log})", 100, 1).key != before


def test_results_keep_the_first_of_two_equal_runs() -> None:
    with Results() as results:
        results.add(Chunk("k", [0], [np.zeros((1, 2), np.int64)], [1.0]))
        results.add(Chunk("k", [0], [np.ones((1, 2), np.int64)], [2.0]))
        assert results.done("k") == {0: 1.0}
        assert results.pulls("k", [0], (1, 2)).sum() == 0


def test_unknown_engine() -> None:
    with pytest.raises(InputError, match="cluster must be threads, processes, local or"), engine("slurm"):
        pass


def test_no_scheduler_is_one_line_within_ten_seconds() -> None:
    started = time.monotonic()
    with (
        pytest.raises(InputError, match="no Dask scheduler answers at"),
        engine("tcp://127.0.0.1:1"),
    ):
        pass
    assert time.monotonic() - started < 10


@pytest.mark.filterwarnings("default")  # Dask's own, when a worker dies
def test_dask_cluster_with_a_worker_killed_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    from distributed import LocalCluster

    monkeypatch.setattr(work, "CHUNK_SECONDS", 0.2)
    big = {"l": Cell.of("ldp-ucb-l", "@ren2020-bernoulli", 2_000_000, 30, 1.0, checkpoints=5)}
    killed: list[int] = []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        engine(cluster.scheduler_address) as where,
        Results() as results,
    ):
        assert where.workers == 2

        def watch(at: work.Progress) -> None:
            if not killed and at.done < at.total:
                pids = where.settings["client"].run(os.getpid)
                killed.append(next(iter(pids.values())))
                os.kill(killed[0], signal.SIGKILL)

        work.fill(big.values(), results, where, watch)
        assert killed
        assert played(big, results) == direct(big)
