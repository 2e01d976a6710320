"""Figure 6: the four algorithms in environment C3 at four epsilons."""

from __future__ import annotations

from dpbandits.experiments.azize2022.four_algorithms import BETTER, LONGER, FourAlgorithms
from dpbandits.experiments.azize2022.four_algorithms import SETTINGS as SETTINGS

TITLE = "Figure 6: regret over time in C3 at four epsilons"
KNOWN = {"lowest": {"DP-SE, ε = 0.1": BETTER}, "dp-se": LONGER}

_figure = FourAlgorithms(6, "c3", KNOWN)
cells, score, plot = _figure.cells, _figure.score, _figure.plot
