"""Bounds for linear bandits under central privacy (Azize & Basu 2022)."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import null_space

from dpbandits.bounds.bound import Curve, DoesNotHold, LongRun, theorem
from dpbandits.bounds.problem import LinearProblem
from dpbandits.errors import MissingExtraError
from dpbandits.types import Floats

__all__ = [
    "action_weights",
    "linear_lower",
    "linear_minimax_lower",
    "linear_minimax_lower_printed",
    "structural_constant",
]

AZIZE = "Azize & Basu 2022"
CUBE = "any epsilon-private policy; actions [-1, 1]^d and the hardest parameter in {-T^-1/2, T^-1/2}^d"


@theorem(
    LinearProblem,
    "lower",
    f"{AZIZE}, Theorem 4",
    CUBE,
    trust="central",
    scope="some problem",
    note="the d in the exponent is unnecessary: see linear-minimax-lower",
)
def linear_minimax_lower_printed(problem: LinearProblem) -> Curve:
    """max(e^-2, e^(-6 epsilon d sqrt T)) d sqrt T / 8.

    >>> plane = LinearProblem(((1.0, 0.0), (0.0, 1.0)), (1.0, 0.5), horizon=10_000, epsilon=0.001)
    >>> round(linear_minimax_lower_printed(plane).value, 3)
    7.53
    """
    return _cube(problem, problem.dimension)


@theorem(
    LinearProblem,
    "lower",
    f"{AZIZE}, Theorem 4",
    CUBE,
    form="corrected",
    corrects="linear-minimax-lower-printed",
    trust="central",
    scope="some problem",
    note="the two parameters of the proof differ in one coordinate only, so the exponent has no d",
)
def linear_minimax_lower(problem: LinearProblem) -> Curve:
    """max(e^-2, e^(-6 epsilon sqrt T)) d sqrt T / 8.

    >>> plane = LinearProblem(((1.0, 0.0), (0.0, 1.0)), (1.0, 0.5), horizon=10_000, epsilon=0.001)
    >>> round(linear_minimax_lower(plane).value, 3)
    13.72
    """
    return _cube(problem, 1)


@theorem(
    LinearProblem,
    "lower",
    f"{AZIZE}, Theorem 5",
    "actions that span R^d, one of them best; any consistent epsilon-private policy; regret / log(horizon) as the "
    "horizon grows",
    trust="central",
    note="as stated: the step in Fact 2 from G >= N_j a_j a_j' to |a_j' G^-1 b| is not justified",
    checked=False,
)
def linear_lower(problem: LinearProblem) -> Curve:
    """c(A, theta) log T, where c(A, theta) is ``structural_constant``.

    >>> basis = LinearProblem(((1.0, 0.0), (0.0, 1.0)), (1.0, 0.5), horizon=1000, epsilon=1.0)
    >>> round(linear_lower(basis).value / math.log(1000), 4)
    4.0
    """
    return LongRun(structural_constant(problem))


def action_weights(problem: LinearProblem) -> list[float]:
    """rho_a(A) = sum over actions b of |b'(a - best)| / |b|^2, for each action a.

    On an orthonormal basis it is 2 for every worse action.

    >>> action_weights(LinearProblem(((1.0, 0.0), (0.0, 1.0)), (1.0, 0.5), horizon=10, epsilon=1.0))
    [0.0, 2.0]
    """
    actions = np.array(problem.actions)
    squares = np.sum(actions * actions, axis=1)
    kept = squares > 0
    best = actions[int(np.argmin(problem.gaps))]
    inner = np.abs(actions[kept] @ (actions - best).T) / squares[kept, None]
    return [float(weight) for weight in np.sum(inner, axis=0)]


def structural_constant(problem: LinearProblem) -> float:
    """c(A, theta) of Theorem 5: the least sum of n(a) gap(a) over n >= 0 such that every worse action a has
    a' H^-1 a <= min(gap^2 / 2, 3 epsilon rho_a gap), where H = sum n(b) b b'.

    Playing the best action costs nothing, so n(best) grows without limit, and only the components orthogonal to the
    best action matter. For these, a' H^-1 a is the least sum of w_b^2 / n(b) over weights with sum w_b b = a. So the
    constant is the value of a cone program.

    >>> basis = LinearProblem(((1.0, 0.0), (0.0, 1.0)), (1.0, 0.5), horizon=1000, epsilon=0.01)
    >>> round(structural_constant(basis), 3), round(max(2 / 0.5, 1 / (6 * 0.01)), 3)
    (16.667, 16.667)
    """
    try:
        import cvxpy as cp
    except ImportError:
        raise MissingExtraError("cvxpy", "linear") from None
    gaps = np.array(problem.gaps)
    actions = np.array(problem.actions)
    _check(actions, gaps)
    worse = np.flatnonzero(gaps > 0)
    limits = np.minimum(0.5 * gaps**2, 3.0 * problem.epsilon * np.array(action_weights(problem)) * gaps)[worse]
    seen = _without_best(actions, gaps)[worse]
    asked = [i for i in range(len(worse)) if np.linalg.norm(seen[i]) > 1e-12]
    if not asked:
        return 0.0
    unit = float(np.min(limits[asked]))  # plays are counted in units of 1/unit, so that the solver's numbers are near 1
    plays = cp.Variable(len(worse), nonneg=True)
    rules = []
    for i in asked:
        weights = cp.Variable(len(worse))
        rules.append(seen.T @ weights == seen[i])
        rules.append(cp.sum([cp.quad_over_lin(weights[j], plays[j]) for j in range(len(worse))]) <= limits[i] / unit)
    program = cp.Problem(cp.Minimize(gaps[worse] @ plays), rules)
    program.solve(solver=cp.CLARABEL)
    if program.status != "optimal":  # an inaccurate solution can exceed the constant, and would not be a lower bound
        raise DoesNotHold(f"the convex program must be solved accurately, and is {program.status}")
    return float(program.value) / unit


def _check(actions: Floats, gaps: Floats) -> None:
    if np.linalg.matrix_rank(actions) < actions.shape[1]:
        raise DoesNotHold(
            f"actions must span R^{actions.shape[1]}, and span {np.linalg.matrix_rank(actions)} dimensions"
        )
    best = int(np.sum(gaps <= 1e-12 * np.max(np.abs(gaps), initial=1e-12)))
    if best != 1:
        raise DoesNotHold(f"one action must be best, and {best} are")


def _without_best(actions: Floats, gaps: Floats) -> Floats:
    """The actions' coordinates in the subspace orthogonal to the best action."""
    best = actions[int(np.argmin(gaps))]
    return np.asarray(actions @ null_space(best[None, :]) if np.any(best) else actions)


def _cube(problem: LinearProblem, dimensions: int) -> Curve:
    epsilon, d = problem.epsilon, problem.dimension

    def curve(horizon: float) -> float:
        private = math.exp(-6.0 * epsilon * dimensions * math.sqrt(horizon))
        return max(math.exp(-2.0), private) * d * math.sqrt(horizon) / 8.0

    return curve
