"""All theorems of the package, found by searching its modules. To add one, write a decorated function."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import dpbandits.bounds as package
from dpbandits.bounds.bound import Bound, Theorem
from dpbandits.bounds.problem import LinearProblem, Problem
from dpbandits.checks import fraction, known, nearest, positive
from dpbandits.environments.numbers import number
from dpbandits.errors import InputError
from dpbandits.policies.policy import AUTO
from dpbandits.privacy.guarantee import FROM_LOG, Guarantee

__all__ = ["applicable", "evaluate", "for_policy", "read_options", "report", "theorem_named", "theorems"]


@cache
def theorems() -> tuple[Theorem[Any, Any], ...]:
    """Every theorem in ``dpbandits.bounds``, sorted by name.

    >>> "adap-ucb" in [theorem.name for theorem in theorems()]
    True
    """
    found: dict[str, Theorem[Any, Any]] = {}
    for module in pkgutil.iter_modules(package.__path__):
        for thing in vars(importlib.import_module(f"{package.__name__}.{module.name}")).values():
            if isinstance(thing, Theorem):
                found[thing.name] = thing
    return tuple(found[name] for name in sorted(found))


#: What a numeric option of a theorem must be, where that is not any positive number.
RANGES: dict[str, Callable[[str, float], float]] = {"delta": fraction}


def theorem_named(name: str) -> Theorem[Any, Any]:
    """The theorem with this name. The error for an unknown name suggests the nearest ones.

    >>> theorem_named("adap-ucb").statement.source
    'Azize & Basu 2022, Theorem 7'
    """
    named = {theorem.name: theorem for theorem in theorems()}
    return named[known("bound", name, named)]


def evaluate(problem: Problem | LinearProblem, options: Mapping[str, Any] | None = None) -> list[Bound]:
    """Every theorem for this kind of problem, with its value if it applies and the reason if it does not.

    Each theorem uses only the ``options`` that it has: alpha, epsilon_min, delta, v, schedule.

    >>> bounds = evaluate(Problem.gaussian([0.9, 0.6], 1000, epsilon=1.0))
    >>> next(bound.holds for bound in bounds if bound.name == "adap-ucb")
    'does not apply: rewards must lie in [0, 1], and are normal'
    """
    if not isinstance(problem, Problem | LinearProblem):
        raise InputError("problem", f"must be a Problem or a LinearProblem, got {problem!r:.80}")
    about = [theorem for theorem in theorems() if isinstance(problem, theorem.about)]
    given = dict(options or {})
    for option in given:
        _check_option(option, set().union(*map(_options, about)))
    return [theorem(problem, **{k: v for k, v in given.items() if k in _options(theorem)}) for theorem in about]


def read_options(texts: Mapping[str, str]) -> dict[str, Any]:
    """Options of theorems, parsed from text. Numeric options become floats.

    An option that a theorem chooses where it is not given, as ``epsilon_min`` by the V_L or V_B rule, may be ``auto``.

    >>> read_options({"alpha": "4", "schedule": "x", "epsilon_min": "auto"})
    {'alpha': 4.0, 'schedule': 'x'}
    """
    takes = {name: parameter for theorem in theorems() for name, parameter in _options(theorem).items()}
    given: dict[str, Any] = {}
    for name, text in texts.items():
        _check_option(name, takes)
        if text == AUTO and takes[name].default is None:
            continue
        if "float" not in str(takes[name].annotation):
            given[name] = text
        else:
            given[name] = RANGES.get(name, positive)(name, number(name, text))
    return given


def _check_option(name: str, names: Iterable[str]) -> None:
    if name not in names:
        raise InputError(name, f"is not an option of a bound: {nearest(name, sorted(names))}")


def _options(theorem: Theorem[Any, Any]) -> dict[str, inspect.Parameter]:
    """The options that a theorem takes besides the problem."""
    return dict(list(inspect.signature(theorem).parameters.items())[1:])


def applicable(problem: Problem | LinearProblem, options: Mapping[str, Any] | None = None) -> list[Bound]:
    """The bounds that hold on a problem; claims that simulations refute are not among them.

    >>> bounds = applicable(Problem.bernoulli([0.9, 0.6], 1000, epsilon=1.0))
    >>> all(bound.value is not None for bound in bounds), len(bounds) >= 20
    (True, True)
    """
    return [bound for bound in evaluate(problem, options) if bound.value is not None]


def for_policy(
    problem: Problem, policy: str, guarantee: Guarantee, options: Mapping[str, Any] | None = None
) -> list[Bound]:
    """The bounds on one policy's regret: its own upper bounds, and the lower bounds that its guarantee implies.

    A printed form is left out if there is a corrected one. Lower bounds about some other problem are left out too. A
    locally private policy is also centrally private, so lower bounds for central privacy apply to it. They do not apply
    to a policy with a delta. Bounds for randomised responses apply to the policies that receive such responses.

    >>> problem = Problem.bernoulli([0.9, 0.6], 1000, epsilon=1.0)
    >>> [bound.name for bound in for_policy(problem, "ldp-ucb-b", Guarantee.local(1.0))]
    ['dp-lower', 'dp-lower-bernoulli', 'lai-robbins', 'ldp-lower', 'ldp-lower-randomised-response', 'ldp-ucb-b',
     'ldp-ucb-b-distribution-free']
    """
    under = {"none": ("any",), "central": ("any", "central"), "local": ("any", "central", "local")}[guarantee.trust]
    if guarantee.delta > 0.0:
        under = ("any",)

    def concerns(theorem: Theorem[Any, Any]) -> bool:
        said = theorem.statement
        if said.kind == "upper" or said.policies:
            return policy in said.policies
        return said.trust in under and said.scope == "this problem"

    bounds = []
    for theorem in filter(concerns, theorems()):
        if isinstance(problem, theorem.about):
            given = {name: value for name, value in (options or {}).items() if name in _options(theorem)}
            bounds.append(theorem(problem, **given))
    holding = [bound for bound in bounds if bound.value is not None]
    corrected = {bound.corrects for bound in holding}
    return [bound for bound in holding if bound.name not in corrected]


def report(problem: Problem | LinearProblem, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What ``dpbandits bounds --json`` prints: lower and upper bounds by name, and the policies with a bound.

    ``promise`` is present only if the numbers were computed from a log, so that nothing is promised about them.

    >>> sorted(report(Problem.bernoulli([0.9, 0.6], 1000, epsilon=1.0)))
    ['lower', 'policies', 'upper']
    """
    bounds = evaluate(problem, options)
    sides = {kind: {b.name: b.to_json() for b in bounds if b.kind == kind} for kind in ("lower", "upper")}
    policies = sorted({policy for bound in bounds if bound.value is not None for policy in bound.policies})
    return {**sides, "policies": policies, **({"promise": f"none: {FROM_LOG}"} if problem.from_log else {})}
