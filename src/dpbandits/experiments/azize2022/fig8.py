"""Figure 8: AdaP-UCB and AdaP-KLUCB for several alpha."""

from __future__ import annotations

from collections.abc import Mapping

from dpbandits.experiments.azize2022.fig2 import HORIZON, LABELS, ORDER
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.claims import Claim, Finding, orderings, regret
from dpbandits.experiments.panels import Panel, regrets
from dpbandits.simulation import Trace

TITLE = "Figure 8: regret over time in C1 at ε = 1 for several alpha"
SETTINGS = (
    "10^7 rounds. The values of alpha are illegible in the paper: 1, 2, 3.1 and 5 are used. The paper averages 20 "
    "runs; here 100, as runs are cheap."
)
ARMS, EPSILON = "@azize2022-c1", 1.0
ALPHAS = (1.0, 2.0, 3.1, 5.0)
POLICIES = ("adap-ucb", "adap-klucb")
RUNS = {"quick": 20, "paper": 100}

BETTER = Claim(
    "alpha-1",
    "alpha = 1 performs better than the 3.1 of the theory.",
    "Appendix G.3, Fig. 8",
    "mean regret at alpha = 1 against each larger alpha, at the horizon",
    ORDER,
)


def cells(scale: str) -> dict[str, Cell]:
    """Both algorithms at each alpha."""
    return {
        f"{policy}:{alpha:g}": Cell.of(policy, ARMS, HORIZON, RUNS[scale], EPSILON, {"alpha": alpha})
        for policy in POLICIES
        for alpha in ALPHAS
    }


def score(traces: Mapping[str, Trace], scale: str) -> list[Finding]:
    """The verdict."""
    pairs = {
        f"{LABELS[policy]}, 1 against {alpha:g}": (regret(traces[f"{policy}:1"]), regret(traces[f"{policy}:{alpha:g}"]))
        for policy in POLICIES
        for alpha in ALPHAS[1:]
    }
    return [orderings(BETTER, pairs)]


def plot(traces: Mapping[str, Trace], scale: str) -> list[Panel]:
    """A panel for each algorithm."""
    return [
        regrets(
            policy,
            f"{LABELS[policy]}, C1, ε = 1",
            {f"α = {a:g}": traces[f"{policy}:{a:g}"] for a in ALPHAS},
            band="std",
        )
        for policy in POLICIES
    ]
