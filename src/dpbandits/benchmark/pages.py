"""What people see: pictures to compare policies by, tables, and the page for the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dpbandits.benchmark.pictures import said
from dpbandits.benchmark.problems import SEED, SET_VERSION, TAIL_HORIZON, TRACKS, Scale, Track
from dpbandits.benchmark.scores import CellScore, Scores, in_words
from dpbandits.experiments.panels import Line, Panel, Picture, Table
from dpbandits.experiments.report import Section
from dpbandits.formats import amount, duration, plural
from dpbandits.simulation.tails import DISASTER, may_fail

__all__ = ["markdown", "section", "took"]

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
    "contradiction. "
    f"A disaster is a run that loses over {DISASTER:g} times the median of its cell."
)
ALL_OPTIONS = (
    "All others have their defaults. Policies that need a horizon are made for the longest one, and for tails for "
    f"{TAIL_HORIZON:,} rounds. benchmark.json has all settings in every cell, and the epsilon and delta promised there."
)
COLUMNS = {
    "policy": "with the options that the planner would choose, or those in brackets",
    "regret / best": "mean regret over that of the policy that loses least in the same cell, geometric mean over cells",
    "worst cell": "the largest of these ratios",
    "regret / bound": "mean regret over the largest lower bound on all policies of the class that is known here, "
    "geometric mean over the cells that have one. For users with levels it is the bound without privacy. It is never "
    "more than what playing at random loses. Lower bounds are asymptotic, so that a ratio below 1 is no contradiction",
    "q99 / best": "the 99 % quantile of the regret over the mean of the best policy, geometric mean",
    "rank": "mean rank over cells, with a 95 % interval (bootstrap over cells)",
    "wins": "cells in which it loses least, of all that it was played in",
    "seconds": "for one run to its longest horizon, on average over cells: the same in tables of shorter horizons. "
    "They are those of a clock, so that other work on the machine counts",
}
PICTURES = {
    "wins": "who loses least on each problem at each setting",
    "tails": "medians, quantiles and the largest regret",
}
TAIL_COLUMNS = {
    "mean": "with its standard error",
    "99.9 %": "the quantile: 1 run in 1000 loses more",
    "disasters": f"the runs that lost more than {DISASTER:g} times the median, per 10,000; a dash where no run can "
    "lose that much",
}


def section(found: Sequence[Scores], tails: Scores, size: Scale) -> Section:
    """The section of the report on one track."""
    last, track = found[-1], tails.track
    shown: list[Panel | Picture | Table] = [_profile(last), *_against_settings(last)]
    shown += [Picture(f"benchmark/{kind}-{track.name}", f"{track.title}: {what}") for kind, what in PICTURES.items()]
    shown += [_scores(scores) for scores in reversed(found)]
    shown += [_win_map(last), *_tails(tails), _means(last), _options([*found, tails])]
    settings = (
        f"{len(track.problems)} problems, {', '.join(map(said, track.settings))}, {_rounds(size)}, seed {SEED}, "
        f"runs by cost: {_runs(size)}."
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
    notes = " ".join([f"{title}.", NOTES, *_weaker([scores])])
    return Table(f"scores-{scores.horizon}", title, list(COLUMNS), _rows(scores), notes)


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
                f"{10_000 * entry.disasters:.3g}" if _may_fail(tails, entry) else "–",
            ]
            for entry in here
        ]
        title = f"{problem}, {said(setting)}, {tails.horizon:,} rounds"
        notes = f"{title}. Disasters: {TAIL_COLUMNS['disasters']}."
        found.append(Table(f"tails-{number}", title, columns, rows, notes))
    return found


def _may_fail(tails: Scores, entry: CellScore) -> bool:
    """Whether a disaster is possible: playing the worst arm in every round loses more than 10 times the median."""
    means = next(problem.arms.means for problem in tails.track.problems if problem.name == entry.problem)
    return may_fail(entry.median, (max(means) - min(means)) * entry.horizon)


def _win_map(scores: Scores) -> Table:
    """Who wins where."""
    columns = ["problem", *map(said, scores.track.settings)]
    rows = []
    for problem in scores.track.problems:
        row = [problem.name]
        for setting in scores.track.settings:
            here = scores.leaders(problem.name, setting)
            more = f", +{len(here) - 1}" if len(here) > 1 else ""
            row.append(f"{here[0].policy} ({amount(here[0].mean)}{more})" if here else "")
        rows.append(row)
    title = f"Who loses least at {scores.horizon:,} rounds, and how much"
    return Table("wins", title, columns, rows, f"{title}. +n: two standard errors do not tell it from n others.")


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


def _options(found: Sequence[Scores]) -> Table:
    """What each policy was made with, where that is not its default."""
    values: dict[str, dict[str, dict[str, None]]] = {}
    for entry in sorted((entry for scores in found for entry in scores.entries), key=lambda entry: entry.policy):
        for name, value in entry.chosen.items():
            values.setdefault(entry.policy, {}).setdefault(name, {})[in_words({name: value})] = None
    rows = [[policy, ", ".join(map(_either, chosen.values()))] for policy, chosen in values.items()]
    title = "Options that are not defaults"
    return Table("options", title, ["policy", "options"], rows, f"{title}. {ALL_OPTIONS}")


def markdown(found: Sequence[Scores], tails: Sequence[Scores], facts: dict[str, Any], size: Scale, figures: str) -> str:
    """The page for the documentation. ``figures`` is what the path of each picture begins with."""
    options = _options([*found, *tails])
    lines = [
        "# The benchmark",
        "",
        "<!-- written by dpbandits benchmark; do not edit -->",
        "",
        f"{_who(tails, facts['added'])} on a fixed public set of problems: which loses least where, and how badly the",
        "worst runs go. `dpbandits benchmark --add module:function` plays your own beside them, and",
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
        f"Command: `{facts['command']}`. {took('It', facts)}".rstrip(),
        "",
        "<!-- policies that are newer than this page: written from the package -->",
        "",
        "## In short",
        "",
        *_short(found, tails),
        "",
        "## The problems",
        "",
        *_problems([tail.track for tail in tails]),
        "## How to read the tables",
        "",
        "A *cell* is a problem at a setting: an epsilon, or the levels of a population.",
        "",
        *(f"* **{column}**: {meaning}." for column, meaning in {**COLUMNS, **TAIL_COLUMNS}.items()),
        "",
        f"The *performance profile* shows, for the {DRAWN} policies with the least *regret / best*, the share of cells",
        "in which a policy loses at most a factor times what the best one loses there.",
        "",
        *_weaker(tails, "`{}`"),
        "Where a policy was played a few times only, its standard error is rough, and so is the line between a clear",
        "winner and a tie.",
        "",
        f"These options are not defaults. {ALL_OPTIONS}",
        "",
        *_table(options.columns, options.rows),
        *_stopping(tails),
    ]
    for tail in tails:
        lines += _chapter([scores for scores in found if scores.track == tail.track], tail, figures)
    return "\n".join(lines) + "\n"


def _weaker(played: Sequence[Scores], form: str = "{}") -> list[str]:
    """A sentence on the policies that were played and promise less than others; none where none does."""
    head = "Policies with (epsilon, delta)-privacy, a weaker promise than that of all others"
    weaker = sorted({e.policy for scores in played for e in scores.entries if e.made.guarantee.delta > 0})
    return [f"{head}: {', '.join(map(form.format, weaker))}."] if weaker else []


def _stopping(played: Sequence[Scores]) -> list[str]:
    """A paragraph on the policies that were played and are made to name the best arm."""
    stop = dict.fromkeys(f"`{e.policy}`" for scores in played for e in scores.entries if not e.made.traits.low_regret)
    said = (
        f"Policies that find the best arm and stop ({', '.join(stop)}) are made to err rarely, not to lose little: "
        "[their page](howto/find-the-best-arm.md) has stopping times and errors."
    )
    return ["", said] if stop else []


def _chapter(found: Sequence[Scores], tail: Scores, figures: str) -> list[str]:
    """The pictures and tables of one track."""
    track = tail.track

    def picture(kind: str, what: str) -> str:
        return f"![{track.title}: {what}]({figures}/{kind}-{track.name}.png)"

    lines = ["", f"## {track.title}", "", f"### {track.title}: where each wins", ""]
    lines += [picture("wins", PICTURES["wins"]), ""]
    for scores in reversed(found):
        lines += [f"{scores.horizon:,} rounds:", "", *_table(list(COLUMNS), _rows(scores)), ""]
    lines += [picture("profile", "the share of cells within a factor of the best policy")]
    if track.epsilons:
        lines += [picture("epsilon", "regret against epsilon")]
    lines += [
        "",
        f"### {track.title}: how each fails",
        "",
        picture("tails", PICTURES["tails"]),
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
        safe = sum(not _may_fail(tail, e) for e in tail.entries)
        if safe:
            worst += (
                f"; in {safe} of {len(tail.entries)} rows of its tables no disaster is possible: "
                f"no run can lose {DISASTER:g} times the median"
            )
        lines.append(
            f"* **{tail.track.title}.** Mean regret divided by the lowest one in the cell (geometric mean): {first}. "
            f"Most often the one with the lowest regret: `{most.policy}`, in {most.wins} of its {most.cells} cells. "
            f"Most disasters per 10,000 runs: {worst}."
        )
    return lines


def took(what: str, facts: Mapping[str, Any]) -> str:
    """A sentence on how long the command took; empty if not everything was played in one call.

    >>> took("It", {"seconds": 312.0, "processor_seconds": 540.2, "workers": 2, "in_one_call": True})
    'It took 5 min 12 s with 2 workers, which had 9 min 0 s of processor time.'
    """
    if not facts["in_one_call"]:
        return ""
    had = f", which had {duration(spent)} of processor time" if (spent := facts["processor_seconds"]) else ""
    return f"{what} took {duration(facts['seconds'])} with {plural(facts['workers'], 'worker')}{had}."


def _either(said: Iterable[str]) -> str:
    """An option with each of its values.

    >>> _either(["beta=1e-05", "beta=0.0001"])
    'beta=1e-05 or 0.0001'
    """
    first, *others = said
    return " or ".join([first, *(other.partition("=")[2] for other in others)])


def _who(tails: Sequence[Scores], added: Sequence[str]) -> str:
    """Which policies were played."""
    joined = "".join(f", and `{policy}`" for policy in added)
    if len(tails) == len(TRACKS):
        return f"Every policy that ships{joined}, in its class,"
    return f"Every policy that ships for {' and '.join(f'*{tail.track.title}*' for tail in tails)}{joined},"


def _problems(tracks: Sequence[Track]) -> Iterator[str]:
    """The problems that were played."""
    for any_size in {track.any_size: True for track in tracks}:
        if any_size:
            yield "Rewards of any size; policies for rewards in [0, 1] clip them, the others take them as they are:"
            yield ""
        for p in dict.fromkeys(p for track in tracks if track.any_size == any_size for p in track.problems):
            clipped = f", range [{p.reward_range[0]:g}, {p.reward_range[1]:g}]" if p.reward_range else ""
            yield f"* **{p.name}**: {p.why}: `{p.text}`{clipped}"
        yield ""


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
