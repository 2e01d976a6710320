"""How values show themselves: a few lines in a terminal, and a small card with a curve in a notebook.

HTML is made of plain strings here: this is below the extras, and a template engine may not be installed. So every text
goes through ``html.escape``, and what is not a text is a number that is formatted here.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence

__all__ = ["bars", "card", "shortened", "sparkline"]

WIDTH, HEIGHT = 160, 36  # of a sparkline, in pixels
COLOUR = "#0072B2"


def shortened(text: object, most: int = 72) -> str:
    """A text on one line, cut off in the middle where it is too long.

    >>> shortened("a" * 100, 10)
    'aaaa...aaa'
    """
    line = " ".join(str(text).split())
    if len(line) <= most:
        return line
    return f"{line[: (most - 2) // 2]}...{line[-((most - 3) // 2) :]}"


def sparkline(values: Sequence[float], positions: Sequence[float] | None = None) -> str:
    """A small curve as SVG; values that are not finite are left out.

    >>> sparkline([0, 1, 4]).count("<polyline"), sparkline([])
    (1, '')
    """
    at = range(len(values)) if positions is None else positions
    points = [(float(x), float(y)) for x, y in zip(at, values, strict=True) if math.isfinite(x) and math.isfinite(y)]
    if len(points) < 2:
        return ""
    (left, right), (low, high) = _ends([x for x, _ in points]), _ends([y for _, y in points])
    wide, tall = (WIDTH - 4) / (right - left), (HEIGHT - 4) / (high - low)
    drawn = " ".join(f"{2 + (x - left) * wide:.1f},{HEIGHT - 2 - (y - low) * tall:.1f}" for x, y in points)
    line = f'<polyline points="{drawn}" fill="none" stroke="{COLOUR}" stroke-width="1.5"/>'
    return f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" xmlns="http://www.w3.org/2000/svg">{line}</svg>'


def bars(values: Sequence[float]) -> str:
    """Small bars from 0 as SVG.

    >>> bars([1, 2]).count("<rect")
    2
    """
    if not values:
        return ""
    step, top = WIDTH / len(values), max(*values, 1e-300)
    drawn = "".join(
        f'<rect x="{number * step:.1f}" y="{HEIGHT * (1 - value / top):.1f}" width="{max(step - 1, 0.5):.1f}" '
        f'height="{HEIGHT * value / top:.1f}" fill="{COLOUR}"/>'
        for number, value in enumerate(values)
    )
    return f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" xmlns="http://www.w3.org/2000/svg">{drawn}</svg>'


def card(lines: Iterable[str], picture: str = "", shows: str = "") -> str:
    """The lines as HTML, the first of them as a heading, with a picture below and what it shows.

    >>> card(["a < b"])
    '<div><strong>a &lt; b</strong></div>'
    """
    first, *rest = (html.escape(line.strip()) for line in lines)
    body = "".join(f"<br/>{line}" for line in rest)
    drawn = f"<br/>{picture} <small>{html.escape(shows)}</small>" if picture else ""
    return f"<div><strong>{first}</strong>{body}{drawn}</div>"


def _ends(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)
