"""Epsilon as an exact rational: noise and budget are made from the number that was written, not from its rounding."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from dpbandits.errors import InputError

#: What may stand for an exact positive number.
Exactly = str | int | float | Fraction

#: The longest text that is read: a level comes from outside, and no honest one needs more.
LONGEST = 200

_TEXT = re.compile(r"[0-9]+(\.[0-9]+|/[0-9]*[1-9][0-9]*)?")


def rational(name: str, value: Exactly) -> Fraction:
    """``value`` as an exact positive rational.

    Text is "0.1" or "1/3". A float means its shortest decimal text, so ``0.1`` is 1/10: what was typed, not the binary
    number nearest to it. The JavaScript client reads the same texts, and no floats.

    >>> rational("epsilon", "0.1"), rational("epsilon", 0.1), rational("epsilon", "1/3")
    (Fraction(1, 10), Fraction(1, 10), Fraction(1, 3))
    >>> rational("epsilon", "0")
    Traceback (most recent call last):
    dpbandits.errors.InputError: epsilon must be positive, as "0.1" or "1/3", got '0'
    """
    number = _read(value)
    if number is None or number <= 0:
        shown = repr(value) if isinstance(value, str) else str(value)
        raise InputError(f'{name} must be positive, as "0.1" or "1/3", got {shown:.80}')
    return number


def _read(value: Exactly) -> Fraction | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        readable = len(value) <= LONGEST and _TEXT.fullmatch(value) is not None
        return Fraction(value) if readable else None
    if isinstance(value, float):
        return Fraction(float.__repr__(value)) if math.isfinite(value) else None
    return Fraction(value) if isinstance(value, int | Fraction) else None
