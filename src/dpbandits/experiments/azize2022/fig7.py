"""Figure 7: the four algorithms in environment C4 at four epsilons."""

from __future__ import annotations

from dpbandits.experiments.azize2022.four_algorithms import LONGER, FourAlgorithms
from dpbandits.experiments.azize2022.four_algorithms import SETTINGS as SETTINGS

TITLE = "Figure 7: regret over time in C4 at four epsilons"
KNOWN = {"dp-se": LONGER}

_figure = FourAlgorithms(7, "c4", KNOWN)
cells, score, plot = _figure.cells, _figure.score, _figure.plot
