"""The tail of the final regret: a mean hides the runs in which everything went wrong."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dpbandits.formats import amount
from dpbandits.types import Floats

__all__ = ["CONFIDENCE", "DISASTER", "QUANTILES", "Tail", "tail_of"]

DISASTER = 10.0  # a run is a disaster if it lost more than this many times the median
SHARE = 0.95  # of the runs that lose at most the quantile
CONFIDENCE = 0.95  # of intervals, and of bounds on one side
QUANTILES = (0.05, 0.5, 0.95)  # that documents show


class Tail(NamedTuple):
    """How badly runs go: the median, a high quantile with its interval, the largest loss, and the share of disasters.

    ``high`` is None where there are too few runs for an upper end.
    """

    median: float
    quantile: float
    low: float
    high: float | None
    largest: float
    disasters: float

    def to_json(self) -> dict[str, Any]:
        """JSON-ready."""
        return {**self._asdict(), "share": SHARE, "disaster": f"more than {DISASTER:g} times the median"}

    def __str__(self) -> str:
        interval = f"95 % interval {amount(self.low)} or more"
        if self.high is not None:
            interval = f"95 % interval {amount(self.low)} to {amount(self.high)}"
        return (
            f"{100 * SHARE:g} % of the runs lose at most {amount(self.quantile)} ({interval}); "
            f"{share_of(self.disasters)} of the runs lost more than {DISASTER:g} times the median"
        )


def share_of(part: float) -> str:
    """A share in percent.

    >>> share_of(0.0054), share_of(0.0)
    ('0.54 %', '0 %')
    """
    return f"{100 * part:.2g} %"


def tail_of(values: Floats) -> Tail:
    """The tail of one number for each run. The quantile's interval is by order statistics, for any distribution.

    >>> tail = tail_of(np.arange(1.0, 1001.0))
    >>> tail.quantile, tail.low, tail.high, tail.disasters
    (950.05, 936.0, 964.0, 0.0)
    >>> str(tail_of(np.array([1.0] * 19 + [50.0])))
    '95 % of the runs lose at most 3.45 (95 % interval 1 or more); 5 % of the runs lost ...'
    """
    from scipy.special import bdtrik

    ordered, n = np.sort(values), values.size
    first = max(int(np.floor(bdtrik((1 - CONFIDENCE) / 2, n, SHARE))), 0)
    last = int(np.ceil(bdtrik((1 + CONFIDENCE) / 2, n, SHARE))) + 1
    median = float(np.median(ordered))
    return Tail(
        median,
        float(np.quantile(ordered, SHARE)),
        float(ordered[min(first, n - 1)]),
        float(ordered[last - 1]) if last <= n else None,
        float(ordered[-1]),
        float(np.mean(ordered > DISASTER * median)),
    )
