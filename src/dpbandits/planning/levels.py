"""Which responses to use when every user has a level of their own: the curve of cost against ``epsilon_min``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from dpbandits import __version__
from dpbandits.bounds.levels import Mechanism, best_epsilon_min, level_cost, level_curve
from dpbandits.bounds.text import population
from dpbandits.environments import parse_levels
from dpbandits.errors import known
from dpbandits.planning.figure import axes, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LevelCurve", "plan_levels"]

LETTER = {"laplace": "V_L", "bernoulli": "V_B"}


@dataclass(frozen=True)
class LevelCurve:
    """What each threshold costs a HeLDP policy: regret is about 8 log T / gap times ``costs``."""

    levels: str
    kind: Mechanism
    thresholds: list[float]
    shares: list[float]  # of the users whose responses are used
    costs: list[float]
    best: float
    best_cost: float

    def to_json(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "levels": self.levels,
            "kind": self.kind,
            "rule": LETTER[self.kind],
            "epsilon_min": self.best,
            "cost": self.best_cost,
            "curve": {"epsilon_min": self.thresholds, "share": self.shares, "cost": self.costs},
        }


def plan_levels(levels: str, kind: str | None = None) -> list[LevelCurve]:
    """The curves of one mechanism or of both, for a population given as text; a sample of levels is a ``choice``.

    >>> [(curve.kind, curve.best) for curve in plan_levels("choice(0,0.2,1,2,100)")]
    [('laplace', 100.0), ('bernoulli', 2.0)]
    """
    kinds: list[Mechanism] = list(get_args(Mechanism)) if kind is None else [known("kind", kind, get_args(Mechanism))]  # type: ignore[list-item]
    users = population(parse_levels(levels))
    curves = []
    for one in kinds:
        best = best_epsilon_min(users, one)
        thresholds = sorted({*level_curve(users, one)[0], best})
        costs = [level_cost(users, threshold, one) for threshold in thresholds]
        shares = [users.accepted(threshold) for threshold in thresholds]
        curves.append(LevelCurve(levels, one, thresholds, shares, costs, best, level_cost(users, best, one)))
    return curves


def draw_levels(curves: list[LevelCurve]) -> Figure:
    """Cost against threshold, with the best one marked."""
    figure, (panel,) = axes(1)
    for curve, color in zip(curves, ("#1f5f99", "#b8432f"), strict=False):
        label = f"{curve.kind} ({LETTER[curve.kind]}): least {curve.best_cost:.3g} at epsilon_min {curve.best:.3g}"
        dots = "o" if len(curve.thresholds) < 30 else None
        panel.plot(curve.thresholds, curve.costs, color=color, marker=dots, markersize=4, label=label)
        panel.plot([curve.best], [curve.best_cost], marker="*", color=color, markersize=13)
    panel.legend(frameon=False, fontsize=9)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel("epsilon_min: responses below it are discarded")
    panel.set_ylabel("cost: regret / (8 log T / gap)")
    panel.set_title(f"levels {curves[0].levels}, dpbandits {__version__}", fontsize=9)
    return figure


def write_levels(curves: list[LevelCurve], out: Path) -> list[str]:
    """The figure and its data in this folder; the names of the files."""
    return save(draw_levels(curves), [curve.to_json() for curve in curves], out, "levels")
