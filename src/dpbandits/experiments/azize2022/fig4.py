"""Figure 4: the four algorithms in environment C1 at four epsilons."""

from __future__ import annotations

from dpbandits.experiments.azize2022.four_algorithms import BETTER, MORE_EPISODES, FourAlgorithms
from dpbandits.experiments.azize2022.four_algorithms import SETTINGS as SETTINGS

TITLE = "Figure 4: regret over time in C1 at four epsilons"
KNOWN = {
    "lowest": {
        "DP-SE, ε = 0.1": BETTER,
        "AdaP-UCB, ε = 0.1": "At epsilon 0.1 both play the same episodes in nearly every run.",
    },
    "similar": {"ε = 0.25": MORE_EPISODES},
}

_figure = FourAlgorithms(4, "c1", KNOWN)
cells, score, plot = _figure.cells, _figure.score, _figure.plot
