"""What people see: pictures to compare policies by, tables, and the page for the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpbandits.benchmark.pictures import said
from dpbandits.benchmark.problems import PROBLEMS, SEED, SET_VERSION, TAIL_HORIZON, UNBOUNDED, Challenge, Scale
from dpbandits.benchmark.scores import TAIL, CellScore, Scores
from dpbandits.experiments.panels import Line, Panel, Table
from dpbandits.experiments.report import Section
from dpbandits.formats import amount
from dpbandits.policies import lookup

__all__ = ["markdown", "section"]

DRAWN = 6  # policies in a picture, the best by score
TAUS = np.geomspace(1.0, 100.0, 120)
WORDS = {  # what a simulated round of a policy costs
    "stint": "one random draw for a whole stint",
    "bulk": "one random draw for many rounds",
    "divergence": "divergences computed once for many rounds",
    "noise": "noise drawn in every round",
    "counter": "a counter updated in every round",
    "arms": "work on every arm in every round",
}
NOTES = (
    "Ratios are geometric means over cells (problem x setting). Lower bounds are asymptotic, so a ratio below 1 is no "
    "contradiction. A disaster is a run that loses over ten times the median of its cell."
)
COLUMNS = {
    "policy": "with the options that the planner would choose, or those in brackets",
    "regret / best": "mean regret over that of the policy that loses least in the same cell, geometric mean over cells",
    "worst cell": "the largest of these ratios",
    "regret / bound": "mean regret over the largest lower bound on all policies of the class, geometric mean. Lower "
    "bounds are asymptotic, so that a ratio below 1 is no contradiction",
    "q99 / best": "the 99 % quantile of the regret over the mean of the best policy, geometric mean",
    "rank": "mean rank over cells, with a 95 % interval (bootstrap over cells)",
    "wins": "cells in which it loses least, of all that it was played in",
    "seconds": "for one run to its longest horizon, on average over cells: the same in tables of shorter horizons",
}
TAIL_COLUMNS = {
    "mean": "with its standard error",
    "99.9 %": "the quantile: 1 run in 1000 loses more",
    "disasters": f"the runs that lost more than {TAIL:g} times the median, in 10,000",
}


def section(found: Sequence[Scores], tails: Scores, size: Scale) -> Section:
    """The section of the report on one track."""
    last, track = found[-1], tails.track
    shown: list[Panel | Table] = [_profile(last), *_against_settings(last)]
    shown += [_scores(scores) for scores in reversed(found)]
    shown += [_win_map(last), *_tails(tails), _means(last)]
    settings = (
        f"{len(track.problems)} problems, {', '.join(map(said, track.settings))}, {_rounds(size)}, seed {SEED}, "
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
        if not np.isnan(y).all():  # it has an epsilon, not levels
            lines.append(Line(score.policy, np.array(scores.track.epsilons), np.array(y)))
    title = f"Regret at {scores.horizon:,} rounds, geometric mean over problems"
    return [Panel("epsilon", title, lines, "ε", "regret")]


def _rows(scores: Scores) -> list[list[str]]:
    return [
        [
            score.policy,
            f"{score.to_best:.3g}",
            f"{score.worst:.3g}",
            "" if score.to_lower is None else f"{score.to_lower:.3g}",
            f"{score.q99:.3g}",
            f"{score.rank:.1f} ({score.rank_low:.1f} to {score.rank_high:.1f})",
            f"{score.wins} of {score.cells}",
            f"{score.seconds:.2g}",
        ]
        for score in scores.scores
    ]


def _scores(scores: Scores) -> Table:
    title = f"Scores at {scores.horizon:,} rounds"
    return Table(f"scores-{scores.horizon}", title, list(COLUMNS), _rows(scores), f"{title}. {NOTES}")


def _mean(entry: CellScore) -> str:
    """The mean with its standard error, where runs differ."""
    differ = entry.stderr > 1e-9 * abs(entry.mean)
    return f"{amount(entry.mean)} ± {float(f'{entry.stderr:.2g}'):g}" if differ else amount(entry.mean)


def _tails(tails: Scores) -> list[Table]:
    """How badly runs go, in each of the cells for tails."""
    columns = ["policy", "runs", "mean", "median", "99 %", "99.9 %", "largest", "disasters"]
    found = []
    for number, (problem, setting) in enumerate(tails.track.tails):
        here = tails.in_cell(problem, setting)
        rows = [
            [
                entry.policy,
                f"{entry.runs:,}",
                _mean(entry),
                *map(amount, (entry.median, entry.q99, entry.q999, entry.largest)),
                f"{10_000 * entry.disasters:.3g}",
            ]
            for entry in here
        ]
        title = f"{problem}, {said(setting)}, {tails.horizon:,} rounds"
        notes = f"{title}. Disasters: runs in 10,000 that lost more than {TAIL:g} times the median."
        found.append(Table(f"tails-{number}", title, columns, rows, notes))
    return found


def _win_map(scores: Scores) -> Table:
    """Who wins where."""
    columns = ["problem", *map(said, scores.track.settings)]
    rows = []
    for problem in scores.track.problems:
        row = [problem.name]
        for setting in scores.track.settings:
            here = scores.leaders(problem.name, setting)
            more = f", {len(here) - 1} more within two standard errors" if len(here) > 1 else ""
            row.append(f"{here[0].policy} ({amount(here[0].mean)}{more})" if here else "")
        rows.append(row)
    title = f"Who loses least at {scores.horizon:,} rounds, and how much"
    return Table("wins", title, columns, rows, f"{title}.")


def _means(scores: Scores) -> Table:
    """Mean regret of every policy in every cell."""
    cells = [(p.name, s) for p in scores.track.problems for s in scores.track.settings]
    rows = []
    for score in scores.scores:
        row = [score.policy]
        for problem, setting in cells:
            entry = scores.entry(score.policy, problem, setting)
            row.append("" if entry is None else f"{amount(entry.mean)}")
        rows.append(row)
    columns = ["policy", *(f"{problem}, {said(setting)}" for problem, setting in cells)]
    title = f"Mean regret at {scores.horizon:,} rounds"
    return Table("means", title, columns, rows, f"{title}.")


def markdown(found: Sequence[Scores], tails: Sequence[Scores], facts: dict[str, Any], size: Scale, figures: str) -> str:
    """The page for the documentation. ``figures`` is what the path of each picture begins with."""
    lines = [
        "# The benchmark",
        "",
        "<!-- written by dpbandits benchmark; do not edit -->",
        "",
        "Every policy that ships, in its class, on a fixed public set of problems: which loses least where, and how",
        "badly the worst runs go. `dpbandits benchmark --add module:function` plays your own beside them, and",
        "[the policies' page](papers/strongest.md) says what is proved of each.",
        "",
        f"Problem set {SET_VERSION}, scale `{facts['scale']}`, {_rounds(size)}, seed {facts['seed']}, "
        f"dpbandits {facts['dpbandits']}.",
        "How often each policy is played in each cell depends on what a simulated round costs:",
        "",
        "| cost of a simulated round | runs |",
        "|---|---|",
        *(f"| {WORDS[cost]} | {runs} |" for cost, runs in size.runs.items()),
        "",
        f"Tails are from {size.tail_runs:,} runs of {TAIL_HORIZON:,} rounds, or from as many as their tables say.",
        f"Command: `dpbandits benchmark --scale {facts['scale']}`.",
        "",
        "<!-- policies that are newer than this page: written from the package -->",
        "",
        "## In short",
        "",
        *_short(found, tails),
        "",
        "## The problems",
        "",
        *_problems(PROBLEMS),
        "",
        "Rewards of any size; policies for rewards in [0, 1] clip them to the range, the others take them as they are:",
        "",
        *_problems(UNBOUNDED),
        "",
        "## How to read the tables",
        "",
        "A *cell* is a problem at a setting: an epsilon, or the levels of a population.",
        "",
        *(f"* **{column}**: {meaning}." for column, meaning in {**COLUMNS, **TAIL_COLUMNS}.items()),
        "",
        f"The *performance profile* shows, for the {DRAWN} policies with the least *regret / best*, the share of cells",
        "in which a policy loses at most a factor times what the best one loses there.",
        "",
        _not_pure(),
        "Where a policy was played a few times only, its standard error is rough, and so is the line between a clear",
        "winner and a tie.",
        "",
        "Policies that find the best arm and stop (`adap-tt`, `dp-tt`, `ctb-tt`) are made to err rarely, not to lose",
        "little: [their page](howto/find-the-best-arm.md) has stopping times and errors.",
    ]
    for tail in tails:
        lines += _chapter([scores for scores in found if scores.track == tail.track], tail, figures)
    return "\n".join(lines) + "\n"


def _not_pure() -> str:
    """Which policies make a weaker promise than the others of their class."""
    weaker = [f"`{name}`" for name in lookup.names() if lookup.sample(name).guarantee.delta > 0]
    return f"Policies with (epsilon, delta)-privacy, a weaker promise than that of all others: {', '.join(weaker)}."


def _chapter(found: Sequence[Scores], tail: Scores, figures: str) -> list[str]:
    """The pictures and tables of one track."""
    track = tail.track

    def picture(kind: str, what: str) -> str:
        return f"![{track.title}: {what}]({figures}/{kind}-{track.name}.png)"

    lines = ["", f"## {track.title}", "", f"### {track.title}: where each wins", ""]
    lines += [picture("wins", "who loses least on each problem at each setting"), ""]
    for scores in reversed(found):
        lines += [f"{scores.horizon:,} rounds:", "", *_table(list(COLUMNS), _rows(scores)), ""]
    lines += [picture("profile", "the share of cells within a factor of the best policy")]
    if track.epsilons:
        lines += [picture("epsilon", "regret against epsilon")]
    lines += [
        "",
        f"### {track.title}: how each fails",
        "",
        picture("tails", "medians, quantiles and the largest regret"),
    ]
    for table in _tails(tail):
        lines += ["", f"{table.title}:", "", *_table(table.columns, table.rows)]
    return lines


def _short(found: Sequence[Scores], tails: Sequence[Scores]) -> list[str]:
    """For each track: the policies with the least regret on average, who wins most cells, and who fails."""
    lines = []
    for tail in tails:
        last = [scores for scores in found if scores.track == tail.track][-1]
        first = ", ".join(f"`{s.policy}` ({s.to_best:.3g})" for s in last.scores[:3])
        most = max(last.scores, key=lambda s: s.wins)
        failing = sorted((e for e in tail.entries if e.disasters > 0), key=lambda e: -e.disasters)
        found_failing = [f"`{e.policy}` {10_000 * e.disasters:.3g} (problem {e.problem})" for e in failing[:4]]
        worst = ", ".join(found_failing) or "none"
        lines.append(
            f"* **{tail.track.title}.** Mean regret divided by the lowest one in the cell (geometric mean): {first}. "
            f"Lowest regret in most cells: `{most.policy}`, {most.wins} of {most.cells}. "
            f"Most disasters in 10,000 runs: {worst}."
        )
    return lines


def _problems(problems: Sequence[Challenge]) -> list[str]:
    lines = []
    for p in problems:
        clipped = f", range [{p.reward_range[0]:g}, {p.reward_range[1]:g}]" if p.reward_range else ""
        lines.append(f"* **{p.name}**: {p.why}: `{p.text}`{clipped}")
    return lines


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table of Markdown; what is in the first column is a name."""
    head = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return [*head, *("| " + " | ".join([f"`{name}`", *row]) + " |" for name, *row in rows)]


def _runs(size: Scale) -> str:
    return ", ".join(f"{WORDS[cost]}: {runs} runs" for cost, runs in size.runs.items())


def _rounds(size: Scale) -> str:
    if size.slow_horizon == size.horizon:
        return f"{size.horizon:,} rounds"
    return f"{size.horizon:,} rounds ({size.slow_horizon:,} for policies that work on every arm in every round)"
