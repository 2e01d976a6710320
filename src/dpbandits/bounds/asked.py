"""The theorems on a problem as a user states it: ``dp.bounds([0.9, 0.6], horizon=1e6, epsilon=1)``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dpbandits.bounds.bound import Bound
from dpbandits.bounds.catalogue import evaluate, read_options, report
from dpbandits.bounds.problem import Problem
from dpbandits.checks import at_least, positive
from dpbandits.display import card, sparkline
from dpbandits.environments import Arms
from dpbandits.environments.levels import levels_of
from dpbandits.environments.numbers import low_and_high, real
from dpbandits.errors import InputError
from dpbandits.formats import amount
from dpbandits.privacy.guarantee import FROM_LOG

__all__ = ["Bounds", "bounds"]


@dataclass(frozen=True, eq=False, repr=False)
class Bounds:
    """Every theorem on one problem; iterating gives the bounds that hold."""

    problem: Problem
    all: list[Bound]  # also those that do not apply, with the reason
    options: dict[str, Any]

    def __iter__(self) -> Iterator[Bound]:
        return iter(bound for bound in self.all if bound.value is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, name: str) -> Bound:
        for bound in self.all:
            if bound.name == name:
                return bound
        raise KeyError(name)

    def lower(self) -> list[Bound]:
        """The lower bounds that hold, the largest first."""
        return sorted((b for b in self if b.kind == "lower"), key=lambda b: -(b.value or 0.0))

    def upper(self) -> list[Bound]:
        """The upper bounds that hold at this horizon, the smallest first: not those on the limit of regret / log T."""
        return sorted((b for b in self if b.kind == "upper" and b.rate is None), key=lambda b: b.value or 0.0)

    def to_json(self) -> dict[str, Any]:
        """What ``dpbandits bounds --json`` prints."""
        return report(self.problem, self.options)

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        first = next(iter([*self.upper(), *self.lower()]), None)
        times = [self.problem.horizon ** (number / 30) for number in range(10, 31)]
        return card(
            self._lines(),
            "" if first is None else sparkline(first.at(times).tolist()),
            "" if first is None else f"{first.name} over log t",
        )

    def _lines(self) -> list[str]:
        asked = self.problem
        privacy = f"levels {asked.levels}" if asked.epsilon is None else f"epsilon {asked.epsilon:g}"
        lines = [f"Bounds: {len(self)} theorems on {asked.arms} arms, {asked.horizon:,} rounds, {privacy}"]
        for words, found in (("largest lower bounds", self.lower()), ("smallest upper bounds", self.upper())):
            shown = ", ".join(f"{bound.name} {amount(bound.value or 0.0)}" for bound in found[:3])
            lines.append(f"  {words}: {shown or 'none'}")
        return [*lines, f"  no promise: {FROM_LOG}"] if asked.from_log else lines


def bounds(
    arms: object,
    *,
    horizon: int | float | str,
    epsilon: float | str | None = None,
    levels: object = None,
    reward_range: object = None,
    **options: Any,
) -> Bounds:
    """Every theorem on the regret of a problem: its value, source and conditions.

    ``arms`` and ``levels`` are what ``simulate`` takes. Options such as ``alpha=2`` are those of the policies.

    >>> found = bounds([0.9, 0.6], horizon=100_000, epsilon=1)
    >>> found["adap-ucb"].source, len(found.lower()) > 3
    ('Azize & Basu 2022, Theorem 7', True)
    """
    if epsilon is None and levels is None:
        raise InputError("epsilon", "or levels is required by bounds, got none")
    problem = Problem.on(
        Arms.of(arms),
        at_least("horizon", real("horizon", horizon), 1),
        epsilon=None if epsilon is None else positive("epsilon", real("epsilon", epsilon)),
        levels=levels_of(levels),
        reward_range=None if reward_range is None else low_and_high("reward_range", reward_range),
    )
    read = {k: v for k, v in options.items() if not isinstance(v, str)}
    read |= read_options({k: v for k, v in options.items() if isinstance(v, str)})
    return Bounds(problem, evaluate(problem, read), read)
