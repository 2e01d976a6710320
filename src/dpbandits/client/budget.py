"""A user's budget: the total epsilon that the user will ever spend, counted exactly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from dpbandits.errors import InputError
from dpbandits.exact import Exactly, rational

#: What was spent may have this many digits. Many charges with denominators of their own would make it grow for ever.
_MAX_DIGITS = 4000


class BudgetError(InputError):
    """A response would cost more than is left. The error depends on what was spent, never on the reward."""


@dataclass(frozen=True)
class Budget:
    """A budget: ``spent`` of ``limit``. Epsilons add up (basic composition of pure privacy), and nothing is refunded.

    >>> budget = Budget(Fraction("0.3")).charge(Fraction("0.1")).charge(Fraction("0.2"))
    >>> budget.left
    Fraction(0, 1)
    >>> budget.charge(Fraction(1, 10**9))
    Traceback (most recent call last):
    dpbandits.client.budget.BudgetError: epsilon must be at most 0, what is left of the budget of 3/10, got ...
    """

    limit: Fraction
    spent: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", rational("limit", self.limit))
        object.__setattr__(self, "spent", rational("spent", self.spent, zero=True))

    @property
    def left(self) -> Fraction:
        """The epsilon that can still be spent."""
        return max(Fraction(0), self.limit - self.spent)

    def charge(self, epsilon: Exactly) -> Budget:
        """The budget after one more response at this epsilon, which must be positive: a charge never refunds."""
        epsilon = rational("epsilon", epsilon)
        if epsilon > self.left:
            raise BudgetError(
                "epsilon", f"must be at most {self.left}, what is left of the budget of {self.limit}, got {epsilon}"
            )
        spent = self.spent + epsilon
        if max(spent.numerator, spent.denominator) >= 10**_MAX_DIGITS:
            raise InputError("epsilon", f"must not make the sum longer than {_MAX_DIGITS} digits, got {epsilon}")
        return replace(self, spent=spent)
