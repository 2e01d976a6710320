"""The common style of all figures: what a panel shows, how it is drawn, and how it is saved."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from dpbandits.errors import MissingExtraError
from dpbandits.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "COLOURS",
    "GREY",
    "Line",
    "Look",
    "Panel",
    "Style",
    "draw_lines",
    "draw_panels",
    "look",
    "looks",
    "new_axes",
    "new_figure",
    "nth_look",
    "save_figure",
    "show_legend",
    "show_notes",
]

#: Colours that most readers can tell apart: Okabe and Ito's, and two more. The interactive charts use the same.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F3C8D", "#5D5D5D", "#000000")
GREY = "#777777"

#: When all colours are used, they repeat with the next of these line styles, and with the next of the markers.
DASHES: tuple[Any, ...] = ("solid", (0, (4, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))
MARKERS = ("", "o", "s", "^", "D", "v", "P")
DASHED = (0, (5, 2))
RESOLUTION = 300  # dots per inch
KINDS = ("svg", "png", "pdf")
LEGEND = 2.0  # inches for a legend beside the axes
MOST_INSIDE = 5  # lines whose legend is inside the axes; more would be covered by some line
FEW_POINTS = 8  # values of x on a logarithmic axis that get a tick each

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
    colour: str = ""  # empty: that of its label
    dashes: Any = None  # None: those of its label
    like: str = ""  # the label of a line whose colour it shares, as a bound does with the policy that it is about


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


class Look(NamedTuple):
    """What a line looks like: the numbers of its colour, its dashes and its marker."""

    colour: int
    dashes: int
    marker: int


def nth_look(number: int) -> Look:
    """The look of line number ``number``: nine colours first, then the same with dashes and markers.

    >>> nth_look(0), nth_look(9)
    (Look(colour=0, dashes=0, marker=0), Look(colour=0, dashes=1, marker=1))
    >>> len({nth_look(number) for number in range(252)})
    252
    """
    turn, colour = divmod(number, len(COLOURS))
    return Look(colour, turn % len(DASHES), turn % len(MARKERS))


def looks(panels: Sequence[Panel]) -> dict[str, Look]:
    """The look of each label, the same in every panel. A line with its own colour, or like another's, takes no turn.

    >>> one = np.ones(2)
    >>> looks([Panel("a", "A", [Line("x", one, one)]), Panel("b", "B", [Line("y", one, one), Line("x", one, one)])])
    {'x': Look(colour=0, dashes=0, marker=0), 'y': Look(colour=1, dashes=0, marker=0)}
    """
    lines = [line for panel in panels for line in panel.lines if not line.colour]
    labels = {line.label for line in lines}
    own = dict.fromkeys(line.label for line in lines if line.like not in labels)
    found = {label: nth_look(number) for number, label in enumerate(own)}
    return found | {line.label: found[line.like] for line in lines if line.like in found}


def draw_lines(ax: Axes, lines: Sequence[Line], chosen: Mapping[str, Look] | None = None) -> None:
    """Draw every line. Lines differ in colour, and in dashes and markers when the colours repeat."""
    given = looks([Panel("", "", lines)]) if chosen is None else chosen
    for line in lines:
        if line.colour:
            colour, dashes, marker = line.colour, line.dashes or "solid", ""
        else:
            its = given[line.label]
            colour, dashes, marker = COLOURS[its.colour], line.dashes or DASHES[its.dashes], MARKERS[its.marker]
        if line.style == "dashed" and line.dashes is None:
            dashes = DASHED
        _draw_line(ax, line, colour, dashes, marker)


def _draw_line(ax: Axes, line: Line, colour: str, dashes: Any, marker: str) -> None:
    if line.style == "points":
        error = None if line.low is None or line.high is None else np.stack([line.y - line.low, line.high - line.y])
        ax.errorbar(line.x, line.y, error, fmt=marker or "o", ms=4, color=colour, label=line.label, elinewidth=1)
        return
    style = {"linestyle": dashes, "color": colour, "linewidth": 1.4, "label": line.label}
    ax.plot(line.x, line.y, **style, marker=marker or None, markersize=4, markevery=max(line.x.size // 8, 1))
    if line.low is not None and line.high is not None:
        # On a logarithmic axis a band that reaches 0 would hide the curve.
        low = np.maximum(line.low, line.y / 100)
        ax.fill_between(line.x, low, line.high, color=colour, alpha=0.18, linewidth=0)


def show_legend(ax: Axes, size: float = 7) -> None:
    """A legend where it covers the least; beside the axes if there are too many lines for that."""
    many = len(ax.get_legend_handles_labels()[1]) > MOST_INSIDE
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if many else {"loc": "best"}
    ax.legend(frameon=False, fontsize=size, **place)


def show_notes(ax: Axes, notes: Iterable[str]) -> None:
    """Write what must be said of the numbers into a corner of the axes, unless the title says it already."""
    said = {ax.get_title(), *(text.get_text() for text in ax.texts)}
    new = [note for note in sorted(set(notes)) if not any(note in text for text in said)]
    if new:
        text = "\n".join(new)
        ax.text(0.99, 0.01, text, transform=ax.transAxes, ha="right", va="bottom", fontsize=7, color=GREY)


def _draw_panel(ax: Axes, panel: Panel, chosen: Mapping[str, Look]) -> None:
    draw_lines(ax, panel.lines, chosen)
    ax.set_xscale("log" if panel.log_x else "linear")
    ax.set_yscale("log" if panel.log_y else "linear")
    ax.set_title(panel.title, fontsize=10)
    ax.set_xlabel(panel.x, fontsize=9)
    ax.set_ylabel(panel.y, fontsize=9)
    show_legend(ax)
    plain_ticks(ax)
    points = sorted({float(x) for line in panel.lines for x in line.x})
    if panel.log_x and 1 < len(points) <= FEW_POINTS:
        ax.set_xticks(points, [f"{x:g}" for x in points])


def plain_ticks(ax: Axes) -> None:
    """Ticks of logarithmic axes: powers of ten over two decades and more, plain numbers otherwise."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    for axis, (low, high) in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        if axis.get_scale() != "log":
            continue
        axis.set_minor_locator(NullLocator())  # over many decades they take most of the drawing time
        if high <= 100 * low:
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high > 5 * low else tuple(range(1, 10))))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1000 else f"{value:g}"))


