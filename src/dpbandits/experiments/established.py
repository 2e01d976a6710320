"""Curves that end elsewhere than in the runs that the pages in docs show: something has changed, or is broken.

A claim such as "DP-UCB is the worst" still holds if DP-UCB breaks and becomes worse. So every simulation is also
compared with what was established: the median of its final regret, as an interval that holds whatever the distribution.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from importlib import resources

import numpy as np

from dpbandits.experiments.claims import NOT_REPRODUCED, Claim, ClaimPart, Finding
from dpbandits.simulation import Trace
from dpbandits.types import Floats

FILE = "established.json"
FEW = 20  # runs below which the interval is widened by its own length on both sides
FEW_SLACK = 0.05  # share of its end by which few runs may be outside an interval

CHANGED = Claim(
    "changed",
    "Not a claim of the paper: every curve ends where it ended in the run that docs/papers shows.",
    "docs/papers",
    "median of the final regret, as an interval by order statistics",
    "the two intervals overlap; each misses the median with a probability below 1e-4",
)


def median_interval(values: Floats) -> tuple[float, float]:
    """An interval for the median by order statistics: four standard deviations of the number of values below it.

    >>> median_interval(np.arange(101.0))
    (28.0, 72.0)
    """
    ordered, n = np.sort(values), values.size
    if n < FEW:
        length = float(ordered[-1] - ordered[0])
        return float(ordered[0]) - length, float(ordered[-1]) + length
    reach = min(math.ceil(2.0 * math.sqrt(n)) + 1, n // 2)
    return float(ordered[n // 2 - reach]), float(ordered[min(n // 2 + reach, n - 1)])


@functools.cache
def established() -> dict[str, dict[str, dict[str, tuple[float, float]]]]:
    """The intervals by scale, figure and simulation."""
    file = resources.files("dpbandits.experiments").joinpath("assets", FILE)
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def changes(figure: str, traces: Mapping[str, Trace], scale: str) -> list[Finding]:
    """One finding if a curve of the figure ends elsewhere than established, and none otherwise."""
    before = established().get(scale, {}).get(figure, {})
    odd = []
    for name, trace in traces.items():
        if name in before:
            (low, high), (least, most) = before[name], median_interval(trace.final_regret)
            slack = (FEW_SLACK if trace.runs < FEW else 1e-5) * abs(high)  # six digits are kept
            if most < low - slack or least > high + slack:
                text = f"median {np.median(trace.final_regret):,.4g}, and it was from {low:,.4g} to {high:,.4g}"
                odd.append(ClaimPart(name, NOT_REPRODUCED, text))
    return [CHANGED.finding(*odd)] if odd else []
