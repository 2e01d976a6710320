"""The common style of all figures: what a panel shows, how it is drawn, and how it is saved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dpbandits.errors import MissingExtraError
from dpbandits.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "GREY", "Line", "Panel", "Style", "draw_lines", "draw_panels", "look", "new_figure", "save"]

#: Colours that most readers can tell apart: Okabe and Ito's, and two more. The interactive charts use the same.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F3C8D", "#5D5D5D", "#000000")
GREY = "#777777"

#: When all colours are used, they repeat with the next of these line styles.
DASHES: tuple[Any, ...] = ("solid", (0, (4, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))
DASHED = (0, (5, 2))
RESOLUTION = 100  # dots per inch

Style = Literal["line", "dashed", "points"]


@dataclass(frozen=True, eq=False)
class Line:
    """One line of a panel, or points that are not joined, with or without a band around it."""

    label: str
    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None
    style: Style = "line"
    colour: str = ""  # empty: the next colour in turn
    dashes: Any = None  # None: solid until the colours repeat


@dataclass(frozen=True, eq=False)
class Panel:
    """One set of axes."""

    name: str
    title: str
    lines: Sequence[Line]
    x: str = "round t"
    y: str = "regret"
    log_x: bool = True
    log_y: bool = True
    band: str = ""  # what the bands show
    names: dict[str, list[str]] = field(default_factory=dict)  # for each line: the names of its points


def new_figure(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Figure, list[Axes]]:
    """A figure and its axes, row by row. It needs no display. ``size`` is that of one panel, in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plot") from None
    figure = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained", **options)
    axes = [figure.add_subplot(rows, columns, 1 + number) for number in range(rows * columns)]
    for ax in axes:
        look(ax)
    return figure, axes


def look(ax: Axes) -> None:
    """Apply the common style to axes."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color="#e6e6e6", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=8)


def draw_lines(ax: Axes, lines: Sequence[Line]) -> None:
    """Draw every line. Lines differ in colour, and in line style when the colours repeat."""
    turn = 0
    for line in lines:
        colour, dashes = line.colour, line.dashes
        if not colour:
            colour = COLOURS[turn % len(COLOURS)]
            dashes = dashes or DASHES[turn // len(COLOURS) % len(DASHES)]
            turn += 1
        _draw_line(ax, line, colour, DASHED if line.style == "dashed" and line.dashes is None else dashes or "solid")


def _draw_line(ax: Axes, line: Line, colour: str, dashes: Any) -> None:
    if line.style == "points":
        error = None if line.low is None or line.high is None else np.stack([line.y - line.low, line.high - line.y])
        ax.errorbar(line.x, line.y, error, fmt="o", ms=4, color=colour, label=line.label, elinewidth=1)
        return
    ax.plot(line.x, line.y, linestyle=dashes, color=colour, linewidth=1.4, label=line.label)
    if line.low is not None and line.high is not None:
        # On a logarithmic axis a band that reaches 0 would hide the curve.
        low = np.maximum(line.low, line.y / 100)
        ax.fill_between(line.x, low, line.high, color=colour, alpha=0.18, linewidth=0)


def _draw_panel(ax: Axes, panel: Panel) -> None:
    draw_lines(ax, panel.lines)
    ax.set_xscale("log" if panel.log_x else "linear")
    ax.set_yscale("log" if panel.log_y else "linear")
    ax.set_title(panel.title, fontsize=10)
    ax.set_xlabel(panel.x, fontsize=9)
    ax.set_ylabel(panel.y, fontsize=9)
    ax.legend(frameon=False, fontsize=7)
    without_minor_ticks(ax)


def without_minor_ticks(ax: Axes) -> None:
    """Remove minor ticks from an axis over many decades, where they take most of the drawing time."""
    from matplotlib.ticker import NullLocator

    for axis, (low, high) in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        if axis.get_scale() == "log" and high > 100 * low:
            axis.set_minor_locator(NullLocator())


def draw_panels(panels: Sequence[Panel], stem: Path, caption: str) -> list[Path]:
    """Save all panels as one figure; return the paths of the files."""
    columns = min(2, len(panels))
    figure, axes = new_figure(math.ceil(len(panels) / columns), columns, (5.2, 3.8))
    for ax, panel in zip(axes, panels, strict=False):
        _draw_panel(ax, panel)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    bands = sorted({panel.band for panel in panels if panel.band})
    figure.supxlabel(caption + (f"; bands: {', '.join(bands)}" if bands else ""), fontsize=7, color="#555555")
    return save(figure, stem)


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write ``stem``.svg and ``stem``.png; the same data give the same files."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in ("svg", "png")]
    figure.set_dpi(RESOLUTION)
    bitmap: Any = FigureCanvasAgg(figure)
    figure.draw_without_rendering()  # computes the layout
    figure.set_layout_engine("none")  # keeps that layout for both files
    bitmap.print_png(paths[1])  # savefig would draw everything twice
    with matplotlib.rc_context({"svg.hashsalt": "dpbandits"}):  # otherwise identifiers differ from file to file
        vectors: Any = FigureCanvasSVG(figure)
        vectors.print_svg(paths[0], metadata={"Date": None})
    return paths
