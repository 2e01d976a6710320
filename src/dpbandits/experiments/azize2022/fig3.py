"""Figure 3: regret of AdaP-KLUCB and the lower bounds against epsilon."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dpbandits.bounds import Problem, central
from dpbandits.environments import Arms
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.claims import (
    NOT_REPRODUCED,
    REPRODUCED,
    Claim,
    Finding,
    below,
    quotient,
    regret,
    within,
)
from dpbandits.experiments.panels import Line, Panel, against
from dpbandits.simulation import Trace

TITLE = "Figure 3: lower bounds and regret of AdaP-KLUCB against ε"
SETTINGS = (
    "As printed: 10^7 rounds, 20 runs (here 100, as runs are cheap), epsilon from 0.05 to 10. The values of "
    "epsilon in between are not printed. The sharper lower bound of Azize, Wu, Honda, Orabona, Ito & Basu 2025 is also "
    "drawn."
)
ARMS, HORIZON = "@azize2022-fig3", 10**7
MEANS = Arms.of(ARMS).means
EPSILONS = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0)
RUNS = {"quick": 20, "paper": 100}

FLAT = Claim(
    "flat",
    "The regret of AdaP-KLUCB is independent of epsilon in the low-privacy regime (above 0.3).",
    "Section 5, Fig. 3",
    "regret at 0.3 over regret at 10, at the horizon",
    "'independent' is read as within 10 %, beyond three standard errors",
    known={
        "": "The noise of AdaP-KLUCB still widens its index above 0.3. Its own bound compares epsilon times the gap "
        "with kl, with constants, so its regimes meet at a much larger epsilon."
    },
)
HIGH = Claim(
    "high",
    "In the high-privacy regime (below 0.3) the regret depends on epsilon.",
    "Section 5, Fig. 3",
    "regret at 0.05 against regret at 0.3, at the horizon",
    "three standard errors of the difference",
)
BOUND = Claim(
    "bound",
    "The lower bound is independent of epsilon above 0.3.",
    "Section 5, Fig. 3",
    "the epsilon at which both terms of Theorem 3 agree, computed",
    "0.25 to 0.35, which rounds to 0.3",
)


def cells(scale: str) -> dict[str, Cell]:
    """AdaP-KLUCB at each epsilon."""
    return {f"{epsilon:g}": Cell.of("adap-klucb", ARMS, HORIZON, RUNS[scale], epsilon) for epsilon in EPSILONS}


def score(traces: Mapping[str, Trace], scale: str) -> list[Finding]:
    """The verdicts."""
    final = {name: regret(trace) for name, trace in traces.items()}
    flat = quotient(final["0.3"], final["10"])
    curve = "; ".join(f"{name}: {final[name].value:.0f}" for name in ("0.3", "0.5", "1", "2", "5", "10"))
    edge = _edge()
    return [
        FLAT.finding(within(flat, 1.0, 0.1)._replace(ours=f"{flat}. {curve}")),
        HIGH.finding(below("0.3 and 0.05", final["0.3"], final["0.05"])),
        BOUND.single(REPRODUCED if 0.25 <= edge <= 0.35 else NOT_REPRODUCED, f"{edge:.3f}"),
    ]


def _edge() -> float:
    """The epsilon at which kl and 6 epsilon tv are equal for the worse arms."""
    problem = Problem.bernoulli(MEANS, HORIZON, epsilon=1.0)
    return problem.kl_gap(1) / (6.0 * problem.tv_gap(1))


def plot(traces: Mapping[str, Trace], scale: str) -> list[Panel]:
    """Regret and lower bounds against epsilon."""
    panel = against("regret", "Regret after 10⁷ rounds", "ε", {"AdaP-KLUCB": {float(e): traces[e] for e in traces}})
    x = np.geomspace(EPSILONS[0], EPSILONS[-1], 60)
    problems = [Problem.bernoulli(MEANS, HORIZON, epsilon=float(epsilon)) for epsilon in x]
    bounds = [
        Line(label, x, np.array([theorem(problem).value for problem in problems]), style="dashed")
        for label, theorem in (
            ("lower bound: Theorem 3", central.dp_lower),
            ("lower bound: Azize et al. 2025", central.dp_lower_bernoulli),
        )
    ]
    return [replace(panel, lines=[*panel.lines, *bounds])]
