"""The input of a plan, parsed and checked: arms or guesses about them, traffic, trust, epsilons and a budget."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpbandits.checks import at_least, fraction, known, positive, seed_of
from dpbandits.environments import Arms, Levels
from dpbandits.environments.numbers import number, real, share
from dpbandits.errors import InputError
from dpbandits.policies import lookup
from dpbandits.policies.policy import user_settings
from dpbandits.simulation.settings import settings

__all__ = ["Question", "ask"]

TRUSTS = ("central", "local")
EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # the default; with a curve, multiples of one given epsilon
POINTS = 8  # epsilons in a range LOW:HIGH


@dataclass(frozen=True)
class Question:
    """The input of a plan. ``epsilons`` are played; ``epsilon`` is set if exactly one was given."""

    arms: Arms
    horizon: int
    trusts: tuple[str, ...]
    epsilons: tuple[float, ...]
    epsilon: float | None
    budget: float | None  # the largest regret allowed
    refuse: Fraction  # share of the users who refuse
    per_day: float | None
    policies: tuple[str, ...]  # empty: all suitable policies
    runs: int  # of every policy; those that may be best get more
    seed: int
    reward_range: tuple[float, float] | None = None
    unit: str = "rewards"
    rewards_per_user: int | None = None  # the most rewards of one user, where epsilon is the user's
    user_delta: float | None = None  # the delta of that promise, where a user's responses compose
    confidence: float = 0.95  # with which a test shall know the best arm

    @property
    def worst(self) -> float:
        """The regret of always playing the worst arm: no run can lose more."""
        return self.horizon * (max(self.arms.means) - min(self.arms.means))

    @property
    def at_random(self) -> float:
        """The regret of playing every arm equally often."""
        means = self.arms.means
        return self.horizon * (max(means) - math.fsum(means) / len(means))

    @property
    def told(self) -> int:
        """The number of rounds in which the user reports a reward."""
        return round(self.horizon * (1 - self.refuse))

    def levels(self, epsilon: float, refuse: Fraction) -> Levels:
        """The population in which a share ``refuse`` of the users have level 0 and the others level ``epsilon``."""
        return Levels.of([0.0] * refuse.numerator + [epsilon] * (refuse.denominator - refuse.numerator))

    def users(self, policy: str) -> dict[str, Any]:
        """The settings about users, as this policy takes them: a delta only where a user's responses compose to one."""
        promise = lookup.sample(policy).guarantee
        composes = promise.trust == "local" and promise.epsilon is not None and not promise.delta
        return {
            "rewards_per_user": self.rewards_per_user,
            "user_delta": self.user_delta if composes else None,
        }

    def loss(self, regret: float) -> float | None:
        """Regret as a share of what the best arm would pay; None where it pays nothing."""
        best = max(self.arms.means)
        return regret / (best * self.horizon) if best > 0 else None

    def to_json(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "arms": self.arms.text,
            "names": list(self.arms.names),
            "means": list(self.arms.means),
            "horizon": self.horizon,
            "per_day": self.per_day,
            "trust": list(self.trusts),
            "epsilon": self.epsilon,
            "epsilons": list(self.epsilons),
            "budget": self.budget,
            "refuse": float(self.refuse),
            "runs": self.runs,
            "seed": self.seed,
            "reward_range": None if self.reward_range is None else list(self.reward_range),
            "unit": self.unit,
            "rewards_per_user": self.rewards_per_user,
            "user_delta": self.user_delta,
            "confidence": self.confidence,
        }


def ask(
    arms: object,
    *,
    best: float | None = None,
    gap: float | None = None,
    horizon: float | None = None,
    traffic: float | None = None,
    days: float | None = None,
    trust: str = "any",
    epsilon: str | float | Sequence[float] | None = None,
    budget: str | float | None = None,
    refuse: str | float = 0.0,
    policies: str | lookup.Factory | Sequence[str | lookup.Factory] = (),
    runs: float = 20,
    seed: float | None = 0,
    curve: bool = False,
    reward_range: str | Sequence[float] | None = None,
    unit: str = "rewards",
    rewards_per_user: float | None = None,
    user_delta: float | None = None,
    confidence: str | float = 0.95,
) -> Question:
    """Parse and check the input of a plan.

    ``arms`` is what ``simulate`` takes, or the number of arms; then ``best`` is the mean of the best arm, and ``gap``
    is by how much all other means are lower. ``epsilon`` is one value, a list ``0.1,1`` or a range ``0.1:10``.
    ``policies`` are names, ``module:function`` or functions; without them all suitable ones are tried. ``seed=None``
    draws a seed. ``budget`` and ``refuse`` may be percentages; a budget of 5% is 5 % of what the best arm would pay.
    With ``curve``, multiples of a single epsilon are played too. ``unit`` is what rewards are, such as clicks. With
    ``rewards_per_user`` every epsilon is the promise for a user who gives at most this many rewards; ``user_delta`` is
    the delta of that promise where privacy is local and pure, and does nothing elsewhere. ``confidence`` is that of a
    test which ends when the best arm is known.

    >>> question = ask("5", best=0.036, gap=0.006, horizon=1e6, epsilon=1, budget="5%", refuse="20%")
    >>> question.arms.text, question.budget, str(question.levels(1.0, question.refuse))
    ('0.036,0.03,0.03,0.03,0.03', 1800.0, 'choice(0,1,1,1,1)')
    """
    best, gap, horizon, traffic, days = (
        None if value is None else real(name, value)
        for name, value in (("best", best), ("gap", gap), ("horizon", horizon), ("traffic", traffic), ("days", days))
    )
    read = _arms(arms, best, gap)
    means = read.means
    rounds = _rounds(horizon, traffic, days, len(means))
    known("trust", trust, (*TRUSTS, "any"))
    epsilons, one = _epsilons(epsilon, curve)
    chosen = _chosen(policies)
    refused = _refused(refuse)
    trusts = _trusts(TRUSTS if trust == "any" else (trust,), chosen)
    users = _users(rewards_per_user, user_delta, trusts)
    return Question(
        read,
        rounds,
        trusts,
        epsilons,
        one,
        None if budget is None else _budget(budget, max(means) * rounds),
        refused,
        None if traffic is None else float(traffic),
        chosen,
        at_least("runs", runs, 2),
        seed_of(seed),
        None if reward_range is None else settings()["reward_range"].read(reward_range),
        unit,
        users.get("rewards_per_user"),
        users.get("user_delta"),
        fraction("confidence", share("confidence", str(confidence))),
    )


