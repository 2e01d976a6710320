"""Figure 2: LDP-UCB-LS and LDP-UCB-BS on 20 normal arms."""

from __future__ import annotations

from collections.abc import Mapping

from dpbandits.experiments.cells import Cell
from dpbandits.experiments.claims import (
    UNDECIDED,
    Claim,
    Finding,
    below,
    printed_ratio,
    ratio,
    regret,
    together,
    within,
)
from dpbandits.experiments.panels import Panel, regrets, title_of
from dpbandits.experiments.twenty_arms import BERNOULLI, HORIZON, PAPER_RUNS, TOLERANCE
from dpbandits.experiments.twenty_arms import L_RUNS as BOUNDED_RUNS
from dpbandits.simulation import Trace

TITLE = "Figure 2: LDP-UCB-LS and LDP-UCB-BS against UCB1, 20 normal arms"
SETTINGS = (
    "UCB1 sees the logistic function of the reward too, as in the paper. The horizon is not printed: 10^7 is used. The "
    "epsilons of (b, c) are not printed: 0.5, 1, 2 are used. The paper averages 50 runs; here 50 for LDP-UCB-BS, and "
    "10 for UCB1 and LDP-UCB-LS (2 s a run)."
)
ARMS = "@ren2020-gaussian"
SWEEP = (0.5, 1.0, 2.0)
RUNS = {"quick": 4, "paper": 50}
EXPENSIVE_RUNS = {"quick": 4, "paper": 10}
NAMES = {"ls": "ldp-ucb-ls", "bs": "ldp-ucb-bs"}
BOUNDED_NAMES = {"ls": "ldp-ucb-l", "bs": "ldp-ucb-b"}
SIMILAR = 0.25
LIMITS = {"ls": 81.0, "bs": 16.67}  # (1 + 4/ε)^2 and coth(ε/2)^2 at 0.5

LS_OVER_UCB = Claim(
    "ratio-ls",
    "The ratio of the regrets of LDP-UCB-LS to non-private UCB is 15 at epsilon 0.5.",
    "Appendix B, Fig. 2 (a)",
    "regret of ldp-ucb-ls over that of ucb1 with sigmoid at the horizon",
    TOLERANCE,
)
BS_OVER_UCB = Claim(
    "ratio-bs",
    "The ratio of the regrets of LDP-UCB-BS to non-private UCB is 10 at epsilon 0.5.",
    "Appendix B, Fig. 2 (a)",
    "regret of ldp-ucb-bs over that of ucb1 with sigmoid at the horizon",
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
    known="On normal arms UCB1 has not converged at 10^7 rounds: the logistic function shrinks the gaps five times.",
)


def cells(scale: str) -> dict[str, Cell]:
    """UCB1 on transformed rewards and both policies at each epsilon; and the same at 0.5 on Bernoulli arms."""
    horizon, runs, few = HORIZON[scale], RUNS[scale], EXPENSIVE_RUNS[scale]
    made = {"ucb1": Cell.of("ucb1", ARMS, horizon, few, options={"sigmoid": True})}
    for kind, policy in NAMES.items():
        for epsilon in SWEEP:
            made[f"{kind}:{epsilon:g}"] = Cell.of(policy, ARMS, horizon, few if kind == "ls" else runs, epsilon)
        bounded = Cell.of(BOUNDED_NAMES[kind], BERNOULLI, horizon, BOUNDED_RUNS[scale], 0.5)
        made[f"bounded:{kind}"] = bounded
    return made | {"bounded:ucb1": Cell.of("ucb1", BERNOULLI, horizon, BOUNDED_RUNS[scale])}


def score(traces: Mapping[str, Trace], scale: str) -> list[Finding]:
    """The verdicts."""
    full = HORIZON[scale] == HORIZON["paper"]
    ucb = regret(traces["ucb1"])
    return [
        printed_ratio(LS_OVER_UCB, traces["ls:0.5"], traces["ucb1"], 15.0, 1.0, PAPER_RUNS, full),
        printed_ratio(BS_OVER_UCB, traces["bs:0.5"], traces["ucb1"], 10.0, 1.0, PAPER_RUNS, full),
        below(
            LIMITED, {kind.upper(): (ratio(regret(traces[f"{kind}:0.5"]), ucb), most) for kind, most in LIMITS.items()}
        ),
        _alike(traces, full),
    ]


def _alike(traces: Mapping[str, Trace], full: bool) -> Finding:
    both = {}
    for kind in NAMES:
        normal = ratio(regret(traces[f"{kind}:0.5"]), regret(traces["ucb1"]))
        both[kind] = ratio(normal, ratio(regret(traces[f"bounded:{kind}"]), regret(traces["bounded:ucb1"])))
    ours = "; ".join(f"{kind.upper()}: {value}" for kind, value in both.items())
    if not full:
        return ALIKE.finding(UNDECIDED, ours, "Only --scale paper plays enough rounds.")
    return ALIKE.finding(together([within(value, 1.0, SIMILAR) for value in both.values()]), ours)


def plot(traces: Mapping[str, Trace], scale: str) -> list[Panel]:
    """Panels (a) to (c)."""
    ucb = {"UCB1 (not private)": traces["ucb1"]}

    def swept(letter: str, kind: str) -> Panel:
        lines = ucb | {f"ε = {e:g}": traces[f"{kind}:{e:g}"] for e in SWEEP}
        return regrets(letter, f"({letter}) {title_of(NAMES[kind])}, normal arms", lines)

    compared = ucb | {title_of(NAMES[kind]): traces[f"{kind}:0.5"] for kind in NAMES}
    return [regrets("a", "(a) ε = 0.5, normal arms", compared), swept("b", "ls"), swept("c", "bs")]
