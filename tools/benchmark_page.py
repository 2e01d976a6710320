"""Make docs/benchmark.md and its pictures what ``dpbandits benchmark`` wrote.

Usage: ``python tools/benchmark_page.py OUT``, where OUT is the output of ``dpbandits benchmark --scale standing``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
COLOURS = 64  # in a PNG file, to keep it small
WIDEST = 1600  # pixels


def copy(out: Path, docs: Path) -> list[Path]:
    """Copy the page and the pictures that it shows, with fewer colours; remove pictures that no page shows."""
    from PIL import Image

    text = (out / "benchmark.md").read_text(encoding="utf-8")
    (docs / "benchmark.md").write_text(text, encoding="utf-8")
    shown = [Path(name) for name in re.findall(r"\]\((figures/benchmark/[^)]+\.png)\)", text)]
    for old in (docs / "figures" / "benchmark").glob("*.png"):
        if old.relative_to(docs) not in shown:
            old.unlink()
    for name in shown:
        picture = Image.open(out / name).convert("RGB")
        picture.thumbnail((WIDEST, 4 * WIDEST))
        picture.quantize(COLOURS).save(docs / name, optimize=True)
    return [docs / "benchmark.md", *(docs / name for name in shown)]


if __name__ == "__main__":
    for path in copy(Path(sys.argv[1]), DOCS):
        print(path)
