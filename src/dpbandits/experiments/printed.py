"""Printed ratios of regrets whose horizon is not printed: at which horizons ours agree, and whether one fits all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from dpbandits.experiments.claims import (
    NOT_REPRODUCED,
    REPRODUCED,
    UNDECIDED,
    Claim,
    ClaimPart,
    Estimate,
    Finding,
    mean,
    quotient,
    runs_needed,
)
from dpbandits.plotting import Line, Panel
from dpbandits.simulation import Trace
from dpbandits.types import Bools, Floats

EARLIEST = 1e-3  # share of our horizon: no earlier round is considered
FINE = 2000  # points of the interpolated curve


class Printed(NamedTuple):
    """A printed ratio: its value, the unit of its last digit, and the two policies' traces."""

    value: float
    unit: float
    above: Trace
    below: Trace

    @property
    def low(self) -> float:
        """The least number that is printed like this."""
        return self.value - self.unit / 2

    @property
    def high(self) -> float:
        """The largest number that is printed like this."""
        return self.value + self.unit / 2

    @property
    def runs(self) -> int:
        """The number of runs of the policy that has fewer."""
        return min(self.above.runs, self.below.runs)

    def curve(self) -> tuple[Floats, list[Estimate]]:
        """The checkpoints that are considered, and our ratio at each."""
        kept = np.flatnonzero(self.above.checkpoints >= EARLIEST * self.above.horizon)
        above, below = self.above.regret, self.below.regret
        ours = [quotient(mean(above[:, at]), mean(below[:, at])) for at in kept]
        return self.above.checkpoints[kept].astype(np.float64), ours

    def horizons(self) -> Floats:
        """The horizons at which our ratio, interpolated between checkpoints, is printed like this."""
        t, _ = self.curve()
        fine = np.geomspace(t[0], t[-1], FINE)
        return np.asarray(fine[self.met(fine)])

    def met(self, horizons: Floats) -> Bools:
        """At which of these horizons our ratio is printed like this."""
        value, _, _ = self._between(horizons)
        return np.asarray((value >= self.low) & (value <= self.high))

    def sure(self, horizons: Floats) -> Bools:
        """At which of these horizons our ratio is printed like this, and our error is at most half of the rounding."""
        _, error, _ = self._between(horizons)
        return np.asarray(self.met(horizons) & (error <= self.unit / 4))

    def possible(self, horizons: Floats) -> Bools:
        """At which of these horizons the ratio may be printed like this, as far as our runs can tell."""
        value, _, margin = self._between(horizons)
        return np.asarray((value + margin >= self.low) & (value - margin <= self.high))

    def _between(self, horizons: Floats) -> tuple[Floats, Floats, Floats]:
        """Our ratio at these horizons, its standard error and its margin, interpolated between checkpoints."""
        t, ours = self.curve()
        columns = zip(*((one.value, one.error, one.margin) for one in ours), strict=True)
        value, error, margin = (np.interp(np.log(horizons), np.log(t), column) for column in columns)
        return value, error, margin

    def judged(self, name: str, full: bool) -> ClaimPart:
        """Whether our ratio is the printed one at some horizon. The tolerance is the rounding of the print alone.

        It is, if the ratio is clearly below the printed one at some round and clearly above it at another, or if it is
        within the rounding and our error is at most half of the rounding. It is not, if it is clearly on one side at
        all rounds and they are enough (``full``). Otherwise there are too few runs or rounds.
        """
        t, ours = self.curve()
        under = [one.value + one.margin < self.low for one in ours]
        over = [one.value - one.margin > self.high for one in ours]
        sure = [abs(one.value - self.value) <= self.unit / 2 and one.error <= self.unit / 4 for one in ours]
        last = f"{ours[-1]} at {t[-1]:,.0f} rounds"
        if (any(under) and any(over)) or any(sure):
            return ClaimPart(name, REPRODUCED, f"{last}, {self.value:g} at {horizon_span(self.horizons())}")
        if (all(under) and full) or all(over):
            return ClaimPart(name, NOT_REPRODUCED, f"{last}, {self.value:g} at no horizon")
        near = min(ours, key=lambda one: abs(one.value - self.value))
        if abs(near.value - self.value) <= self.unit / 2:
            lacks = runs_needed(Estimate(self.unit, near.error, near.runs), self.runs)
        elif under[-1] and not full:
            lacks = "Only --scale paper plays enough rounds."
        else:
            lacks = runs_needed(
                Estimate(abs(near.value - self.value) - self.unit / 2, near.error, near.runs), self.runs
            )
        return ClaimPart(name, UNDECIDED, last, lacks)


def horizon_span(horizons: Floats) -> str:
    """A set of horizons in words.

    >>> horizon_span(np.array([4.41e6, 5e6, 5.8e6]))
    '4.4e+06 to 5.8e+06 rounds'
    """
    if not horizons.size:
        return "no horizon"
    first, last = (f"{value:.2g}" for value in (horizons[0], horizons[-1]))
    return f"{first} rounds" if first == last else f"{first} to {last} rounds"


def one_horizon(claim: Claim, ratios: Mapping[str, Printed], full: bool) -> Finding:
    """The finding on a claim that the printed ratios of one paper belong to one horizon.

    They do, if at some horizon each is met and our errors are small. They do not, if at every horizon one of them is
    clearly missed, and our rounds are enough (``full``).
    """
    ends = [one.curve()[0][[0, -1]] for one in ratios.values()]
    fine = np.geomspace(max(first for first, _ in ends), min(last for _, last in ends), FINE)
    met = np.sum([one.met(fine) for one in ratios.values()], axis=0)
    sure = np.all([one.sure(fine) for one in ratios.values()], axis=0)
    possible = np.all([one.possible(fine) for one in ratios.values()], axis=0)
    shown = "; ".join(f"{name}: {horizon_span(one.horizons())}" for name, one in ratios.items())
    if sure.any():
        return claim.single(REPRODUCED, f"{shown}. All are met at {fine[sure][0]:.2g} rounds")
    at = f", at {fine[met.argmax()]:.2g} rounds" if met.any() else ""
    text = f"{shown}. At most {met.max()} of {len(ratios)} are met at once{at}"
    if full and not possible.any():
        return claim.single(NOT_REPRODUCED, text)
    lacks = "Only --scale paper plays enough rounds."
    if full:
        least = min(ratios.values(), key=lambda one: one.runs)
        lacks = f"More than {least.runs:,} runs are needed."
    return claim.finding(ClaimPart("", UNDECIDED, text, lacks))


def ratio_panel(name: str, title: str, ratios: Mapping[str, Printed]) -> Panel:
    """Each ratio against rounds, with the printed values as lines."""
    lines = []
    for label, one in ratios.items():
        t, ours = one.curve()
        value, width = np.array([each.value for each in ours]), np.array([2.0 * each.error for each in ours])
        lines.append(Line(label, t, value, value - width, value + width))
    for label, one in ratios.items():
        t, _ = one.curve()
        lines.append(Line(f"printed: {label}", t[[0, -1]], np.full(2, one.value), style="dashed"))
    return Panel(name, title, lines, "rounds", "regret over that of UCB", band="two standard errors")
