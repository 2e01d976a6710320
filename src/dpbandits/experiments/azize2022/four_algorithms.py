"""Shared by Figures 4 to 7: four algorithms at four epsilons in one environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dpbandits.experiments import theorems
from dpbandits.experiments.azize2022.fig2 import LABELS, ORDER, cell
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.claims import Claim, Finding, orderings, quotient, regret, within
from dpbandits.experiments.panels import Panel, regrets
from dpbandits.simulation import Trace

SETTINGS = (
    "As printed: 10^7 rounds, 20 runs (1,000 and 4,000 where runs are cheap), alpha = 3.1, beta = 1/T, gamma = 0.1. "
    "DP-UCB is Mishra & Thakurta's, as in Figure 2."
)
EPSILONS = (0.1, 0.25, 0.5, 1.0)
SAME_WITHIN = 0.1
BETTER = "DP-SE is better at epsilon 0.1: its first epochs are shorter than AdaP's first useful episodes."
LONGER = {"": "At epsilon 0.1 the privacy term decides how long DP-SE's first epochs are."}
MORE_EPISODES = (
    "Episodes double, so regret takes few values, and at epsilon 0.25 AdaP-UCB often needs one episode more."
)
THEOREMS = {"adap-ucb": ("adap-ucb-printed", "adap-ucb-minimax-printed"), "adap-klucb": ("adap-klucb-printed",)}
SIMILAR = 0.25
EPSILON_DEPENDENT = ("adap-klucb", "adap-ucb", "private-ucb")


class FourAlgorithms(NamedTuple):
    """One of the figures: all four differ in these constants."""

    figure: int
    environment: str
    known: Mapping[str, Mapping[str, str]]  # by claim, the comparisons that are known to fail

    def cells(self, scale: str) -> dict[str, Cell]:
        """The four algorithms at each epsilon."""
        arms = f"@azize2022-{self.environment}"
        return {f"{policy}:{e:g}": cell(policy, arms, e, scale) for policy in LABELS for e in EPSILONS}

    def score(self, traces: Mapping[str, Trace], scale: str) -> list[Finding]:
        """The verdicts on the claims of Appendix G."""
        return _score(self, traces)

    def plot(self, traces: Mapping[str, Trace], scale: str) -> list[Panel]:
        """A panel for each epsilon."""
        panels = []
        for e in EPSILONS:
            lines = {label: traces[f"{policy}:{e:g}"] for policy, label in LABELS.items()}
            panels.append(regrets(f"{e:g}", f"{self.environment.upper()}, ε = {e:g}", lines, band="std"))
        return panels


class Claims(NamedTuple):
    """What Appendix G and the theorems say of one environment."""

    lowest: Claim
    falls: Claim
    same: Claim
    similar: Claim
    bounded: Claim


def _claims(of: FourAlgorithms) -> Claims:
    name, where, known = of.environment.upper(), f"Appendix G, Fig. {of.figure}", of.known
    lowest = Claim(
        "lowest",
        f"AdaP-KLUCB achieves the lowest regret in {name} at every epsilon, slightly better than AdaP-UCB.",
        where,
        "mean regret at the horizon against each other algorithm",
        ORDER,
        known.get("lowest", {}),
    )
    falls = Claim(
        "falls",
        f"The regrets of AdaP-KLUCB, AdaP-UCB and DP-UCB are smaller for larger epsilon in {name}.",
        where,
        "mean regrets at the horizon at 1 against 0.1",
        ORDER,
    )
    same = Claim(
        "dp-se",
        f"DP-SE has the same performance for different choices of epsilon in {name}.",
        where,
        "regret at 0.1 over regret at 1, at the horizon",
        "'the same' is read as within 10 %, beyond three standard errors",
        known.get("dp-se", {}),
    )
    similar = Claim(
        "similar",
        f"AdaP-UCB and AdaP-KLUCB achieve similar regret in {name}.",
        f"Appendix G.2, Fig. {of.figure}",
        "regret of AdaP-UCB over that of AdaP-KLUCB at the horizon, at each epsilon",
        "'similar' is read as within a quarter, beyond three standard errors",
        known.get("similar", {}),
    )
    bounded = Claim(
        "theorems",
        f"The regret of AdaP-UCB and of AdaP-KLUCB is at most what the theorems say (in {name}).",
        "Section 4, Theorems 7 and 8; Appendix E.4, Theorem 12",
        theorems.MEASURED,
        theorems.TOLERANCE,
    )
    return Claims(lowest, falls, same, similar, bounded)


def _score(of: FourAlgorithms, traces: Mapping[str, Trace]) -> list[Finding]:
    claims = _claims(of)
    final = {key: regret(trace) for key, trace in traces.items()}
    rivals = {
        f"{LABELS[rival]}, ε = {e:g}": (final[f"adap-klucb:{e:g}"], final[f"{rival}:{e:g}"])
        for e in EPSILONS
        for rival in LABELS
        if rival != "adap-klucb"
    }
    dependence = {LABELS[policy]: (final[f"{policy}:1"], final[f"{policy}:0.1"]) for policy in EPSILON_DEPENDENT}
    spread = quotient(final["dp-se:0.1"], final["dp-se:1"])
    ours = f"{spread}; " + ", ".join(f"{e:g}: {final[f'dp-se:{e:g}'].value:.0f}" for e in EPSILONS)
    return [
        orderings(claims.lowest, rivals),
        orderings(claims.falls, dependence),
        claims.same.finding(within(spread, 1.0, SAME_WITHIN)._replace(ours=ours)),
        claims.similar.finding(
            *(
                within(quotient(final[f"adap-ucb:{e:g}"], final[f"adap-klucb:{e:g}"]), 1.0, SIMILAR, f"ε = {e:g}")
                for e in EPSILONS
            )
        ),
        claims.bounded.finding(
            *(
                theorems.below_theorem(f"{bound}, ε = {e:g}", traces[f"{policy}:{e:g}"], bound)
                for policy, bounds in THEOREMS.items()
                for bound in bounds
                for e in EPSILONS
            )
        ),
    ]
