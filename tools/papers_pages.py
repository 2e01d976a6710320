"""Update the pages in docs/papers: claims, settings and theorems between a page's markers, and the figures.

Usage: ``python tools/papers_pages.py [OUT [QUICK]]``, where OUT is the output of ``reproduce --scale paper``, and QUICK
that of ``reproduce --scale quick``. Both also become what later runs are compared with: ``established.json``. Without
OUT, only what follows from the package alone is written: settings, theorems, and claims that are not measured yet.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpbandits.bounds import theorems
from dpbandits.experiments.claims import NOT_REPRODUCED, REPRODUCED, UNDECIDED, Claim
from dpbandits.experiments.established import FILE, median_interval
from dpbandits.experiments.figures import figures, papers

ROOT = Path(__file__).parents[1]
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


def settings_list(paper: str) -> str:
    """What the paper does not print, and what was chosen: the settings that each figure states."""
    own = [figure for figure in figures() if figure.paper == paper]
    return "\n".join(f"* **{figure.title}.** {figure.settings}" for figure in own)


def theorems_table(paper: str) -> str:
    """The theorems of a paper: where each stands, the function, and what became of the print."""
    source = importlib.import_module(f"dpbandits.experiments.{paper}").SOURCE
    rows = ["| where | function | kind | form | what differs or is missing |", "|---|---|---|---|---|"]
    own = [theorem for theorem in theorems() if theorem.statement.source.startswith(f"{source}, ")]
    for theorem in sorted(own, key=lambda one: _order(one.statement.source)):
        said = theorem.statement
        standing = "refuted" if said.refuted else said.form if said.checked else f"{said.form}, not checked"
        where = said.source.removeprefix(f"{source}, ")
        cells = [
            where,
            f"`{theorem.name}`",
            said.kind,
            standing,
            f"{said.note}: {said.refuted}" if said.refuted else said.note,
        ]
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows)


def _order(source: str) -> list[float]:
    """Sorts Theorem 7 before Theorem 10."""
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", source)[1:]] or [0.0]


def overview_table(reports: Sequence[Mapping[str, Any]]) -> str:
    """How many claims there are, and the verdicts on them."""
    rows = ["| scale | paper | claims | reproduced | not reproduced | cannot be decided |", "|---|---|---|---|---|---|"]
    for report in reports:
        own = [claim for claim in report["claims"] if claim["where"] != "docs/papers"]
        for paper in (*papers(), "all"):
            count = Counter(claim["verdict"] for claim in own if paper in ("all", claim["figure"].split("/")[0]))
            numbers = (count.total(), *(count[verdict] for verdict in (REPRODUCED, NOT_REPRODUCED, UNDECIDED)))
            rows.append(f"| {report['scale']} | {paper} | {' | '.join(map(str, numbers))} |")
    return "\n".join(rows)


def fill_page(text: str, what: str, content: str) -> str:
    """The page with the content between the markers of its kind.

    >>> page = "a\\n<!-- claims: written by tools/papers_pages.py -->\\nold\\n<!-- end of claims -->\\nb"
    >>> fill_page(page, "claims", "new").splitlines()[2]
    'new'
    """
    begin, end = f"<!-- {what}: written by tools/papers_pages.py -->", f"<!-- end of {what} -->"
    if begin not in text or end not in text:
        raise ValueError(f"the page has no markers {begin} and {end}")
    pattern = f"{re.escape(begin)}.*{re.escape(end)}"
    return re.sub(pattern, lambda _: f"{begin}\n{content}\n{end}", text, flags=re.DOTALL)


def without_runs(text: str, paper: str) -> str:
    """The page of a paper with what follows from the package alone: settings, theorems, and claims that are new."""
    text = fill_page(fill_page(text, "settings", settings_list(paper)), "theorems", theorems_table(paper))
    rows = [row for row in unmeasured(paper) if row.split(" | ")[1] not in text]
    end = "<!-- end of claims -->"
    return text.replace(end, "\n".join([*rows, end]))


def unmeasured(paper: str) -> list[str]:
    """For each claim of a paper the row that stands on its page until the claim is measured."""
    own = {figure.name: vars(figure.module).values() for figure in figures() if figure.paper == paper}
    claims = [(name, one) for name, values in own.items() for one in values if isinstance(one, Claim)]
    return [f"| {name} | {one.statement} ({one.where}) | not measured yet |  |" for name, one in claims]


def write(out: Path, docs: Path) -> list[Path]:
    """Copy the claims of a report into the papers' pages, and its figures, with fewer colours, into docs/figures."""
    from PIL import Image

    claims = json.loads((out / "claims.json").read_text(encoding="utf-8"))["claims"]
    written = []
    for page in sorted((docs / "papers").glob("*.md")):
        own = [claim for claim in claims if claim["figure"].startswith(f"{page.stem}/")]
        if own:
            text = without_runs(page.read_text(encoding="utf-8"), page.stem)
            page.write_text(fill_page(text, "claims", claims_table(own)), encoding="utf-8")
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


def write_without_runs(docs: Path) -> list[Path]:
    """Write what follows from the package alone into the page of every paper."""
    pages = [docs / "papers" / f"{paper}.md" for paper in papers()]
    for page in pages:
        page.write_text(without_runs(page.read_text(encoding="utf-8"), page.stem), encoding="utf-8")
    return pages


def write_all(folders: Sequence[str]) -> list[Path]:
    """Write everything from these outputs of ``reproduce``."""
    overview = ROOT / "docs" / "papers" / "README.md"
    reports = [json.loads((Path(folder) / "claims.json").read_text(encoding="utf-8")) for folder in folders]
    overview.write_text(
        fill_page(overview.read_text(encoding="utf-8"), "verdicts", overview_table(reports)), encoding="utf-8"
    )
    for folder in folders:
        establish(Path(folder))
    return [overview, *write(Path(folders[0]), ROOT / "docs")]


if __name__ == "__main__":
    for path in write_all(sys.argv[1:]) if sys.argv[1:] else write_without_runs(ROOT / "docs"):
        print(path)
