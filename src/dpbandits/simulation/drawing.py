"""The picture of a trace: regret over time, and the theorems on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpbandits.display import shortened
from dpbandits.formats import plural
from dpbandits.plotting import (
    COLOURS,
    DASHES,
    MARKERS,
    Line,
    draw_lines,
    look,
    new_axes,
    nth_look,
    show_legend,
    show_notes,
)
from dpbandits.simulation.trace import Trace
from dpbandits.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpbandits.bounds import Bound

__all__ = ["draw_trace"]

TRACE = "dpbandits-trace"  # marks a trace's line among those of its axes


def draw_trace(trace: Trace, ax: Axes | None, label: str | None, bounds: bool) -> Axes:
    """See ``Trace.plot``."""
    if ax is None:
        ax = _axes(trace)
    _label(ax)
    number = sum(line.get_gid() == TRACE for line in ax.get_lines())  # traces that are drawn already
    drawn = nth_look(number)
    mean, band = trace.regret.mean(axis=0), 2 * np.nan_to_num(trace.stderr)
    (line,) = ax.plot(
        trace.checkpoints,
        mean,
        label=label or trace.label,
        color=COLOURS[drawn.colour],
        linestyle=DASHES[drawn.dashes],
        marker=MARKERS[drawn.marker] or None,
        markevery=max(mean.size // 8, 1),
        gid=TRACE,
    )
    ax.fill_between(trace.checkpoints, mean - band, mean + band, color=line.get_color(), alpha=0.2, linewidth=0)
    if bounds:
        draw_lines(ax, _bound_lines(trace, COLOURS[drawn.colour]))
        ax.set_yscale("log")
    show_legend(ax, 8)
    show_notes(ax, [trace.guarantee.in_short] if trace.guarantee.void else [])
    return ax


def _axes(trace: Trace) -> Axes:
    ax = new_axes()
    simulation = trace.simulation
    named = f" (best: {shortened(', '.join(trace.best_arms), 30)})" if simulation.arms.named else ""
    facts = f"{plural(trace.runs, 'run')}, seed {simulation.seed}, dpbandits {trace.version}"
    void = f"\n{trace.guarantee.in_short}" if trace.guarantee.void else ""
    ax.set_title(f"{shortened(simulation.arms.text, 60)}{named}, {facts}{void}", fontsize=9)
    look(ax)
    return ax


def _label(ax: Axes) -> None:
    """Name both axes and take the logarithm of time, unless the axes' owner has drawn or named something."""
    if not ax.get_lines() and not ax.get_xlabel() and ax.get_xscale() == "linear":
        ax.set_xscale("log")
    if not ax.get_xlabel():
        ax.set_xlabel("round t")
    if not ax.get_ylabel():
        ax.set_ylabel("regret (reward units)")


def _bound_lines(trace: Trace, colour: str) -> list[Line]:
    """The bounds over time; those that nearly coincide share a line."""
    low, high = trace.simulation.reward_range or (0.0, 1.0)
    times = np.unique(np.concatenate([trace.checkpoints[trace.checkpoints > 1], [trace.horizon]])).astype(np.float64)
    groups: list[tuple[Floats, list[Bound]]] = []
    for bound in sorted(trace.bounds(), key=lambda bound: -(bound.value or 0.0)):
        curve = (high - low) * bound.at(times)
        sort = bound.kind, bound.rate is None
        near = [
            group
            for at, group in groups
            if (group[0].kind, group[0].rate is None) == sort and np.allclose(at, curve, 0.02, equal_nan=True)
        ]
        near[0].append(bound) if near else groups.append((curve, [bound]))
    greys = iter(["#222222", "#666666", "#999999", "#bbbbbb"] * 4)
    lines = []
    for curve, group in groups:
        names = ", ".join(bound.name + ("" if bound.checked else " (not checked)") for bound in group)
        if group[0].kind == "upper":
            dashes = (0, (4, 1, 1, 1)) if group[0].scope == "every problem" else (0, (1, 1.5))
            when = "at most" if group[0].rate is None else "at most, as t grows"
            lines.append(Line(f"{when}: {names}", times, curve, colour=colour, dashes=dashes))
        else:
            label = f"at least, as t grows: {names}"
            lines.append(Line(label, times, curve, style="dashed", colour=next(greys)))
    return lines
