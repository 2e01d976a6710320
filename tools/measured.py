"""Write the tables of measured regrets in docs from simulations, so that no number there is typed.

Usage: ``python tools/measured.py FOLDER [TABLE ...]``. Finished cells are kept in FOLDER, so the command can be
interrupted. All tables take about an hour on one core. A table is written between the markers
``<!-- measured NAME: ... -->`` of its page, and only printed where the page has none.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpbandits.formats import plural
from dpbandits.simulation import Simulation, Trace, simulate_all
from dpbandits.simulation.runs import result_key
from dpbandits.simulation.tails import DISASTER

ROOT = Path(__file__).parents[1]
END = "<!-- end of measured -->"

Numbers = dict[str, float]  # "lockouts" counts disasters: files that were kept use this older name
Cells = Mapping[tuple[str, str], Numbers]
STOPPING = {"options": {"beta": 0.05}, "horizon": 10**11}
CLICKS = "0.036,0.03,0.03,0.03,0.03"
THRESHOLD = "epsilon_min"
MANY = "20 arms, 1"
KINDS = {"mean": "mean", "q999": "99.9 % quantile"}
LEVELS = {"choice(0,0.2,1,2,100)": (0.2, 1.0, 2.0, 100.0), "normal(1,1)": (0.5, 1.0, 1.5, 2.0)}  # as the HeLDP paper
LOCAL: dict[str, dict[str, Any]] = {
    "C1, 1": {"arms": "@azize2022-c1"},
    "C2, 1": {"arms": "@azize2022-c2"},
    "C4, 1": {"arms": "@azize2022-c4"},
    "0.5 and 0.49, 2": {"arms": "0.5,0.49", "epsilon": 2.0},
    "0.9 and 0.6, 1": {"arms": "0.9,0.6"},
}


@dataclass(frozen=True)
class Table:
    """A table of a page: what its rows and columns play, and how a cell is written."""

    page: str
    first: str  # the head of the first column
    rows: Mapping[str, Mapping[str, Any]]
    columns: Mapping[str, Mapping[str, Any]]  # of their settings; an option may be a function of epsilon
    common: Mapping[str, Any]
    shown: Callable[[Numbers], str]
    runs: int = 10_000
    seed: int = 1
    notes: Callable[[Cells, Table], list[str]] = lambda cells, table: []

    def simulation(self, row: str, column: str) -> Simulation:
        """The simulation of a cell."""
        given = {**self.common, **self.columns[column], **self.rows[row]}
        options = {**self.common.get("options", {}), **self.columns[column].get("options", {})}
        options |= self.rows[row].get("options", {})
        options = {name: value(given["epsilon"]) if callable(value) else value for name, value in options.items()}
        given |= {"options": options, "seed": self.seed, "checkpoints": 1}
        return Simulation.of(given.pop("policy"), **given)

    def cells(self) -> Iterator[tuple[str, str]]:
        """All cells, by the names of their row and column."""
        return ((row, column) for row in self.rows for column in self.columns)


def numbers(trace: Trace) -> Numbers:
    """What a cell may show."""
    if trace.stops is not None:
        rounds = np.sort(trace.stops.rounds)
        median = float(np.median(rounds))
        found = {"mean": rounds.mean(), "error": rounds.std() / rounds.size**0.5, "median": median}
        found |= {"largest": rounds[-1], "lockouts": np.sum(rounds > DISASTER * median)}
        found |= {"q95": np.quantile(rounds, 0.95), "q999": np.quantile(rounds, 0.999)}
        found |= {"wrong": trace.stops.wrong, "unfinished": trace.stops.unfinished}
    else:
        final = trace.final_regret
        median = float(np.median(final))
        found = {"mean": final.mean(), "error": trace.stderr[-1], "median": median, "largest": final.max()}
        found |= {"q999": np.quantile(final, 0.999), "lockouts": np.sum(final > DISASTER * median)}
    return {name: float(value) for name, value in found.items()}


def with_error(of: Numbers) -> str:
    """Mean and standard error.

    >>> with_error({"mean": 1515.2, "error": 14.3}), with_error({"mean": 37.3, "error": 0.04})
    ('1,515 ± 14', '37')
    """
    return f"{of['mean']:,.0f}" + (f" ± {of['error']:,.0f}" if of["error"] >= 0.5 else "")


def with_tail(of: Numbers) -> str:
    """Mean, 99.9 % quantile, largest, and how many runs lost more than ten times the median.

    >>> with_tail({"mean": 936.4, "q999": 8610.0, "largest": 49965.0, "lockouts": 9.0})
    '936 (8,610; 49,965; 9)'
    """
    return f"{of['mean']:,.0f} ({of['q999']:,.0f}; {of['largest']:,.0f}; {of['lockouts']:.0f})"


def with_rounds(of: Numbers) -> str:
    """Rounds until a test ends: mean, 95 % and 99.9 % quantile, largest; and how many named a wrong arm.

    >>> with_rounds({"mean": 884466.0, "q95": 3221898.0, "q999": 3221898.0, "largest": 3221898.0, "wrong": 0.0})
    '884 k (3.22 M; 3.22 M; 3.22 M), 0'
    """
    mean, *ends = (_short(of[name]) for name in ("mean", "q95", "q999", "largest"))
    return f"{mean} ({'; '.join(ends)}), {of['wrong']:.0f}"


def with_median(of: Numbers) -> str:
    """Mean and standard error; median, 99.9 % quantile, and how many runs lost more than ten times the median.

    >>> with_median({"mean": 936.4, "error": 14.2, "median": 900.0, "q999": 8610.0, "lockouts": 9.0})
    '936 ± 14 (900; 8,610; 9)'
    """
    return f"{with_error(of)} ({of['median']:,.0f}; {of['q999']:,.0f}; {of['lockouts']:.0f})"


def with_stops(of: Numbers) -> str:
    """Rounds until a test ends: mean and standard error, median, 99.9 % quantile; and how many named a wrong arm.

    >>> with_stops({"mean": 884466.0, "error": 901.0, "median": 880000.0, "q999": 3221898.0, "wrong": 0.0})
    '884 k ± 901 (880 k; 3.22 M), 0'
    """
    mean, error, median, high = (_short(of[name]) for name in ("mean", "error", "median", "q999"))
    return f"{mean} ± {error} ({median}; {high}), {of['wrong']:.0f}"


def _short(value: float) -> str:
    """Three digits with k or M.

    >>> _short(884466.0), _short(26487710.0), _short(1480.0), _short(85.9)
    ('884 k', '26.5 M', '1480', '86')
    """
    for unit, letter in ((1e6, " M"), (1e3, " k")):
        if value >= 10 * unit or (unit == 1e6 and value >= unit):
            return f"{float(f'{value / unit:.3g}'):g}{letter}"
    return f"{value:.0f}"


def _disasters(cells: Cells, table: Table) -> list[str]:
    """How many disasters each column has in all, and how its means compare with those of the first column."""
    return _compared(cells, table, "lockouts", "disaster", ("mean",))


def _defaults(cells: Cells, table: Table) -> list[str]:
    """How means and tails of each column compare with those of the first, the default."""
    return _compared(cells, table, "lockouts", "disaster", ("mean", "q999"))


def _stops(cells: Cells, table: Table) -> list[str]:
    """How many tests named a wrong arm, and how long tests are, against those of the first column, the default."""
    return _compared(cells, table, "wrong", "wrong answer", ("mean", "q999"))


def _compared(cells: Cells, table: Table, counted: str, word: str, kinds: Sequence[str]) -> list[str]:
    """For each column a count in all of its runs, and the range of ratios to the first column."""
    lines, first = [], next(iter(table.columns))
    for column in table.columns:
        own = {row: cells[row, column] for row in table.rows}
        total = sum(one[counted] for one in own.values())
        than = ""
        for kind in kinds if column != first else ():
            ratios = sorted(one[kind] / cells[row, first][kind] - 1.0 for row, one in own.items())
            ends = " to ".join(dict.fromkeys(f"{100 * ratio:+.0f}" for ratio in (ratios[0], ratios[-1])))
            than += f", {KINDS[kind]} {ends} %"
        than += f" against {first}" if than else ""
        lines.append(f"* {column}: {plural(round(total), word)} in {len(own) * table.runs:,} runs{than}.")
    return lines


def _thresholds(cells: Cells, table: Table) -> list[str]:
    """The best threshold of each row, and what the columns without one lose, as a share of what it loses."""
    lines = []
    for row in table.rows:
        own = {column: cells[row, column] for column in table.columns}
        best = min((column for column in own if column.startswith(THRESHOLD)), key=lambda column: own[column]["mean"])
        shares = (
            f"{column} {_share_of(one, own[best])}" for column, one in own.items() if not column.startswith(THRESHOLD)
        )
        lines.append(f"* {row}: the best is {best}. Of its regret, {', '.join(shares)}.")
    return lines


def _share_of(one: Numbers, of: Numbers) -> str:
    """The quotient of two independent means, with its standard error.

    >>> _share_of({"mean": 20.0, "error": 1.0}, {"mean": 100.0, "error": 2.0})
    'loses 0.200 ± 0.011'
    """
    share = one["mean"] / of["mean"]
    return f"loses {share:.3f} ± {share * math.hypot(one['error'] / one['mean'], of['error'] / of['mean']):.3f}"


def _beta(concentration: float) -> str:
    means = (0.75, 0.625, 0.5, 0.375, 0.25)
    return "+".join(f"beta({m * concentration:g},{(1 - m) * concentration:g})" for m in means)


def _policy(name: str, **options: Any) -> dict[str, Any]:
    return {"policy": name, "options": options}


def _variants(policy: str, name: str, values: Sequence[float], **options: Any) -> dict[str, dict[str, Any]]:
    """A column for each value of an option, the default first."""
    marks = [f"{name} {value:g}" + (" (default)" if not place else "") for place, value in enumerate(values)]
    return {mark: _policy(policy, **{name: value}, **options) for mark, value in zip(marks, values, strict=True)}


def _tens(times: float, most: float = math.inf) -> Callable[[float], int]:
    """A first batch of ``times`` / epsilon rewards, epsilon being at most ``most``."""
    return lambda epsilon: math.ceil(times / min(most, epsilon))


#: Where the constants of a policy are tried.
TRIED = {
    "C2, 0.1": {"arms": "@azize2022-c2", "epsilon": 0.1},
    "C2, 1": {"arms": "@azize2022-c2", "epsilon": 1.0},
    "0.036 and 4 x 0.03, 1": {"arms": CLICKS, "epsilon": 1.0},
    MANY: {"arms": "@ren2020-bernoulli", "epsilon": 1.0},
}


QUICK = {row: given for row, given in TRIED.items() if row != MANY}  # without the row that takes long


def _tried(columns: Mapping[str, Mapping[str, Any]], horizon: int = 10**6) -> Table:
    """Constants of a policy that plays for regret."""
    return Table(
        "papers/strongest.md", "arms, epsilon", TRIED, columns, {"horizon": horizon}, with_median, notes=_defaults
    )


def _tried_test(columns: Mapping[str, Mapping[str, Any]], rows: Mapping[str, Mapping[str, Any]] = QUICK) -> Table:
    """Constants of a policy that stops."""
    return Table("papers/strongest.md", "arms, epsilon", rows, columns, STOPPING, with_stops, notes=_stops)


FIRSTS: dict[str, Any] = {"3/e": _tens(3.0, 1.0), "30/e": _tens(30.0, 1.0)}  # e = min(1, epsilon)

#: Tables of constants that papers leave open.
CONSTANTS = {
    "constant-lazy": _tried(_variants("anytime-lazy-ucb", "c", (3.0, 2.0, 1.5, 1.0, 0.5, 0.25))),
    "constant-adac": _tried(_variants("adac-ucb", "alpha", (3.1, 2.0, 1.0, 0.5))),
    "constant-cover": _tried(_variants("dp-ucb-int", "cover_factor", (1.5, 1.0, 2.0), cover_noise=True), 10**5),
    **{
        f"constant-{policy}": _tried(
            {
                "10/epsilon, ratio 2 (default)": _policy(policy),
                "1, ratio 2": _policy(policy, first=1),
                "4/epsilon, ratio 2": _policy(policy, first=_tens(4.0)),
                "20/epsilon, ratio 2": _policy(policy, first=_tens(20.0)),
                "10/epsilon, ratio 1.5": _policy(policy, ratio=1.5),
            }
        )
        for policy in ("dp-klucb", "dp-imed")
    },
    **{
        f"constant-{policy}": _tried_test(
            {
                f"ratio {own:g}, first 10/e (default)": _policy(policy),
                **{f"ratio {ratio:g}": _policy(policy, ratio=ratio) for ratio in others},
                **{f"first {said}": _policy(policy, first=first) for said, first in FIRSTS.items()},
            }
        )
        for policy, own, others in (("dp-tt", 1.5, (1.2, 2.0)), ("adap-tt", 2.0, (1.5, 3.0)))
    },
    "constant-ctb-tt": _tried_test(_variants("ctb-tt", "ratio", (1.05, 1.1, 1.2, 1.5)), TRIED),
}

WITHOUT_THRESHOLD = {
    "`heldp-glr-b`": _policy("heldp-glr-b"),
    "`heldp-glr-b`, k = 0": _policy("heldp-glr-b", correction=0.0),
    "`heldp-weighted-b`": _policy("heldp-weighted-b"),
    "`heldp-weighted-b`, k = 0": _policy("heldp-weighted-b", correction=0.0),
    "`heldp-weighted-l`": _policy("heldp-weighted-l"),
}

TABLES = {
    "users": Table(
        "concepts/users.md",
        "rewards per user",
        {str(m): {"rewards_per_user": m} for m in (1, 2, 5, 10, 100)},
        {
            "`dp-glr-imed`": _policy("dp-glr-imed"),
            "`adap-klucb`": _policy("adap-klucb"),
            "`ldp-imed-b`": _policy("ldp-imed-b"),
            "`ldp-imed-b`, `user_delta=1e-6`": {**_policy("ldp-imed-b"), "user_delta": 1e-6},
        },
        {"arms": "@azize2022-c2", "horizon": 10**6, "epsilon": 1.0},
        with_error,
        runs=100,
        seed=0,
    ),
    "ranges": Table(
        "howto/unbounded-rewards.md",
        "rewards, range",
        {
            f"{name}, {low:g} to {high:g}": {"arms": arms, "reward_range": (low, high)}
            for name, arms, ranges in (
                (
                    "normal, means 0.9, 0.4, 0.4, sd 1",
                    "normal(0.9,1)+normal(0.4,1)+normal(0.4,1)",
                    ((-2, 3), (-1, 4), (-64, 64)),
                ),
                (
                    "normal, means 22, 20, 20, sd 3",
                    "normal(22,3)+normal(20,3)+normal(20,3)",
                    ((10, 32), (16, 32), (0, 1000)),
                ),
            )
            for low, high in ranges
        },
        {
            f"`{policy}`, epsilon {epsilon:g}": {**_policy(policy), "epsilon": epsilon}
            for policy in ("ldp-imed-b", "ldp-imed-p")
            for epsilon in (1.0, 4.0)
        },
        {"horizon": 10**5},
        with_error,
        runs=100,
        seed=0,
    ),
    "wide": Table(
        "howto/unbounded-rewards.md",
        "policy, epsilon",
        {
            f"`{policy}`, {epsilon:g}": {**_policy(policy), "epsilon": epsilon}
            for policy in ("adap-ucb", "adap-klucb", "dp-klucb", "dp-glr-imed")
            for epsilon in (0.1, 10.0)
        },
        {f"range 0 to {high}": {"reward_range": (0, high)} for high in (1, 10)},
        {"arms": "0.6,0.4", "horizon": 10**6},
        with_error,
        runs=200,
        seed=0,
    ),
    "logistic": Table(
        "howto/unbounded-rewards.md",
        "rewards",
        {
            "normal, means 0.9, 0.4, 0.4, sd 1": {"arms": "normal(0.9,1)+normal(0.4,1)+normal(0.4,1)"},
            "normal, means 22, 20, 20, sd 3": {"arms": "normal(22,3)+normal(20,3)+normal(20,3)"},
        },
        {"logistic, `ldp-imed-bs`, epsilon 1": _policy("ldp-imed-bs")},
        {"horizon": 10**5, "epsilon": 1.0},
        with_error,
        runs=100,
        seed=0,
    ),
    "local": Table(
        "papers/strongest.md",
        "arms, epsilon",
        LOCAL,
        {f"k = {k:g}": _policy("ldp-imed-b", correction=k) for k in (0.0, 0.5, 1.0)},
        {"horizon": 10**6, "epsilon": 1.0},
        with_tail,
        notes=_disasters,
    ),
    "local-rivals": Table(
        "papers/strongest.md",
        "arms, epsilon",
        {row: LOCAL[row] for row in ("C2, 1", "0.5 and 0.49, 2", "0.9 and 0.6, 1")},
        {f"`{policy}`": _policy(policy) for policy in ("ldp-imed-b", "ldp-klucb-b", "ldp-ts-b")},
        {"horizon": 10**5, "epsilon": 1.0},
        with_tail,
        notes=_disasters,
    ),
    "clicks": Table(
        "papers/strongest.md",
        "epsilon",
        {f"{epsilon:g}": {"epsilon": epsilon} for epsilon in (0.5, 1.0, 2.0)},
        {
            "`ldp-imed-b`": _policy("ldp-imed-b"),
            "`ldp-imed-b`, k = 0": _policy("ldp-imed-b", correction=0.0),
            "`ldp-ucb-b`": _policy("ldp-ucb-b"),
        },
        {"arms": CLICKS, "horizon": 10**6},
        with_error,
        runs=400,
    ),
    "piecewise": Table(
        "papers/strongest.md",
        "epsilon",
        {f"{epsilon:g}": {"epsilon": epsilon} for epsilon in (0.5, 1.0, 1.5, 2.0, 4.0, 8.0)},
        {
            f"{width}: `{policy}`": {**_policy(policy, correction=1.0), "arms": _beta(concentration)}
            for width, concentration in (("narrow", 10.0), ("wide", 2.0))
            for policy in ("ldp-imed-b", "ldp-imed-p")
        },
        {"horizon": 10**5},
        with_error,
        runs=400,
        seed=0,
    ),
    "piecewise-tails": Table(
        "papers/strongest.md",
        "epsilon",
        {f"{epsilon:g}": {"epsilon": epsilon} for epsilon in (0.5, 2.0, 4.0)},
        {f"k = {k:g}": _policy("ldp-imed-p", correction=k) for k in (0.0, 1.0)},
        {"arms": _beta(10.0), "horizon": 10**5},
        with_tail,
        notes=_disasters,
    ),
    "central": Table(
        "papers/strongest.md",
        "arms, epsilon",
        {
            **{
                f"{name}, {epsilon:g}": {"arms": f"@azize2022-{name.lower()}", "epsilon": epsilon}
                for name in ("C1", "C2", "C4")
                for epsilon in (0.1, 1.0)
            },
            "0.5 and 0.49, 0.1": {"arms": "0.5,0.49", "epsilon": 0.1},
            "0.036 and 4 x 0.03, 1": {"arms": CLICKS, "epsilon": 1.0},
            "0.9 and 0.6, 1": {"arms": "0.9,0.6", "epsilon": 1.0},
            **{f"1, 0.99, 0.98; {e:g}": {"arms": "1,0.99,0.98", "epsilon": e} for e in (0.1, 1.0)},
        },
        {
            "`dp-klucb`": _policy("dp-klucb"),
            "`dp-imed`": _policy("dp-imed"),
            "`dp-glr-imed` k = 0": _policy("dp-glr-imed", correction=0.0),
            "k = 1": _policy("dp-glr-imed", correction=1.0),
            "k = 1.5 (default)": _policy("dp-glr-imed"),
            "k = 1.5, ratio 2": _policy("dp-glr-imed", ratio=2.0),
            "`adap-klucb`": _policy("adap-klucb"),
        },
        {"horizon": 10**7},
        with_tail,
        notes=_disasters,
    ),
    "covered": Table(
        "papers/strongest.md",
        "rounds",
        {f"{horizon:,}": {"horizon": horizon} for horizon in (10**5, 10**6)},
        {
            "as published": _policy("dp-ucb-int"),
            "`cover_noise`": _policy("dp-ucb-int", cover_noise=True),
        },
        {"arms": "0.9,0.6", "epsilon": 1.0},
        with_tail,
        notes=_disasters,
    ),
    "levels": Table(
        "papers/strongest.md",
        "arms",
        {"C2": {"arms": "@azize2022-c2"}},
        {f"{THRESHOLD} 2": _policy("heldp-ucb-b", epsilon_min=2.0), **WITHOUT_THRESHOLD},
        {"horizon": 10**5, "levels": "choice(0,0.2,1,2,100)"},
        with_tail,
        notes=_disasters,
    ),
    **{
        f"thresholds-{name}": Table(
            "papers/strongest.md",
            "arms",
            {"C2": {"arms": "@azize2022-c2"}, "the HeLDP paper's 20": {"arms": "@ren2020-bernoulli"}},
            {
                **{f"{THRESHOLD} {e:g}": _policy("heldp-ucb-b", epsilon_min=e) for e in LEVELS[levels]},
                **WITHOUT_THRESHOLD,
            },
            {"horizon": 10**6, "levels": levels},
            with_error,
            runs=200,
            notes=_thresholds,
        )
        for name, levels in zip(("choice", "normal"), LEVELS, strict=True)
    },
    "best-arm": Table(
        "howto/find-the-best-arm.md",
        "arms, epsilon",
        {
            f"{name}; {epsilon:g}": {"arms": arms, "epsilon": epsilon}
            for name, arms, epsilon in (
                ("0.5, 0.49", "0.5,0.49", 1.0),
                ("1, 0", "1,0", 1.0),
                ("1, 0.99", "1,0.99", 1.0),
                ("0.01, 0", "0.01,0", 1.0),
                ("0.5, 0.45", "0.5,0.45", 0.05),
                ("C2", "@azize2022-c2", 1.0),
                ("0.036 and 4 x 0.03", CLICKS, 1.0),
                ("0.9, 0.6", "0.9,0.6", 10.0),
                ("0.8, 0.2", "0.8,0.2", 0.01),
            )
        },
        {f"`{policy}`": {"policy": policy} for policy in ("dp-se", "adap-tt", "dp-tt", "ctb-tt")},
        STOPPING,
        with_rounds,
    ),
    "best-arm-many": Table(
        "howto/find-the-best-arm.md",
        "arms, epsilon",
        {"0.55 and 19 x 0.5; 1": {"arms": ",".join(["0.55", *["0.5"] * 19]), "epsilon": 1.0}},
        {f"`{policy}`": {"policy": policy} for policy in ("dp-se", "adap-tt", "dp-tt")},
        STOPPING,
        with_rounds,
    ),
    **CONSTANTS,
}


def measured(folder: Path, table: Table) -> Cells:
    """The numbers of all cells; those that were computed before are read from the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for row, column in table.cells():
        simulation = table.simulation(row, column)
        kept = folder / f"{result_key(simulation)}-{table.runs}.json"
        if not kept.exists():
            kept.write_text(json.dumps(numbers(simulate_all(simulation, runs=table.runs))), encoding="utf-8")
        found[row, column] = json.loads(kept.read_text(encoding="utf-8"))
    return found


