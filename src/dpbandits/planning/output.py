"""A figure and the numbers that it shows, in one folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpbandits.plotting import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["write_figure"]


def write_figure(figure: Figure, data: Any, out: Path, name: str) -> list[str]:
    """Write NAME.svg, NAME.png, NAME.pdf and NAME.json (the plotted numbers); return the names of the files."""
    files = [path.name for path in save_figure(figure, out / name)]
    (out / f"{name}.json").write_text(json.dumps(data, indent=1, allow_nan=False) + "\n")
    return [*files, f"{name}.json"]
