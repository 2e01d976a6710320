"""Update the pages in docs/papers: put the claims of a report between a page's markers, and copy its figures.

Usage: ``python tools/papers_pages.py OUT [QUICK]``, where OUT is the output of ``reproduce --scale paper``, and QUICK
that of ``reproduce --scale quick``. Both also become what later runs are compared with: ``established.json``.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpbandits.experiments.established import FILE, median_interval

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- claims: written by tools/papers_pages.py -->", "<!-- end of claims -->"
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


def establish(out: Path) -> None:
    """Keep where the curves of a report end, in place of what was kept for its scale."""
    import pyarrow.parquet as parquet

    target = ROOT / "src" / "dpbandits" / "experiments" / "assets" / FILE
    kept = json.loads(target.read_text(encoding="utf-8")) if target.exists() else {}
    scale = json.loads((out / "claims.json").read_text(encoding="utf-8"))["scale"]
    found: dict[str, dict[str, list[float]]] = {}
    for data in sorted((out / "data").rglob("*.parquet")):
        table = parquet.read_table(data).to_pandas()
        if "simulation" in table:
            last = table[table["t"] == table.groupby("simulation")["t"].transform("max")]
            ends = {str(name): rows["regret"].to_numpy() for name, rows in last.groupby("simulation")}
            intervals = {name: [float(f"{x:.6g}") for x in median_interval(ends[name])] for name in ends}
            found[f"{data.parent.name}/{data.stem}"] = intervals
    target.write_text(json.dumps({**kept, scale: found}, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for path in write(Path(sys.argv[1]), ROOT / "docs"):
        print(path)
    for folder in sys.argv[1:]:
        establish(Path(folder))
