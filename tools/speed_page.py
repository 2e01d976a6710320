"""Write what ``dpbandits bench`` measured into docs/concepts/simulation.md, so that no speed there is typed.

Usage: ``dpbandits bench --json > bench.json && python tools/speed_page.py bench.json``, on an idle machine: about a
minute.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "concepts" / "simulation.md"
BEGIN, END = "<!-- speed: written by tools/speed_page.py -->", "<!-- end of speed -->"
VERDICTS = {True: "holds", False: "**missed**", None: "not measured"}


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The measurements as a table, and how many targets hold.

    >>> print(table([{"case": "ucb1", "measured": "45", "target": ">= 8", "holds": True}]))
    1 of 1 targets hold.
    <BLANKLINE>
    | measured on one core | | target | |
    |---|---|---|---|
    | ucb1 | 45 | >= 8 | holds |
    """
    held = sum(row["holds"] is True for row in rows)
    lines = [f"{held} of {len(rows)} targets hold.", "", "| measured on one core | | target | |", "|---|---|---|---|"]
    return "\n".join(
        lines + [f"| {row['case']} | {row['measured']} | {row['target']} | {VERDICTS[row['holds']]} |" for row in rows]
    )


if __name__ == "__main__":
    content = f"{BEGIN}\n{table(json.loads(Path(sys.argv[1]).read_text(encoding='utf-8')))}\n{END}"
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(re.sub(f"{BEGIN}.*?{END}", lambda _: content, text, flags=re.DOTALL), encoding="utf-8")
