"""Panels and tables of traces and bounds, as the papers' figures show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dpbandits.bounds import Bound
from dpbandits.formats import amount
from dpbandits.plotting import Line, Look, Panel, Style
from dpbandits.policies import lookup
from dpbandits.simulation import Trace
from dpbandits.types import Floats

__all__ = [
    "BANDS",
    "Band",
    "Line",
    "Panel",
    "Picture",
    "Table",
    "against",
    "bound_line",
    "curve",
    "panel_json",
    "panel_table",
    "regrets",
]

Band = Literal["stderr", "std", "range"]

BANDS = {"stderr": "two standard errors", "std": "one standard deviation", "range": "smallest and largest of all runs"}


@dataclass(frozen=True, eq=False)
class Table:
    """A computed table."""

    name: str
    title: str
    columns: list[str]
    rows: list[list[str]]
    notes: str = ""


@dataclass(frozen=True)
class Picture:
    """A picture that is drawn to a file of its own, beside the report."""

    file: str  # below the folder of figures, without the ending
    title: str


def curve(trace: Trace, label: str, band: Band = "stderr", style: Style = "line") -> Line:
    """Mean regret against time, from the first round by which every arm may have been played."""
    kept = trace.checkpoints >= trace.means.size
    values = trace.regret[:, kept]
    mean = values.mean(axis=0)
    if band == "range":
        low, high = values.min(axis=0), values.max(axis=0)
    else:
        spread = values.std(axis=0, ddof=1) if trace.runs > 1 else np.zeros(mean.size)
        width = spread if band == "std" else 2 * spread / np.sqrt(trace.runs)
        low, high = mean - width, mean + width
    return Line(label, trace.checkpoints[kept].astype(np.float64), mean, low, high, style)


def regrets(
    name: str, title: str, traces: Mapping[str, Trace], bounds: Sequence[Bound] = (), band: Band = "stderr"
) -> Panel:
    """Regret against time for each trace, with bounds as dashed lines."""
    lines = [curve(trace, label, band) for label, trace in traces.items()]
    lines += [bound_line(bound, lines[0].x) for bound in bounds if bound.value is not None]
    return Panel(name, title, lines, band=BANDS[band])


def title_of(policy: str) -> str:
    """What papers call a policy.

    >>> title_of("ldp-ucb-l")
    'LDP-UCB-L'
    """
    return lookup.traits(policy).title or policy


def bound_line(bound: Bound, x: Floats) -> Line:
    """A bound against the horizon. An upper bound has the colour of its policy, where that is drawn too."""
    policy = bound.policies[0] if bound.kind == "upper" and bound.policies else ""
    title = title_of(policy) if policy else ""
    label = f"{bound.kind} bound{f' of {title}' if title else ''}: {bound.source.rsplit(', ', 1)[-1]}"
    return Line(label, x, bound.at(x), style="dashed", like=title)


def against(name: str, title: str, x: str, lines: Mapping[str, Mapping[float, Trace]]) -> Panel:
    """Regret at the horizon against a parameter."""
    drawn = []
    for label, traces in lines.items():
        final = [trace.final_regret for trace in traces.values()]
        mean = np.array([values.mean() for values in final])
        width = np.array([2 * values.std(ddof=min(1, values.size - 1)) / np.sqrt(values.size) for values in final])
        drawn.append(Line(label, np.array(list(traces)), mean, mean - width, mean + width))
    return Panel(name, title, drawn, x, "regret at the horizon", band=BANDS["stderr"])


def panel_json(panel: Panel, chosen: Mapping[str, Look]) -> dict[str, Any]:
    """The panel for the interactive chart: five significant digits, null for NaN and infinity."""
    return {
        "name": panel.name,
        "title": panel.title,
        "x": panel.x,
        "y": panel.y,
        "logX": panel.log_x,
        "logY": panel.log_y,
        "band": panel.band,
        "lines": [
            {
                "label": line.label,
                "style": line.style,
                "colour": line.colour or chosen[line.label].colour,
                "dashes": 0 if line.colour else chosen[line.label].dashes,
                "marker": 0 if line.colour else chosen[line.label].marker,
                "x": _short(line.x),
                "y": _short(line.y),
                "low": None if line.low is None else _short(line.low),
                "high": None if line.high is None else _short(line.high),
                "names": panel.names.get(line.label),
            }
            for line in panel.lines
        ],
    }


def panel_table(panel: Panel, most: int = 12) -> Table:
    """The numbers behind a chart: a row for each of at most ``most`` values of x, a column for each line.

    >>> line = Line("LDP-UCB-B", np.array([1.0, 10.0]), np.array([0.5, 4.0]))
    >>> panel_table(Panel("a", "A", [line])).rows
    [['1', '0.5'], ['10', '4']]
    """
    values = np.unique(np.concatenate([line.x for line in panel.lines])) if panel.lines else np.zeros(0)
    if values.size > most:
        values = values[np.unique(np.linspace(0, values.size - 1, most).round().astype(np.int64))]
    rows = [[amount(x), *(_at(line, x) for line in panel.lines)] for x in values.tolist()]
    return Table(panel.name, panel.title, [panel.x, *(line.label for line in panel.lines)], rows)


def _at(line: Line, x: float) -> str:
    """The value of a line at x, if it has a point there."""
    here = np.flatnonzero((line.x == x) & np.isfinite(line.y))
    return amount(float(line.y[here[0]])) if here.size else ""


def _short(values: Floats) -> list[float | None]:
    return [float(f"{value:.5g}") if np.isfinite(value) else None for value in values]
