"""Write the table of DP-UCB-INT's schedules in docs/theory.md from simulations (about eight minutes on one core).

Usage: ``python tools/schedules.py [RUNS]``
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np

import dpbandits as dp

PAGE = Path(__file__).parents[1] / "docs" / "theory.md"
BEGIN, END = "<!-- schedules: written by tools/schedules.py -->", "<!-- end of schedules -->"
SCHEDULES = ("constant", "x", "y", "exact")
PROBLEMS = {"two arms": "@tossou2016-two", "ten arms": "@tossou2016-ten"}
HORIZON, SEED = 100_000, 1


def cell(arms: str, epsilon: float, schedule: str, runs: int) -> str:
    """Mean, standard error, median, and the share of disasters."""
    asked = {"arms": arms, "epsilon": epsilon, "horizon": HORIZON, "options": {"schedule": schedule}}
    regret = dp.simulate("dp-ucb-int", runs=runs, seed=SEED, checkpoints=2, **asked).final_regret  # type: ignore[arg-type]
    median = float(np.median(regret))
    error = regret.std(ddof=1) / runs**0.5
    spread = f" ± {error:,.0f}" if error >= 0.5 else ""
    return f"{regret.mean():,.0f}{spread}, median {median:,.0f}, {100 * float(np.mean(regret > 10 * median)):.2g} %"


def table(runs: int) -> str:
    """A row for each problem and epsilon."""
    rows = [
        f"{runs:,} runs, seed {SEED}.",
        "",
        f"| problem, epsilon | {' | '.join(SCHEDULES)} |",
        "|---|---|---|---|---|",
    ]
    for name, arms in PROBLEMS.items():
        for epsilon in (1.0, 0.1):
            cells = [cell(arms, epsilon, schedule, runs) for schedule in SCHEDULES]
            rows.append(f"| {name}, {epsilon:g} | {' | '.join(cells)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    filled = f"{BEGIN}\n{table(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)}\n{END}"
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: filled, text, flags=re.DOTALL), encoding="utf-8")
