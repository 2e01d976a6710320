"""Figure 1: LDP-UCB-L and LDP-UCB-B on 20 bounded arms."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from dpbandits.bounds import Problem, local
from dpbandits.environments import Arms
from dpbandits.experiments import theorems
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.claims import (
    Claim,
    Estimate,
    Finding,
    at_most,
    difference,
    growth_exponent,
    only_in_full,
    orderings,
    quotient,
    regret,
    within,
)
from dpbandits.experiments.panels import Panel, regrets, title_of
from dpbandits.experiments.printed import Printed, one_horizon, ratio_panel
from dpbandits.experiments.twenty_arms import (
    AS_MUCH_LARGER,
    AS_NOT_FAR,
    BERNOULLI,
    CHEAP_RUNS,
    HORIZON,
    L_RUNS,
    LARGER,
    LIMITS,
    MEASURED,
    MIXED,
    ONE_HORIZON,
    ORDER,
    RUNS,
    SWEEP,
    TOLERANCE,
    epsilon_steps,
    grown_ratios,
    near_limits,
)
from dpbandits.simulation import Trace

TITLE = "Figure 1: LDP-UCB-L and LDP-UCB-B against UCB1, 20 arms"
MEANS = Arms.of(BERNOULLI).means
NAMES = {"l": "ldp-ucb-l", "b": "ldp-ucb-b"}
SIMILAR = 0.1
PRINTED_AT = 2.0  # the epsilon of the printed ratios
NO_PRIVACY = 1000.0
SETTINGS = (
    "The horizon is not printed: 10^7 is used, and (g) shows the ratios against rounds. The epsilons of (c, d) are not "
    "printed: 0.2, 0.5, 1, 2 are used. The epsilons of (e, f) are not printed: 2 and 0.2 are used, as in (a, b). The "
    f"paper averages {RUNS['paper']} runs. So do we, but where a printed ratio or its limit asks for more, at epsilon "
    f"{PRINTED_AT:g}, {CHEAP_RUNS['paper']:,} runs of UCB1 and LDP-UCB-B and {L_RUNS['paper']:,} of LDP-UCB-L are "
    f"played. 'As epsilon approaches infinity' is played at {NO_PRIVACY:g}."
)

B_OVER_UCB = Claim(
    "ratio-b",
    "The ratio of the regrets of LDP-UCB-B to non-private UCB is 1.6 at epsilon 2.",
    "Section 4, Fig. 1 (a)",
    MEASURED,
    TOLERANCE,
)
L_OVER_UCB = Claim(
    "ratio-l",
    "The ratio of the regrets of LDP-UCB-L to non-private UCB is 8.5 at epsilon 2.",
    "Section 4, Fig. 1 (a)",
    MEASURED,
    TOLERANCE,
)
TOGETHER = Claim(
    "one-horizon",
    "The printed ratios, 1.6 and 8.5, are of one experiment, and so of one horizon.",
    "Section 4, Fig. 1 (a)",
    ONE_HORIZON,
    TOLERANCE,
    known={"": "The ratio of LDP-UCB-B reaches 1.6 long before that of LDP-UCB-L reaches 8.5."},
)
BETTER = Claim(
    "b-better",
    "LDP-UCB-B is better than LDP-UCB-L at every epsilon.",
    "Section 3.1.2, Remark iv",
    "mean regrets at the horizon",
    ORDER,
)
SHRINKS = Claim(
    "difference-shrinks",
    "The difference between LDP-UCB-L and LDP-UCB-B becomes smaller as epsilon increases.",
    "Section 3.1.2, Remark iv",
    "difference of the mean regrets at the horizon, each epsilon against the next",
    ORDER,
)
SLOWER = Claim(
    "convergence",
    "The convergence of LDP-UCB-L and LDP-UCB-B becomes slower as epsilon decreases.",
    "Section 4, Fig. 1 (c, d)",
    "exponent of regret in t over the last decade of rounds (1 is linear), each epsilon against the next",
    ORDER,
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
GROWN = Claim(
    "ratios-larger",
    "At epsilon 0.2 the ratios of the regrets of LDP-UCB-L and LDP-UCB-B to non-private UCB become much larger.",
    "Section 4, Fig. 1 (b)",
    LARGER,
    AS_MUCH_LARGER,
)
NEAR = Claim(
    "limits-near",
    "At epsilon 0.2 the limits of the ratios, 441 and 101, are not far away from the empirical results.",
    "Section 4, Fig. 1 (b)",
    "the limit against the ratio at the horizon",
    AS_NOT_FAR,
)
APPROACHES = Claim(
    "no-privacy",
    "When epsilon approaches infinity, the regrets of LDP-UCB-L and LDP-UCB-B approach that of non-private UCB.",
    "Section 3.1.1, Remark i; Section 3.1.2, Remark i",
    f"regret at epsilon {NO_PRIVACY:g} over that of UCB, at the horizon",
    "within 10 %, beyond three standard errors",
)
THEOREMS = Claim(
    "theorems",
    "The regret of LDP-UCB-L and of LDP-UCB-B is at most what the theorems say.",
    "Section 3.1, Theorems 4 and 6",
    theorems.MEASURED,
    theorems.TOLERANCE,
)


def cells(scale: str) -> dict[str, Cell]:
    """UCB1, and both policies at each epsilon, on Bernoulli arms; the two epsilons of (e, f) on mixed arms."""
    horizon, runs = HORIZON[scale], RUNS[scale]
    made = {
        "ucb1": Cell.of("ucb1", BERNOULLI, horizon, CHEAP_RUNS[scale]),
        "mixed:ucb1": Cell.of("ucb1", MIXED, horizon, runs),
    }
    for kind, policy in NAMES.items():
        many = L_RUNS[scale] if kind == "l" else CHEAP_RUNS[scale]
        for epsilon in (*SWEEP, NO_PRIVACY):
            enough = many if epsilon == PRINTED_AT else runs
            made[f"{kind}:{epsilon:g}"] = Cell.of(policy, BERNOULLI, horizon, enough, epsilon)
        for epsilon in (2.0, 0.2):
            made[f"mixed:{kind}:{epsilon:g}"] = Cell.of(policy, MIXED, horizon, runs, epsilon)
    return made


def _printed(traces: Mapping[str, Trace]) -> dict[str, Printed]:
    return {
        "B, 1.6": Printed(1.6, 0.1, traces["b:2"], traces["ucb1"]),
        "L, 8.5": Printed(8.5, 0.1, traces["l:2"], traces["ucb1"]),
    }


def score(traces: Mapping[str, Trace], scale: str) -> list[Finding]:
    """The verdicts."""
    full, ucb = HORIZON[scale] == HORIZON["paper"], regret(traces["ucb1"])
    final = {name: regret(trace) for name, trace in traces.items()}
    printed = _printed(traces)
    limited = {f"{k.upper()}, ε = {e:g}": (quotient(final[f"{k}:{e:g}"], ucb), most) for (k, e), most in LIMITS.items()}
    apart = {epsilon: difference(final[f"l:{epsilon:g}"], final[f"b:{epsilon:g}"]) for epsilon in SWEEP}
    return [
        B_OVER_UCB.finding(printed["B, 1.6"].judged("", full)),
        L_OVER_UCB.finding(printed["L, 8.5"].judged("", full)),
        one_horizon(TOGETHER, printed, full),
        orderings(BETWEEN, {"UCB, B": (ucb, final["b:2"]), "B, L": (final["b:2"], final["l:2"])}),
        at_most(LIMITED, limited),
        GROWN.finding(*grown_ratios(limited)),
        only_in_full(NEAR.finding(*near_limits(limited)), full),
        orderings(BETTER, {f"ε = {e:g}": (final[f"b:{e:g}"], final[f"l:{e:g}"]) for e in SWEEP}),
        only_in_full(
            orderings(SHRINKS, {f"{high:g} and {low:g}": (apart[high], apart[low]) for low, high in pairwise(SWEEP)}),
            full,
        ),
        orderings(GROWS, epsilon_steps(NAMES, final)),
        orderings(SLOWER, epsilon_steps(NAMES, {name: growth_exponent(trace) for name, trace in traces.items()})),
        _alike(final),
        APPROACHES.finding(
            *(within(quotient(final[f"{kind}:{NO_PRIVACY:g}"], ucb), 1.0, SIMILAR, NAMES[kind]) for kind in NAMES)
        ),
        _theorems(traces),
    ]


def _theorems(traces: Mapping[str, Trace]) -> Finding:
    parts = []
    for first, arms in (("", ""), ("mixed:", ", mixed arms")):
        for kind, policy in NAMES.items():
            played = {e: traces[f"{first}{kind}:{e:g}"] for e in SWEEP if f"{first}{kind}:{e:g}" in traces}
            parts += [
                theorems.below_theorem(f"{policy}, ε = {e:g}{arms}", trace, policy) for e, trace in played.items()
            ]
    return THEOREMS.finding(*parts)


def _alike(final: Mapping[str, Estimate]) -> Finding:
    compared = {"ucb1": "ucb1"}
    compared |= {f"{kind}:{e:g}": f"{NAMES[kind]}, ε = {e:g}" for e in (2.0, 0.2) for kind in ("b", "l")}
    ratios = {label: quotient(final[f"mixed:{name}"], final[name]) for name, label in compared.items()}
    return ALIKE.finding(*(within(ratio, 1.0, SIMILAR, label) for label, ratio in ratios.items()))


def plot(traces: Mapping[str, Trace], scale: str) -> list[Panel]:
    """Panels (a) to (f), and the ratios against rounds."""
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
        ratio_panel("g", "(g) not in the paper: ratios at ε = 2 against rounds", _printed(traces)),
    ]
