"""Table 2: the lower bounds, evaluated."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from dpbandits.bounds import LinearProblem, Problem, central, linear
from dpbandits.environments import Arms
from dpbandits.errors import MissingExtraError
from dpbandits.experiments.azize2022.fig2 import HORIZON, MEANS
from dpbandits.experiments.azize2022.four_algorithms import EPSILONS
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.claims import NOT_REPRODUCED, REPRODUCED, Claim, ClaimPart, Finding
from dpbandits.experiments.panels import Table
from dpbandits.simulation import Trace

TITLE = "Table 2: regret lower bounds under ε-global privacy"
SETTINGS = (
    "Arms of C2 at 10^7 rounds. The linear rows have three actions (1, 0), (0, 1), (0.9, 0.3) and the parameter "
    "(1, 0.2), which are our choice, because the paper gives no example. Problem-dependent bounds are limits of "
    "regret / log T, and are multiplied by log T here."
)
ACTIONS, PARAMETER = ((1.0, 0.0), (0.0, 1.0), (0.9, 0.3)), (1.0, 0.2)

EXAMPLE_ARMS, EXAMPLE_HORIZON = 100, 10**6

FREE = Claim(
    "free",
    "The minimax bound of bandits is that without privacy unless epsilon is small against sqrt(K/T).",
    "Table 2, Section 3",
    "the minimax bound on C2 and 10^7 rounds: at epsilon 0.1 and 1, and at a tenth of the regimes' threshold",
    "equal at 0.1 and 1, larger below the threshold",
)
THRESHOLD = Claim(
    "threshold",
    "The regimes of the minimax bound meet at epsilon = (131/27) sqrt((K-1)/T).",
    "Section 3, after Theorem 2",
    "the epsilon from which on the printed bound is constant, found by bisection",
    "one part in a million",
    known={
        "": "The fraction is printed upside down: the two terms are equal at (27/131) sqrt((K-1)/T), which is smaller. "
        "So the bound is that without privacy at the printed epsilon, and already far below it."
    },
)
EXAMPLE = Claim(
    "example",
    "For T = 10^6 and K = 100 the bound is that without privacy for epsilon of at least 0.05.",
    "Section 3, after Theorem 2",
    "the printed threshold for 100 arms and 10^6 rounds; and the bound at 0.05 against that without privacy",
    "the threshold rounds to 0.05; the bounds are equal",
)
LINEAR = Claim(
    "linear-threshold",
    "The regimes of the minimax bound of linear bandits meet at epsilon = 1/(3 d sqrt T).",
    "Section 3, after Theorem 5",
    "the epsilon from which on the printed bound is constant, found by bisection, in two dimensions",
    "one part in a million",
)
DIMENSION = Claim(
    "linear-dimension",
    "The threshold between the regimes of linear bandits decreases as the dimension increases.",
    "Section 3, remarks after Theorem 5",
    "the epsilon from which on the minimax bound is constant, in 2 and in 4 dimensions, as printed and as corrected",
    "smaller in 4 dimensions",
    known={"corrected": "The d in the printed exponent is superfluous. Without it the threshold is 1/(3 sqrt T)."},
)
BERNOULLI = Claim(
    "bernoulli",
    "For Bernoulli rewards the TV-distinguishability gap t is the gap, and the KL one, d, is at least 2 gap^2.",
    "Section 3, consequence 2 of Theorem 3",
    "both for each worse arm of C1 to C4, computed",
    "t to one part in a million",
)
REGIMES = Claim(
    "regimes",
    "The problem-dependent bound is that without privacy from epsilon = d / (6 t) on.",
    "Section 3, consequence 3 of Theorem 3",
    "the epsilon from which on the bound is constant, found by bisection, for two arms 0.8 and 0.1",
    "one part in a million",
)
ENVIRONMENTS = ("c1", "c2", "c3", "c4")


def cells(scale: str) -> dict[str, Cell]:
    """Nothing is simulated."""
    return {}


def _minimax(epsilon: float) -> float | None:
    return central.dp_minimax_lower(Problem.bernoulli(MEANS, HORIZON, epsilon=epsilon)).value


def _printed(arms: int, horizon: int, epsilon: float) -> float:
    """The printed bound, which is about normal rewards."""
    return central.dp_minimax_lower_printed(Problem.gaussian([0.0] * arms, horizon, epsilon=epsilon)).value or 0.0


def _linear_printed(epsilon: float) -> float:
    return linear.linear_minimax_lower_printed(LinearProblem(ACTIONS, PARAMETER, HORIZON, epsilon)).value or 0.0


def _linear_edge(dimension: int, corrected: bool) -> float:
    theorem = linear.linear_minimax_lower if corrected else linear.linear_minimax_lower_printed
    unit = tuple(tuple(float(i == j) for j in range(dimension)) for i in range(dimension))
    parameter = (1.0, *(0.2,) * (dimension - 1))
    return edge(lambda epsilon: theorem(LinearProblem(unit, parameter, HORIZON, epsilon)).value or 0.0)


def _dimension() -> Finding:
    parts = []
    for corrected in (False, True):
        two, four = (_linear_edge(dimension, corrected) for dimension in (2, 4))
        verdict = REPRODUCED if four < two * (1 - 1e-6) else NOT_REPRODUCED
        parts.append(ClaimPart("corrected" if corrected else "printed", verdict, f"{two:.4g} and {four:.4g}"))
    return DIMENSION.finding(*parts)


def _bernoulli() -> Finding:
    parts = []
    for name in ENVIRONMENTS:
        problem = Problem.on(Arms.of(f"@azize2022-{name}"), HORIZON, epsilon=1.0)
        gaps = dict(zip(problem.worse, problem.gaps, strict=True))
        equal = all(math.isclose(problem.tv_gap(arm), gap, rel_tol=1e-6) for arm, gap in gaps.items())
        least = min(problem.kl_gap(arm) / (2 * gap * gap) for arm, gap in gaps.items())
        text = f"t {'is' if equal else 'is not'} the gap, d is at least {least:.4g} times 2 gap^2"
        parts.append(ClaimPart(name.upper(), REPRODUCED if equal and least >= 1 else NOT_REPRODUCED, text))
    return BERNOULLI.finding(*parts)


def _regimes() -> Finding:
    def bound(epsilon: float) -> float:
        return central.dp_lower(Problem.bernoulli([0.8, 0.1], HORIZON, epsilon=epsilon)).value or 0.0

    problem = Problem.bernoulli([0.8, 0.1], HORIZON, epsilon=1.0)
    return _equal(REGIMES, edge(bound), problem.kl_gap(1) / (6.0 * problem.tv_gap(1)))


def edge(bound: Callable[[float], float]) -> float:
    """The epsilon from which on a bound that falls with epsilon is constant.

    >>> round(edge(lambda epsilon: max(1.0, 0.25 / epsilon)), 6)
    0.25
    """
    low, high, least = 1e-12, 1e6, bound(1e6)
    while high / low > 1.0 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if bound(middle) > least else (low, middle)
    return high


def _equal(claim: Claim, ours: float, printed: float) -> Finding:
    verdict = REPRODUCED if math.isclose(ours, printed, rel_tol=1e-6) else NOT_REPRODUCED
    return claim.single(verdict, f"{ours:.6g}, printed {printed:.6g}")


def _example() -> Finding:
    stated = 131 / 27 * math.sqrt((EXAMPLE_ARMS - 1) / EXAMPLE_HORIZON)
    at, free = (_printed(EXAMPLE_ARMS, EXAMPLE_HORIZON, epsilon) for epsilon in (0.05, 1e6))
    exact = edge(lambda epsilon: _printed(EXAMPLE_ARMS, EXAMPLE_HORIZON, epsilon))
    return EXAMPLE.finding(
        ClaimPart("threshold", REPRODUCED if f"{stated:.1g}" == "0.05" else NOT_REPRODUCED, f"{stated:.4f}"),
        ClaimPart("bound", REPRODUCED if at == free else NOT_REPRODUCED, f"{at:.1f} at 0.05, {free:.1f} without"),
        explanation=f"It is so from {exact:.4f} on.",
    )


def score(traces: Mapping[str, Trace], scale: str) -> list[Finding]:
    """The verdicts."""
    arms = len(MEANS)
    small, large = _minimax(0.1), _minimax(1.0)
    meet = edge(lambda epsilon: _printed(arms, HORIZON, epsilon))
    private = _minimax(meet / 10)
    higher = REPRODUCED if (private or 0.0) > (large or 0.0) else NOT_REPRODUCED
    return [
        FREE.finding(
            ClaimPart(
                "above",
                REPRODUCED if small == large else NOT_REPRODUCED,
                f"{small:.1f} at epsilon 0.1, {large:.1f} at epsilon 1",
            ),
            ClaimPart("below", higher, f"{private:.1f} at epsilon {meet / 10:.2g}"),
        ),
        _equal(THRESHOLD, meet, 131 / 27 * math.sqrt((arms - 1) / HORIZON)),
        _example(),
        _equal(LINEAR, edge(_linear_printed), 1.0 / (3.0 * len(PARAMETER) * math.sqrt(HORIZON))),
        _dimension(),
        _bernoulli(),
        _regimes(),
    ]


def plot(traces: Mapping[str, Trace], scale: str) -> list[Table]:
    """The table, a column for each epsilon."""
    bandits = [Problem.bernoulli(MEANS, HORIZON, epsilon=epsilon) for epsilon in EPSILONS]
    lines = [LinearProblem(ACTIONS, PARAMETER, HORIZON, epsilon) for epsilon in EPSILONS]
    rows = [
        [
            "bandits, minimax",
            "max(√(T(K-1))/27, min(T/(16 e), (K-1)/(96 e ε)))",
            *(_text(central.dp_minimax_lower(p).value) for p in bandits),
        ],
        ["bandits, this problem", "Σ Δ log T / min(d, 6 ε t)", *(_text(central.dp_lower(p).value) for p in bandits)],
        [
            "linear, minimax",
            "max(e^-2, e^(-6 ε √T)) d √T / 8",
            *(_text(linear.linear_minimax_lower(p).value) for p in lines),
        ],
        ["linear, this problem", "c(A, θ) log T", *(_linear(p) for p in lines)],
    ]
    columns = ["setting", "bound"] + [f"ε = {epsilon:g}" for epsilon in EPSILONS]
    return [
        Table(
            "table",
            TITLE,
            columns,
            rows,
            "Both minimax bounds are corrected: that of bandits is proved for rewards in [0, 1], and the printed "
            "linear one has a superfluous d in its exponent.",
        )
    ]


def _linear(problem: LinearProblem) -> str:
    try:
        return _text(linear.linear_lower(problem).value)
    except MissingExtraError as missing:
        return str(missing)


def _text(value: float | None) -> str:
    return "does not apply" if value is None else f"{value:,.4g}"
