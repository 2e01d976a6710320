"""The claims of papers about their experiments: records, comparisons and verdicts.

A claim consists of named comparisons. Each comparison is decided only if our error is small enough. A claim is
reproduced if all of its comparisons are. It fails if a comparison fails that was not known to fail.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
MAX_SHOWN = 4  # comparisons that are written out if all of them hold


class ClaimPart(NamedTuple):
    """One part of a claim: what was compared, its verdict, our numbers, and what a decision lacks."""

    name: str
    verdict: Judgement
    ours: str
    lacks: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.ours}" if self.name else self.ours


@dataclass(frozen=True)
class Claim:
    """One printed number or ordering.

    ``known`` names the comparisons that are expected to fail, each with its reason, because an earlier run at the
    paper's scale established that. Any other comparison that fails makes the claim fail. ``known`` never decides a
    verdict, which is measured anew each time.
    """

    name: str
    statement: str
    where: str
    measured: str
    tolerance: str
    known: Mapping[str, str] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.name, self.where))

    def finding(self, *comparisons: ClaimPart, explanation: str = "") -> Finding:
        """The verdict on this claim from its comparisons."""
        return Finding(self, comparisons, explanation)

    def single(self, verdict: Judgement, ours: str, explanation: str = "", name: str = "") -> Finding:
        """The verdict on a claim of one comparison."""
        return Finding(self, (ClaimPart(name, verdict, ours),), explanation)


@dataclass(frozen=True)
class Finding:
    """A claim with its comparisons, and what follows from them."""

    claim: Claim
    comparisons: tuple[ClaimPart, ...]
    note: str = ""

    @property
    def verdict(self) -> Judgement:
        """The verdict on all comparisons together."""
        return together([one.verdict for one in self.comparisons])

    @property
    def unexpected(self) -> list[ClaimPart]:
        """The comparisons that fail and were not known to fail."""
        return [one for one in self.comparisons if one.verdict == NOT_REPRODUCED and one.name not in self.claim.known]

    @property
    def fails(self) -> bool:
        """Whether a comparison fails that was expected to hold."""
        return bool(self.unexpected)

    @property
    def excused(self) -> bool:
        """Whether the claim is not reproduced, and all that fails was known to fail."""
        return self.verdict == NOT_REPRODUCED and not self.fails

    @property
    def ours(self) -> str:
        """Our numbers: those of the comparisons that do not hold, or the first ones if all do."""
        held = sum(one.verdict == REPRODUCED for one in self.comparisons)
        count = f"{held} of {len(self.comparisons)} hold. " if len(self.comparisons) > 1 else ""
        odd = [one for one in self.comparisons if one.verdict != REPRODUCED]
        shown = odd or list(self.comparisons[:MAX_SHOWN])
        more = len(self.comparisons) - MAX_SHOWN if not odd else 0
        return count + "; ".join(map(str, shown)) + (f"; and {more} more" if more > 0 else "")

    @property
    def explanation(self) -> str:
        """Why comparisons fail that were known to fail, which failures are new, and what undecided ones lack."""
        failing = [one.name for one in self.comparisons if one.verdict == NOT_REPRODUCED]
        reasons = dict.fromkeys(self.claim.known[name] for name in failing if name in self.claim.known)
        parts = [self.note, *reasons]
        if self.unexpected and self.claim.known:
            new = "; ".join(one.name or "this" for one in self.unexpected)
            parts.append(f"Not known to fail before: {new}.")
        parts += dict.fromkeys(one.lacks for one in self.comparisons if one.verdict == UNDECIDED)
        return " ".join(part for part in parts if part)

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
            "fails": self.fails,
            "comparisons": [
                {"name": one.name, "verdict": one.verdict, "ours": one.ours, "expected": one.name not in claim.known}
                for one in self.comparisons
            ],
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


def growth_exponent(trace: Trace) -> Estimate:
    """The exponent of mean regret in t over the last decade of rounds: 1 is linear, 0 is constant."""
    return mean(_slopes(trace, trace.horizon / 10))


def _slopes(trace: Trace, since: float) -> Floats:
    """The exponent of each run's regret in t since a round."""
    at = int(np.searchsorted(trace.checkpoints, since))
    decades = np.log10(trace.horizon / trace.checkpoints[at])
    first = np.maximum(trace.regret[:, at], 1e-9)
    return np.asarray(np.log10(np.maximum(trace.regret[:, -1], 1e-9) / first) / decades)


