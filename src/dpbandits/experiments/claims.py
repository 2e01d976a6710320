"""The claims of papers about their experiments: records, measurements and verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import ndtr, stdtrit

from dpbandits.simulation import Trace
from dpbandits.types import Floats

Judgement = Literal["reproduced", "not reproduced", "cannot be decided"]

REPRODUCED: Judgement = "reproduced"
NOT_REPRODUCED: Judgement = "not reproduced"
UNDECIDED: Judgement = "cannot be decided"

#: The probability of rejecting a true ordering: that of three standard errors if these are known exactly.
ERROR_RATE = 2.0 * float(ndtr(-3.0))
MAX_PAIRS_SHOWN = 4  # pairs of an ordering that are written out


@dataclass(frozen=True)
class Claim:
    """One printed number or ordering.

    ``known`` explains why the claim is not reproduced, if an earlier run at the paper's scale established that. Such a
    claim does not fail a reproduction. ``known`` never decides the verdict, which is measured anew each time.
    """

    name: str
    statement: str
    where: str
    measured: str
    tolerance: str
    known: str = ""

    def finding(self, verdict: Judgement, ours: str, explanation: str = "") -> Finding:
        """The verdict on this claim, with our number."""
        return Finding(self, verdict, ours, explanation or (self.known if verdict != REPRODUCED else ""))


@dataclass(frozen=True)
class Finding:
    """A claim with its verdict."""

    claim: Claim
    verdict: Judgement
    ours: str
    explanation: str

    @property
    def fails(self) -> bool:
        """Whether the claim was expected to be reproduced, and was not."""
        return self.verdict == NOT_REPRODUCED and not self.claim.known

    @property
    def excused(self) -> bool:
        """Whether the claim was known not to reproduce, and was not reproduced."""
        return self.verdict == NOT_REPRODUCED and bool(self.claim.known)

    def to_json(self) -> dict[str, Any]:
        """JSON-ready."""
        claim = self.claim
        return {
            "name": claim.name,
            "statement": claim.statement,
            "where": claim.where,
            "measured": claim.measured,
            "tolerance": claim.tolerance,
            "verdict": self.verdict,
            "ours": self.ours,
            "explanation": self.explanation,
            "expected": not claim.known,
        }


class Estimate(NamedTuple):
    """A mean with its standard error and its number of runs, which is infinite for a computed value.

    >>> str(Estimate(8.4321, 0.0512)), str(Estimate(13107.2, 0.0))
    ('8.43 ± 0.05', '13,107')
    >>> round(Estimate(8.0, 1.0).margin, 2), round(Estimate(8.0, 1.0, 5).margin, 2)
    (3.0, 6.62)
    """

    value: float
    error: float
    runs: float = math.inf

    @property
    def margin(self) -> float:
        """Three standard errors, widened by Student's distribution if they come from few runs."""
        if self.error == 0.0:
            return 0.0
        if self.runs == math.inf:
            return 3.0 * self.error
        return -float(stdtrit(self.runs - 1.0, ERROR_RATE / 2.0)) * self.error if self.runs > 1 else math.inf

    def __str__(self) -> str:
        if not abs(self.value) * 1e-9 < self.error < math.inf:
            return f"{self.value:,.0f}" if abs(self.value) >= 1000 else f"{self.value:.4g}"
        digits = min(9, max(0, -math.floor(math.log10(self.error))))
        return f"{self.value:,.{digits}f} ± {self.error:,.{digits}f}"


def mean(values: Floats) -> Estimate:
    """The mean of one number for each run.

    >>> mean(np.array([1.0, 2.0, 3.0]))
    Estimate(value=2.0, error=0.57..., runs=3)
    """
    runs = values.size
    error = float(values.std(ddof=1) / math.sqrt(runs)) if runs > 1 else math.inf
    return Estimate(float(values.mean()), 0.0 if error <= 1e-12 * abs(values.mean()) else error, runs)


def regret(trace: Trace, t: int | None = None) -> Estimate:
    """Mean regret at the horizon, or at the last checkpoint not after ``t``."""
    at = -1 if t is None else int(np.searchsorted(trace.checkpoints, t, side="right")) - 1
    return mean(trace.regret[:, at])


def ratio(above: Estimate, below: Estimate) -> Estimate:
    """The quotient of two estimates, with its standard error to first order.

    >>> ratio(Estimate(10.0, 0.3), Estimate(5.0, 0.2))
    Estimate(value=2.0, error=0.1, runs=inf)
    """
    value = above.value / below.value
    error = abs(value) * math.hypot(above.error / above.value, below.error / below.value)
    return Estimate(value, error, min(above.runs, below.runs))


def difference(a: Estimate, b: Estimate) -> Estimate:
    """a - b."""
    return Estimate(a.value - b.value, math.hypot(a.error, b.error), min(a.runs, b.runs))


