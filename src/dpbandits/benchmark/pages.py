"""What people see: pictures to compare policies by, tables, and the page for the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpbandits.benchmark.problems import PROBLEMS, SEED, SET_VERSION, Scale, Track
from dpbandits.benchmark.scores import Scores
from dpbandits.experiments.panels import Line, Panel, Table
from dpbandits.experiments.report import Section
from dpbandits.formats import amount

__all__ = ["markdown", "section"]

DRAWN = 8  # policies in a picture, the best by score
TAUS = np.geomspace(1.0, 100.0, 120)
NOTES = (
    "Ratios are geometric means over cells (problem x setting). Lower bounds are asymptotic, so a ratio below 1 is no "
    "contradiction. A disaster is a run that loses over ten times the median of its cell."
)
COLUMNS = [
    "policy",
    "regret / best policy",
    "worst cell",
    "regret / lower bound",
    "q99 / best mean",
    "disasters, worst cell",
    "rank (95 % interval)",
    "wins",
    "cells",
    "seconds a run",
]


def section(track: Track, found: Sequence[Scores], size: Scale) -> Section:
    """The section of the report on one track."""
    last = found[-1]
    shown: list[Panel | Table] = [_profile(last), *_against_settings(last)]
    shown += [_scores(scores) for scores in reversed(found)]
    shown += [_win_map(last), _means(last)]
    settings = (
        f"{len(PROBLEMS)} problems, settings {', '.join(map(str, track.settings))}, {size.horizon:,} rounds "
        f"({size.slow_horizon:,} for policies that work on every arm in every round), seed {SEED}, "
        f"runs by cost: {_runs(size)}. Policies that need a horizon are made for the longest one."
    )
    return Section(f"benchmark/{track.name}", track.title, f"problem set {SET_VERSION}", settings, {}, shown)


def _profile(scores: Scores) -> Panel:
    """The share of cells in which a policy loses at most tau times what the best one does."""
    lines = []
    for score in scores.scores[:DRAWN]:
        ratios = scores.ratios(score.policy)
        share = np.searchsorted(ratios, TAUS * (1 + 1e-12), side="right") / max(ratios.size, 1)
        lines.append(Line(score.policy, TAUS, share))
    title = f"Performance profile at {scores.horizon:,} rounds"
    return Panel("profile", title, lines, "factor τ", "share of cells with regret <= τ × best", log_y=False)


def _against_settings(scores: Scores) -> list[Panel]:
    """Regret against epsilon, the geometric mean over problems."""
    if not scores.track.epsilons:
        return []
    lines = []
    for score in scores.scores[:DRAWN]:
        y = []
        for epsilon in scores.track.epsilons:
            means = [e.mean for e in scores.entries if e.policy == score.policy and e.setting == epsilon]
            y.append(float(np.exp(np.log(np.maximum(means, 1e-9)).mean())) if means else float("nan"))
        lines.append(Line(score.policy, np.array(scores.track.epsilons), np.array(y)))
    title = f"Regret at {scores.horizon:,} rounds, geometric mean over problems"
    return [Panel("epsilon", title, lines, "ε", "regret")]


def _rows(scores: Scores) -> list[list[str]]:
    rows = []
    for score in scores.scores:
        lower = "" if score.to_lower is None else f"{score.to_lower:.3g}"
        interval = f"{score.rank:.1f} ({score.rank_low:.1f} to {score.rank_high:.1f})"
        rows.append(
            [
                score.policy,
                f"{score.to_best:.3g}",
                f"{score.worst:.3g}",
                lower,
                f"{score.q99:.3g}",
                f"{100 * score.disasters:.3g} %",
                interval,
                str(score.wins),
                str(score.cells),
                f"{score.seconds:.2g}",
            ]
        )
    return rows


def _scores(scores: Scores) -> Table:
    title = f"Scores at {scores.horizon:,} rounds"
    return Table(f"scores-{scores.horizon}", title, COLUMNS, _rows(scores), f"{title}. {NOTES}")


def _win_map(scores: Scores) -> Table:
    """Who wins where."""
    columns = ["problem", *map(str, scores.track.settings)]
    rows = []
    for problem in PROBLEMS:
        row = [problem.name]
        for setting in scores.track.settings:
            here = [e for e in scores.entries if (e.problem, e.setting) == (problem.name, setting)]
            winner = min(here, key=lambda e: e.mean, default=None)
            row.append("" if winner is None else f"{winner.policy} ({amount(winner.mean)})")
        rows.append(row)
    title = f"Who loses least at {scores.horizon:,} rounds, and how much"
    return Table("wins", title, columns, rows, f"{title}.")


def _means(scores: Scores) -> Table:
    """Mean regret of every policy in every cell."""
    cells = [(p.name, s) for p in PROBLEMS for s in scores.track.settings]
    rows = []
    for score in scores.scores:
        row = [score.policy]
        for problem, setting in cells:
            entry = scores.entry(score.policy, problem, setting)
            row.append("" if entry is None else f"{amount(entry.mean)}")
        rows.append(row)
    columns = ["policy", *(f"{problem}, {setting}" for problem, setting in cells)]
    title = f"Mean regret at {scores.horizon:,} rounds"
    return Table("means", title, columns, rows, f"{title}.")


def markdown(found: Sequence[Scores], facts: dict[str, Any], size: Scale, figures: str) -> str:
    """The page for the documentation. ``figures`` is what the path of each picture begins with."""
    lines = [
        "# The benchmark",
        "",
        "<!-- written by dpbandits benchmark; do not edit -->",
        "",
        "Every private policy for rewards in [0, 1] on a fixed set of problems. Each policy is played with the options",
        "that the planner would choose, and no more tuning. `dpbandits benchmark --add module:function` plays your own",
        "beside them.",
        "",
        f"Problem set {SET_VERSION}, scale `{facts['scale']}`, {size.horizon:,} rounds "
        f"({size.slow_horizon:,} for slow policies), seed {facts['seed']}, dpbandits {facts['dpbandits']}.",
        f"Runs by cost: {_runs(size)}.",
        "",
        "| problem | arms | why |",
        "|---|---|---|",
        *(f"| {p.name} | `{p.text}` | {p.why} |" for p in PROBLEMS),
        "",
        NOTES,
        "With few runs, rare disasters are not seen: docs/papers/strongest.md has tails of 10^4 runs.",
    ]
    tracks = list(dict.fromkeys(scores.track for scores in found))
    for track in tracks:
        own = [scores for scores in found if scores.track == track]
        last = own[-1]
        lines += ["", f"## {track.title}", "", f"![performance profile and regret]({figures}/{track.name}.png)", ""]
        for scores in reversed(own):
            lines += [f"### {scores.horizon:,} rounds", "", *_table(COLUMNS, _rows(scores)), ""]
        wins = _win_map(last)
        lines += [f"### {wins.title}", "", *_table(wins.columns, wins.rows)]
    return "\n".join(lines) + "\n"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    head = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return [*head, *("| " + " | ".join(row) + " |" for row in rows)]


def _runs(size: Scale) -> str:
    return ", ".join(f"{cost} {runs}" for cost, runs in size.runs.items())
