"""How a reward is brought into [0, 1], and onto the grid on which exact noise is added."""

from __future__ import annotations

import math

__all__ = ["GRID", "on_grid", "sigmoid", "unit"]

#: Grid steps per unit. Rewards on this grid, and sums of up to 2^37 of them, are exact in floating point.
GRID = 65536.0


def unit(x: float) -> float:
    """``x`` clipped to [0, 1]; NaN becomes 0.

    >>> unit(-3.0), unit(0.25), unit(7.0), unit(math.nan)
    (0.0, 0.25, 1.0, 0.0)
    """
    if x > 0.0:
        return x if x < 1.0 else 1.0
    return 0.0


def on_grid(x: float) -> float:
    """``x`` in [0, 1], rounded to the nearest multiple of 2^-16. Exact noise can only be added to such values.

    Floats near 2^36 are multiples of 2^-16, so the addition rounds to the grid, and the subtraction is exact.

    >>> on_grid(0.3) * 65536, on_grid(1.0)
    (19661.0, 1.0)
    """
    return (x + 1.5 * 2.0**36) - 1.5 * 2.0**36


def sigmoid(x: float) -> float:
    """1 / (1 + e^-x), without overflow at either end; NaN becomes 0, as in ``unit``.

    >>> sigmoid(0.0), sigmoid(1000.0), sigmoid(-1000.0), sigmoid(math.nan)
    (0.5, 1.0, 0.0, 0.0)
    """
    if x >= 0.0:
        return 1.0 / (1.0 + math.exp(-x))
    z = math.exp(x) if x < 0.0 else 0.0
    return z / (1.0 + z)
