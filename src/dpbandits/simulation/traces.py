"""The traces of a comparison, by label: one table, one plot."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import numpy as np

from dpbandits.display import shortened, sparkline
from dpbandits.errors import MissingExtraError
from dpbandits.formats import amount, estimate
from dpbandits.plotting import Line, draw_lines, look, new_axes, show_legend, show_notes
from dpbandits.simulation.trace import Trace

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

__all__ = ["Traces"]

COLUMNS = ("policy", "mean regret", "95 % quantile", "largest regret", "disasters", "best arm", "privacy")


class Traces(dict[str, Trace]):
    """Traces by label. Printed, they are a table; ``plot`` draws them on one set of axes.

    A disaster is a run that lost more than ten times the median of all runs; a dash says that none is possible.

    >>> from dpbandits.simulation import simulate
    >>> Traces({"UCB1": simulate("ucb1", arms={"red": 0.9, "green": 0.6}, horizon=1000, runs=10, seed=0)})
    policy  mean regret  95 % quantile  largest regret  disasters  best arm                      privacy
    UCB1    22.2 ± 1.3   27.8           28.2            0 %        red, played most in 10 of 10  not private
    """

    columns = COLUMNS

    def rows(self) -> list[list[str]]:
        """What the table says about each trace: regret, the best arm, and privacy."""
        return [[label, *_row(trace)] for label, trace in self.items()]

    def best(self) -> str:
        """The label of the trace with the least mean regret."""
        return min(self, key=lambda label: float(self[label].final_regret.mean()))

    def to_pandas(self) -> pandas.DataFrame:
        """The tables of all traces in one, with the label of each in the first column."""
        try:
            import pandas
        except ImportError:
            raise MissingExtraError("pandas", "data") from None
        tables = []
        for label, trace in self.items():
            table = trace.to_pandas()
            table.insert(0, "label", label)
            tables.append(table)
        return pandas.concat(tables, ignore_index=True)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Mean regret over time of every trace, with bands of two standard errors, on logarithmic axes."""
        if ax is None:
            ax = self._axes()
        lines = []
        for label, trace in self.items():
            mean, width = trace.regret.mean(axis=0), 2 * np.nan_to_num(trace.stderr)
            lines.append(Line(label, trace.checkpoints.astype(np.float64), mean, mean - width, mean + width))
        draw_lines(ax, lines)
        ax.set_xlabel("round t")
        ax.set_ylabel("regret")
        ax.set_xscale("log")
        ax.set_yscale("log")
        show_legend(ax, 8)
        show_notes(ax, self.voids())
        return ax

    def voids(self) -> list[str]:
        """Why nothing is promised of some of these numbers; nothing where each policy's promise stands."""
        return sorted({trace.guarantee.in_short for trace in self.values() if trace.guarantee.void})

    def _axes(self) -> Axes:
        ax = new_axes()
        look(ax)
        arms = {trace.simulation.arms.text for trace in self.values()}
        about = shortened(arms.pop(), 60) if len(arms) == 1 else f"{len(arms)} problems"
        seeds = {trace.simulation.seed for trace in self.values()}
        versions = {trace.version for trace in self.values()}
        facts = f"seed {', '.join(map(str, sorted(seeds)))}, dpbandits {', '.join(sorted(versions))}"
        ax.set_title("\n".join([f"{about}, {facts}", *self.voids()]), fontsize=9)
        return ax

    def __repr__(self) -> str:
        rows = [list(COLUMNS), *self.rows()]
        widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
        return "\n".join(
            "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        )

    def _repr_html_(self) -> str:
        # Plain strings, each cell escaped: without extras there may be no template engine.
        head = "".join(f"<th>{html.escape(column)}</th>" for column in (*COLUMNS, "regret over time"))
        body = []
        for row, trace in zip(self.rows(), self.values(), strict=True):
            picture = sparkline(trace.regret.mean(axis=0).tolist(), np.log(trace.checkpoints).tolist())
            body.append("".join(f"<td>{html.escape(cell)}</td>" for cell in row) + f"<td>{picture}</td>")
        return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in body)}</table>"


def _row(trace: Trace) -> list[str]:
    final, promise = trace.final_regret, trace.guarantee
    best = shortened(", ".join(trace.best_arms), 40)
    return [
        estimate(float(final.mean()), float(trace.stderr[-1])),
        amount(trace.tail.quantile),
        amount(float(final.max())),
        trace.tail.disasters_in_percent,
        f"{best}, played most in {trace.found} of {trace.runs}",
        promise.in_short if promise.void or promise.trust == "none" else f"{promise.trust}, {promise.size}",
    ]
