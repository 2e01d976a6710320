"""What is measured: regret against the best lower bound and against the best policy, tails, ranks and time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpbandits.benchmark.problems import SEED, Challenge, PrivacySetting, Track
from dpbandits.bounds import Problem as Bounded
from dpbandits.bounds import applicable
from dpbandits.errors import InputError
from dpbandits.policies import lookup
from dpbandits.policies.policy import Policy
from dpbandits.simulation import Trace
from dpbandits.simulation.tails import tail_of
from dpbandits.types import Floats

__all__ = ["CellScore", "PolicyScore", "Scores", "best_lower", "in_words", "scored"]

RESAMPLED = 2000  # draws of the bootstrap over cells
CLEAR = 2.0  # standard errors of the difference of two means that tell a winner from another policy


class CellScore(NamedTuple):
    """One policy on one problem at one setting, at one horizon."""

    policy: str
    problem: str
    setting: PrivacySetting
    horizon: int
    runs: int
    mean: float
    stderr: float
    median: float
    q95: float
    q99: float
    q999: float
    largest: float
    disasters: float
    seconds: float  # of one run to its last checkpoint
    lower: float | None  # the best lower bound on any policy of the track
    to_best: float  # mean regret over that of the best policy here
    made: Policy  # what was played

    @property
    def chosen(self) -> dict[str, Any]:
        """The options that are not the policy's defaults."""
        known, settings = lookup.options(self.made.factory), self.made.settings
        return {
            name: settings[name] for name, own in known.items() if name in settings and settings[name] != own.default
        }

    @property
    def to_lower(self) -> float | None:
        """Mean regret over the best lower bound."""
        return None if not self.lower else self.mean / self.lower

    def to_json(self) -> dict[str, Any]:
        """JSON-ready, with all settings of the policy, and what it promises."""
        record = {**self._asdict(), "to_lower": self.to_lower}
        del record["made"]
        promise = self.made.guarantee.to_json()
        return {
            **record,
            "options": {name: _plain(value) for name, value in self.made.settings.items()},
            "guarantee": {name: promise[name] for name in ("epsilon", "delta")},
        }


class PolicyScore(NamedTuple):
    """One policy over all cells of a track at one horizon."""

    policy: str
    cells: int
    wins: int
    to_best: float  # geometric mean
    worst: float  # the largest ratio to the best policy
    to_lower: float | None  # geometric mean
    q99: float  # geometric mean of the 99 % quantile over the best policy's mean
    disasters: float  # largest share of runs in a cell
    rank: float
    rank_low: float
    rank_high: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Scores:
    """All entries and scores of a track at one horizon."""

    track: Track
    horizon: int
    entries: list[CellScore]
    scores: list[PolicyScore]

    def entry(self, policy: str, problem: str, setting: PrivacySetting) -> CellScore | None:
        """The entry of one cell."""
        found = (e for e in self.entries if (e.policy, e.problem, e.setting) == (policy, problem, setting))
        return next(found, None)

    def in_cell(self, problem: str, setting: PrivacySetting) -> list[CellScore]:
        """The entries of all policies in a cell, the least mean regret first."""
        return sorted((e for e in self.entries if (e.problem, e.setting) == (problem, setting)), key=lambda e: e.mean)

    def leaders(self, problem: str, setting: PrivacySetting) -> list[CellScore]:
        """The policy with the least mean regret in a cell, and those that two standard errors do not tell from it."""
        here = self.in_cell(problem, setting)
        return [e for e in here if not e.mean - here[0].mean > CLEAR * np.hypot(e.stderr, here[0].stderr)]

    def ratios(self, policy: str) -> Floats:
        """The ratios to the best policy, in ascending order."""
        return np.sort([entry.to_best for entry in self.entries if entry.policy == policy])


def best_lower(problem: Challenge, track: Track, setting: PrivacySetting, horizon: int) -> float | None:
    """The largest lower bound on any policy of the track, in the unit of the rewards; None if no theorem applies."""
    if track.any_size:
        return None  # no theorem for policies that see clipped rewards, or their logistic function
    epsilon = setting if isinstance(setting, float) else None
    low, high = problem.reward_range or (0.0, 1.0)
    trusts = ("any", "central", "local") if track.trust == "local" else ("any", "central")
    try:
        asked = Bounded.on(problem.arms, horizon, epsilon=epsilon, reward_range=problem.reward_range)
        values = [
            bound.value
            for bound in applicable(asked)
            if bound.kind == "lower"
            and not bound.policies
            and bound.scope == "this problem"
            and bound.trust in (trusts if epsilon is not None else ("any",))
        ]
    except InputError:
        return None
    most = max((value for value in values if value is not None and np.isfinite(value)), default=0.0)
    return (high - low) * most or None