def quotient(above: Estimate, below: Estimate) -> Estimate:
    """The quotient of two estimates, with its standard error to first order; infinite where the divisor is 0.

    >>> quotient(Estimate(10.0, 0.3), Estimate(5.0, 0.2))[:2], quotient(Estimate(10.0, 0.3), Estimate(0.0, 0.0))[:2]
    ((2.0, 0.1), (inf, 0.0))
    """
    if below.value == 0.0:
        return Estimate(math.inf, 0.0, min(above.runs, below.runs))
    value = above.value / below.value
    parts = [(one.error / one.value if one.value else 0.0, one.runs) for one in (above, below)]
    error = math.hypot(above.error, value * below.error) / abs(below.value)
    return Estimate(value, error, _together(*parts))


def ratio_to(ours: Estimate, number: float) -> Estimate:
    """An estimate over a number that has no error.

    >>> ratio_to(Estimate(10.0, 0.5, 20), 5.0)
    Estimate(value=2.0, error=0.1, runs=20)
    """
    return Estimate(ours.value / number, ours.error / abs(number), ours.runs)


def difference(a: Estimate, b: Estimate) -> Estimate:
    """a - b."""
    runs = _together((a.error, a.runs), (b.error, b.runs))
    return Estimate(a.value - b.value, math.hypot(a.error, b.error), runs)


def _together(*parts: tuple[float, float]) -> float:
    """The number of runs that a sum of independent errors counts for: Welch's degrees of freedom, plus one.

    >>> round(_together((1.0, 4), (0.0, 100)), 1), round(_together((1.0, 10), (1.0, 10)), 1)
    (4.0, 19.0)
    """
    if any(runs <= 1 for _, runs in parts):
        return 1
    noisy = [(error, runs) for error, runs in parts if error > 0.0]
    if not noisy:
        return min(runs for _, runs in parts)
    return 1.0 + sum(e * e for e, _ in noisy) ** 2 / max(sum(e**4 / (n - 1.0) for e, n in noisy), 1e-300)


def runs_needed(gap: Estimate, runs: float = math.nan) -> str:
    """How many runs would show that a difference is not 0, if it is what it seems to be; there are ``runs`` now.

    Four standard errors: Student's factor for three is about four at ten runs.

    >>> runs_needed(Estimate(2.0, 1.0, 10), 10)
    'About 40 runs would decide this, and there are 10.'
    >>> runs_needed(Estimate(2.0, 1.0, 10))
    'About 4 times as many runs would decide this.'
    """
    if gap.value == 0.0 or gap.runs == math.inf:
        return "The difference is too small to be seen."
    factor = (4.0 * gap.error / gap.value) ** 2 if gap.runs > 1 else math.inf
    if math.isnan(runs):
        return f"About {max(factor, 2.0):.2g} times as many runs would decide this."
    wanted = max(10.0, runs * factor) if factor < math.inf else 10.0
    return f"About {float(f'{wanted:.2g}'):,.0f} runs would decide this, and there are {runs:,.0f}."


def within(ours: Estimate, target: float, share: float, name: str = "") -> ClaimPart:
    """Whether an estimate is within a share of a target, beyond its margin.

    >>> within(Estimate(1.05, 0.01), 1.0, 0.1).verdict, within(Estimate(1.05, 0.03), 1.0, 0.1).verdict
    ('reproduced', 'cannot be decided')
    """
    return between(ours, target * (1.0 - share), target * (1.0 + share), name)


