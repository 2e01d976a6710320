"""Write the tables of theorems in docs/theory.md from the theorems themselves, and the table of exact intervals.

Usage: ``python tools/theory_page.py [--check]``; with ``--check``, the status is 1 if the page is not up to date.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
from pathlib import Path
from typing import Any

from dpbandits.bounds import theorems
from dpbandits.privacy.interval_accounting import exact_interval
from dpbandits.privacy.release_points import interval_rate

PAGE = Path(__file__).parents[1] / "docs" / "theory.md"
V, DELTA, HORIZONS = 1.1, math.exp(-10), (10**5, 10**6, 10**7)
HEADER = "| name | kind | statement | source | what must hold | form | policies | note |\n" + "|---" * 8 + "|\n"


def row(theorem: Any) -> str:
    """The line of one theorem: what its declaration says, and the first paragraph of its docstring."""
    said = theorem.statement
    statement = " ".join((inspect.getdoc(theorem) or "").split("\n\n")[0].split()).removesuffix(".")
    scope = "" if said.scope == "this problem" else f" ({said.scope})"
    standing = ", refuted" if said.refuted else "" if said.checked else ", not checked"
    policies = ", ".join(f"`{name}`" for name in said.policies) or "any"
    note = f"{said.note}: {said.refuted}" if said.refuted else said.note
    cells = [
        f"`{theorem.name}`",
        said.kind,
        statement,
        said.source,
        said.holds + scope,
        said.form + standing,
        policies,
        note,
    ]
    return "| " + " | ".join(cell.replace("|", "\\|").replace("``", "`") for cell in cells) + " |\n"


def fill(text: str) -> str:
    """The page with every table that is headed by the name of a module of bounds written anew."""

    def table(match: re.Match[str]) -> str:
        own = [one for one in theorems() if inspect.getmodule(one).__name__ == f"dpbandits.bounds.{match[2]}"]  # type: ignore[union-attr]
        return match[1] + HEADER + "".join(map(row, own))

    pattern = r"(## [^\n]*\(`bounds\.(\w+)`\)\n(?:(?!\| name |## ).*\n)*?)\| name \|.*\n(?:\|.*\n)*"
    begin, end = "<!-- intervals: written by tools/theory_page.py -->", "<!-- end of intervals -->"
    return re.sub(f"{begin}.*{end}", f"{begin}\n{intervals()}\n{end}", re.sub(pattern, table, text), flags=re.DOTALL)


def intervals() -> str:
    """The interval of Corollary 3.2 and the exact one at three horizons, for both epsilons of the paper."""
    rows = [
        "| epsilon | Corollary 3.2 | " + " | ".join(f"exact, {horizon:,} rounds" for horizon in HORIZONS) + " |",
        "|---" * (len(HORIZONS) + 2) + "|",
    ]
    for epsilon in (1.0, 0.1):
        exact = (exact_interval(epsilon, DELTA, V, horizon) for horizon in HORIZONS)
        constant = math.ceil(1.0 / interval_rate(epsilon, DELTA, V))
        rows.append(f"| {epsilon:g} | {constant:,} | " + " | ".join(f"{one:,}" for one in exact) + " |")
    return "\n".join(rows)


if __name__ == "__main__":
    before = PAGE.read_text(encoding="utf-8")
    if "--check" in sys.argv:
        sys.exit(fill(before) != before)
    PAGE.write_text(fill(before), encoding="utf-8")
