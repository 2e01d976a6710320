"""Figure 2: LDP-UCB-LS and LDP-UCB-BS on 20 normal arms."""

from __future__ import annotations

from collections.abc import Mapping

from dpbandits.bounds.levels import response_cost
from dpbandits.experiments import theorems
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.claims import (
    Claim,
    Finding,
    at_most,
    growth_exponent,
    only_in_full,
    quotient,
    regret,
    within,
)
from dpbandits.experiments.panels import Panel, regrets, title_of
from dpbandits.experiments.printed import Printed, one_horizon, ratio_panel
from dpbandits.experiments.twenty_arms import BERNOULLI, HORIZON, MEASURED, ONE_HORIZON, TOLERANCE
from dpbandits.simulation import Trace

TITLE = "Figure 2: LDP-UCB-LS and LDP-UCB-BS against UCB1, 20 normal arms"
SETTINGS = (
    "UCB1 sees the logistic function of the reward too, as in the paper. The horizon is not printed: 10^7 is used, "
    "and (d) shows the ratios against rounds. The epsilons of (b, c) are not printed: 0.5, 1, 2 are used. The paper "
    "averages 50 runs, and so do we."
)
ARMS = "@ren2020-gaussian"
SWEEP = (0.5, 1.0, 2.0)
RUNS = {"quick": 6, "paper": 50}
NAMES = {"ls": "ldp-ucb-ls", "bs": "ldp-ucb-bs"}
BOUNDED_NAMES = {"ls": "ldp-ucb-l", "bs": "ldp-ucb-b"}
SIMILAR = 0.25
LIMITS = {"ls": response_cost(0.5, "laplace"), "bs": response_cost(0.5, "bernoulli")}

LS_OVER_UCB = Claim(
    "ratio-ls",
    "The ratio of the regrets of LDP-UCB-LS to non-private UCB is 15 at epsilon 0.5.",
    "Appendix B, Fig. 2 (a)",
    MEASURED,
    TOLERANCE,
)
BS_OVER_UCB = Claim(
    "ratio-bs",
    "The ratio of the regrets of LDP-UCB-BS to non-private UCB is 10 at epsilon 0.5.",
    "Appendix B, Fig. 2 (a)",
    MEASURED,
    TOLERANCE,
)
LIMITED = Claim(
    "limits",
    "The ratios to UCB are at most 81 (LS) and 17 (BS) at epsilon 0.5.",
    "Appendix B, Fig. 2 (a)",
    "ratios at the horizon against (1 + 4/epsilon)^2 and coth(epsilon/2)^2",
    "three standard errors",
)
ALIKE = Claim(
    "similar",
    "The ratios to non-private UCB are similar to those of the bounded arms.",
    "Appendix B",
    "ratio on normal arms over the same ratio on Bernoulli arms, at the horizon and epsilon 0.5",
    "'similar' is read as within a quarter, beyond three standard errors",
    known=dict.fromkeys(("LS", "BS"), "On normal arms the private policies have not converged at this horizon."),
)
TOGETHER = Claim(
    "one-horizon",
    "The printed ratios, 15 and 10, are of one experiment, and so of one horizon.",
    "Appendix B, Fig. 2 (a)",
    ONE_HORIZON,
    TOLERANCE,
    known={"": "The ratio of LDP-UCB-LS leaves 15 before that of LDP-UCB-BS reaches 10."},
)
THEOREMS = Claim(
    "theorems",
    "The regret of LDP-UCB-LS and of LDP-UCB-BS is at most what the corollaries say.",
    "Section 3.2, Corollaries 10 and 11, with the slope of Lemma 7 for normal noise",
    theorems.MEASURED,
    theorems.TOLERANCE,
)


def cells(scale: str) -> dict[str, Cell]:
    """UCB1 on transformed rewards and both policies at each epsilon; and the same at 0.5 on Bernoulli arms."""
    horizon, runs = HORIZON[scale], RUNS[scale]
    made = {"ucb1": Cell.of("ucb1", ARMS, horizon, runs, options={"sigmoid": True})}
    for kind, policy in NAMES.items():
        for epsilon in SWEEP:
            made[f"{kind}:{epsilon:g}"] = Cell.of(policy, ARMS, horizon, runs, epsilon)
        made[f"bounded:{kind}"] = Cell.of(BOUNDED_NAMES[kind], BERNOULLI, horizon, runs, 0.5)
    return made | {"bounded:ucb1": Cell.of("ucb1", BERNOULLI, horizon, runs)}


def _printed(traces: Mapping[str, Trace]) -> dict[str, Printed]:
    return {
        "LS, 15": Printed(15.0, 1.0, traces["ls:0.5"], traces["ucb1"]),
        "BS, 10": Printed(10.0, 1.0, traces["bs:0.5"], traces["ucb1"]),
    }


def score(traces: Mapping[str, Trace], scale: str) -> list[Finding]:
    """The verdicts."""
    full, ucb, printed = HORIZON[scale] == HORIZON["paper"], regret(traces["ucb1"]), _printed(traces)
    return [
        LS_OVER_UCB.finding(printed["LS, 15"].judged("", full)),
        BS_OVER_UCB.finding(printed["BS, 10"].judged("", full)),
        one_horizon(TOGETHER, printed, full),
        at_most(
            LIMITED,
            {kind.upper(): (quotient(regret(traces[f"{kind}:0.5"]), ucb), most) for kind, most in LIMITS.items()},
        ),
        only_in_full(_alike(traces), full),
        THEOREMS.finding(
            *(
                theorems.below_theorem(f"{policy}, ε = {e:g}", traces[f"{kind}:{e:g}"], f"{policy}-gaussian")
                for kind, policy in NAMES.items()
                for e in SWEEP
            )
        ),
    ]


def _alike(traces: Mapping[str, Trace]) -> Finding:
    both = []
    for kind in NAMES:
        normal = quotient(regret(traces[f"{kind}:0.5"]), regret(traces["ucb1"]))
        bounded = quotient(regret(traces[f"bounded:{kind}"]), regret(traces["bounded:ucb1"]))
        both.append(within(quotient(normal, bounded), 1.0, SIMILAR, kind.upper()))
    cells = {"UCB1": "ucb1", "LS": "ls:0.5", "BS": "bs:0.5", "L on Bernoulli arms": "bounded:ls"}
    cells["B on Bernoulli arms"] = "bounded:bs"
    exponents = ", ".join(f"{label} {growth_exponent(traces[name]).value:.2f}" for label, name in cells.items())
    return ALIKE.finding(*both, explanation=f"Exponents of regret in t over the last decade of rounds: {exponents}.")


def plot(traces: Mapping[str, Trace], scale: str) -> list[Panel]:
    """Panels (a) to (c), and the ratios against rounds."""
    ucb = {"UCB1 (not private)": traces["ucb1"]}

    def swept(letter: str, kind: str) -> Panel:
        lines = ucb | {f"ε = {e:g}": traces[f"{kind}:{e:g}"] for e in SWEEP}
        return regrets(letter, f"({letter}) {title_of(NAMES[kind])}, normal arms", lines)

    compared = ucb | {title_of(NAMES[kind]): traces[f"{kind}:0.5"] for kind in NAMES}
    ratios = ratio_panel("d", "(d) not in the paper: ratios at ε = 0.5 against rounds", _printed(traces))
    return [regrets("a", "(a) ε = 0.5, normal arms", compared), swept("b", "ls"), swept("c", "bs"), ratios]
