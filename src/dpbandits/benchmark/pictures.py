"""The pictures of the benchmark's page, one below the other: who wins where, how badly runs go, and line charts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbandits.benchmark.problems import PrivacySetting
from dpbandits.benchmark.scores import CellScore, Scores
from dpbandits.formats import amount
from dpbandits.plotting import COLOURS, GREY, Panel, draw_panels, new_figure, plain_ticks, save_figure
from dpbandits.simulation.tails import DISASTER

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_benchmark", "said"]

WIDTH = 5.4  # inches; on a telephone the text is then still legible
TOLD_APART = 7  # colours of winners; those who win the fewest cells beyond are grey
CLEAR, TIED = 0.5, 0.15  # how strongly a winner's colour is laid on


def said(setting: PrivacySetting) -> str:
    """A setting in words.

    >>> said(0.5), said("normal(1,1)"), said(None)
    ('ε = 0.5', 'levels normal(1,1)', 'no privacy')
    """
    if setting is None:
        return "no privacy"
    return f"levels {setting}" if isinstance(setting, str) else f"ε = {setting:g}"


def draw_benchmark(scores: Scores, tails: Scores, panels: Sequence[Panel], folder: Path, caption: str) -> list[Path]:
    """Write ``wins-track``, ``tails-track``, and each panel by its name, to a folder, as SVG, PNG and PDF."""
    written = [*_win_map(scores, folder, caption), *_tails(tails, folder, caption)]
    for panel in panels:
        written += draw_panels([panel], folder / f"{panel.name}-{scores.track.name}", caption)
    return written


def _win_map(scores: Scores, folder: Path, caption: str) -> list[Path]:
    """A square for each problem and setting, in the colour of the policy that loses least there."""
    problems, settings = scores.track.problems, scores.track.settings
    figure, (ax,) = new_figure(1, 1, (WIDTH, 1.2 + 0.52 * len(problems)))
    won = [scores.leaders(problem.name, setting) for problem in problems for setting in settings]
    winners = [here[0].policy for here in won if here]
    order = sorted(set(winners), key=lambda policy: (-winners.count(policy), policy))
    for number, here in enumerate(won):
        row, column = divmod(number, len(settings))
        if here:
            place = order.index(here[0].policy)
            _square(ax, column, row, here, COLOURS[place] if place < TOLD_APART else GREY)
    ax.set_xlim(0, len(settings))
    ax.set_ylim(len(problems), 0)
    ax.set_xticks(np.arange(len(settings)) + 0.5, [said(setting).replace("levels ", "") for setting in settings])
    ax.set_yticks(np.arange(len(problems)) + 0.5, [problem.name for problem in problems])
    ax.tick_params(length=0, labelsize=9, labelbottom=False, labeltop=True)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    figure.suptitle(f"{scores.track.title}\nwho loses least in {scores.horizon:,} rounds", fontsize=10)
    figure.supxlabel(
        f"Policy and mean regret. Pale, +n: two standard errors do not tell it from n others.\n{caption}",
        fontsize=7,
        color="#555555",
    )
    return save_figure(figure, folder / f"wins-{scores.track.name}")


def _square(ax: Axes, column: int, row: int, here: list[CellScore], colour: str) -> None:
    from matplotlib.patches import Rectangle

    place = (column + 0.02, row + 0.05)
    ax.add_patch(Rectangle(place, 0.96, 0.9, facecolor=colour, alpha=TIED if len(here) > 1 else CLEAR, linewidth=0))
    more = f"  +{len(here) - 1}" if len(here) > 1 else ""
    name, opened, options = here[0].policy.partition(" (")
    ax.text(column + 0.5, row + 0.3, name, ha="center", va="center", fontsize=8)
    below = [f"({options}"] if opened else []
    words = "   ".join([*below, f"{amount(here[0].mean)}{more}"])
    ax.text(column + 0.5, row + 0.7, words, ha="center", va="center", fontsize=6.5 if opened else 7.5)


def _tails(tails: Scores, folder: Path, caption: str) -> list[Path]:
    """A row for each policy: the median, the mean, and how far the worst runs reach."""
    parts = {cell: tails.in_cell(*cell) for cell in tails.track.tails}
    parts = {cell: here for cell, here in parts.items() if here}
    figure, axes = new_figure(len(parts), 1, (WIDTH, 0.9 + 0.24 * max(map(len, parts.values()))))
    for ax, ((problem, setting), here) in zip(axes, parts.items(), strict=True):
        for row, entry in enumerate(here):
            _bar(ax, row, entry, labelled=row == 0)
        ax.set_xscale("log")
        plain_ticks(ax)
        ax.set_ylim(len(here) - 0.4, -0.6)
        ax.set_yticks(range(len(here)), [entry.policy for entry in here])
        ax.grid(False, axis="y")
        ax.set_title(f"{problem}, {said(setting)}: regret in {tails.horizon:,} rounds", fontsize=9)
    handles, labels = axes[0].get_legend_handles_labels()
    note = f"Orange: some runs lost more than {DISASTER:g} times the median. {caption}"
    style: dict[str, Any] = {"frameon": False, "fontsize": 7, "ncols": 4, "title": note, "title_fontsize": 7}
    figure.legend(handles, labels, loc="outside lower center", columnspacing=1, **style)
    runs = max(entry.runs for here in parts.values() for entry in here)
    figure.suptitle(f"{tails.track.title}\nhow badly up to {runs:,} runs go", fontsize=10)
    return save_figure(figure, folder / f"tails-{tails.track.name}")


def _bar(ax: Axes, row: int, entry: CellScore, *, labelled: bool) -> None:
    """Thick up to the 99 % quantile, thin up to the 99.9 % one, a cross at the largest."""
    colour = COLOURS[1] if entry.disasters > 0 else COLOURS[0]
    names = ["median to 99 %", "to 99.9 %", "mean", "largest"] if labelled else [None] * 4
    ax.plot([entry.median, entry.q99], [row, row], color=colour, linewidth=5, alpha=0.5, label=names[0])
    ax.plot([entry.q99, entry.q999], [row, row], color=colour, linewidth=1.5, label=names[1])
    ax.plot([entry.mean], [row], "o", color="black", markersize=3.5, label=names[2], linestyle="none")
    ax.plot([entry.largest], [row], "x", color=colour, markersize=5, label=names[3], linestyle="none")
    ax.plot([entry.q999, entry.largest], [row, row], ":", color=GREY, linewidth=0.7, zorder=0)
