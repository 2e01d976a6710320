"""Figure 2: the regrets of Figure 1 (e-h) against V_L and V_B, with one fitted line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from dpbandits.bounds import level_cost
from dpbandits.environments import Levels, NormalLevels
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.claims import (
    Claim,
    Estimate,
    Finding,
    between,
    only_in_full,
    orderings,
    regret,
)
from dpbandits.experiments.heldp.fig1 import DISCRETE, NAMES, NORMAL, THRESHOLDS, population_cells
from dpbandits.experiments.panels import Line, Panel, title_of
from dpbandits.experiments.twenty_arms import HORIZON, ORDER, RUNS
from dpbandits.simulation import Trace
from dpbandits.types import Floats

TITLE = "Figure 2: regret against V_L and V_B, with a linear fit"
SETTINGS = (
    f"The 16 settings of Figure 1 (e-h), at 10^7 rounds and {RUNS['paper']} runs. The expectations in V_L and V_B are "
    "over the users at or above epsilon_min, which the paper means but does not write. Its values are in a supplement "
    "that is not available. The standard error of R^2 is the jackknife's, which leaves out one run at a time."
)
PRINTED, MATTERS = 0.9977, 0.001
POPULATIONS = {DISCRETE: Levels.of([0, 0.2, 1, 2, 100]), NORMAL: NormalLevels(1.0, 1.0)}

R2 = Claim(
    "r2",
    "One line fits the regrets of both algorithms under both distributions, with R^2 = 0.9977.",
    "Section 4.2, Fig. 2",
    "R^2 of the least-squares line through 16 mean regrets at the horizon",
    "0.001 beyond three standard errors: the printed digits depend on the runs, and less could not be seen",
)
CHOICE = Claim(
    "choice",
    "The best epsilon_min can be chosen by computing V_L or V_B instead of by experiments.",
    "Section 4.2",
    "mean regret of the threshold with the least V against each other threshold",
    ORDER,
)


class Fit(NamedTuple):
    """A least-squares line."""

    slope: float
    intercept: float
    r2: float


def fit(x: Floats, y: Floats) -> Fit:
    """The line through these points.

    >>> fit(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0])).r2
    1.0
    """
    slope, intercept = np.polyfit(x, y, 1)
    rest = y - slope * x - intercept
    return Fit(float(slope), float(intercept), float(1 - rest @ rest / ((y - y.mean()) @ (y - y.mean()))))


def cells(scale: str) -> dict[str, Cell]:
    """The simulations of Figure 1 (e) to (h)."""
    return population_cells(scale)


def values() -> dict[str, float]:
    """V_L or V_B of each cell."""
    mechanisms = {"l": "laplace", "b": "bernoulli"}
    return {
        f"{levels}:{kind}:{least:g}": level_cost(population, least, mechanisms[kind])  # type: ignore[arg-type]
        for levels, population in POPULATIONS.items()
        for kind in NAMES
        for least in THRESHOLDS[levels]
    }


def r_squared(traces: Mapping[str, Trace]) -> Estimate:
    """R^2 with its jackknife standard error."""
    v = values()
    x = np.array(list(v.values()))
    final = np.stack([traces[name].final_regret for name in v])  # (settings, runs)
    runs = final.shape[1]
    parts = np.array([fit(x, np.delete(final, run, axis=1).mean(axis=1)).r2 for run in range(runs)])
    return Estimate(fit(x, final.mean(axis=1)).r2, float(np.sqrt((runs - 1) * parts.var())), runs)


def score(traces: Mapping[str, Trace], scale: str) -> list[Finding]:
    """The verdicts."""
    ours = r_squared(traces)
    first = only_in_full(
        R2.finding(between(ours, PRINTED - MATTERS, PRINTED + MATTERS)), HORIZON[scale] == HORIZON["paper"]
    )
    v, pairs = values(), {}
    for levels, thresholds in THRESHOLDS.items():
        for kind in NAMES:
            names = {least: f"{levels}:{kind}:{least:g}" for least in thresholds}
            best = min(thresholds, key=lambda least: v[names[least]])
            for least in thresholds:
                if least != best:
                    pair = (regret(traces[names[best]]), regret(traces[names[least]]))
                    pairs[f"{NAMES[kind]}, {levels}, {best:g} against {least:g}"] = pair
    return [first, orderings(CHOICE, pairs)]


def plot(traces: Mapping[str, Trace], scale: str) -> list[Panel]:
    """The 16 points and the line, plain and with logarithmic axes."""
    v = values()
    lines, names = [], {}
    for levels in THRESHOLDS:
        for kind, policy in NAMES.items():
            chosen = [f"{levels}:{kind}:{least:g}" for least in THRESHOLDS[levels]]
            finals = [regret(traces[name]) for name in chosen]
            y, error = np.array([f.value for f in finals]), 2 * np.array([f.error for f in finals])
            label = f"{title_of(policy)}, {levels}"
            lines.append(Line(label, np.array([v[name] for name in chosen]), y, y - error, y + error, "points"))
            names[label] = [f"ε_min = {least:g}" for least in THRESHOLDS[levels]]
    line = fit(np.concatenate([each.x for each in lines]), np.concatenate([each.y for each in lines]))
    x = np.geomspace(min(v.values()), max(v.values()), 60)
    lines.append(Line(f"fit, R² = {line.r2:.4f}", x, line.slope * x + line.intercept, style="dashed"))
    shared = {"x": "V_L or V_B", "y": "regret at the horizon", "band": "two standard errors", "names": names}
    return [
        Panel("plain", "Regret against V_L and V_B", lines, log_x=False, log_y=False, **shared),  # type: ignore[arg-type]
        Panel("logarithmic", "The same with logarithmic axes", lines, **shared),  # type: ignore[arg-type]
    ]