def allowed(unit: float, ours: Estimate, printed_runs: int) -> float:
    """How far our number may lie from a printed one: half a unit of its last digit, and three standard errors of both.

    The standard error of the printed number is assumed to be that of an average over ``printed_runs`` runs.

    >>> round(allowed(0.1, Estimate(8.6, 0.02, 50), 50), 3)
    0.139
    """
    return unit / 2 + ours.margin * math.sqrt(1.0 + min(ours.runs, 1e9) / printed_runs)


def within(ours: Estimate, target: float, share: float) -> Judgement:
    """Whether an estimate is within a share of a target, beyond its margin.

    >>> within(Estimate(1.05, 0.01), 1.0, 0.1), within(Estimate(1.05, 0.03), 1.0, 0.1)
    ('reproduced', 'cannot be decided')
    """
    away = abs(ours.value / target - 1.0)
    if away + ours.margin / target <= share:
        return REPRODUCED
    return NOT_REPRODUCED if away - ours.margin / target > share else UNDECIDED


def compare(lower: Estimate, higher: Estimate) -> Judgement:
    """Whether ``lower`` is below ``higher``; undecided within three standard errors of the difference.

    >>> compare(Estimate(1.0, 0.1), Estimate(2.0, 0.1)), compare(Estimate(1.0, 0.1), Estimate(1.2, 0.1))
    ('reproduced', 'cannot be decided')
    """
    gap = difference(higher, lower)
    if gap.value > gap.margin:
        return REPRODUCED
    return NOT_REPRODUCED if gap.value < -gap.margin else UNDECIDED


def together(verdicts: Sequence[Judgement]) -> Judgement:
    """The verdict on a conjunction: one part that fails is enough to fail it."""
    for worst in (NOT_REPRODUCED, UNDECIDED):
        if worst in verdicts:
            return worst
    return REPRODUCED


def orderings(claim: Claim, pairs: Mapping[str, tuple[Estimate, Estimate]]) -> Finding:
    """The finding on a claim that in each named pair the first is below the second."""
    verdicts = {name: compare(*pair) for name, pair in pairs.items()}
    odd = [name for name, verdict in verdicts.items() if verdict != REPRODUCED]
    shown = odd or list(pairs)
    ours = "; ".join(f"{name}: {pairs[name][0]} against {pairs[name][1]}" for name in shown[:MAX_PAIRS_SHOWN])
    more = f"; and {len(shown) - MAX_PAIRS_SHOWN} more" if len(shown) > MAX_PAIRS_SHOWN else ""
    held = f"{len(pairs) - len(odd)} of {len(pairs)} hold" if len(pairs) > 1 else ""
    verdict = together(list(verdicts.values()))
    why = claim.known if verdict == NOT_REPRODUCED else ""
    if verdict == UNDECIDED:
        why = "The difference is within three standard errors. " + claim.known
    return claim.finding(verdict, f"{held}{'. ' if held else ''}{ours}{more}", why.strip())


def printed_ratio(
    claim: Claim, above: Trace, below: Trace, printed: float, unit: float, printed_runs: int, full: bool
) -> Finding:
    """The finding on a printed ratio of regrets whose horizon is not printed.

    At our horizon the ratio must agree within ``allowed``. If it does not, but did at an earlier checkpoint, the claim
    cannot be decided, because the horizon is not printed. ``full``: our horizon is the one of the paper's scale.
    """
    ours = ratio(regret(above), regret(below))
    text = f"{ours} at {above.horizon:,} rounds"
    if not full:
        return claim.finding(UNDECIDED, text, "Only --scale paper plays enough rounds.")
    if abs(ours.value - printed) <= allowed(unit, ours, printed_runs):
        return claim.finding(REPRODUCED, text)
    met = [
        int(t)
        for t in above.checkpoints[above.checkpoints >= above.horizon / 100]
        for then in [ratio(regret(above, t), regret(below, t))]
        if abs(then.value - printed) <= allowed(unit, then, printed_runs)
    ]
    if met:
        span = f"{met[0]:,}" if len(met) == 1 else f"{met[0]:,} to {met[-1]:,}"
        why = f"The horizon is not printed. Ours agrees with the print at {span} rounds, and not at {above.horizon:,}."
        return claim.finding(UNDECIDED, text, why)
    why = "The horizon is not printed, and ours agrees at no checkpoint of the last two decades. " + claim.known
    return claim.finding(NOT_REPRODUCED, text, why.strip())


def below(claim: Claim, ratios: Mapping[str, tuple[Estimate, float]]) -> Finding:
    """The finding on a claim that each named estimate is at most a number."""
    verdict = together([compare(ours, Estimate(most, 0.0)) for ours, most in ratios.values()])
    ours = "; ".join(f"{name}: {ours} (at most {most:.4g})" for name, (ours, most) in ratios.items())
    return claim.finding(verdict, ours, "" if verdict != UNDECIDED else "Within three standard errors of the limit.")
