"""A privacy guarantee: its parameters, the adversary's view, and its conditions."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from dpbandits.display import card, shortened, sparkline

#: What the picture of a guarantee shows.
SHOWS = "the best adversary: detections (up) against false alarms (right)"

ONE_REWARD = "one reward"
IN_RANGE = "rewards are clipped to [0, 1] inside the curator"
ANY_REWARD = "any reward"
ANY_REAL = f"{ANY_REWARD}: it passes through the logistic function inside the curator"
FROM_LOG = "computed from the log itself"


class Void(NamedTuple):
    """That nothing is promised of some numbers, whatever the policy promises where it runs."""

    sentence: str
    reason: str


LOGGED = Void(f"no promise: {FROM_LOG}", FROM_LOG)
SIMULATED = Void("for simulation: no promise on real rewards", "for simulation: no promise on real rewards")


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-differential privacy of ``unit``, for an adversary who sees ``view``.

    ``epsilon`` is infinite if there is no guarantee, and None if each user has their own level.

    >>> Guarantee.central(1.0).epsilon, Guarantee.none().epsilon
    (1.0, inf)
    >>> print(Guarantee.local(1.0))
    Local differential privacy with epsilon 1 for one reward, against whoever sees the responses, if rewards are clipped
    to [0, 1] inside the curator.
    """

    epsilon: float | None
    delta: float
    trust: str  # none, local or central
    unit: str
    view: str
    conditions: str
    void: Void | None = None  # why nothing is promised about these numbers

    @classmethod
    def none(cls) -> Guarantee:
        """No guarantee: the agent sees the rewards themselves."""
        return cls(math.inf, 0.0, "none", ONE_REWARD, "everything", "no privacy is promised")

    @classmethod
    def local(cls, epsilon: float | None, conditions: str = IN_RANGE) -> Guarantee:
        """The user's own device randomises each reward; the agent's operator is the adversary."""
        return cls(epsilon, 0.0, "local", ONE_REWARD, "responses", conditions)

    @classmethod
    def central(cls, epsilon: float, delta: float = 0.0, conditions: str = IN_RANGE) -> Guarantee:
        """A trusted server sees the rewards; the adversary sees the sequence of choices."""
        return cls(epsilon, delta, "central", ONE_REWARD, "actions", conditions)

    def under(self, condition: str) -> Guarantee:
        """The same guarantee with one more condition."""
        return dataclasses.replace(self, conditions=f"{self.conditions}; {condition}")

    def within(self, low: float, high: float) -> Guarantee:
        """The same guarantee for rewards that are mapped from a range to [0, 1]."""
        return self.under(f"rewards are first clipped to [{low:g}, {high:g}] and mapped to [0, 1]")

    def from_log(self) -> Guarantee:
        """The guarantee of numbers that are computed from a user's log: none, because they show its exact means.

        >>> Guarantee.central(1.0).from_log().in_short
        'no promise: computed from the log itself'
        """
        return self._void(LOGGED)

    def simulated(self) -> Guarantee:
        """The guarantee with simulated noise: none on real rewards, because the generator reveals what it drew.

        >>> Guarantee.central(1.0).simulated().in_short
        'for simulation: no promise on real rewards'
        """
        return self._void(SIMULATED)

    def _void(self, void: Void) -> Guarantee:
        return dataclasses.replace(self.under(void.sentence), void=void)

    @property
    def promise(self) -> str:
        """The text "none" and the reason, if nothing is promised about the numbers beside it. Otherwise empty."""
        return f"none: {self.void.reason}" if self.void else ""

    @property
    def in_short(self) -> str:
        """The trust model, epsilon and delta; or why nothing is promised."""
        if self.void:
            return self.void.sentence
        for_whom = "" if self.unit == ONE_REWARD else f" for {self.unit}"
        return "not private" if self.trust == "none" else f"{self.trust} privacy, {self.size}{for_whom}"

    @property
    def size(self) -> str:
        """Epsilon and delta in words."""
        epsilon = "each user's own epsilon" if self.epsilon is None else f"epsilon {self.epsilon:g}"
        return epsilon + (f" and delta {self.delta:.3g}" if self.delta else "")

    def __str__(self) -> str:
        if self.void:
            return f"{self.void.sentence[0].upper()}{self.void.sentence[1:]}."
        if self.trust == "none":
            return "No privacy is promised: whoever decides sees the rewards."
        return (
            f"{self.trust.capitalize()} differential privacy with {self.size} for {self.unit}, "
            f"against whoever sees the {self.view}, if {self.conditions}."
        )

    def _repr_html_(self) -> str:
        return card([shortened(self.in_short), str(self)], self.picture(), SHOWS)

    def picture(self) -> str:
        """How often the best adversary detects a reward (up) at each rate of false alarms (right)."""
        if self.epsilon is None or self.void:
            return ""
        rates = [number / 50 for number in range(51)]
        return sparkline([_detected(rate, self.epsilon, self.delta) for rate in rates], rates)

    def to_json(self) -> dict[str, Any]:
        """JSON-ready. Epsilon is null if it is infinite, and if each user has their own; ``conditions`` says which.

        ``promise`` is there only if nothing is promised about the numbers beside it.
        """
        record = dataclasses.asdict(self)
        del record["void"]
        if self.void:
            record["promise"] = self.promise
        if self.epsilon is not None and math.isinf(self.epsilon):
            record["epsilon"] = None
        return record


def _detected(rate: float, epsilon: float, delta: float) -> float:
    """The largest share of detections at this rate of false alarms (Kairouz, Oh & Viswanath 2015)."""
    if epsilon > 700.0:
        return 1.0
    return min(1.0, math.exp(epsilon) * rate + delta, 1.0 - math.exp(-epsilon) * (1.0 - delta - rate))