def written(table: Table, cells: Cells) -> str:
    """The table, and what follows from it."""
    rows = [f"{table.runs:,} runs of each cell, seed {table.seed}.", ""]
    rows += [f"| {table.first} | {' | '.join(table.columns)} |", "|---" * (len(table.columns) + 1) + "|"]
    rows += [
        f"| {row} | " + " | ".join(table.shown(cells[row, column]) for column in table.columns) + " |"
        for row in table.rows
    ]
    notes = table.notes(cells, table)
    return "\n".join([*rows, *([""] if notes else []), *notes])


def begin(name: str) -> str:
    """The marker before a table."""
    return f"<!-- measured {name}: written by tools/measured.py -->"


def fill(text: str, name: str, content: str) -> str:
    """The page with a table between its markers.

    >>> fill(f"a\\n{begin('x')}\\nold\\n{END}\\nb", "x", "new").splitlines()[2]
    'new'
    """
    pattern = f"{re.escape(begin(name))}.*?{re.escape(END)}"
    return re.sub(pattern, lambda _: f"{begin(name)}\n{content}\n{END}", text, flags=re.DOTALL)


def main(folder: Path, names: Sequence[str]) -> None:
    for name in names or TABLES:
        table = TABLES[name]
        page = ROOT / "docs" / table.page
        content = written(table, measured(folder, table))
        page.write_text(fill(page.read_text(encoding="utf-8"), name, content), encoding="utf-8")
        print(f"{name}\n\n{content}\n", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
