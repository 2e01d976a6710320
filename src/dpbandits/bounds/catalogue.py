"""All theorems, found in the package: a new one is a decorated function, and nothing else."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Any

import dpbandits.bounds as package
from dpbandits.bounds.bound import Bound, Theorem
from dpbandits.bounds.problem import LinearProblem, Problem
from dpbandits.errors import known

__all__ = ["applicable", "evaluate", "report", "theorem_named", "theorems"]


@cache
def theorems() -> tuple[Theorem[Any, Any], ...]:
    """Every theorem in ``dpbandits.bounds``, by name.

    >>> "adap-ucb" in [theorem.name for theorem in theorems()]
    True
    """
    found: dict[str, Theorem[Any, Any]] = {}
    for module in pkgutil.iter_modules(package.__path__):
        for thing in vars(importlib.import_module(f"{package.__name__}.{module.name}")).values():
            if isinstance(thing, Theorem):
                found[thing.name] = thing
    return tuple(found[name] for name in sorted(found))


def theorem_named(name: str) -> Theorem[Any, Any]:
    """The theorem of this name; the nearest ones are named where there is none.

    >>> theorem_named("adap-ucb").statement.source
    'Azize & Basu 2022, Theorem 7'
    """
    named = {theorem.name: theorem for theorem in theorems()}
    return named[known("bound", name, named)]


def evaluate(problem: Problem | LinearProblem) -> list[Bound]:
    """Every theorem about such problems, with a value where it applies and a reason where it does not.

    >>> bounds = evaluate(Problem.gaussian([0.9, 0.6], 1000, epsilon=1.0))
    >>> next(bound.holds for bound in bounds if bound.name == "adap-ucb")
    'does not apply: rewards must lie in [0, 1], and are gaussian'
    """
    return [theorem(problem) for theorem in theorems() if isinstance(problem, theorem.about)]


def applicable(problem: Problem | LinearProblem) -> list[Bound]:
    """The bounds that hold on a problem.

    >>> bounds = applicable(Problem.bernoulli([0.9, 0.6], 1000, epsilon=1.0))
    >>> all(bound.value is not None for bound in bounds), len(bounds) >= 20
    (True, True)
    """
    return [bound for bound in evaluate(problem) if bound.value is not None]


def report(problem: Problem | LinearProblem) -> dict[str, Any]:
    """What ``dpbandits bounds --json`` prints: lower and upper bounds by name, and the policies that have one.

    >>> sorted(report(Problem.bernoulli([0.9, 0.6], 1000, epsilon=1.0)))
    ['lower', 'policies', 'upper']
    """
    bounds = evaluate(problem)
    sides = {kind: {b.name: b.to_json() for b in bounds if b.kind == kind} for kind in ("lower", "upper")}
    policies = sorted({policy for bound in bounds if bound.value is not None for policy in bound.policies})
    return {**sides, "policies": policies}
