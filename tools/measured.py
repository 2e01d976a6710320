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

Numbers = dict[str, float]
Cells = Mapping[tuple[str, str], Numbers]
STOPPING = {"options": {"beta": 0.05}, "horizon": 10**11}
CLICKS = "0.036,0.03,0.03,0.03,0.03"
THRESHOLD = "epsilon_min"
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
    columns: Mapping[str, Mapping[str, Any]]  # the settings of a column; None in a row's settings leaves it out
    common: Mapping[str, Any]
    shown: Callable[[Numbers], str]
    runs: int = 10_000
    seed: int = 1
    notes: Callable[[Cells, Table], list[str]] = lambda cells, table: []

    def simulation(self, row: str, column: str) -> Simulation:
        """The simulation of a cell."""
        given = {**self.common, **self.columns[column], **self.rows[row]}
        options = {**self.common.get("options", {}), **self.columns[column].get("options", {})}
        given |= {"options": options | self.rows[row].get("options", {}), "seed": self.seed, "checkpoints": 1}
        return Simulation.of(given.pop("policy"), **given)

    def cells(self) -> Iterator[tuple[str, str]]:
        """All cells, by the names of their row and column."""
        return ((row, column) for row in self.rows for column in self.columns)


def numbers(trace: Trace) -> Numbers:
    """What a cell may show."""
    if trace.stops is not None:
        rounds = np.sort(trace.stops.rounds)
        found = {"mean": rounds.mean(), "error": rounds.std() / rounds.size**0.5, "largest": rounds[-1]}
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


def _short(value: float) -> str:
    """Three digits with k or M.

    >>> _short(884466.0), _short(26487710.0), _short(1480.0), _short(85.9)
    ('884 k', '26.5 M', '1480', '86')
    """
    for unit, letter in ((1e6, " M"), (1e3, " k")):
        if value >= 10 * unit or (unit == 1e6 and value >= unit):
            return f"{float(f'{value / unit:.3g}'):g}{letter}"
    return f"{value:.0f}"


def _lockouts(cells: Cells, table: Table) -> list[str]:
    """How many lock-outs each column has in all, and how its means compare with those of the first column."""
    lines, first = [], next(iter(table.columns))
    for column in table.columns:
        own = {row: cells[row, column] for row in table.rows}
        total = sum(one["lockouts"] for one in own.values())
        ratios = sorted(one["mean"] / cells[row, first]["mean"] - 1.0 for row, one in own.items())
        ends = " to ".join(dict.fromkeys(f"{100 * ratio:+.0f}" for ratio in (ratios[0], ratios[-1])))
        than = "" if column == first else f", mean {ends} % against {first}"
        lines.append(f"* {column}: {plural(round(total), 'lock-out')} in {len(own) * table.runs:,} runs{than}.")
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
        notes=_lockouts,
    ),
    "local-rivals": Table(
        "papers/strongest.md",
        "arms, epsilon",
        {row: LOCAL[row] for row in ("C2, 1", "0.5 and 0.49, 2", "0.9 and 0.6, 1")},
        {f"`{policy}`": _policy(policy) for policy in ("ldp-imed-b", "ldp-klucb-b", "ldp-ts-b")},
        {"horizon": 10**5, "epsilon": 1.0},
        with_tail,
        notes=_lockouts,
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
        notes=_lockouts,
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
        notes=_lockouts,
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
        notes=_lockouts,
    ),
    "levels": Table(
        "papers/strongest.md",
        "arms",
        {"C2": {"arms": "@azize2022-c2"}},
        {f"{THRESHOLD} 2": _policy("heldp-ucb-b", epsilon_min=2.0), **WITHOUT_THRESHOLD},
        {"horizon": 10**5, "levels": "choice(0,0.2,1,2,100)"},
        with_tail,
        notes=_lockouts,
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