def between(ours: Estimate, low: float, high: float, name: str = "") -> ClaimPart:
    """Whether an estimate is from ``low`` to ``high``, beyond its margin.

    >>> between(Estimate(7.0, 0.1), 5.0, math.inf).verdict, between(Estimate(4.0, 0.1), 5.0, 9.0).verdict
    ('reproduced', 'not reproduced')
    """
    inside = min(ours.value - low, high - ours.value)  # negative outside
    if inside >= ours.margin:
        return ClaimPart(name, REPRODUCED, str(ours))
    if -inside > ours.margin:
        return ClaimPart(name, NOT_REPRODUCED, str(ours))
    return ClaimPart(name, UNDECIDED, str(ours), runs_needed(Estimate(abs(inside), ours.error, ours.runs)))


def judge_lower(lower: Estimate, higher: Estimate) -> Judgement:
    """Whether ``lower`` is below ``higher``; undecided within three standard errors of the difference.

    Two equal numbers without any error are a tie, and a tie is not below.

    >>> judge_lower(Estimate(1.0, 0.1), Estimate(2.0, 0.1)), judge_lower(Estimate(1.0, 0.1), Estimate(1.2, 0.1))
    ('reproduced', 'cannot be decided')
    """
    gap = difference(higher, lower)
    if gap.value > gap.margin:
        return REPRODUCED
    return NOT_REPRODUCED if gap.value < -gap.margin or is_tie(lower, higher) else UNDECIDED


def is_tie(a: Estimate, b: Estimate) -> bool:
    """Whether two means are equal in every run."""
    return a.error == b.error == 0.0 and min(a.runs, b.runs) > 1 and math.isclose(a.value, b.value, rel_tol=1e-9)


def together(verdicts: Sequence[Judgement]) -> Judgement:
    """The verdict on a conjunction: one part that fails is enough to fail it."""
    for worst in (NOT_REPRODUCED, UNDECIDED):
        if worst in verdicts:
            return worst
    return REPRODUCED


def below(name: str, lower: Estimate, higher: Estimate) -> ClaimPart:
    """Whether the first is below the second.

    >>> str(below("C1", Estimate(13107.2, 0.0, 20), Estimate(13107.2, 0.0, 20)))
    'C1: a tie, both are 13,107'
    """
    if is_tie(lower, higher):
        return ClaimPart(name, NOT_REPRODUCED, f"a tie, both are {lower}")
    verdict = judge_lower(lower, higher)
    lacks = runs_needed(difference(higher, lower), min(lower.runs, higher.runs)) if verdict == UNDECIDED else ""
    return ClaimPart(name, verdict, f"{lower} against {higher}", lacks)


def orderings(claim: Claim, pairs: Mapping[str, tuple[Estimate, Estimate]]) -> Finding:
    """The finding on a claim that in each named pair the first is below the second."""
    return claim.finding(*(below(name, *pair) for name, pair in pairs.items()))


def only_in_full(finding: Finding, full: bool) -> Finding:
    """The finding, or at a horizon below the paper's, where it says nothing about the claim, no decision."""
    if full:
        return finding
    lacks = "Only --scale paper plays enough rounds."
    undecided = [ClaimPart(one.name, UNDECIDED, one.ours, lacks) for one in finding.comparisons]
    return Finding(finding.claim, tuple(undecided), finding.note)


def at_most(claim: Claim, ratios: Mapping[str, tuple[Estimate, float]]) -> Finding:
    """The finding on a claim that each named estimate is at most a number."""
    comparisons = []
    for name, (ours, most) in ratios.items():
        one = below(name, ours, Estimate(most, 0.0))
        comparisons.append(one._replace(ours=f"{ours} (at most {most:.4g})"))
    return claim.finding(*comparisons)


def upper_end(values: Floats, most: float) -> float:
    """An upper bound on a mean, right with probability 1 - ``ERROR_RATE`` / 2, also with heavy tails.

    Values lie in an interval of length ``most``. This is the empirical Bernstein bound of Maurer & Pontil 2009, Theorem
    4. Student's interval can be far too short: if one run in 200 is a disaster, 100 runs often contain none.

    >>> round(upper_end(np.zeros(1000), 100.0), 2)
    1.71
    """
    log = math.log(4.0 / ERROR_RATE)
    spread = math.sqrt(2.0 * float(values.var(ddof=1)) * log / values.size)
    return float(values.mean()) + spread + 7.0 * most * log / (3.0 * (values.size - 1))
