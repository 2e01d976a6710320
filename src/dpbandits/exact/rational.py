"""Epsilon as an exact rational: noise and budget use the number as written, not its binary rounding."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from dpbandits.errors import InputError

#: The types that ``rational`` reads as an exact positive number.
Exactly = str | int | float | Fraction

#: The longest text that is read. Texts come from outside, and an honest one needs no more characters.
MAX_LENGTH = 200

_TEXT = re.compile(r"[0-9]+(\.[0-9]+|/[0-9]*[1-9][0-9]*)?")


def rational(name: str, value: Exactly, *, zero: bool = False) -> Fraction:
    """``value`` as an exact positive rational; with ``zero``, it may also be 0.

    Text is written as "0.1" or "1/3". A float is read as its shortest decimal text, so ``0.1`` is 1/10, and not the
    nearest binary number. The JavaScript client reads the same texts, but no floats.

    >>> rational("epsilon", "0.1"), rational("epsilon", 0.1), rational("epsilon", "1/3")
    (Fraction(1, 10), Fraction(1, 10), Fraction(1, 3))
    >>> rational("epsilon", "0")
    Traceback (most recent call last):
    dpbandits.errors.InputError: epsilon must be positive, as "0.1" or "1/3", got '0'
    """
    number = _read(value)
    if number is None or number < 0 or (number == 0 and not zero):
        shown = repr(value) if isinstance(value, str) else str(value)
        raise InputError(name, f'must be {"0 or " * zero}positive, as "0.1" or "1/3", got {shown:.80}')
    return number


def _read(value: Exactly) -> Fraction | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        readable = len(value) <= MAX_LENGTH and _TEXT.fullmatch(value) is not None
        return Fraction(value) if readable else None
    if isinstance(value, float):
        return Fraction(float.__repr__(value)) if math.isfinite(value) else None
    return Fraction(value) if isinstance(value, int | Fraction) else None
