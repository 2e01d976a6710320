"""Figure 1: LDP-UCB-L and LDP-UCB-B on 20 bounded arms."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from dpbandits.bounds import Problem, local
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.claims import (
    UNDECIDED,
    Claim,
    Finding,
    below,
    orderings,
    printed_ratio,
    ratio,
    regret,
    together,
    within,
)
from dpbandits.experiments.panels import Panel, regrets, title_of
from dpbandits.experiments.twenty_arms import (
    BERNOULLI,
    HORIZON,
    L_RUNS,
    LIMITS,
    MIXED,
    ORDER,
    PAPER_RUNS,
    RUNS,
    SWEEP,
    TOLERANCE,
)
from dpbandits.simulation import Trace

TITLE = "Figure 1: LDP-UCB-L and LDP-UCB-B against UCB1, 20 arms"
SETTINGS = (
    "The horizon is not printed: 10^7 is used, near which our ratios agree with the printed ones. The epsilons of "
    "(c, d) are not printed: 0.2, 0.5, 1, 2 are used. The epsilons of (e, f) are not printed: 2 and 0.2 are used, as "
    "in (a, b). The paper averages 50 runs; here 50 too, but 20 for LDP-UCB-L, and 10 for LDP-UCB-L on the mixed arms "
    "(1.5 s a run)."
)
MEANS = [0.9] + 5 * [0.8] + 5 * [0.7] + 5 * [0.6] + 4 * [0.5]
EXPENSIVE_RUNS = {"quick": 4, "paper": 10}
NAMES = {"l": "ldp-ucb-l", "b": "ldp-ucb-b"}
SIMILAR = 0.1

B_OVER_UCB = Claim(
    "ratio-b",
    "The ratio of the regrets of LDP-UCB-B to non-private UCB is 1.6 at epsilon 2.",
    "Section 4, Fig. 1 (a)",
    "regret of ldp-ucb-b over that of ucb1 at the horizon",
    TOLERANCE,
)
L_OVER_UCB = Claim(
    "ratio-l",
    "The ratio of the regrets of LDP-UCB-L to non-private UCB is 8.5 at epsilon 2.",
    "Section 4, Fig. 1 (a)",
    "regret of ldp-ucb-l over that of ucb1 at the horizon",
    TOLERANCE,
)
BETWEEN = Claim(
    "order",
    "LDP-UCB-B's regret is slightly larger than that of UCB and smaller than that of LDP-UCB-L at epsilon 2.",
    "Section 4, Fig. 1 (a)",
    "mean regrets at the horizon",
    ORDER,
)
LIMITED = Claim(
    "limits",
    "The ratios to UCB are at most 1.7 and 9.0 (epsilon 2), 101 and 441 (epsilon 0.2), for B and L.",
    "Section 4, Fig. 1 (a, b)",
    "ratios at the horizon against coth(epsilon/2)^2 and (1 + 4/epsilon)^2",
    "three standard errors",
)
GROWS = Claim(
    "sweep",
    "The regrets of LDP-UCB-L and LDP-UCB-B both increase with 1/epsilon.",
    "Section 4, Fig. 1 (c, d)",
    "mean regrets at the horizon, each epsilon against the next",
    ORDER,
)
ALIKE = Claim(
    "mixed",
    "The performance on arms of various distributions is similar to that on Bernoulli arms.",
    "Section 4, Fig. 1 (e, f)",
    "regret on mixed arms over regret on Bernoulli arms, at the horizon",
    "'similar' is read as within 10 %, beyond three standard errors",
)


def cells(scale: str) -> dict[str, Cell]:
    """UCB1, and both policies at each epsilon, on Bernoulli arms; the two epsilons of (e, f) on mixed arms."""
    horizon, runs = HORIZON[scale], RUNS[scale]
    made = {"ucb1": Cell.of("ucb1", BERNOULLI, horizon, runs), "mixed:ucb1": Cell.of("ucb1", MIXED, horizon, runs)}
    for kind, policy in NAMES.items():
        for epsilon in SWEEP:
            made[f"{kind}:{epsilon:g}"] = Cell.of(
                policy, BERNOULLI, horizon, L_RUNS[scale] if kind == "l" else runs, epsilon
            )
        for epsilon in (2.0, 0.2):
            few = EXPENSIVE_RUNS[scale] if kind == "l" else runs
            made[f"mixed:{kind}:{epsilon:g}"] = Cell.of(policy, MIXED, horizon, few, epsilon)
    return made


def score(traces: Mapping[str, Trace], scale: str) -> list[Finding]:
    """The verdicts."""
    full = HORIZON[scale] == HORIZON["paper"]
    ucb = regret(traces["ucb1"])
    final = {name: regret(trace) for name, trace in traces.items()}
    neighbours = {
        f"{NAMES[kind]} at {high:g} and {low:g}": (final[f"{kind}:{high:g}"], final[f"{kind}:{low:g}"])
        for kind in NAMES
        for low, high in pairwise(SWEEP)
    }
    return [
        printed_ratio(B_OVER_UCB, traces["b:2"], traces["ucb1"], 1.6, 0.1, PAPER_RUNS, full),
        printed_ratio(L_OVER_UCB, traces["l:2"], traces["ucb1"], 8.5, 0.1, PAPER_RUNS, full),
        orderings(BETWEEN, {"UCB, B": (ucb, final["b:2"]), "B, L": (final["b:2"], final["l:2"])}),
        below(
            LIMITED,
            {f"{k.upper()}, ε = {e:g}": (ratio(final[f"{k}:{e:g}"], ucb), most) for (k, e), most in LIMITS.items()},
        ),
        orderings(GROWS, neighbours),
        _alike(traces),
    ]


def _alike(traces: Mapping[str, Trace]) -> Finding:
    ratios = {
        name: ratio(regret(traces[f"mixed:{name}"]), regret(traces[name]))
        for name in ("ucb1", "b:2", "l:2", "b:0.2", "l:0.2")
    }
    verdict = together([within(r, 1.0, SIMILAR) for r in ratios.values()])
    why = "Too few runs to tell." if verdict == UNDECIDED else ""
    return ALIKE.finding(verdict, "; ".join(f"{name}: {r}" for name, r in ratios.items()), why)


def plot(traces: Mapping[str, Trace], scale: str) -> list[Panel]:
    """Panels (a) to (f)."""
    horizon = HORIZON[scale]

    def compared(letter: str, arms: str, epsilon: float) -> Panel:
        first = f"{arms}:" if arms else ""
        lines = {"UCB1 (not private)": traces[f"{first}ucb1"]}
        lines |= {title_of(NAMES[kind]): traces[f"{first}{kind}:{epsilon:g}"] for kind in NAMES}
        problem = Problem.bernoulli(MEANS, horizon, epsilon=epsilon)
        limits = [local.ldp_ucb_l(problem), local.ldp_ucb_b(problem)]
        return regrets(letter, f"({letter}) ε = {epsilon:g}, {arms or 'Bernoulli'} arms", lines, limits)

    def swept(letter: str, kind: str) -> Panel:
        lines = {"UCB1 (not private)": traces["ucb1"]} | {f"ε = {e:g}": traces[f"{kind}:{e:g}"] for e in SWEEP}
        return regrets(letter, f"({letter}) {title_of(NAMES[kind])}, Bernoulli arms", lines)

    return [
        compared("a", "", 2.0),
        compared("b", "", 0.2),
        swept("c", "l"),
        swept("d", "b"),
        compared("e", "mixed", 2.0),
        compared("f", "mixed", 0.2),
    ]
