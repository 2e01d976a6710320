"""What late responses cost each family of policies: writes the tables of docs/concepts/live.md.

``python benchmarks/delays.py docs/concepts/live.md`` takes some minutes on two cores.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from dpbandits import __version__, simulate
from dpbandits.simulation import Trace

ARMS, HORIZON, RUNS, SEED = "0.75,0.625,0.5,0.375,0.25", 100_000, 100, 0
DELAYS = (10, 100, 1000, 10_000)
EPSILON: dict[str, Any] = {"epsilon": 1.0}
LEVELS: dict[str, Any] = {"levels": "choice(0,1,2)"}
POLICIES: dict[str, dict[str, Any]] = {
    "ucb1": {},
    "imed": {},
    "kl-ucb": {},
    "thompson": {},
    "ldp-ucb-b": EPSILON,
    "ldp-ucb-l": EPSILON,
    "ldp-imed-b": EPSILON,
    "ldp-klucb-b": EPSILON,
    "ldp-ts-b": EPSILON,
    "ldp-imed-p": EPSILON,
    "ctb-tt": EPSILON,
    "heldp-ucb-b": {**LEVELS, "options": {"epsilon_min": 1.0}},
    "heldp-glr-b": LEVELS,
    "heldp-weighted-b": LEVELS,
    "heldp-weighted-l": LEVELS,
    "private-ucb": EPSILON,
    "dp-ucb-bound": EPSILON,
    "dp-ucb-int": EPSILON,
    "adap-ucb": EPSILON,
    "adap-imed": EPSILON,
    "dp-se": EPSILON,
    "anytime-lazy-ucb": EPSILON,
    "lazy-dp-ts": EPSILON,
    "adac-ucb": EPSILON,
    "dp-klucb": EPSILON,
    "dp-glr-imed": EPSILON,
    "adap-tt": EPSILON,
}
LOSSES, WINDOW = (0.1, 0.5), 100
COUNTING = (
    "ucb1", "imed", "kl-ucb", "thompson", "ldp-ucb-b", "ldp-ucb-l", "ldp-imed-b", "ldp-klucb-b", "ldp-ts-b",
    "dp-ucb-bound", "dp-ucb-int",
)  # fmt: skip


def play(policy: str, **given: Any) -> Trace:
    """The runs of one cell."""
    return simulate(
        policy, arms=ARMS, horizon=HORIZON, runs=RUNS, seed=SEED, checkpoints=1, **POLICIES[policy], **given
    )


def shown(trace: Trace) -> str:
    """Mean regret with its standard error."""
    return f"{trace.final_regret.mean():,.0f} ± {trace.stderr[-1]:,.0f}"


def costs() -> str:
    """Regret by policy and delay, and where responses are lost."""
    head = ["policy", "at once", *(f"{delay:,} rounds" for delay in DELAYS), *(f"{loss:.0%} lost" for loss in LOSSES)]
    rows = []
    for policy in POLICIES:
        traces = [play(policy), *(play(policy, **late(delay)) for delay in DELAYS)]
        traces += [play(policy, loss=loss, window=WINDOW) for loss in LOSSES]
        rows.append([f"`{policy}`", *map(shown, traces)])
    return table(head, rows)


def counting() -> str:
    """Regret with a window, where decisions that are out count in the index, and without one, where they do not."""
    rows = []
    for policy in COUNTING:
        cells = []
        for delay in (100, 10_000):
            for counted in (True, False):
                cells.append(shown(play(policy, **(late(delay) if counted else {"delay": f"exponential({delay})"}))))
        rows.append([f"`{policy}`", *cells])
    heads = [f"delay {delay:,}, open decisions {do}" for delay in (100, 10_000) for do in ("count", "do not count")]
    return table(["policy", *heads], rows)


def late(delay: int) -> dict[str, Any]:
    """Responses with this mean delay, waited for ten times as long."""
    return {"delay": f"exponential({delay})", "window": 10 * delay}


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write(path: Path) -> None:
    """Put the tables between the page's markers."""
    caption = f"Arms {ARMS}, {HORIZON:,} rounds, {RUNS} runs, seed {SEED}, dpbandits {__version__}; ± standard error."
    text = path.read_text(encoding="utf-8")
    for name, content in (("costs", costs()), ("counting", counting())):
        begin, end = f"<!-- {name}: written by benchmarks/delays.py -->", f"<!-- end of {name} -->"
        found = re.compile(f"{re.escape(begin)}.*{re.escape(end)}", re.DOTALL)
        text, count = found.subn(lambda _: f"{begin}\n{caption}\n\n{content}\n{end}", text)  # noqa: B023
        if count != 1:
            raise SystemExit(f"{path} has no markers for {name}")
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
