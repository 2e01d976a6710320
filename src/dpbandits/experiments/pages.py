"""Update the pages in docs/papers: put the claims of a report between a page's markers, and copy its figures.

Usage: ``python -m dpbandits.experiments.pages OUT DOCS``, where OUT is the output of ``reproduce --scale paper``.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

BEGIN, END = "<!-- claims: written by dpbandits.experiments.pages -->", "<!-- end of claims -->"
COLOURS = 64  # in a PNG file, to keep it small
SHRINK = 3  # from the resolution of print to that of a screen


def claims_table(claims: Sequence[Mapping[str, Any]]) -> str:
    """The claims as a Markdown table.

    >>> row = {"figure": "a/fig1", "statement": "x", "where": "p. 1", "verdict": "reproduced", "ours": "2",
    ...        "explanation": "", "expected": True}
    >>> print(claims_table([row]))
    | figure | the paper says | verdict | ours |
    |---|---|---|---|
    | fig1 | x (p. 1) | reproduced | 2 |
    """
    rows = ["| figure | the paper says | verdict | ours |", "|---|---|---|---|"]
    for claim in claims:
        verdict = claim["verdict"] if claim["verdict"] == "reproduced" else f"**{claim['verdict']}**"
        ours = f"{claim['ours']}. {claim['explanation']}" if claim["explanation"] else claim["ours"]
        cells = [claim["figure"].split("/")[-1], f"{claim['statement']} ({claim['where']})", verdict, ours]
        rows.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows)


def fill_page(text: str, table: str) -> str:
    """The page with the table between its markers.

    >>> fill_page(f"a\\n{BEGIN}\\nold\\n{END}\\nb", "new").splitlines()[2]
    'new'
    """
    if BEGIN not in text or END not in text:
        raise ValueError(f"the page has no markers {BEGIN} and {END}")
    return re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: f"{BEGIN}\n{table}\n{END}", text, flags=re.DOTALL)


def write(out: Path, docs: Path) -> list[Path]:
    """Copy the claims of a report into the papers' pages, and its figures, with fewer colours, into docs/figures."""
    from PIL import Image

    claims = json.loads((out / "claims.json").read_text(encoding="utf-8"))["claims"]
    written = []
    for page in sorted((docs / "papers").glob("*.md")):
        own = [claim for claim in claims if claim["figure"].startswith(f"{page.stem}/")]
        if own:
            page.write_text(fill_page(page.read_text(encoding="utf-8"), claims_table(own)), encoding="utf-8")
            written.append(page)
    for figure in sorted((out / "figures").rglob("*.png")):
        target = docs / "figures" / f"{figure.parent.name}-{figure.name}"
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.open(figure).convert("RGB").reduce(SHRINK).quantize(COLOURS).save(target, optimize=True)
        written.append(target)
    return written


if __name__ == "__main__":
    for path in write(Path(sys.argv[1]), Path(sys.argv[2])):
        print(path)