def scored(
    track: Track, played: Mapping[tuple[str, str, PrivacySetting], Trace], problems: Sequence[Challenge], horizon: int
) -> Scores:
    """The scores of a track at a horizon, from the traces of (policy, problem, setting)."""
    named = {problem.name: problem for problem in problems}
    cells = {key: trace for key, trace in played.items() if horizon in trace.checkpoints.tolist()}
    at = {key: trace.regret[:, trace.checkpoints.tolist().index(horizon)] for key, trace in cells.items()}
    best: dict[tuple[str, PrivacySetting], float] = {}
    for (_, problem, setting), regret in at.items():
        best[problem, setting] = min(best.get((problem, setting), np.inf), float(regret.mean()))
    lower = {cell: best_lower(named[cell[0]], track, cell[1], horizon) for cell in best}
    entries = []
    for (policy, problem, setting), regret in at.items():
        trace, median = cells[policy, problem, setting], float(np.median(regret))
        mean = float(regret.mean())
        spread = float(regret.std(ddof=1) / np.sqrt(regret.size)) if regret.size > 1 else float("nan")
        q95, q99, q999 = (float(q) for q in np.quantile(regret, (0.95, 0.99, 0.999)))
        entries.append(
            CellScore(
                policy,
                problem,
                setting,
                horizon,
                int(regret.size),
                mean,
                spread,
                median,
                q95,
                q99,
                q999,
                float(regret.max()),
                tail_of(regret).disasters,
                trace.seconds / trace.runs,
                lower[problem, setting],
                mean / max(best[problem, setting], 1e-9),
                trace.simulation.policy,
            )
        )
    return Scores(track, horizon, entries, _summed(entries, best))


def _summed(entries: Sequence[CellScore], best: Mapping[tuple[str, PrivacySetting], float]) -> list[PolicyScore]:
    """A score for each policy, best first. Ranks have a 95 % bootstrap interval over cells."""
    policies = sorted({entry.policy for entry in entries})
    cells = sorted(best, key=str)
    ranks = np.full((len(policies), len(cells)), np.nan)
    for column, cell in enumerate(cells):
        here = sorted((e for e in entries if (e.problem, e.setting) == cell), key=lambda e: e.mean)
        for place, entry in enumerate(here, start=1):
            ranks[policies.index(entry.policy), column] = place
    rng = np.random.default_rng(SEED)
    drawn = rng.integers(len(cells), size=(RESAMPLED, len(cells)))
    scores = []
    for row, policy in enumerate(policies):
        own = [entry for entry in entries if entry.policy == policy]
        places = ranks[row][drawn]  # a policy is not in every cell
        counts = np.isfinite(places).sum(axis=1)
        low, high = np.quantile((np.nansum(places, axis=1) / np.maximum(counts, 1))[counts > 0], (0.025, 0.975))
        ratios = np.array([entry.to_best for entry in own])
        floors = np.array([entry.to_lower for entry in own if entry.to_lower])
        tails = np.array([max(entry.q99, 1e-9) / max(best[entry.problem, entry.setting], 1e-9) for entry in own])
        scores.append(
            PolicyScore(
                policy,
                len(own),
                int((ratios <= 1.0).sum()),
                _geometric(ratios),
                float(ratios.max()),
                _geometric(floors) if floors.size else None,
                _geometric(tails),
                max(entry.disasters for entry in own),
                float(np.nanmean(ranks[row])),
                float(low),
                float(high),
                float(np.mean([entry.seconds for entry in own])),
            )
        )
    return sorted(scores, key=lambda score: score.to_best)


def _plain(value: Any) -> Any:
    """A setting as JSON has it; as text where it has no such value."""
    number = isinstance(value, float) and np.isfinite(value)
    return value if number or value is None or isinstance(value, str | bool | int) else str(value)


def in_words(options: Mapping[str, Any]) -> str:
    """Options as they are written after the name of a policy.

    >>> in_words({"alpha": 1.0, "cover_noise": True, "schedule": "exact"})
    'alpha=1, cover_noise=true, schedule=exact'
    """
    return ", ".join(f"{name}={_text(value)}" for name, value in options.items())


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _geometric(values: Floats) -> float:
    return float(np.exp(np.log(np.maximum(values, 1e-12)).mean()))
