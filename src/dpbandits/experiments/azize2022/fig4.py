"""Figure 4: the four algorithms in environment C1 at four epsilons."""

from __future__ import annotations

from collections.abc import Mapping

from dpbandits.experiments.azize2022.four_algorithms import BETTER, MORE_EPISODES, cells_of, plot_of, score_of
from dpbandits.experiments.azize2022.four_algorithms import SETTINGS as SETTINGS
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.claims import Finding
from dpbandits.experiments.panels import Panel
from dpbandits.simulation import Trace

TITLE = "Figure 4: regret over time in C1 at four epsilons"
ENVIRONMENT = "c1"
KNOWN = {
    "lowest": {
        "DP-SE, ε = 0.1": BETTER,
        "AdaP-UCB, ε = 0.1": "At epsilon 0.1 both play the same episodes in nearly every run.",
    },
    "similar": {"ε = 0.25": MORE_EPISODES},
}


def cells(scale: str) -> dict[str, Cell]:
    """The four algorithms at each epsilon."""
    return cells_of(ENVIRONMENT, scale)


def score(traces: Mapping[str, Trace], scale: str) -> list[Finding]:
    """The verdicts."""
    return score_of("4", ENVIRONMENT, traces, KNOWN)


def plot(traces: Mapping[str, Trace], scale: str) -> list[Panel]:
    """A panel for each epsilon."""
    return plot_of(ENVIRONMENT, traces)
