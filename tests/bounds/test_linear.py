"""The theorems on linear bandits, and when they must refuse."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np
import pytest
from bound_cases import LOG, basis, value

from dpbandits.bounds import LinearProblem, linear
from dpbandits.errors import InputError, MissingExtraError


def test_azize_theorem_4() -> None:
    problem = basis((1.0, 0.5, 0.2), 1e-4)
    assert value(linear.linear_minimax_lower_printed(problem)) == pytest.approx(math.exp(-1.8) * 3 * 1000 / 8)
    assert value(linear.linear_minimax_lower(problem)) == pytest.approx(math.exp(-0.6) * 3 * 1000 / 8)
    free = basis((1.0, 0.5, 0.2), 1.0)
    assert value(linear.linear_minimax_lower(free)) == pytest.approx(math.exp(-2) * 3 * 1000 / 8)


@pytest.mark.parametrize("epsilon", [10.0, 0.05, 0.001])
def test_azize_theorem_5_on_the_orthogonal_basis(epsilon: float) -> None:
    problem = basis((1.0, 0.7, 0.5, -0.2), epsilon)
    assert linear.action_weights(problem) == [0, 2, 2, 2]
    by_hand = sum(gap / min(0.5 * gap**2, 6 * epsilon * gap) for gap in (0.3, 0.5, 1.2))
    assert linear.structural_constant(problem) == pytest.approx(by_hand, rel=1e-5)
    assert value(linear.linear_lower(problem)) == pytest.approx(by_hand * LOG, rel=1e-5)


def test_azize_theorem_5_in_the_plane() -> None:
    """Three actions; an informative bad one. Orthogonal to the best (1, 0) only the second coordinate counts."""
    problem = LinearProblem(((1.0, 0.0), (0.9, 0.1), (0.0, 1.0)), (1.0, 0.0), 10**6, epsilon=100.0)
    # 0.01 <= n_2 0.01 + n_3 times each limit: 0.01 / h <= 0.005 and 1 / h <= 0.5, h = 0.01 n_2 + n_3
    h = max(0.01 / (0.5 * 0.1**2), 1 / 0.5)
    by_hand = min(0.1 * h / 0.01, 1.0 * h)
    assert linear.structural_constant(problem) == pytest.approx(by_hand, rel=1e-5)


def test_azize_theorem_5_is_the_program_it_states() -> None:
    """On random actions: the answer is feasible for a large number of best plays, and no cheaper point nearby is."""
    rng = np.random.default_rng(5)
    actions = rng.normal(size=(6, 3))
    theta = rng.normal(size=3)
    problem = LinearProblem(tuple(map(tuple, actions.tolist())), tuple(theta.tolist()), 10**6, epsilon=0.05)
    gaps = np.array(problem.gaps)
    limits = np.minimum(0.5 * gaps**2, 3 * 0.05 * np.array(linear.action_weights(problem)) * gaps)
    constant = linear.structural_constant(problem)
    cheapest = math.inf
    for _ in range(20_000):  # any feasible point costs at least the constant
        plays = rng.exponential(size=6) ** 3 * (gaps > 0) + 1e9 * (gaps == 0)
        inverse = np.linalg.inv((actions * plays[:, None]).T @ actions)
        scale = max(float(a @ inverse @ a / limit) for a, limit in zip(actions, limits, strict=True) if limit > 0)
        cheapest = min(cheapest, scale * float(np.dot(plays, gaps)))
    assert constant <= cheapest * (1 + 1e-6)
    assert cheapest <= 1.5 * constant


def test_azize_theorem_5_refuses() -> None:
    flat = LinearProblem(((1.0, 0.0), (0.5, 0.0)), (1.0, 0.0), 100, 1.0)
    assert "actions must span R^2" in linear.linear_lower(flat).holds
    tie = LinearProblem(((1.0, 0.0), (0.0, 1.0)), (1.0, 1.0), 100, 1.0)
    assert "one action must be best, and 2 are" in linear.linear_lower(tie).holds
    with pytest.raises(InputError, match="actions must have dimension 2, got 1"):
        LinearProblem(((1.0,),), (1.0, 0.0), 100, 1.0)


def test_linear_without_a_solver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "cvxpy":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[linear\]'"):
        linear.structural_constant(basis((1.0, 0.5), 1.0))
