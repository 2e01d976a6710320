"""A theorem is a function from a problem to a bound, which knows its source and what must hold."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bound", "Curve", "DoesNotHold", "Theorem", "theorem"]

Kind = Literal["lower", "upper"]
Form = Literal["printed", "corrected"]
Trust = Literal["any", "local", "central"]
Scope = Literal["this problem", "some problem", "every problem"]
Curve = Callable[[float], float]


class _Asked(Protocol):
    @property
    def horizon(self) -> int: ...


Q = TypeVar("Q", bound=_Asked)
P = ParamSpec("P")


class DoesNotHold(ValueError):  # noqa: N818 (a fact about a problem, not a fault)
    """A condition of a theorem fails: the message says which, and what was found."""


@dataclass(frozen=True)
class Bound:
    """One theorem on one problem.

    ``value`` is None where a condition fails, and then ``holds`` says which. ``scope`` is "some problem" for a minimax
    lower bound: it is about the hardest problem with as many arms, and the regret on this one may well be below it.
    ``form`` is "corrected" where the statement differs from the print; ``note`` says how, and what is wrong with it.
    ``checked`` is False where no proof stands: it has a gap, or was not available. Do not test a policy against those.

    >>> from dpbandits.bounds import Problem, central
    >>> bound = central.adap_ucb(Problem.bernoulli([0.75, 0.625], horizon=1000, epsilon=1.0))
    >>> bound.kind, round(bound.value), [round(x) for x in bound.at([10, 1000])]
    ('upper', 1789, [658, 1789])
    """

    name: str
    kind: Kind
    value: float | None
    source: str
    holds: str
    form: Form
    policies: tuple[str, ...]
    note: str
    trust: Trust
    scope: Scope
    checked: bool
    _curve: Curve | None = field(default=None, repr=False, compare=False)

    def at(self, horizons: Iterable[float]) -> NDArray[np.float64]:
        """The bound on regret at each horizon; not a number where it does not hold."""
        return np.array([self._at(float(horizon)) for horizon in horizons], dtype=np.float64)

    def _at(self, horizon: float) -> float:
        if self._curve is None:
            return math.nan
        try:
            return self._curve(horizon)
        except DoesNotHold:
            return math.nan

    def to_json(self) -> dict[str, Any]:
        """JSON-ready."""
        names = ("value", "source", "holds", "form", "note", "trust", "scope", "checked")
        return {**{name: getattr(self, name) for name in names}, "policies": list(self.policies)}


@dataclass(frozen=True)
class Statement:
    """What is known of a theorem before any problem is."""

    kind: Kind
    source: str
    holds: str
    form: Form
    policies: tuple[str, ...]
    note: str
    trust: Trust
    scope: Scope
    checked: bool


class Theorem(Generic[Q, P]):
    """A function ``(problem, options) -> Bound``, made by ``theorem`` from one that returns regret against horizon."""

    def __init__(self, curve: Callable[Concatenate[Q, P], Curve], about: type[Q], statement: Statement) -> None:
        functools.update_wrapper(self, curve)
        self.name = curve.__name__.replace("_", "-")
        self.about = about
        self.statement = statement
        self._curve = curve

    def __call__(self, problem: Q, *args: P.args, **kwargs: P.kwargs) -> Bound:
        s = self.statement
        value, holds, curve = None, s.holds, None
        try:
            curve = self._curve(problem, *args, **kwargs)
            value = curve(float(problem.horizon))
        except DoesNotHold as reason:
            holds = f"does not apply: {reason}"
        return Bound(
            self.name,
            s.kind,
            value,
            s.source,
            holds,
            s.form,
            s.policies,
            s.note,
            s.trust,
            s.scope,
            s.checked,
            curve,
        )


def theorem(
    about: type[Q],
    kind: Kind,
    source: str,
    holds: str,
    *,
    form: Form = "printed",
    policies: tuple[str, ...] = (),
    note: str = "",
    trust: Trust = "any",
    scope: Scope = "this problem",
    checked: bool = True,
) -> Callable[[Callable[Concatenate[Q, P], Curve]], Theorem[Q, P]]:
    """Make a theorem of a function that checks the conditions and returns the bound as a function of the horizon."""
    statement = Statement(kind, source, holds, form, policies, note, trust, scope, checked)
    return lambda curve: Theorem(curve, about, statement)
