"""Epsilon as an exact rational: noise and budget use the number as written, not its binary rounding."""

from __future__ import annotations

import math
import numbers
import re
from decimal import Decimal
from fractions import Fraction

from dpbandits.errors import InputError

#: The types that ``rational`` reads as an exact number.
Exactly = str | int | float | Decimal | Fraction

#: The longest text that is read. Texts come from outside, and an honest one needs no more characters.
MAX_LENGTH = 200

_TEXT = re.compile(r"[0-9]+(\.[0-9]+|/[0-9]*[1-9][0-9]*)?")
_TOO_LONG = 10**MAX_LENGTH


def rational(name: str, value: Exactly, *, zero: bool = False) -> Fraction:
    """``value`` as an exact positive rational; with ``zero``, 0 is allowed too.

    Text is written as "0.1" or "1/3", without an exponent. A float is read as its shortest decimal text, so ``0.1`` is
    1/10, and not the nearest binary number. The JavaScript client reads the same texts, but no floats.

    >>> rational("epsilon", "0.1"), rational("epsilon", 0.1), rational("epsilon", "1/3")
    (Fraction(1, 10), Fraction(1, 10), Fraction(1, 3))
    >>> rational("epsilon", "0")
    Traceback (most recent call last):
    dpbandits.errors.InputError: epsilon must be positive, as a decimal number or a fraction such as "0.1" or "1/3" ...
    """
    number = _read(value)
    if number is None or number < 0 or (number == 0 and not zero):
        rule = f"must {'not be negative' if zero else 'be positive'}, as a decimal number or a fraction"
        raise InputError(name, f'{rule} such as "0.1" or "1/3" (no exponent), got {_shown(value)}')
    return _of_length(name, number, value) if isinstance(value, str) else number


def writable(name: str, value: Exactly) -> Fraction:
    """``value`` as ``rational`` reads it, if it can be read back from its text in lowest terms. Texts always can.

    Use it for a number that is stored or sent, before anything depends on it.

    >>> writable("epsilon", "0.1")
    Fraction(1, 10)
    >>> writable("epsilon", 1e-250)
    Traceback (most recent call last):
    dpbandits.errors.InputError: epsilon must have at most 200 characters in lowest terms, got 1e-250
    """
    return _of_length(name, rational(name, value), value)


def _of_length(name: str, number: Fraction, value: object) -> Fraction:
    if number.numerator >= _TOO_LONG or number.denominator >= _TOO_LONG or len(str(number)) > MAX_LENGTH:
        raise InputError(name, f"must have at most {MAX_LENGTH} characters in lowest terms, got {_shown(value)}")
    return number


def _shown(value: object) -> str:
    try:
        return f"{value!r:.80}" if isinstance(value, str) else f"{value!s:.80}"
    except ValueError:  # Python refuses to write a number of thousands of digits
        return "a number of thousands of digits"


def _read(value: Exactly) -> Fraction | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        readable = len(value) <= MAX_LENGTH and _TEXT.fullmatch(value) is not None
        return Fraction(value) if readable else None
    if isinstance(value, float):
        return Fraction(float.__repr__(value)) if math.isfinite(value) else None
    if isinstance(value, int | Fraction):
        return Fraction(value)
    if isinstance(value, Decimal):
        return Fraction(value) if value.is_finite() and abs(value.adjusted()) <= MAX_LENGTH else None
    if isinstance(value, numbers.Integral):  # of NumPy
        return Fraction(int(value))
    return _read(float(value)) if isinstance(value, numbers.Real) else None
