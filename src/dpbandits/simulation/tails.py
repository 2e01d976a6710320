"""The tail of the final regret: a mean hides the runs in which everything went wrong."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpbandits.formats import amount
from dpbandits.types import Floats

__all__ = ["CONFIDENCE", "DISASTER", "QUANTILES", "Tail", "may_fail", "tail_of"]

DISASTER = 10.0  # a run is a disaster if it lost more than this many times the median
SHARE = 0.95  # of the runs that lose at most the quantile
CONFIDENCE = 0.95  # of intervals, and of bounds on one side
QUANTILES = (0.05, 0.5, 0.95)  # that documents show


class Tail(NamedTuple):
    """How badly runs go: the median, a high quantile with its interval, the largest loss, and the share of disasters.

    ``high`` is None where there are too few runs for an upper end. ``worst`` is the most that any run can lose.
    """

    median: float
    quantile: float
    low: float
    high: float | None
    largest: float
    disasters: float
    worst: float

    def to_json(self) -> dict[str, Any]:
        """JSON-ready."""
        disaster = {"disaster": f"more than {DISASTER:g} times the median", "disaster_possible": self.may_fail}
        worst = self.worst if math.isfinite(self.worst) else None
        return {**self._asdict(), "worst": worst, "share": SHARE, **disaster}

    @property
    def may_fail(self) -> bool:
        """See ``may_fail``."""
        return may_fail(self.median, self.worst)

    @property
    def disasters_in_percent(self) -> str:
        """For tables: the share of disasters, and a dash where none is possible."""
        return share_of(self.disasters) if self.may_fail else "–"

    def __str__(self) -> str:
        interval = f"95 % interval {amount(self.low)} or more"
        if self.high is not None:
            interval = f"95 % interval {amount(self.low)} to {amount(self.high)}"
        lost = f"{share_of(self.disasters)} of the runs lost more than {DISASTER:g} times the median"
        if self.median <= 0.0:
            lost = "half of the runs lose nothing"
        elif not self.may_fail:
            lost = f"no run can lose more than {DISASTER:g} times the median"
        return f"{100 * SHARE:g} % of the runs lose at most {amount(self.quantile)} ({interval}); {lost}"


def share_of(part: float) -> str:
    """A share in percent.

    >>> share_of(0.0054), share_of(0.0)
    ('0.54 %', '0 %')
    """
    return f"{100 * part:.2g} %"


def may_fail(median: float, worst: float) -> bool:
    """Whether a disaster is possible, where no run can lose more than ``worst``."""
    return 0.0 < DISASTER * median < worst


def tail_of(values: Floats, worst: float = math.inf) -> Tail:
    """The tail of one number for each run. The quantile's interval is by order statistics, for any distribution.

    Where the median is 0, no run counts as a disaster.

    >>> tail = tail_of(np.arange(1.0, 1001.0))
    >>> tail.quantile, tail.low, tail.high, tail.disasters
    (950.05, 936.0, 964.0, 0.0)
    >>> str(tail_of(np.array([1.0] * 19 + [50.0])))
    '95 % of the runs lose at most 3.45 (95 % interval 1 or more); 5 % of the runs lost ...'
    >>> str(tail_of(np.array([50.0] * 20), worst=400.0))
    '95 % of the runs lose ...; no run can lose more than 10 times the median'
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
        float(np.mean(ordered > DISASTER * median)) if median > 0.0 else 0.0,
        worst,
    )
