"""How figures of plans are made and kept: the same data give the same file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpbandits.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["axes", "save"]


def axes(panels: int) -> tuple[Figure, tuple[Axes, ...]]:
    """A figure with panels side by side, drawn without any display."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plot") from None
    figure = Figure(figsize=(6.4 * panels, 4.6), layout="constrained")
    found = tuple(figure.add_subplot(1, panels, 1 + panel) for panel in range(panels))
    for one in found:
        one.spines[["top", "right"]].set_visible(False)
    return figure, found


def save(figure: Figure, data: Any, out: Path, name: str) -> list[str]:
    """Write NAME.png, NAME.svg and NAME.json, the numbers that were drawn; the names of the files."""
    import matplotlib

    out.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": "dpbandits"}):  # otherwise every file has identifiers of its own
        figure.savefig(out / f"{name}.png", dpi=150)
        figure.savefig(out / f"{name}.svg", metadata={"Date": None})
    (out / f"{name}.json").write_text(json.dumps(data, indent=1, allow_nan=False) + "\n")
    return [f"{name}.{kind}" for kind in ("png", "svg", "json")]
