"""Figure 2: AdaP-UCB and AdaP-KLUCB against DP-SE and DP-UCB."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from dpbandits.bounds import Problem, central
from dpbandits.environments import Arms
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.claims import (
    Claim,
    Estimate,
    Finding,
    between,
    mean,
    orderings,
    quotient,
    regret,
    within,
)
from dpbandits.experiments.panels import Panel, regrets
from dpbandits.policies import lookup
from dpbandits.simulation import Trace

TITLE = "Figure 2: regret over time at ε = 1, five Bernoulli arms"
SETTINGS = (
    "As printed: 10^7 rounds, 20 runs (1,000 where runs are cheap), alpha = 3.1, beta = 1/T, gamma = 0.1. "
    "'DP-UCB' has three readings, and all are drawn and judged: Mishra & Thakurta's algorithm as they print it "
    "(private-ucb), which Appendix G cites; the same with epsilon not split over the arms; and Tossou & Dimitrakakis' "
    "BOUND."
)
ARMS, EPSILON, HORIZON = "@azize2022-c2", 1.0, 10**7
MEANS = Arms.of(ARMS).means
RUNS = {"quick": 60, "paper": 1000}
EXPENSIVE_RUNS = {"quick": 4, "paper": 20}
#: At small epsilons regret takes few values, and their means are close: it takes many runs to tell them apart.
FEW_VALUES, SMALL_EPSILON = ("adap-klucb", "adap-ucb"), 0.25
CLOSE_RUNS = {"quick": 400, "paper": 4000}
READING_RUNS = {"quick": 10, "paper": 20}  # of the three readings of DP-UCB
LABELS = {"adap-klucb": "AdaP-KLUCB", "adap-ucb": "AdaP-UCB", "dp-se": "DP-SE", "private-ucb": "DP-UCB"}
OTHER = {"unsplit": "DP-UCB, ε not split", "dp-ucb-bound": "DP-UCB-BOUND"}
READINGS = {"private-ucb": "as printed", "unsplit": "ε not split", "dp-ucb-bound": "DP-UCB-BOUND"}
CLAIMED_FACTOR, ABOUT = 10.0, 0.5

ORDER = "three standard errors of the difference"
LOWEST = Claim(
    "lowest",
    "AdaP-KLUCB achieves the lowest regret, followed by AdaP-UCB.",
    "Section 5, Fig. 2",
    "mean regrets at the horizon",
    ORDER,
)
TEN = "'10 times' is read as 5 to 15, beyond three standard errors"
TEN_DP_UCB = Claim(
    "ten-dp-ucb",
    "AdaP-KLUCB and AdaP-UCB achieve 10 times lower regret than DP-UCB.",
    "Section 5, Fig. 2",
    "regret of DP-UCB over that of each, at the horizon, for each of the three readings of DP-UCB",
    TEN,
    known={
        f"{reading}, {label}": "Only one of the three readings of DP-UCB is about ten times worse."
        for reading in ("as printed", "DP-UCB-BOUND")
        for label in ("AdaP-KLUCB", "AdaP-UCB")
    },
)
TEN_DP_SE = Claim(
    "ten-dp-se",
    "AdaP-KLUCB and AdaP-UCB achieve 10 times lower regret than DP-SE.",
    "Section 5, Fig. 2",
    "regret of DP-SE over that of each, at the horizon",
    TEN,
    known=dict.fromkeys(
        ("AdaP-KLUCB", "AdaP-UCB"),
        "With the printed settings (beta = 1/T), DP-SE is much closer to AdaP than that.",
    ),
)
SHAPES = Claim(
    "shapes",
    "The regret of DP-SE is piecewise linear, because it commits to one arm; that of DP-UCB is shaped like UCB's; AdaP "
    "is between: it commits for long episodes, and still explores.",
    "Appendix G.2",
    "share of the last decade's checkpoint intervals in which a run plays a worse arm, on average",
    "at most 5 % for DP-SE, at least 95 % for DP-UCB, between for AdaP, beyond three standard errors",
)


def cells(scale: str) -> dict[str, Cell]:
    """The four algorithms, and two other readings of DP-UCB."""
    few = READING_RUNS[scale]
    made = {name: cell(name, ARMS, EPSILON, scale) for name in LABELS}
    made["private-ucb"] = Cell.of("private-ucb", ARMS, HORIZON, few, EPSILON)
    made["unsplit"] = Cell.of("private-ucb", ARMS, HORIZON, few, EPSILON, {"split_over_arms": False})
    made["dp-ucb-bound"] = Cell.of("dp-ucb-bound", ARMS, HORIZON, few, EPSILON)
    return made


def cell(policy: str, arms: str, epsilon: float, scale: str) -> Cell:
    """A policy as Section 5 runs it."""
    runs = EXPENSIVE_RUNS if lookup.traits(policy).cost == "counter" else RUNS
    if policy in FEW_VALUES and epsilon <= SMALL_EPSILON:
        runs = CLOSE_RUNS
    return Cell.of(policy, arms, HORIZON, runs[scale], epsilon)


def score(traces: Mapping[str, Trace], scale: str) -> list[Finding]:
    """The verdicts."""
    final = {name: regret(trace) for name, trace in traces.items()}
    pairs = {
        f"{LABELS[a]}, {LABELS[b]}": (final[a], final[b]) for a, b in pairwise(["adap-klucb", "adap-ucb", "dp-se"])
    }
    pairs["AdaP-UCB, DP-UCB"] = (final["adap-ucb"], final["private-ucb"])
    ours = {name: LABELS[name] for name in ("adap-klucb", "adap-ucb")}
    readings = [
        within(quotient(final[rival], final[name]), CLAIMED_FACTOR, ABOUT, f"{reading}, {label}")
        for rival, reading in READINGS.items()
        for name, label in ours.items()
    ]
    elimination = [
        within(quotient(final["dp-se"], final[name]), CLAIMED_FACTOR, ABOUT, label) for name, label in ours.items()
    ]
    return [
        orderings(LOWEST, pairs),
        TEN_DP_UCB.finding(*readings),
        TEN_DP_SE.finding(*elimination),
        _shapes(traces),
    ]


def _shapes(traces: Mapping[str, Trace]) -> Finding:
    allowed = {"dp-se": (-math.inf, 0.05), "private-ucb": (0.95, math.inf)}
    allowed |= dict.fromkeys(("adap-klucb", "adap-ucb"), (0.05, 0.95))
    comparisons = []
    for name, (low, high) in allowed.items():
        late = traces[name].regret[:, traces[name].checkpoints >= HORIZON / 10]
        share = mean((np.diff(late, axis=1) > 0).mean(axis=1))
        one = between(share, low, high, LABELS[name])
        percent = Estimate(100 * share.value, 100 * share.error, share.runs)
        comparisons.append(one._replace(ours=f"{percent} % of the late checkpoint intervals have a worse arm"))
    return SHAPES.finding(*comparisons)


def plot(traces: Mapping[str, Trace], scale: str) -> list[Panel]:
    """The curves with one standard deviation, and the bounds on AdaP-KLUCB: Theorem 3 and its own upper bound."""
    lines = {label: traces[name] for name, label in {**LABELS, **OTHER}.items()}
    problem = Problem.bernoulli(MEANS, HORIZON, epsilon=EPSILON)
    bounds = [central.dp_lower(problem), central.adap_klucb(problem)]
    return [regrets("regret", "C2, ε = 1", lines, bounds, band="std")]
