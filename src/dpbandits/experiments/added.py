"""A user's own policy in a paper's figure: played on the problems of each panel, and drawn as one more line."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dpbandits.environments import Levels
from dpbandits.errors import InputError
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.panels import BANDS, Band, Table, curve
from dpbandits.plotting import Line, Panel
from dpbandits.policies import lookup
from dpbandits.simulation import Simulation, Trace
from dpbandits.simulation.settings import settings

__all__ = ["Added", "cells_for", "drawn"]


class Added(NamedTuple):
    """One line to draw: in which panel, what it is called, and the cell of each of its points, or its only cell."""

    panel: int
    label: str
    cells: tuple[str, ...]
    x: tuple[float, ...]  # where the line is regret against a parameter; empty where it is regret against time


def cells_for(
    policy: str | lookup.Factory, figure: str, shown: Sequence[Panel | Table], traces: Mapping[str, Trace], runs: int
) -> tuple[list[Added], dict[str, Cell]]:
    """The lines that a policy gets in a figure, and the simulations that they need.

    A panel's problems are those of the traces that it shows, which are found by their numbers. The policy is played on
    each of them, at each epsilon of the panel, or with the users' levels, as it takes one or the other.
    """
    factory = lookup.find(policy)
    title = lookup.traits(factory).title or lookup.written(factory)
    lines: list[Added] = []
    cells: dict[str, Cell] = {}
    for number, panel in enumerate(shown):
        if not isinstance(panel, Panel):
            continue
        curves = [trace for line in panel.lines for trace in [_of_time(line, traces)] if trace is not None]
        asked = [pair for trace in curves for pair in _cell(factory, title, trace, runs)]
        once = {_problem(cell): (name, cell) for name, cell in reversed(asked)}
        cells |= dict(once.values())
        for name, cell in reversed(once.values()):
            privacy = _privacy(cell) if len(once) > 1 else ""
            lines.append(Added(number, f"{title}, {privacy}" if privacy else title, (name,), ()))
        if not curves:
            points = _points(factory, title, panel, traces, runs)
            cells |= {name: cell for _, name, cell in points}
            if points:
                lines.append(Added(number, title, tuple(n for _, n, _ in points), tuple(x for x, _, _ in points)))
    if not lines:
        raise InputError("add", f": {title} cannot be drawn into {figure}: it shows no regret of such a policy")
    return lines, cells


def _problem(cell: Cell) -> tuple[object, ...]:
    """What makes two lines differ; two policies of a panel may be played on one problem with other checkpoints."""
    simulation = cell.simulation
    return simulation.arms.text, simulation.epsilon, str(simulation.levels), simulation.horizon


def _privacy(cell: Cell) -> str:
    """The epsilon or the levels of a simulation, in words."""
    epsilon, levels = cell.simulation.epsilon, cell.simulation.levels
    if isinstance(levels, Levels) and len(levels.sample) == 1:
        epsilon, levels = float(levels.sample[0]), None
    return "" if epsilon is None and levels is None else f"ε = {epsilon:g}" if levels is None else f"levels {levels}"


def drawn(shown: Sequence[Panel | Table], lines: Sequence[Added], traces: Mapping[str, Trace]) -> list[Panel | Table]:
    """The figure with the added lines."""
    found = list(shown)
    for added in lines:
        panel = found[added.panel]
        assert isinstance(panel, Panel)
        found[added.panel] = dataclasses.replace(panel, lines=[*panel.lines, _line(panel, added, traces)])
    return found


def _line(panel: Panel, added: Added, traces: Mapping[str, Trace]) -> Line:
    if not added.x:
        bands: dict[str, Band] = {words: band for band, words in BANDS.items()}  # type: ignore[misc]
        return curve(traces[added.cells[0]], added.label, bands.get(panel.band, "stderr"))
    final = [traces[name].final_regret for name in added.cells]
    mean = np.array([values.mean() for values in final])
    width = np.array([2 * values.std(ddof=min(1, values.size - 1)) / np.sqrt(values.size) for values in final])
    return Line(added.label, np.array(added.x), mean, mean - width, mean + width)


def _of_time(line: Line, traces: Mapping[str, Trace]) -> Trace | None:
    """The trace whose mean regret a line shows."""
    for trace in traces.values():
        kept = np.isin(trace.checkpoints, line.x)
        if line.x.size == kept.sum() > 1 and np.array_equal(trace.regret[:, kept].mean(axis=0), line.y):
            return trace
    return None


def _points(
    factory: lookup.Factory, title: str, panel: Panel, traces: Mapping[str, Trace], runs: int
) -> list[tuple[float, str, Cell]]:
    """For each value of the parameter: the cell of the policy on the problem that the panel shows there."""
    found: dict[float, tuple[float, str, Cell]] = {}
    for line in panel.lines:
        for x, y in zip(line.x, line.y, strict=True):
            at = next((trace for trace in traces.values() if trace.final_regret.mean() == y), None)
            if at is not None and float(x) not in found:
                for name, cell in _cell(factory, title, at, runs):
                    found[float(x)] = (float(x), name, cell)
    return [found[x] for x in sorted(found)]


def _cell(factory: lookup.Factory, title: str, trace: Trace, runs: int) -> list[tuple[str, Cell]]:
    """The policy on the problem of a trace, and its name; nothing where the trace has no epsilon or levels for it."""
    old = trace.simulation
    given: dict[str, Any] = {name: getattr(old, name) for name in settings()}
    given |= {"options": {}, "epsilon": None, "levels": None}
    if lookup.takes(factory, "epsilon"):
        if old.epsilon is None:
            return []
        given["epsilon"] = old.epsilon
    elif lookup.traits(factory).levels is not None:
        if old.levels is None:
            return []
        given["levels"] = old.levels
        if advised := lookup.traits(factory).advised:
            given["options"] = dict(advised(old.horizon))
    made = Simulation.of(factory, **given)
    cell = Cell(made, runs, title)
    return [(f"added:{cell.key}", cell)]
