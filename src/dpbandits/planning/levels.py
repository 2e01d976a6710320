"""Which responses to use when each user has their own level: the cost as a function of ``epsilon_min``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from dpbandits import __version__
from dpbandits.bounds.levels import best_epsilon_min, level_cost, level_curve
from dpbandits.checks import known
from dpbandits.environments import parse_levels
from dpbandits.planning.output import write_figure
from dpbandits.plotting import COLOURS, new_figure
from dpbandits.policies import lookup
from dpbandits.policies.policy import Mechanism

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LevelCurve", "plan_levels", "without_threshold"]

LETTER = {"laplace": "V_L", "bernoulli": "V_B"}


@dataclass(frozen=True)
class LevelCurve:
    """What each threshold costs a HeLDP policy: regret is about 8 log T / gap times ``costs``."""

    levels: str
    kind: Mechanism
    thresholds: list[float]
    shares: list[float]  # share of the users whose responses are used
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
    """The cost curve of one mechanism, or of both, for a population given as text. A sample of levels is a ``choice``.

    >>> [(curve.kind, curve.best) for curve in plan_levels("choice(0,0.2,1,2,100)")]
    [('laplace', 100.0), ('bernoulli', 2.0)]
    """
    kinds: list[Mechanism] = list(get_args(Mechanism)) if kind is None else [known("kind", kind, get_args(Mechanism))]  # type: ignore[list-item]
    users = parse_levels(levels)
    curves = []
    for one in kinds:
        best = best_epsilon_min(users, one)
        thresholds = sorted({*level_curve(users, one)[0], best})
        costs = [level_cost(users, threshold, one) for threshold in thresholds]
        shares = [users.accepted(threshold) for threshold in thresholds]
        curves.append(LevelCurve(levels, one, thresholds, shares, costs, best, level_cost(users, best, one)))
    return curves


def without_threshold(kind: Mechanism) -> list[str]:
    """The policies on these responses that have no threshold, because they discard nobody.

    >>> without_threshold("bernoulli"), without_threshold("laplace")
    (['heldp-glr-b', 'heldp-weighted-b'], ['heldp-weighted-l'])
    """
    every = {name: lookup.traits(name) for name in lookup.names()}
    return [name for name, traits in every.items() if traits.levels == kind and traits.threshold is None]


def draw_levels(curves: list[LevelCurve]) -> Figure:
    """Cost against threshold, with the best one marked."""
    figure, (panel,) = new_figure(1, 1, (6.4, 4.6))
    for curve, colour in zip(curves, COLOURS, strict=False):
        label = f"{curve.kind} ({LETTER[curve.kind]}): least {curve.best_cost:.3g} at epsilon_min {curve.best:.3g}"
        dots = "o" if len(curve.thresholds) < 30 else None
        panel.plot(curve.thresholds, curve.costs, color=colour, marker=dots, markersize=4, label=label)
        panel.plot([curve.best], [curve.best_cost], marker="*", color=colour, markersize=13)
    panel.legend(frameon=False, fontsize=9)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel("epsilon_min: responses below it are discarded")
    panel.set_ylabel("cost: regret / (8 log T / gap)")
    panel.set_title(f"levels {curves[0].levels}, dpbandits {__version__}", fontsize=9)
    return figure


def write_levels(curves: list[LevelCurve], out: Path) -> list[str]:
    """Write the figure and its data to this folder; return the names of the files."""
    return write_figure(draw_levels(curves), [curve.to_json() for curve in curves], out, "levels")
