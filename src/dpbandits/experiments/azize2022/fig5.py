"""Figure 5: the four algorithms in environment C2 at four epsilons."""

from __future__ import annotations

from collections.abc import Mapping

from dpbandits.experiments.azize2022.four_algorithms import BETTER, LONGER, cells_of, plot_of, score_of
from dpbandits.experiments.azize2022.four_algorithms import SETTINGS as SETTINGS
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.claims import Finding
from dpbandits.experiments.panels import Panel
from dpbandits.simulation import Trace

TITLE = "Figure 5: regret over time in C2 at four epsilons"
ENVIRONMENT = "c2"
KNOWN = {"lowest": {"DP-SE, ε = 0.1": BETTER}, "dp-se": LONGER}


def cells(scale: str) -> dict[str, Cell]:
    """The four algorithms at each epsilon."""
    return cells_of(ENVIRONMENT, scale)


def score(traces: Mapping[str, Trace], scale: str) -> list[Finding]:
    """The verdicts."""
    return score_of("5", ENVIRONMENT, traces, KNOWN)


def plot(traces: Mapping[str, Trace], scale: str) -> list[Panel]:
    """A panel for each epsilon."""
    return plot_of(ENVIRONMENT, traces)
