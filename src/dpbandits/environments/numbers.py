"""Numbers as people write them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from dpbandits.errors import InputError


def number(name: str, text: str) -> float:
    """``10000000``, ``1e7`` and ``10_000_000`` are the same number. A quotient of whole numbers is one, too.

    >>> number("horizon", "1e7") == number("horizon", "10_000_000"), number("epsilon", "1/4")
    (True, 0.25)
    """
    try:
        return float(Fraction(text)) if "/" in text else float(text)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise InputError(name, f"must be a number, got '{text.strip()}'") from None


def read_number(name: str, value: Any) -> Any:
    """A number, where it is given as text; anything else is left to the rule for its parameter.

    >>> read_number("runs", "1e3"), read_number("runs", None)
    (1000.0, None)
    """
    return number(name, value) if isinstance(value, str) else value


def called(name: str, text: str) -> tuple[str, list[float]]:
    """The word and the numbers of a text such as ``normal(1,0.5)``; no word where the text has another form.

    >>> called("levels", "normal(1, 0.5)"), called("levels", "normal")
    (('normal', [1.0, 0.5]), ('', []))
    """
    match = re.fullmatch(r"\s*(\w+)\s*\((.*)\)\s*", text)
    return ("", []) if match is None else (match[1], [number(name, part) for part in match[2].split(",")])


def share(name: str, text: str) -> float:
    """A number that may be written in percent.

    >>> share("loss", "10%"), share("loss", "0.1")
    (0.1, 0.1)
    """
    text = text.strip()
    try:
        return number(name, text[:-1]) / 100.0 if text.endswith("%") else number(name, text)
    except InputError:
        raise InputError(name, f"must be a number, or one in percent such as 10%, got '{text}'") from None


def real(name: str, value: Any) -> float:
    """A number, Python's or NumPy's, or its text.

    >>> real("level", "0.5"), real("level", 2)
    (0.5, 2.0)
    >>> real("level", None)
    Traceback (most recent call last):
    dpbandits.errors.InputError: level must be a number, got None
    """
    if isinstance(value, str):
        return number(name, value)
    if not isinstance(value, bool):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            pass
    raise InputError(name, f"must be a number, got {value!r:.80}")


def low_and_high(name: str, value: Any) -> tuple[float, float]:
    """The two ends of a range, as a pair or as the text ``0,100``.

    >>> low_and_high("reward_range", "0,100"), low_and_high("reward_range", [0, 2])
    ((0.0, 100.0), (0.0, 2.0))
    """
    parts = value.split(",") if isinstance(value, str) else value
    ends = list(parts) if isinstance(parts, Iterable) else []
    if len(ends) != 2:
        raise InputError(name, f"must be two numbers, low and high, got {value!r:.80}")
    low, high = (real(name, end) for end in ends)
    if not -math.inf < low < high < math.inf:
        raise InputError(name, f"must be low < high, both finite, got {low:g},{high:g}")
    return low, high
