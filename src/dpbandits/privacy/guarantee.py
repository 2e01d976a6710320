"""A privacy guarantee: its parameters, the adversary's view, and its conditions."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

IN_RANGE = "rewards are clipped to [0, 1] inside the curator"
ANY_REAL = "any reward: it passes through the logistic function inside the curator"


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-differential privacy of ``unit``, for an adversary who sees ``view``.

    ``epsilon`` is infinite if there is no guarantee, and None if each user has their own level.

    >>> Guarantee.central(1.0).epsilon, Guarantee.none().epsilon
    (1.0, inf)
    """

    epsilon: float | None
    delta: float
    trust: str  # none, local or central
    unit: str
    view: str
    conditions: str

    @classmethod
    def none(cls) -> Guarantee:
        """No guarantee: the agent sees the rewards themselves."""
        return cls(math.inf, 0.0, "none", "one reward", "everything", "no privacy is promised")

    @classmethod
    def local(cls, epsilon: float | None, conditions: str = IN_RANGE) -> Guarantee:
        """The user's own device randomises each reward; the agent's operator is the adversary."""
        return cls(epsilon, 0.0, "local", "one reward", "responses", conditions)

    @classmethod
    def central(cls, epsilon: float, delta: float = 0.0, conditions: str = IN_RANGE) -> Guarantee:
        """A trusted server sees the rewards; the adversary sees the sequence of choices."""
        return cls(epsilon, delta, "central", "one reward", "actions", conditions)

    def under(self, condition: str) -> Guarantee:
        """The same guarantee with one more condition."""
        return dataclasses.replace(self, conditions=f"{self.conditions}; {condition}")

    def to_json(self) -> dict[str, Any]:
        """JSON-ready. Epsilon is null if it is infinite, and if each user has their own; ``conditions`` says which."""
        record = dataclasses.asdict(self)
        if self.epsilon is not None and math.isinf(self.epsilon):
            record["epsilon"] = None
        return record
