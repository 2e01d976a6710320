"""Table 1: four algorithms compared, with printed, computed and measured values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from dpbandits.bounds import Problem, theorems
from dpbandits.experiments.azize2022.fig2 import ARMS, EPSILON, HORIZON, LABELS, MEANS, cell
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.claims import NOT_REPRODUCED, REPRODUCED, Claim, ClaimPart, Finding, regret
from dpbandits.experiments.panels import Table
from dpbandits.policies import lookup
from dpbandits.simulation import Simulation, Trace
from dpbandits.simulation.loop import play
from dpbandits.simulation.runs import streams

TITLE = "Table 1: ε-global private algorithms compared"
SETTINGS = (
    "On C2 at epsilon 1 and 10^7 rounds. Private means are counted in a run in plain Python. 'Anytime' means that the "
    "policy needs no horizon. 'Forgets' means that its curator keeps only the last stint. DP-UCB is Mishra & "
    "Thakurta's, which releases a mean in every round."
)
ORDERS = {
    "private-ucb": "log(T)^2.5 / ε + Σ log T / Δ",
    "dp-se": "K log T / ε + Σ log T / Δ",
    "adap-ucb": "Σ Δ log T / min(Δ², εΔ)",
    "adap-klucb": "Σ Δ log T / min(d, εΔ)",
}
MEANS_PRINTED = {"private-ucb": "K T", "dp-se": "O(log T)", "adap-ucb": "O(log T)", "adap-klucb": "O(log T)"}
ANYTIME_PRINTED = {"private-ucb": True, "dp-se": False, "adap-ucb": True, "adap-klucb": True}
FORGETS_PRINTED = {"private-ucb": False, "dp-se": True, "adap-ucb": True, "adap-klucb": True}
COUNTED = ("dp-se", "adap-ucb", "adap-klucb")
DECADES = (10**5, 10**6, 10**7)

ANYTIME = Claim(
    "anytime",
    "DP-UCB, AdaP-UCB and AdaP-KLUCB are anytime, DP-SE is not.",
    "Table 1",
    "whether the policy needs a horizon",
    "none",
    known={
        "DP-UCB": "Mishra & Thakurta's DP-UCB needs the horizon for its trees and its bonus; that of Tossou & "
        "Dimitrakakis does not."
    },
)
FORGETS = Claim(
    "forgets",
    "DP-SE, AdaP-UCB and AdaP-KLUCB forget earlier episodes, DP-UCB does not.",
    "Table 1",
    "whether the curator's statistic is of the last stint only",
    "none",
)
LOGARITHMIC = Claim(
    "releases",
    "DP-SE, AdaP-UCB and AdaP-KLUCB release O(log T) private means.",
    "Table 1",
    "private means in a run of 10^5, 10^6 and 10^7 rounds",
    "each decade adds at most 2 log2(10) for each arm: an episode is at least twice as long as the one before",
)


class _CountingDraws:
    """A curator that counts how often a stint is closed, which is when it releases a mean."""

    def __init__(self, curator: Any) -> None:
        self.curator, self.releases = curator, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.curator, name)

    def close(self, arm: int, noise: Any) -> None:
        self.releases += 1
        self.curator.close(arm, noise)


def releases(policy: str, horizon: int) -> int:
    """How many private means a policy releases in a run."""
    simulation = Simulation.of(policy, arms=ARMS, horizon=horizon, epsilon=EPSILON)
    fresh, random = simulation.policy.fresh(), streams(0, 0)
    curator: Any = _CountingDraws(fresh.curator)
    pulls = np.zeros((1, len(MEANS)), np.int64)
    parts = (simulation.environment, curator, fresh.agent, np.array([horizon]), pulls)
    play(*parts, random.rewards, random.noise, random.choices)
    return curator.releases


def anytime(policy: str) -> bool:
    """Whether the policy needs no horizon."""
    return not lookup.needs_horizon(policy)


def forgets(policy: str) -> bool:
    """Whether its curator keeps only the last stint."""
    return lookup.sample(policy).curator.by_stint


def cells(scale: str) -> dict[str, Cell]:
    """The simulations of Figure 2."""
    return {name: cell(name, ARMS, EPSILON, scale) for name in LABELS}


def score(traces: Mapping[str, Trace], scale: str) -> list[Finding]:
    """The verdicts."""
    most = 2 * np.log2(10) * len(MEANS)
    released = []
    for name in COUNTED:
        counts = [releases(name, horizon) for horizon in DECADES]
        slow = all(b - a <= most for a, b in pairwise(counts))
        ours = f"{', '.join(map(str, counts))} means in 10^5, 10^6 and 10^7 rounds"
        released.append(ClaimPart(LABELS[name], REPRODUCED if slow else NOT_REPRODUCED, ours))
    return [
        ANYTIME.finding(*_printed(anytime, ANYTIME_PRINTED)),
        FORGETS.finding(*_printed(forgets, FORGETS_PRINTED)),
        LOGARITHMIC.finding(*released),
    ]


def _printed(is_so: Callable[[str], bool], printed: Mapping[str, bool]) -> list[ClaimPart]:
    """Whether each algorithm is what the table says."""
    return [
        ClaimPart(label, REPRODUCED if is_so(name) == printed[name] else NOT_REPRODUCED, "yes" if is_so(name) else "no")
        for name, label in LABELS.items()
    ]


def plot(traces: Mapping[str, Trace], scale: str) -> list[Table]:
    """The table."""
    problem, named = Problem.bernoulli(MEANS, HORIZON, epsilon=EPSILON), {one.name: one for one in theorems()}
    rows = []
    for name, label in LABELS.items():
        bound = named[name](problem).value if name in named else None
        rows.append(
            [
                label,
                ORDERS[name],
                str(regret(traces[name])),
                "none" if bound is None else f"{bound:,.0f}",
                MEANS_PRINTED[name],
                f"{releases(name, HORIZON) if name in COUNTED else HORIZON:,}",
                "yes" if anytime(name) else "no",
                "yes" if forgets(name) else "no",
            ]
        )
    columns = [
        "algorithm",
        "regret, printed order",
        "regret, measured",
        "upper bound",
        "private means, printed",
        "private means, counted",
        "anytime",
        "forgets",
    ]
    return [Table("table", TITLE, columns, rows)]