def _chosen(policies: str | lookup.Factory | Sequence[str | lookup.Factory]) -> tuple[str, ...]:
    """The names of the policies to plan with; none where all suitable ones are tried."""
    several = [policies] if isinstance(policies, str) or not isinstance(policies, Iterable) else policies
    return tuple(lookup.written(lookup.find(name)) for name in several)


def _refused(refuse: str | float) -> Fraction:
    """The share of users who refuse, as a fraction of few users: a population is made of them."""
    refused = share("refuse", str(refuse))
    if not 0 <= refused < 1:
        raise InputError("refuse", f"must be at least 0% and below 100%, got {refuse}")
    return Fraction(refused).limit_denominator(100)


def _trusts(asked: tuple[str, ...], policies: Sequence[str]) -> tuple[str, ...]:
    """The trust models to plan for: those that were asked for, as far as the chosen policies have them."""
    if not policies:
        return asked
    has = {name: lookup.sample(name).guarantee.trust for name in policies}
    for name, trust in has.items():
        if trust not in asked:
            what = "is not private" if trust == "none" else f"is {trust}"
            raise InputError("policy", f"must be private with trust {' or '.join(asked)}, got {name}, which {what}")
    return tuple(trust for trust in asked if trust in has.values())


def _users(rewards_per_user: object, user_delta: object, trusts: tuple[str, ...]) -> dict[str, Any]:
    """The settings about users, as far as they are given."""
    given = {"rewards_per_user": rewards_per_user, "user_delta": user_delta}
    users = user_settings({name: settings()[name].read(value) for name, value in given.items()})
    if "user_delta" in users and "local" not in trusts:
        raise InputError("user_delta", f"is for trust local, got {users['user_delta']:g} with trust {trusts[0]}")
    return users


def _arms(arms: object, best: float | None, gap: float | None) -> Arms:
    """The arms, which do not all have the same mean."""
    read = _given_arms(arms, best, gap)
    if min(read.means) == max(read.means):
        raise InputError("arms", f"must not all have the same mean, got {read.text}")
    return read


def _given_arms(arms: object, best: float | None, gap: float | None) -> Arms:
    """The arms. A number of arms becomes one best arm, and others whose means are lower by the gap."""
    text = str(arms).strip()
    if not text.isdigit():
        if best is not None or gap is not None:
            raise InputError("best" if best is not None else "gap", f"is for a number of arms, got the arms {text}")
        return Arms.of(arms)
    count = at_least("arms", int(text), 2)
    if best is None or gap is None:
        missing = "best" if best is None else "gap"
        raise InputError(missing, f"is required where arms is a number ({count}), got none")
    if not 0 < best <= 1:
        raise InputError("best", f"must be a mean in (0, 1], got {best:g}")
    if not 0 < gap <= best:
        raise InputError("gap", f"must be positive and at most best, {best:g}, got {gap:g}")
    return Arms.of([best, *[float(f"{best - gap:.10g}")] * (count - 1)])


def _rounds(horizon: float | None, traffic: float | None, days: float | None, arms: int) -> int:
    if horizon is None:
        if traffic is None or days is None:
            raise InputError("horizon", "is required, or traffic (per day) with days, got none")
        horizon = round(positive("traffic", traffic) * positive("days", days))
    elif days is not None:
        raise InputError("days", f"is not needed beside a horizon, got {days:g}")
    elif traffic is not None:
        positive("traffic", traffic)
    return at_least("horizon", horizon, arms)


def _epsilons(epsilon: str | float | Sequence[float] | None, curve: bool) -> tuple[tuple[float, ...], float | None]:
    """The epsilons of the curve, and the single one asked about, if any."""
    if epsilon is None:
        return EPSILONS, None
    listed_ones = not isinstance(epsilon, str) and isinstance(epsilon, Iterable)
    text = ",".join(map(str, epsilon)) if listed_ones else str(epsilon)  # type: ignore[arg-type]
    if ":" in text:
        ends = [positive("epsilon", number("epsilon", part)) for part in text.split(":")]
        if len(ends) != 2 or not ends[0] < ends[1]:
            raise InputError("epsilon", f"must be one, a list E,E or a range LOW:HIGH with LOW < HIGH, got '{text}'")
        low, high = ends
        inside = np.geomspace(low, high, POINTS)[1:-1]
        return (low, *(float(f"{x:.3g}") for x in inside), high), None
    listed = sorted({positive("epsilon", number("epsilon", part)) for part in text.split(",")})
    if len(listed) == 1:
        steps = EPSILONS if curve else (1.0,)
        return tuple(float(f"{listed[0] * step:.12g}") for step in steps), listed[0]
    return tuple(listed), None


def _budget(budget: str | float, best: float) -> float:
    value = share("budget", str(budget))
    positive("budget", value)
    if not str(budget).strip().endswith("%"):
        return value
    if best <= 0:
        raise InputError("budget", f"must be a number where the best arm pays nothing, got {budget}")
    return float(f"{value * best:.12g}")
