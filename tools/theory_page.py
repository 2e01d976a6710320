"""Write the tables of theorems in docs/theory.md from the theorems themselves.

Usage: ``python tools/theory_page.py [--check]``; with ``--check``, the status is 1 if the page is not up to date.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

from dpbandits.bounds import theorems

PAGE = Path(__file__).parents[1] / "docs" / "theory.md"
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
    return re.sub(pattern, table, text)


if __name__ == "__main__":
    before = PAGE.read_text(encoding="utf-8")
    if "--check" in sys.argv:
        sys.exit(fill(before) != before)
    PAGE.write_text(fill(before), encoding="utf-8")
