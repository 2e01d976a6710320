"""Table 2: the lower bounds, evaluated."""

from __future__ import annotations

from collections.abc import Mapping

from dpbandits.bounds import LinearProblem, Problem, central, linear
from dpbandits.errors import MissingExtraError
from dpbandits.experiments.azize2022.fig2 import HORIZON, MEANS
from dpbandits.experiments.azize2022.four_algorithms import EPSILONS
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.claims import NOT_REPRODUCED, REPRODUCED, Claim, Finding
from dpbandits.experiments.panels import Table
from dpbandits.simulation import Trace

TITLE = "Table 2: regret lower bounds under ε-global privacy"
SETTINGS = (
    "Arms of C2 at 10^7 rounds. The linear rows have three actions (1, 0), (0, 1), (0.9, 0.3) and the parameter "
    "(1, 0.2), which are our choice, because the paper gives no example. Problem-dependent bounds are limits of "
    "regret / log T, and are multiplied by log T here."
)
ACTIONS, PARAMETER = ((1.0, 0.0), (0.0, 1.0), (0.9, 0.3)), (1.0, 0.2)

FREE = Claim(
    "free",
    "The minimax bound of bandits is that without privacy unless epsilon is small against sqrt(K/T).",
    "Table 2, Section 3",
    "the minimax bound at epsilon 0.1 and at 1, on C2 and 10^7 rounds",
    "equal",
)


def cells(scale: str) -> dict[str, Cell]:
    """Nothing is simulated."""
    return {}


def _minimax(epsilon: float) -> float | None:
    return central.dp_minimax_lower(Problem.bernoulli(MEANS, HORIZON, epsilon=epsilon)).value


def score(traces: Mapping[str, Trace], scale: str) -> list[Finding]:
    """The verdict."""
    small, large = _minimax(0.1), _minimax(1.0)
    return [FREE.finding(REPRODUCED if small == large else NOT_REPRODUCED, f"{small:.1f} at 0.1, {large:.1f} at 1")]


def plot(traces: Mapping[str, Trace], scale: str) -> list[Table]:
    """The table, a column for each epsilon."""
    bandits = [Problem.bernoulli(MEANS, HORIZON, epsilon=epsilon) for epsilon in EPSILONS]
    lines = [LinearProblem(ACTIONS, PARAMETER, HORIZON, epsilon) for epsilon in EPSILONS]
    rows = [
        [
            "bandits, minimax",
            "max(√(T(K-1))/27, (K-1)/(131 ε))",
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
            "The linear minimax bound is corrected: the printed one has a superfluous d in its exponent.",
        )
    ]


def _linear(problem: LinearProblem) -> str:
    try:
        return _text(linear.linear_lower(problem).value)
    except MissingExtraError as missing:
        return str(missing)


def _text(value: float | None) -> str:
    return "does not apply" if value is None else f"{value:,.4g}"