def draw_panels(panels: Sequence[Panel], stem: Path, caption: str) -> list[Path]:
    """Save all panels as one figure; return the paths of the files."""
    columns = min(2, len(panels))
    beside = LEGEND if any(len(panel.lines) > MOST_INSIDE for panel in panels) else 0.0
    figure, axes = new_figure(math.ceil(len(panels) / columns), columns, (5.2 + beside, 3.8))
    chosen = looks(panels)
    for ax, panel in zip(axes, panels, strict=False):
        _draw_panel(ax, panel, chosen)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    bands = sorted({panel.band for panel in panels if panel.band})
    figure.supxlabel(caption + (f"; bands: {', '.join(bands)}" if bands else ""), fontsize=7, color="#555555")
    return save_figure(figure, stem)


def new_axes() -> Axes:
    """Axes in a figure of their own, shown in a notebook."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtraError("matplotlib", "plot") from None
    return plt.subplots(figsize=(7, 4.5), layout="constrained")[1]


def save_figure(figure: Figure, stem: Path, title: str = "") -> list[Path]:
    """Write ``stem``.svg, ``stem``.png and ``stem``.pdf, text as text; the same data give the same files."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    stem.parent.mkdir(parents=True, exist_ok=True)
    svg, png, pdf = (stem.with_name(f"{stem.name}.{kind}") for kind in KINDS)
    figure.set_dpi(RESOLUTION)
    bitmap: Any = FigureCanvasAgg(figure)
    figure.draw_without_rendering()  # computes the layout
    figure.set_layout_engine("none")  # keeps that layout for all files
    bitmap.print_png(png)  # savefig would draw everything twice
    # Without a salt, identifiers differ from file to file. Type 42 and "none": text can be searched and edited.
    with matplotlib.rc_context({"svg.hashsalt": "dpbandits", "svg.fonttype": "none", "pdf.fonttype": 42}):
        vectors: Any = FigureCanvasSVG(figure)
        vectors.print_svg(svg, metadata={"Date": None, "Title": title or stem.name})
        pages: Any = FigureCanvasPdf(figure)
        pages.print_pdf(pdf, metadata={"CreationDate": None, "Title": title or stem.name})
    return [svg, png, pdf]
