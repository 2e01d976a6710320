"""Figure 2: DP-UCB, DP-UCB-BOUND, DP-UCB-INT and Private-UCB against UCB1 over 100,000 rounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpbandits.experiments import theorems
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.claims import (
    ERROR_RATE,
    NOT_REPRODUCED,
    REPRODUCED,
    UNDECIDED,
    Claim,
    ClaimPart,
    Estimate,
    Finding,
    below,
    mean,
    orderings,
    quotient,
    regret,
    upper_end,
)
from dpbandits.experiments.panels import Panel, regrets
from dpbandits.proportions import share_at_least, share_at_most
from dpbandits.simulation import Trace
from dpbandits.types import Floats

TITLE = "Figure 2: regret over 100,000 rounds, with the smallest and the largest of all runs"
SETTINGS = (
    "As printed: 100,000 rounds, epsilon 1 and 0.1. The paper averages 100 runs; here 300. Claims about "
    "DP-UCB-INT are judged with 20,000 runs, because rare runs are disasters. Claims about the range of the regret are "
    "judged with 1,000 runs. DP-UCB-INT has v = 1.1 and delta = e^-10, and Private-UCB failure probability t^-4. "
    "DP-UCB and DP-UCB-BOUND have the printed noise, which is 2 epsilon-private; where the label says 'split', they "
    "have noise that is epsilon-private. DP-UCB-INT draws each release once, because as printed it is not "
    "private. It uses the y-rule of Lemma B.1, because the constant interval is longer than the horizon in (d). The "
    "places of the 0.55 and the 0.2 among the ten arms do not matter: each run has its own order."
)
HORIZON = 100_000
RUNS = {"quick": 30, "paper": 300}
PANELS = {"a": ("two", 1.0), "b": ("two", 0.1), "c": ("ten", 1.0), "d": ("ten", 0.1)}
PRINTED = {"as_printed": True}
PRIVATE: dict[str, tuple[str, str, dict[str, Any]]] = {
    "int": ("DP-UCB-INT", "dp-ucb-int", {}),
    "ucb": ("DP-UCB (2ε)", "dp-ucb", PRINTED),
    "bound": ("DP-UCB-BOUND (2ε)", "dp-ucb-bound", PRINTED),
    "ucb-split": ("DP-UCB, split (ε)", "dp-ucb", {}),
    "bound-split": ("DP-UCB-BOUND, split (ε)", "dp-ucb-bound", {}),
    "private": ("Private-UCB", "private-ucb", {"gamma": "t^-4"}),
}
PAPERS_OWN = ("int", "ucb", "bound")  # the algorithms that the paper proposes
EARLY = 1000
MANY = {"quick": 2000, "paper": 20_000}  # runs of DP-UCB-INT for what is judged
RANGE_RUNS = {"quick": 100, "paper": 1000}
PRINTED_RUNS, PRINTED_RANGE = 100, 664.5

ORDER = "three standard errors of the difference"
BEST = Claim(
    "int-best",
    "DP-UCB-INT is significantly better than all other private algorithms.",
    "Section 4, Fig. 2",
    "mean regrets at the horizon, in each panel",
    ORDER,
)
LOCKED_OUT = (
    "The index has no term for the noise of a stored release, so a very low first release locks the best arm out in a "
    "small share of the runs, and these decide the mean."
)
PARALLEL = Claim(
    "int-gap",
    "The gap between the regrets of DP-UCB-INT and of UCB does not increase with time (read in expectation).",
    "Section 4, Fig. 2",
    "growth of the mean gap over the last half of the rounds, in each panel",
    "growth by as much as UCB's own regret in these rounds would matter; upper ends are empirical Bernstein's, which "
    "hold with heavy tails",
    known={"(a)": LOCKED_OUT},
)
PARALLEL_MEDIAN = Claim(
    "int-gap-median",
    "The gap between the regrets of DP-UCB-INT and of UCB does not increase with time (read for the median run).",
    "Section 4, Fig. 2",
    "growth of the median gap over the last half of the rounds, in each panel",
    "growth by as much as UCB's own regret in these rounds would matter; intervals of the median by order statistics",
)
WORST = Claim(
    "private-worst",
    "Private-UCB performs worse than all other algorithms.",
    "Section 4, Fig. 2",
    "mean regrets at the horizon, in each panel",
    ORDER,
)
EARLIER = Claim(
    "ucb-early",
    "DP-UCB is better than DP-UCB-BOUND for small time steps.",
    "Section 4, Fig. 2",
    "mean regrets at 1,000 rounds, in each panel",
    ORDER,
    known={
        "(d) DP-UCB (2ε), DP-UCB-BOUND (2ε)": "With ten arms at epsilon 0.1 nothing is learnt in 1,000 rounds: both "
        "lose nearly what random play loses."
    },
)
LATER = Claim(
    "bound-late",
    "As the time step increases DP-UCB-BOUND outperforms DP-UCB.",
    "Section 4, Fig. 2",
    "mean regrets at the horizon, in each panel",
    ORDER,
    known=dict.fromkeys(
        ("(b) DP-UCB-BOUND (2ε), DP-UCB (2ε)", "(d) DP-UCB-BOUND (2ε), DP-UCB (2ε)"),
        "At epsilon 0.1 DP-UCB is still better after 100,000 rounds. The text contradicts itself here.",
    ),
)
CATCHES = Claim(
    "bound-catches",
    "DP-UCB-BOUND eventually catches the regret of DP-UCB.",
    "Section 4, Fig. 2",
    "regret of DP-UCB-BOUND over that of DP-UCB: at the horizon against a tenth of it, in each panel",
    ORDER,
    known=dict.fromkeys(("(b)", "(d)"), "At epsilon 0.1 the lead of DP-UCB still grows after 100,000 rounds."),
)
CONSISTENT = Claim(
    "range",
    "The worst regret exceeds the best by less than 664.5 with two arms, for UCB and the paper's algorithms.",
    "Section 4",
    "the chance that the regrets of 100 runs differ by less than 664.5, two arms, both epsilons",
    "more likely than not, beyond a Clopper-Pearson interval",
    known={"(b) DP-UCB (2ε)": "At epsilon 0.1 DP-UCB is the exception: its index has no term for the noise."},
)
PRIVATE_UCB_RANGE = Claim(
    "range-private",
    "The worst regret of Private-UCB exceeds the best by up to 30,000.",
    "Section 4",
    "largest minus smallest regret of all runs at the horizon, largest of the panels",
    "at least 25,000",
    known={
        "": "Here its bonus, with failure probability t^-4, is so wide that all runs explore nearly evenly, and lose "
        "nearly the same. 30,000 is all that two arms can lose in 100,000 rounds."
    },
)
THEOREMS = Claim(
    "theorems",
    "The regret of DP-UCB-BOUND and of DP-UCB is at most what the theorems say.",
    "Sections 3.1 and 3.2, Theorems 3.2 and 3.3",
    theorems.MEASURED,
    theorems.TOLERANCE,
)
THEOREM_3_5 = Claim(
    "theorem-3.5",
    "The expected regret of DP-UCB-INT is at most that of non-private UCB plus a constant, for every v in (1, 1.5].",
    "Section 3.3, Theorem 3.5",
    "mean regret over the claimed bound, two arms, epsilon 1; v = 1.1 after 10^6 rounds, v = 1.5 after 10^5",
    "at most 1, beyond three standard errors, or beyond an empirical Bernstein bound where it seems to be",
    known=dict.fromkeys(("v = 1.1", "v = 1.5"), LOCKED_OUT),
)
V = {1.1: 10**6, 1.5: HORIZON}  # the larger v, the sooner it shows
V_RUNS = {"quick": {1.1: 200, 1.5: 100}, "paper": {1.1: 20_000, 1.5: 400}}


def cells(scale: str) -> dict[str, Cell]:
    """Each algorithm in each panel; and many runs, at two checkpoints only, of what is judged by its tail."""
    made = {}
    half = [HORIZON // 2, HORIZON]
    for letter, (arms, epsilon) in PANELS.items():
        problem = f"@tossou2016-{arms}"
        made[f"{letter}:ucb1"] = Cell.of("ucb1", problem, HORIZON, RUNS[scale])
        for name, (_, policy, options) in PRIVATE.items():
            made[f"{letter}:{name}"] = Cell.of(policy, problem, HORIZON, RUNS[scale], epsilon, options)
        made[f"{letter}:many:int"] = Cell.of("dp-ucb-int", problem, HORIZON, MANY[scale], epsilon, checkpoints=half)
    for letter in "ab":
        arms, epsilon = PANELS[letter]
        problem, runs = f"@tossou2016-{arms}", RANGE_RUNS[scale]
        made[f"{letter}:many:ucb1"] = Cell.of("ucb1", problem, HORIZON, runs, checkpoints=half)
        for name in ("ucb", "bound"):
            _, policy, options = PRIVATE[name]
            made[f"{letter}:many:{name}"] = Cell.of(policy, problem, HORIZON, runs, epsilon, options, checkpoints=half)
    for v, rounds in V.items():
        runs = V_RUNS[scale][v]
        made[f"v:{v:g}"] = Cell.of("dp-ucb-int", "@tossou2016-two", rounds, runs, 1.0, {"v": v}, checkpoints=[rounds])
    return made


def score(traces: Mapping[str, Trace], scale: str) -> list[Finding]:
    """The verdicts."""
    final = {name: regret(trace) for name, trace in traces.items()}
    final |= {f"{letter}:int": final[f"{letter}:many:int"] for letter in PANELS}
    early = {name: regret(trace, EARLY) for name, trace in traces.items() if trace.checkpoints[0] <= EARLY}

    def pairs(better: str, worse: tuple[str, ...], at: Mapping[str, Estimate]) -> dict[str, tuple[Estimate, Estimate]]:
        return {
            f"({letter}) {PRIVATE[better][0]}, {PRIVATE[other][0]}": (at[f"{letter}:{better}"], at[f"{letter}:{other}"])
            for letter in PANELS
            for other in worse
        }

    worst = {key: pair for better in PAPERS_OWN for key, pair in pairs(better, ("private",), final).items()}
    return [
        orderings(BEST, pairs("int", ("ucb", "bound", "private"), final)),
        _parallel(traces),
        _parallel_median(traces),
        orderings(WORST, worst),
        orderings(EARLIER, pairs("ucb", ("bound",), early)),
        orderings(LATER, pairs("bound", ("ucb",), final)),
        _catches(traces),
        CONSISTENT.finding(*(_consistent(traces, letter, name) for letter in "ab" for name in ("ucb1", *PAPERS_OWN))),
        _private_ucb_range(traces),
        THEOREMS.finding(
            *(
                theorems.below_theorem(f"({letter}) {PRIVATE[name][0]}", traces[f"{letter}:{name}"], theorem)
                for name, theorem in (("bound", "dp-ucb-bound-printed"), ("ucb", "dp-ucb-printed"))
                for letter in PANELS
            )
        ),
        THEOREM_3_5.finding(*(theorems.below_theorem(f"v = {v:g}", traces[f"v:{v:g}"], "dp-ucb-int") for v in V)),
    ]


def _late(trace: Trace) -> Floats:
    """What each run loses in the last half of the rounds."""
    half = int(np.searchsorted(trace.checkpoints, trace.horizon / 2, side="right")) - 1
    return np.asarray(trace.regret[:, -1] - trace.regret[:, half])


def _parallel(traces: Mapping[str, Trace]) -> Finding:
    comparisons = []
    for letter in PANELS:
        trace = traces[f"{letter}:many:int"]
        ours, ucb = _late(trace), mean(_late(traces[f"{letter}:ucb1"]))
        most = float(np.ptp(trace.means)) * HORIZON / 2
        grown = mean(ours)
        low, high = grown.value - grown.margin - ucb.value, upper_end(ours, most) - ucb.value + ucb.margin
        share = float((trace.final_regret > 10 * np.median(trace.final_regret)).mean())
        text = (
            f"the gap grew by {grown.value - ucb.value:,.3g} (at most {high:,.3g}), the regret of UCB by {ucb}; "
            f"{100 * share:.2g} % of {trace.runs:,} runs lost over ten times the median"
        )
        if high <= ucb.value:
            verdict, lacks = REPRODUCED, ""
        elif low > ucb.value:
            verdict, lacks = NOT_REPRODUCED, ""
        else:
            verdict, lacks = UNDECIDED, "More runs are needed: rare runs decide the mean."
        comparisons.append(ClaimPart(f"({letter})", verdict, text, lacks))
    return PARALLEL.finding(*comparisons)


def _median(values: Floats) -> tuple[float, float, float]:
    """The median, and an interval by order statistics that holds it with probability 1 - ``ERROR_RATE`` or nearly."""
    ordered, n = np.sort(values), values.size
    reach = min(int(np.ceil(1.5 * np.sqrt(n))) + 1, n // 2)  # three standard deviations of a binomial of n fair coins
    return float(np.median(values)), float(ordered[n // 2 - reach]), float(ordered[min(n // 2 + reach, n - 1)])


def _parallel_median(traces: Mapping[str, Trace]) -> Finding:
    comparisons = []
    for letter in PANELS:
        middle, low, high = _median(_late(traces[f"{letter}:many:int"]))
        ucb, least, most = _median(_late(traces[f"{letter}:ucb1"]))
        gap = f"{middle - ucb:,.3g} ({low - most:,.3g} to {high - least:,.3g})"
        text = f"the gap grew by {gap}, the regret of UCB by {ucb:,.3g}"
        verdict = REPRODUCED if high - least <= ucb else NOT_REPRODUCED if low - most > ucb else UNDECIDED
        comparisons.append(ClaimPart(f"({letter})", verdict, text, "More runs are needed."))
    return PARALLEL_MEDIAN.finding(*comparisons)


def _catches(traces: Mapping[str, Trace]) -> Finding:
    comparisons = []
    for letter in PANELS:
        bound, ucb = traces[f"{letter}:bound"], traces[f"{letter}:ucb"]
        then = quotient(regret(bound, HORIZON // 10), regret(ucb, HORIZON // 10))
        comparisons.append(below(f"({letter})", quotient(regret(bound), regret(ucb)), then))
    return CATCHES.finding(*comparisons)


def _consistent(traces: Mapping[str, Trace], letter: str, name: str) -> ClaimPart:
    final = traces[f"{letter}:many:{name}"].final_regret
    n, far = final.size, int(np.sum(final > final.min() + PRINTED_RANGE))
    low, high = share_at_least(far, n, ERROR_RATE / 2), share_at_most(far, n, ERROR_RATE / 2)
    chance, least, most = ((1 - share) ** PRINTED_RUNS for share in (far / n, high, low))
    verdict = REPRODUCED if least > 0.5 else NOT_REPRODUCED if most < 0.5 else UNDECIDED
    chances = f"{100 * chance:.0f} % ({100 * least:.0f} to {100 * most:.0f} %)"
    text = f"100 runs stay within {PRINTED_RANGE} with probability {chances}"
    label = PRIVATE[name][0] if name in PRIVATE else "UCB1"
    lacks = "This probability is too close to 50 % to be decided with these runs."
    return ClaimPart(f"({letter}) {label}", verdict, text, lacks)


def _private_ucb_range(traces: Mapping[str, Trace]) -> Finding:
    found = {letter: float(np.ptp(traces[f"{letter}:private"].final_regret)) for letter in PANELS}
    ours = "; ".join(f"({letter}) {value:,.0f}" for letter, value in found.items())
    return PRIVATE_UCB_RANGE.single(REPRODUCED if max(found.values()) >= 25_000 else NOT_REPRODUCED, ours)


def plot(traces: Mapping[str, Trace], scale: str) -> list[Panel]:
    """Panels (a) to (d)."""
    panels = []
    for letter, (arms, epsilon) in PANELS.items():
        lines = {"UCB1 (not private)": traces[f"{letter}:ucb1"]}
        lines |= {label: traces[f"{letter}:{name}"] for name, (label, _, _) in PRIVATE.items()}
        panels.append(regrets(letter, f"({letter}) ε = {epsilon:g}, {arms} arms", lines, band="range"))
    return panels
