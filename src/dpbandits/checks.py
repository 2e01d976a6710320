"""Rules for values: each function returns the value, or raises an InputError with the parameter's name."""

from __future__ import annotations

import difflib
import math
import numbers
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from fractions import Fraction

from dpbandits.errors import InputError

__all__ = ["MAX_EXACT_INT", "at_least", "flag", "fraction", "known", "nearest", "positive", "seed_of", "workers_of"]

#: The largest integer up to which floats hold every integer exactly.
MAX_EXACT_INT = 2**53


def _is_number(value: object) -> bool:
    """Whether a value is a number, Python's or NumPy's, and not a boolean."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _shown(value: object) -> str:
    """A value in a message. A text, or a Decimal, may look like the number that is asked for: it is shown as it is."""
    return " ".join((str(value) if _is_number(value) else repr(value)).split())[:80]


def positive(parameter: str, value: float | Fraction) -> float:
    """``value`` if it is a positive, finite number.

    >>> positive("epsilon", -1)
    Traceback (most recent call last):
    dpbandits.errors.InputError: epsilon must be positive and finite, got -1
    """
    if _is_number(value) and 0 < value < math.inf:
        with suppress(OverflowError):  # an integer that no float holds
            return float(value)
    rule = "positive and finite" if _is_number(value) else "a number, positive and finite"
    raise InputError(parameter, f"must be {rule}, got {_shown(value)}")


def not_negative(parameter: str, value: float) -> float:
    """``value`` as a float, if it is finite and not negative.

    >>> not_negative("correction", 0)
    0.0
    """
    if not _is_number(value) or not 0 <= value < math.inf:
        raise InputError(parameter, f"must be finite and not negative, got {value}")
    return float(value)


def at_least(parameter: str, value: float, least: int) -> int:
    """``value`` if it is a whole number of at least ``least``.

    >>> at_least("runs", 0, 1)
    Traceback (most recent call last):
    dpbandits.errors.InputError: runs must be a whole number of at least 1, got 0
    """
    whole = _is_number(value) and abs(value) < math.inf and value == int(value)
    if not whole or value < least:
        shown = _shown(int(value) if whole else value)  # 0 on a command line is read as 0.0
        raise InputError(parameter, f"must be a whole number of at least {least}, got {shown}")
    if value > MAX_EXACT_INT:
        raise InputError(parameter, f"must be at most 2^53, got {value!s:.80}")
    return int(value)


def seed_of(value: float | None) -> int:
    """``value`` if it can seed random numbers; a seed that is drawn if it is None.

    >>> seed_of(7), seed_of(None) != seed_of(None)
    (7, True)
    """
    return secrets.randbits(48) if value is None else at_least("seed", value, 0)


def workers_of(value: float | None) -> int:
    """A number of workers; all cores if it is None or, as elsewhere, -1.

    >>> workers_of(2), workers_of(-1) == workers_of(None)
    (2, True)
    """
    if value is None or (_is_number(value) and value == -1):
        return os.cpu_count() or 1
    return at_least("workers", value, 1)


def flag(parameter: str, value: bool) -> bool:
    """``value`` if it is true or false.

    >>> flag("as_printed", "false")
    Traceback (most recent call last):
    dpbandits.errors.InputError: as_printed must be True or False, got 'false'
    """
    if value is not True and value is not False:
        raise InputError(parameter, f"must be True or False, got {value!r}")
    return value


def fraction(parameter: str, value: float, *, zero: bool = False) -> float:
    """``value`` if it lies in (0, 1), or in [0, 1) where zero is allowed.

    >>> fraction("delta", 1.5, zero=True)
    Traceback (most recent call last):
    dpbandits.errors.InputError: delta must be in [0, 1), got 1.5
    """
    if not (_is_number(value) and (0 < value < 1 or (zero and value == 0))):
        raise InputError(parameter, f"must be in {'[' if zero else '('}0, 1), got {value}")
    return float(value)


def known(parameter: str, name: str, names: Iterable[str], what: str = "") -> str:
    """``name`` if it is one of ``names``; otherwise the error names the nearest ones. ``what`` says what it names.

    >>> known("policy", "adap-klcub", ["adap-klucb", "ucb1"])
    Traceback (most recent call last):
    dpbandits.errors.InputError: policy 'adap-klcub' is unknown: did you mean adap-klucb?
    """
    names = list(names)
    if name in names:
        return name
    raise InputError(parameter, f"{f': {what} ' if what else ''}'{name}' is unknown: {nearest(name, names)}")


def nearest(name: object, names: Iterable[str]) -> str:
    """A hint for a name that is not one of ``names``: those that are near to it, or else all of them.

    >>> nearest("alhpa", ["alpha", "beta"]), nearest("x", ["alpha", "beta"])
    ('did you mean alpha?', 'known are alpha, beta')
    """
    near = difflib.get_close_matches(str(name), names := list(names), n=5, cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(names)}"
