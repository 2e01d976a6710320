"""Make docs/benchmark.md and its pictures what ``dpbandits benchmark`` wrote.

Usage: ``python tools/benchmark_page.py OUT QUICK``. OUT is the output of ``dpbandits benchmark --scale standing``, and
QUICK that of ``dpbandits benchmark``, in one call with XDG_CACHE_HOME an empty folder: the page says how long it took.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
COLOURS = 64  # in a PNG file, to keep it small
WIDEST = 1600  # pixels


def copy(out: Path, quick: Path, docs: Path) -> list[Path]:
    """Copy the page and the pictures that it shows, with fewer colours; remove pictures that no page shows."""
    from PIL import Image

    text = with_time((out / "benchmark.md").read_text(encoding="utf-8"), quick)
    (docs / "benchmark.md").write_text(text, encoding="utf-8")
    shown = [Path(name) for name in re.findall(r"\]\((figures/benchmark/[^)]+\.png)\)", text)]
    for old in (docs / "figures" / "benchmark").glob("*.png"):
        if old.relative_to(docs) not in shown:
            old.unlink()
    for name in shown:
        picture = Image.open(out / name).convert("RGB")
        picture.thumbnail((WIDEST, 4 * WIDEST))
        picture.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE).save(docs / name, optimize=True)
    return [docs / "benchmark.md", *(docs / name for name in shown)]


def with_time(text: str, quick: Path) -> str:
    """The page, with how long the command takes without any option."""
    from dpbandits.benchmark.pages import took

    record = json.loads((quick / "benchmark.json").read_text(encoding="utf-8"))
    sentence = took("Without an option it", record)
    if not sentence:
        raise SystemExit(f"{quick} was not played in one call: dpbandits benchmark --fresh --out {quick}")
    return re.sub(r"(?m)^Command: .*$", rf"\g<0>\n{sentence} This includes compiling.", text, count=1)


if __name__ == "__main__":
    for path in copy(Path(sys.argv[1]), Path(sys.argv[2]), DOCS):
        print(path)
