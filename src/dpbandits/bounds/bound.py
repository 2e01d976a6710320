"""A theorem is a function from a problem to a ``Bound``, which carries the theorem's source and its conditions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Protocol, TypeVar

import numpy as np

from dpbandits.numerics import positive_log
from dpbandits.types import Floats

__all__ = ["CONSISTENT", "UNIT", "Bound", "Curve", "DoesNotHold", "LongRun", "Theorem", "theorem"]

Kind = Literal["lower", "upper"]
Form = Literal["printed", "corrected", "proved"]  # "proved": ours, on a page of this package
Trust = Literal["any", "local", "central"]
ProblemScope = Literal["this problem", "some problem", "every problem"]
Curve = Callable[[float], float]

#: Conditions that several theorems share.
UNIT = "rewards in [0, 1]; every horizon"
CONSISTENT = "any consistent policy; regret / log(horizon) as the horizon grows"


class _Asked(Protocol):
    @property
    def horizon(self) -> int: ...

    @property
    def gap_at_random(self) -> float: ...


@dataclass(frozen=True)
class LongRun:
    """A bound on the limit of regret / log(horizon). It says nothing about any one horizon."""

    rate: float

    def __call__(self, horizon: float) -> float:
        return self.rate * positive_log(horizon)


Q = TypeVar("Q", bound=_Asked)
P = ParamSpec("P")


class DoesNotHold(ValueError):  # noqa: N818 (the theorem does not apply; this is not a fault)
    """A condition of a theorem is not met. The message names the condition and the value found."""


@dataclass(frozen=True)
class Bound:
    """One theorem on one problem.

    ``value`` is None if a condition fails, and ``holds`` then names the condition. ``scope`` is "some problem" for a
    minimax lower bound: such a bound is about the hardest problem with the same number of arms, and the regret on this
    problem may be below it. ``form`` is "corrected" if the statement differs from the paper; ``note`` says how it
    differs, and what is wrong in the paper. ``checked`` is False if we could not check a proof: the proof has a gap, or
    it was not available. Do not test a policy against such a bound.

    ``rate`` is set for a bound on the limit of regret / log(horizon). Such a theorem says nothing about a given
    horizon, so no measured regret can contradict it. ``value`` is then the rate times log(horizon); that of a lower
    bound is at most what random play loses.

    A claim that simulations refute has no ``value``. ``claimed`` is the number that the paper gives.

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
    scope: ProblemScope
    checked: bool
    corrects: str  # the name of the printed form, where this is the corrected one
    rate: float | None = None
    claimed: float | None = None
    _curve: Curve | None = field(default=None, repr=False, compare=False)

    def at(self, horizons: Iterable[float]) -> Floats:
        """The bound on regret at each horizon; NaN where it does not hold."""
        return np.array([self._at(float(horizon)) for horizon in horizons], dtype=np.float64)

    def _at(self, horizon: float) -> float:
        if self._curve is None:
            return math.nan
        try:
            return self._curve(horizon)
        except DoesNotHold:
            return math.nan

    def to_json(self) -> dict[str, Any]:
        """This bound as a JSON-ready dictionary."""
        names = ("value", "source", "holds", "form", "note", "trust", "scope", "checked", "rate", "claimed")
        return {**{name: getattr(self, name) for name in names}, "policies": list(self.policies)}


@dataclass(frozen=True)
class Statement:
    """The part of a theorem that does not depend on a problem."""

    kind: Kind
    source: str
    holds: str
    form: Form
    about: tuple[str, ...] | Callable[[], tuple[str, ...]]  # the policies
    note: str
    trust: Trust
    scope: ProblemScope
    checked: bool
    corrects: str
    refuted: str

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies that it is about; none for a theorem about all policies of a trust model."""
        return self.about if isinstance(self.about, tuple) else self.about()


class Theorem(Generic[Q, P]):
    """A function ``(problem, options) -> Bound``, which ``theorem`` makes from a function that returns a ``Curve``."""

    def __init__(self, curve: Callable[Concatenate[Q, P], Curve], about: type[Q], statement: Statement) -> None:
        functools.update_wrapper(self, curve)
        self.name = curve.__name__.replace("_", "-")
        self.about = about
        self.statement = statement
        self._curve = curve

    def __call__(self, problem: Q, *args: P.args, **kwargs: P.kwargs) -> Bound:
        s = self.statement
        value, holds, curve, rate, claimed = None, s.holds, None, None, None
        try:
            curve = self._curve(problem, *args, **kwargs)
            if isinstance(curve, LongRun):
                rate = curve.rate
                curve = _at_most_random(curve, problem.gap_at_random) if s.kind == "lower" else curve
            value = curve(float(problem.horizon))
        except DoesNotHold as reason:
            holds = f"does not apply: {reason}"
        if s.refuted and value is not None:
            holds, claimed, value, curve = f"refuted by simulation: {s.refuted}", value, None, None
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
            s.corrects,
            rate,
            claimed,
            curve,
        )


def _at_most_random(curve: Curve, gap: float) -> Curve:
    """The curve, cut off at what random play loses: ``gap`` in every round, on average."""
    return lambda horizon: min(curve(horizon), gap * horizon)


def theorem(
    about: type[Q],
    kind: Kind,
    source: str,
    holds: str,
    *,
    form: Form = "printed",
    policies: tuple[str, ...] | Callable[[], tuple[str, ...]] = (),
    note: str = "",
    trust: Trust = "any",
    scope: ProblemScope = "this problem",
    checked: bool = True,
    corrects: str = "",
    refuted: str = "",
) -> Callable[[Callable[Concatenate[Q, P], Curve]], Theorem[Q, P]]:
    """Decorator for a function that checks the conditions and returns the bound as a function of the horizon.

    ``refuted`` is the evidence against a claim that is false.
    """
    proven = checked and not refuted
    statement = Statement(kind, source, holds, form, policies, note, trust, scope, proven, corrects, refuted)
    return lambda curve: Theorem(curve, about, statement)
