"""How many rewards the first batch of an arm has, where later ones grow from it."""

from __future__ import annotations

import math

from dpbandits.checks import MAX_EXACT_INT, at_least
from dpbandits.errors import InputError

__all__ = ["first_batch"]


def first_batch(first: float | str, rule: str, length: float) -> int:
    """The option ``first``; or, where it is the text of the rule, the length that the rule gives, rounded up.

    >>> first_batch(3, "10/epsilon", 2.5), first_batch("10/epsilon", "10/epsilon", 2.5)
    (3, 3)
    """
    if first != rule:
        return at_least("first", first, 1)  # type: ignore[arg-type]
    if length > MAX_EXACT_INT:
        raise InputError("epsilon", "must be larger: the first batch would have over 2^53 rewards")
    return math.ceil(length)
