"""Section 3.3: what the paper says about the releases of DP-UCB-INT, computed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

from dpbandits.experiments.cells import Cell
from dpbandits.experiments.claims import NOT_REPRODUCED, REPRODUCED, Claim, ClaimPart, Finding
from dpbandits.experiments.panels import Table
from dpbandits.privacy.interval_accounting import corollary_3_1, release_counts, schedule_cost
from dpbandits.privacy.release_points import interval_rate
from dpbandits.simulation import Trace

TITLE = "Section 3.3: the releases of DP-UCB-INT"
SETTINGS = (
    "v = 1.1 and delta = e^-10, as in the paper's experiments, 10^5 rewards of an arm. The noise of a release of n "
    "rewards has the scale n^(v/2 - 1), and the bonus of UCB is sqrt(2 log t / n), here with t = n."
)
DELTA, HORIZON = math.exp(-10), 100_000
EPSILONS, RULES, V = (1.0, 0.1), ("x", "y"), (1.1, 1.5)
COUNTS = (10, 10**3, 10**6, 10**12, 10**24)

INTERVALS = Claim(
    "intervals",
    "The intervals between the releases of an arm are at most the constant one, 1/rate rounded up (the paper writes "
    "epsilon for this rate).",
    "Section 3.3 and Lemma B.1",
    "the longest interval of both rules up to 10^5 rewards, at the rates of Corollary 3.2",
    "at most the constant interval",
)
PRIVATE = Claim(
    "corollary-3.2",
    "Run at the rate of Corollary 3.2, DP-UCB-INT is (epsilon, delta)-private.",
    "Section 3.3, Corollary 3.2",
    "the epsilon of all releases of an arm in 10^5 rounds, by the least of four kinds of accounting",
    "at most the epsilon asked for; every release is drawn once and kept",
)
INVERTED = Claim(
    "corollary-3.1",
    "Corollary 3.2 inverts Corollary 3.1.",
    "Section 3.3, Corollary 3.2",
    "the epsilon of Corollary 3.1 at the rate of Corollary 3.2",
    "one part in a million",
)
NOISE = Claim(
    "noise-vanishes",
    "With v of at most 1.5 the noise of a release eventually becomes lower than the bonus of UCB.",
    "Section 3.3",
    "scale of the noise over the bonus as the number of rewards grows",
    "below 1 for all large numbers of rewards: at 10^24",
    known=dict.fromkeys(
        (f"v = {v:g}" for v in V),
        "The quotient is n^((v-1)/2) / sqrt(2 log n), which grows without limit for large n. So the noise may be lower "
        "than the bonus at first, but is higher in the end.",
    ),
)


def cells(scale: str) -> dict[str, Cell]:
    """Nothing is simulated."""
    return {}


def quotient(n: float, v: float) -> float:
    """The scale of the noise of a release of n rewards over the bonus of UCB at t = n.

    >>> round(quotient(10**6, 1.1), 2), round(quotient(10**24, 1.1), 2)
    (0.38, 1.51)
    """
    return n ** (0.5 * v - 1.0) / math.sqrt(2.0 * math.log(n) / n)


def score(traces: Mapping[str, Trace], scale: str) -> list[Finding]:
    """The verdicts."""
    intervals, costs, inverted = [], [], []
    for epsilon in EPSILONS:
        rate = interval_rate(epsilon, DELTA, V[0])
        most = math.ceil(1.0 / rate)
        for rule in RULES:
            name, counts = f"ε = {epsilon:g}, {rule}-rule", [0, *release_counts(rate, V[0], HORIZON, rule)]
            longest = max(b - a for a, b in pairwise(counts))
            intervals.append(_part(name, longest <= most, f"at most {longest:,}, the constant one is {most:,}"))
            cost = schedule_cost(rate, V[0], HORIZON, DELTA, rule).epsilon
            costs.append(_part(name, cost <= epsilon, f"{cost:.3g}"))
        back = corollary_3_1(rate, V[0], HORIZON, DELTA)[1]
        inverted.append(_part(f"ε = {epsilon:g}", math.isclose(back, epsilon, rel_tol=1e-6), f"{back:.6g}"))
    noise = [_part(f"v = {v:g}", quotient(COUNTS[-1], v) < 1.0, _growth(v)) for v in V]
    return [INTERVALS.finding(*intervals), PRIVATE.finding(*costs), INVERTED.finding(*inverted), NOISE.finding(*noise)]


def _part(name: str, holds: bool, ours: str) -> ClaimPart:
    return ClaimPart(name, REPRODUCED if holds else NOT_REPRODUCED, ours)


def _growth(v: float) -> str:
    return ", ".join(f"{quotient(n, v):.2g} at {n:.0e}" for n in COUNTS)


def plot(traces: Mapping[str, Trace], scale: str) -> list[Table]:
    """The quotient of noise and bonus."""
    rows = [[f"{n:.0e}", *(f"{quotient(n, v):.3g}" for v in V)] for n in COUNTS]
    return [Table("table", "Noise of a release over the bonus of UCB", ["rewards", *(f"v = {v:g}" for v in V)], rows)]
