"""Figure 2: AdaP-UCB and AdaP-KLUCB against DP-SE and DP-UCB."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from dpbandits.bounds import Problem, central
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.claims import (
    Claim,
    Estimate,
    Finding,
    compare,
    orderings,
    ratio,
    regret,
    together,
)
from dpbandits.experiments.panels import Panel, regrets
from dpbandits.simulation import Trace

TITLE = "Figure 2: regret over time at ε = 1, five Bernoulli arms"
SETTINGS = (
    "As printed: 10^7 rounds, 20 runs (100 where a run takes a millisecond), alpha = 3.1, beta = 1/T, gamma = 0.1. "
    "'DP-UCB' is taken to be Mishra & Thakurta's algorithm as they print it (private-ucb), which Appendix G cites. The "
    "figure also shows the two other readings: epsilon not split over the arms, and Tossou & Dimitrakakis' BOUND."
)
ARMS, EPSILON, HORIZON = "@azize2022-c2", 1.0, 10**7
MEANS = [0.75, 0.625, 0.5, 0.375, 0.25]
RUNS = {"quick": 20, "paper": 100}
EXPENSIVE_RUNS = {"quick": 2, "paper": 20}
LABELS = {"adap-klucb": "AdaP-KLUCB", "adap-ucb": "AdaP-UCB", "dp-se": "DP-SE", "private-ucb": "DP-UCB"}
OTHER = {"unsplit": "DP-UCB, ε not split", "dp-ucb-bound": "DP-UCB-BOUND"}
CLAIMED_FACTOR = 10.0

ORDER = "three standard errors of the difference"
LOWEST = Claim(
    "lowest",
    "AdaP-KLUCB achieves the lowest regret, followed by AdaP-UCB.",
    "Section 5, Fig. 2",
    "mean regrets at the horizon",
    ORDER,
)
TEN_DP_UCB = Claim(
    "ten-dp-ucb",
    "AdaP-KLUCB and AdaP-UCB achieve 10 times lower regret than DP-UCB.",
    "Section 5, Fig. 2",
    "regret of DP-UCB over that of each, at the horizon",
    "at least 10, by three standard errors",
)
TEN_DP_SE = Claim(
    "ten-dp-se",
    "AdaP-KLUCB and AdaP-UCB achieve 10 times lower regret than DP-SE.",
    "Section 5, Fig. 2",
    "regret of DP-SE over that of each, at the horizon",
    "at least 10, by three standard errors",
    known="With the printed settings (beta = 1/T), the regret of DP-SE is about twice that of AdaP, not ten times.",
)


def cells(scale: str) -> dict[str, Cell]:
    """The four algorithms, and two other readings of DP-UCB."""
    few = EXPENSIVE_RUNS[scale]
    made = {name: cell(name, ARMS, EPSILON, scale) for name in LABELS}
    made["unsplit"] = Cell.of("private-ucb", ARMS, HORIZON, few, EPSILON, {"split_over_arms": False})
    made["dp-ucb-bound"] = Cell.of("dp-ucb-bound", ARMS, HORIZON, few, EPSILON)
    return made


def cell(policy: str, arms: str, epsilon: float, scale: str) -> Cell:
    """A policy as Section 5 runs it."""
    return Cell.of(policy, arms, HORIZON, (EXPENSIVE_RUNS if policy == "private-ucb" else RUNS)[scale], epsilon)


def score(traces: Mapping[str, Trace], scale: str) -> list[Finding]:
    """The verdicts."""
    final = {name: regret(trace) for name, trace in traces.items()}
    pairs = {
        f"{LABELS[a]}, {LABELS[b]}": (final[a], final[b]) for a, b in pairwise(["adap-klucb", "adap-ucb", "dp-se"])
    }
    pairs["AdaP-UCB, DP-UCB"] = (final["adap-ucb"], final["private-ucb"])
    return [orderings(LOWEST, pairs), _ten(TEN_DP_UCB, final, "private-ucb"), _ten(TEN_DP_SE, final, "dp-se")]


def _ten(claim: Claim, final: Mapping[str, Estimate], rival: str) -> Finding:
    ratios = {name: ratio(final[rival], final[name]) for name in ("adap-klucb", "adap-ucb")}
    verdict = together([compare(Estimate(CLAIMED_FACTOR, 0.0), value) for value in ratios.values()])
    return claim.finding(verdict, "; ".join(f"{LABELS[name]}: {value}" for name, value in ratios.items()))


def plot(traces: Mapping[str, Trace], scale: str) -> list[Panel]:
    """The curves with one standard deviation, and the bounds on AdaP-KLUCB: Theorem 3 and its own upper bound."""
    lines = {label: traces[name] for name, label in {**LABELS, **OTHER}.items()}
    problem = Problem.bernoulli(MEANS, HORIZON, epsilon=EPSILON)
    bounds = [central.dp_lower(problem), central.adap_klucb(problem)]
    return [regrets("regret", "C2, ε = 1", lines, bounds, band="std")]
