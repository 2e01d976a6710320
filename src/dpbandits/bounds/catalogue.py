"""All theorems, found in the package: a new one is a decorated function, and nothing else."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import Any

import dpbandits.bounds as package
from dpbandits.bounds.bound import Bound, Theorem
from dpbandits.bounds.problem import LinearProblem, Problem
from dpbandits.environments.numbers import number
from dpbandits.errors import known
from dpbandits.privacy.guarantee import Guarantee

__all__ = ["applicable", "evaluate", "for_policy", "read_options", "report", "theorem_named", "theorems"]


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


def evaluate(problem: Problem | LinearProblem, options: Mapping[str, Any] | None = None) -> list[Bound]:
    """Every theorem about such problems, with a value where it applies and a reason where it does not.

    Each theorem takes those of the ``options`` that it knows: alpha, epsilon_min, delta, v, schedule.

    >>> bounds = evaluate(Problem.gaussian([0.9, 0.6], 1000, epsilon=1.0))
    >>> next(bound.holds for bound in bounds if bound.name == "adap-ucb")
    'does not apply: rewards must lie in [0, 1], and are gaussian'
    """
    about = [theorem for theorem in theorems() if isinstance(problem, theorem.about)]
    given = dict(options or {})
    for option in given:
        known("option of a bound", option, sorted(set().union(*map(_options, about))))
    return [theorem(problem, **{k: v for k, v in given.items() if k in _options(theorem)}) for theorem in about]


def read_options(texts: Mapping[str, str]) -> dict[str, Any]:
    """Options of theorems as numbers where they are; ``epsilon_min=auto`` is the V_L or V_B rule, as if not given.

    >>> read_options({"alpha": "4", "schedule": "x", "epsilon_min": "auto"})
    {'alpha': 4.0, 'schedule': 'x'}
    """
    takes = {name: parameter for theorem in theorems() for name, parameter in _options(theorem).items()}
    given: dict[str, Any] = {}
    for name, text in texts.items():
        known("option of a bound", name, sorted(takes))
        if (name, text) != ("epsilon_min", "auto"):
            given[name] = number(name, text) if "float" in str(takes[name].annotation) else text
    return given


def _options(theorem: Theorem[Any, Any]) -> dict[str, inspect.Parameter]:
    """The options that a theorem takes beside the problem."""
    return dict(list(inspect.signature(theorem).parameters.items())[1:])


def applicable(problem: Problem | LinearProblem, options: Mapping[str, Any] | None = None) -> list[Bound]:
    """The bounds that hold on a problem.

    >>> bounds = applicable(Problem.bernoulli([0.9, 0.6], 1000, epsilon=1.0))
    >>> all(bound.value is not None for bound in bounds), len(bounds) >= 20
    (True, True)
    """
    return [bound for bound in evaluate(problem, options) if bound.value is not None]


def for_policy(
    problem: Problem, policy: str, guarantee: Guarantee, options: Mapping[str, Any] | None = None
) -> list[Bound]:
    """The bounds on one policy's regret: its own upper bounds, and the lower bounds that its promise puts it under.

    A printed form is left out where there is a corrected one, and so are lower bounds about some other problem. What
    holds for every centrally private policy holds for locally private ones, which are centrally private too, but not
    for one with a delta; the bounds of randomised responses hold for the policies that receive them.

    >>> problem = Problem.bernoulli([0.9, 0.6], 1000, epsilon=1.0)
    >>> [bound.name for bound in for_policy(problem, "ldp-ucb-b", Guarantee.local(1.0))]
    ['dp-lower', 'dp-lower-bernoulli', 'lai-robbins', 'ldp-lower', 'ldp-lower-randomised-response', 'ldp-ucb-b',
     'ldp-ucb-b-distribution-free']
    """
    under = {"none": ("any",), "central": ("any", "central"), "local": ("any", "central", "local")}[guarantee.trust]
    if guarantee.delta > 0.0:
        under = ("any",)
    known_to_all = set().union(*map(_options, theorems()))
    bounds = applicable(problem, {k: v for k, v in (options or {}).items() if k in known_to_all})
    names = {bound.name for bound in bounds}

    def concerns(bound: Bound) -> bool:
        if bound.name.endswith("-printed") and bound.name.removesuffix("-printed") in names:
            return False
        if bound.kind == "upper" or bound.policies:
            return policy in bound.policies
        return bound.trust in under and bound.scope == "this problem"

    return [bound for bound in bounds if concerns(bound)]


def report(problem: Problem | LinearProblem, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What ``dpbandits bounds --json`` prints: lower and upper bounds by name, and the policies that have one.

    >>> sorted(report(Problem.bernoulli([0.9, 0.6], 1000, epsilon=1.0)))
    ['lower', 'policies', 'upper']
    """
    bounds = evaluate(problem, options)
    sides = {kind: {b.name: b.to_json() for b in bounds if b.kind == kind} for kind in ("lower", "upper")}
    policies = sorted({policy for bound in bounds if bound.value is not None for policy in bound.policies})
    return {**sides, "policies": policies}
