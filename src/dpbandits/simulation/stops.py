"""When the runs of a policy that finds the best arm stopped, and how often they named a wrong one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpbandits.formats import amount, plural
from dpbandits.proportions import share_at_most
from dpbandits.simulation.tails import CONFIDENCE, QUANTILES
from dpbandits.types import Floats, Integers

__all__ = ["Stops"]


@dataclass(frozen=True, eq=False)
class Stops:
    """The ends of runs. A run that has not stopped by the horizon is unfinished: it counts neither as right nor wrong.

    A run stops when the policy, asked for its next choice, names an arm; from then on it plays nothing else.

    >>> stops = Stops(np.array([[900, 0], [0, 1200], [0, 0]]), np.array([0.6, 0.5]), 0.05, 2000)
    >>> stops.right, stops.wrong, stops.unfinished, stops.rounds.tolist()
    (1, 1, 1, [900, 1200])
    """

    named: Integers  # (runs, arms): the rounds after which the arm was named; 0 where it was not
    means: Floats  # (arms,)
    beta: float  # the promised probability of naming a wrong arm
    horizon: int

    @property
    def runs(self) -> int:
        """How many runs."""
        return int(self.named.shape[0])

    @cached_property
    def rounds(self) -> Integers:
        """(stopped,): how many rounds the runs that stopped had played."""
        return self.named.max(axis=1)[self.named.any(axis=1)]

    @property
    def stopped(self) -> int:
        """How many runs stopped."""
        return int(self.rounds.size)

    @property
    def unfinished(self) -> int:
        """How many runs had not stopped by the horizon."""
        return self.runs - self.stopped

    @property
    def right(self) -> int:
        """How many runs named a best arm."""
        return int(self.named[:, self.means == self.means.max()].any(axis=1).sum())

    @property
    def wrong(self) -> int:
        """How many runs named another arm."""
        return self.stopped - self.right

    @property
    def error_upper(self) -> float:
        """The upper end of a one-sided 95 % interval for the probability of a wrong name (Clopper & Pearson 1934)."""
        return share_at_most(self.wrong, self.runs, 1.0 - CONFIDENCE)

    def quantile(self, share: float) -> float | None:
        """The rounds by which this share of all runs had stopped; None where it had not by the horizon."""
        needed = int(np.ceil(share * self.runs))
        return float(np.sort(self.rounds)[max(needed, 1) - 1]) if needed <= self.stopped else None

    def to_json(self, names: tuple[str, ...]) -> dict[str, Any]:
        """JSON-ready."""
        counts = (self.named > 0).sum(axis=0).tolist()
        return {
            "beta": self.beta,
            "stopped": self.stopped,
            "unfinished": self.unfinished,
            "right": self.right,
            "wrong": self.wrong,
            "error_rate": self.wrong / self.runs,
            "error_rate_upper": self.error_upper,
            "named": dict(zip(names, counts, strict=True)),
            "rounds": {
                "mean": float(self.rounds.mean()) if self.stopped else None,  # of the runs that stopped
                "max": int(self.rounds.max()) if self.stopped else None,
                "quantiles": {str(q): self.quantile(q) for q in QUANTILES},  # of all runs
            },
        }

    def __str__(self) -> str:
        """When the runs stopped, and how many named a wrong arm.

        >>> print(Stops(np.zeros((5, 2), np.int64), np.array([0.6, 0.5]), 0.05, 2000))
        none of 5 runs by the horizon
        """
        if self.stopped == 0:
            return f"none of {plural(self.runs, 'run')} by the horizon"
        median, late = self.quantile(0.5), self.quantile(0.95)
        half = "fewer than half of the runs" if median is None else f"half of the runs after {amount(median)} rounds"
        most = "" if late is None else f", 95 % after {amount(late)}"
        open_runs = f"; {self.unfinished:,} did not by the horizon" if self.unfinished else ""
        promised = f"at most {100 * self.beta:.3g} % promised"
        return f"{half}{most}{open_runs}; {self.wrong:,} of {self.runs:,} named a wrong arm ({promised})"
