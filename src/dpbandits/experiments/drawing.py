"""Panels as files: matplotlib, SVG and PNG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbandits.errors import MissingExtraError
from dpbandits.experiments.panels import Line, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Okabe and Ito's colours, which most readers can tell apart; the interactive charts use the same.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F3C8D", "#5D5D5D", "#000000")
RESOLUTION = 100


def draw(panels: Sequence[Panel], stem: Path, caption: str) -> list[Path]:
    """Write all panels as one figure, ``stem``.svg and ``stem``.png."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "reproduce") from None
    columns = min(2, len(panels))
    rows = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(5.2 * columns, 3.7 * rows + 0.3), dpi=RESOLUTION, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, panel in zip(axes, panels, strict=False):
        _panel(ax, panel)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    bands = sorted({panel.band for panel in panels if panel.band})
    figure.supxlabel(caption + (f"; bands: {', '.join(bands)}" if bands else ""), fontsize=7, color="#555555")
    bitmap: Any = FigureCanvasAgg(figure)
    figure.draw_without_rendering()  # lays it out
    figure.set_layout_engine("none")  # and once is enough for both files
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_suffix(".svg"), stem.with_suffix(".png")]
    bitmap.print_png(paths[1])  # savefig would draw everything twice
    vectors: Any = FigureCanvasSVG(figure)
    vectors.print_svg(paths[0], metadata={"Date": None})
    return paths


def _panel(ax: Axes, panel: Panel) -> None:
    from matplotlib.ticker import NullLocator

    for line, colour in zip(panel.lines, COLOURS, strict=False):
        _line(ax, line, colour)
    ax.set_xscale("log" if panel.log_x else "linear")
    ax.set_yscale("log" if panel.log_y else "linear")
    ax.set_title(panel.title, fontsize=10)
    ax.set_xlabel(panel.x, fontsize=9)
    ax.set_ylabel(panel.y, fontsize=9)
    ax.tick_params(labelsize=8)
    ax.grid(True, color="#e6e6e6", linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=7)
    for axis, (low, high) in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        if axis.get_scale() == "log" and high > 100 * low:
            axis.set_minor_locator(NullLocator())  # most of a drawing's time, and they say nothing there


def _line(ax: Axes, line: Line, colour: str) -> None:
    if line.style == "points":
        error = None if line.low is None or line.high is None else np.stack([line.y - line.low, line.high - line.y])
        ax.errorbar(line.x, line.y, error, fmt="o", ms=4, color=colour, label=line.label, elinewidth=1)
        return
    ax.plot(line.x, line.y, "--" if line.style == "dashed" else "-", color=colour, linewidth=1.4, label=line.label)
    if line.low is not None and line.high is not None:
        # on a logarithmic axis a band that reaches 0 would hide the curve
        low = np.maximum(line.low, line.y / 100)
        ax.fill_between(line.x, low, line.high, color=colour, alpha=0.18, linewidth=0)
