"""What a user knows, read and checked: arms or guesses about them, traffic, trust, epsilons, and a budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpbandits.environments import parse_arms
from dpbandits.environments.numbers import number
from dpbandits.errors import InputError, at_least, known, positive
from dpbandits.policies import lookup

__all__ = ["Question", "ask"]

TRUSTS = ("central", "local")
STEPS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # around the epsilon that is asked about
POINTS = 8  # of a range


@dataclass(frozen=True)
class Question:
    """A plan to be made; ``epsilon`` is the one asked about, ``epsilons`` the curve around it."""

    arms: str
    horizon: int
    trusts: tuple[str, ...]
    epsilons: tuple[float, ...]
    epsilon: float | None
    budget: float | None  # of regret
    refuse: Fraction  # share of the users
    per_day: float | None
    policies: tuple[str, ...]  # none are all that suit
    runs: int
    seed: int

    @property
    def means(self) -> list[float]:
        """The arms' means."""
        return [arm.mean for arm in parse_arms(self.arms)]

    @property
    def at_random(self) -> float:
        """The regret of playing every arm equally often."""
        return self.horizon * (max(self.means) - math.fsum(self.means) / len(self.means))

    @property
    def told(self) -> int:
        """Rounds in which the user shares a reward."""
        return round(self.horizon * (1 - self.refuse))

    def levels(self, epsilon: float, refuse: Fraction) -> str:
        """The population in which so many users refuse and the others have this level."""
        if refuse == 0:
            return f"constant({epsilon!r})"
        listed = ["0"] * refuse.numerator + [repr(epsilon)] * (refuse.denominator - refuse.numerator)
        return f"choice({','.join(listed)})"

    def loss(self, regret: float) -> float | None:
        """Regret as a share of what the best arm would pay; None where it pays nothing."""
        best = max(self.means)
        return regret / (best * self.horizon) if best > 0 else None

    def to_json(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "arms": self.arms,
            "means": self.means,
            "horizon": self.horizon,
            "per_day": self.per_day,
            "trust": list(self.trusts),
            "epsilon": self.epsilon,
            "epsilons": list(self.epsilons),
            "budget": self.budget,
            "refuse": float(self.refuse),
            "runs": self.runs,
            "seed": self.seed,
        }


def ask(
    arms: str,
    *,
    best: float | None = None,
    gap: float | None = None,
    horizon: float | None = None,
    traffic: float | None = None,
    days: float | None = None,
    trust: str = "any",
    epsilon: str | float | None = None,
    budget: str | float | None = None,
    refuse: str | float = 0.0,
    policies: Sequence[str] = (),
    runs: float = 20,
    seed: float = 0,
) -> Question:
    """Read a question. ``arms`` is a text as elsewhere, or their number, with a ``best`` mean and the others' ``gap``.

    ``epsilon`` is one, a list ``0.1,1`` or a range ``0.1:10``; ``budget`` and ``refuse`` may be percentages: a budget
    of 5% is of what the best arm would pay.

    >>> question = ask("5", best=0.036, gap=0.006, horizon=1e6, epsilon=1, budget="5%", refuse="20%")
    >>> question.arms, question.budget, question.levels(1.0, question.refuse)
    ('0.036,0.03,0.03,0.03,0.03', 1800.0, 'choice(0,1.0,1.0,1.0,1.0)')
    """
    text = _arms(str(arms).strip(), best, gap)
    means = [arm.mean for arm in parse_arms(text)]
    if min(means) == max(means):
        raise InputError(f"arms must not all have the same mean, got {text}")
    rounds = _rounds(horizon, traffic, days, len(means))
    known("trust", trust, (*TRUSTS, "any"))
    epsilons, one = _epsilons(epsilon)
    for name in policies:
        known("policy", name, lookup.names())
    share = Fraction(_share("refuse", refuse)).limit_denominator(100)
    if not 0 <= share < 1:
        raise InputError(f"refuse must be at least 0% and below 100%, got {refuse}")
    return Question(
        text,
        rounds,
        TRUSTS if trust == "any" else (trust,),
        epsilons,
        one,
        None if budget is None else _budget(budget, max(means) * rounds),
        share,
        None if traffic is None else float(traffic),
        tuple(policies),
        at_least("runs", runs, 2),
        at_least("seed", seed, 0),
    )


def _arms(text: str, best: float | None, gap: float | None) -> str:
    """The arms' text; a number of arms becomes one that is best, and others that are all worse by the gap."""
    if not text.isdigit():
        if best is not None or gap is not None:
            raise InputError(f"best and gap are for a number of arms, got the arms {text}")
        return text
    count = at_least("arms", int(text), 2)
    if best is None or gap is None:
        raise InputError(f"{'best' if best is None else 'gap'} is required by a number of arms, got none")
    if not 0 < best <= 1:
        raise InputError(f"best must be a mean in (0, 1], got {best:g}")
    if not 0 < gap <= best:
        raise InputError(f"gap must be positive and at most best, {best:g}, got {gap:g}")
    return ",".join([f"{best:.10g}"] + [f"{best - gap:.10g}"] * (count - 1))


def _rounds(horizon: float | None, traffic: float | None, days: float | None, arms: int) -> int:
    if horizon is None:
        if traffic is None or days is None:
            raise InputError("horizon is required, or traffic (per day) with days, got none")
        horizon = round(positive("traffic", traffic) * positive("days", days))
    elif days is not None:
        raise InputError(f"days is not needed beside a horizon, got {days:g}")
    elif traffic is not None:
        positive("traffic", traffic)
    return at_least("horizon", horizon, arms)


def _epsilons(epsilon: str | float | None) -> tuple[tuple[float, ...], float | None]:
    """The curve's epsilons, and the one that is asked about."""
    if epsilon is None:
        return STEPS, None
    text = str(epsilon)
    if ":" in text:
        ends = [positive("epsilon", number("epsilon", part)) for part in text.split(":")]
        if len(ends) != 2 or not ends[0] < ends[1]:
            raise InputError(f"epsilon must be one, a list E,E or a range LOW:HIGH, got '{text}'")
        low, high = ends
        inside = np.geomspace(low, high, POINTS)[1:-1]
        return (low, *(float(f"{x:.3g}") for x in inside), high), None
    listed = sorted({positive("epsilon", number("epsilon", part)) for part in text.split(",")})
    if len(listed) == 1:
        return tuple(float(f"{listed[0] * step:.12g}") for step in STEPS), listed[0]
    return tuple(listed), None


def _share(name: str, value: str | float) -> float:
    text = str(value).strip()
    return number(name, text[:-1]) / 100.0 if text.endswith("%") else number(name, text)


def _budget(budget: str | float, best: float) -> float:
    value = _share("budget", budget)
    positive("budget", value)
    if not str(budget).strip().endswith("%"):
        return value
    if best <= 0:
        raise InputError(f"budget must be a number where the best arm pays nothing, got {budget}")
    return float(f"{value * best:.12g}")
