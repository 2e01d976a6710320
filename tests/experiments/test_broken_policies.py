"""The judge says no: a policy that is broken is found in every figure that shows it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from dpbandits.experiments import reproduce, work
from dpbandits.experiments.azize2022 import fig4
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.figures import figures, select
from dpbandits.simulation import Trace, simulate_all

Command = Callable[..., tuple[int, str, str]]
MOST_RUNS = 30
BROKEN = ("random", "worst", "best")


def broken(trace: Trace, how: str) -> Trace:
    """The trace of a broken policy: it plays all arms equally often, only the worst, or, as if it knew it, the best."""
    pulls = np.zeros_like(trace.pulls)
    if how == "random":
        pulls[:] = trace.checkpoints[None, :, None] // trace.means.size
    else:
        chosen = np.argmin(trace.means) if how == "worst" else np.argmax(trace.means)
        pulls[:, :, int(chosen)] = trace.checkpoints
    return dataclasses.replace(trace, pulls=pulls)


def by_policy(cells: Mapping[str, Cell]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, cell in cells.items():
        found.setdefault(cell.simulation.policy.name, []).append(name)
    return found


def breakages(cells: Mapping[str, Cell], traces: dict[str, Trace]) -> Iterator[tuple[str, dict[str, Trace]]]:
    for policy, names in by_policy(cells).items():
        for how in BROKEN:
            yield f"{policy}, {how}", traces | {name: broken(traces[name], how) for name in names}


@pytest.mark.slow
def test_every_policy_of_every_figure_is_missed_when_it_breaks() -> None:
    """The quick scale with at most 30 runs of each simulation, 3 of those that take a second. Tables play nothing."""
    played: dict[str, Trace] = {}
    shown = [figure for figure in figures() if figure.cells("quick")]
    assert {figure.path for figure in figures()} - {figure.path for figure in shown} == {
        "azize2022/table2",
        "tossou2016/section3",
    }
    for figure in shown:
        cells, traces = figure.cells("quick"), {}
        for name, cell in cells.items():
            if cell.key not in played:
                slow = (
                    cell.simulation.policy.name in ("private-ucb", "dp-ucb-bound") and cell.simulation.horizon > 10**6
                )
                played[cell.key] = simulate_all(cell.simulation, runs=min(cell.runs, 3 if slow else MOST_RUNS))
            traces[name] = played[cell.key]
        assert [one.claim.name for one in figure.score(traces, "quick") if one.fails] == [], figure.path
        for what, changed in breakages(cells, traces):
            assert any(one.fails for one in figure.score(changed, "quick")), f"{figure.path}: {what} is not found"


def test_a_known_failure_hides_no_other() -> None:
    """Figure 4 with the pulls of DP-UCB in place of AdaP-KLUCB's: its regret is 20 to 140 times as large."""
    traces = {}
    for name, cell in fig4.cells("quick").items():
        played = cell.simulation
        short = Cell.of(played.policy.name, "@azize2022-c1", 10**5, 4, played.epsilon, checkpoints=10)
        traces[name] = simulate_all(short.simulation, runs=4)
    for epsilon in ("0.1", "0.25", "0.5", "1"):
        rival = traces[f"private-ucb:{epsilon}"].pulls
        traces[f"adap-klucb:{epsilon}"] = dataclasses.replace(traces[f"adap-klucb:{epsilon}"], pulls=rival)
    lowest = fig4.score(traces, "quick")[0]
    assert lowest.fails
    assert not lowest.excused


def test_a_broken_policy_is_exit_status_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dpbandits: Command) -> None:
    (figure,) = select("azize2022/fig3")
    read = work.traces
    assert dpbandits("reproduce", figure.path, "--out", str(tmp_path))[0] == 0
    for how in BROKEN:
        monkeypatch.setattr(
            reproduce, "traces", lambda *given, how=how: {name: broken(one, how) for name, one in read(*given).items()}
        )
        assert dpbandits("reproduce", figure.path, "--out", str(tmp_path))[0] == 1
