"""Newton's method for the least point of a convex function."""

from __future__ import annotations

import math

__all__ = ["newton_step"]


def newton_step(x: float, slope: float, bend: float, low: float, high: float) -> float:
    """The step from x towards where a convex function is least: Newton's, or halving where that leaves (low, high).

    x may be one of the two ends. A step that is too small to change x is returned as it is: the search is over.

    >>> newton_step(0.5, -1.0, 10.0, 0.0, 1.0), newton_step(0.5, -1.0, 0.1, 0.5, 1.0)
    (0.1, 0.25)
    >>> newton_step(0.5, -1e-20, 10.0, 0.5, 1.0)
    1e-21
    """
    step = -slope / bend if bend > 0.0 else math.inf
    if not low < x + step < high and x + step != x:
        step = 0.5 * (low + high) - x
    return step
