"""The few errors we raise ourselves, and the rules that raise them."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable

__all__ = [
    "MOST",
    "InputError",
    "MissingExtraError",
    "at_least",
    "flag",
    "fraction",
    "known",
    "positive",
]


class InputError(ValueError):
    """A value that cannot be used: the message names it, the rule, and what was given."""


class MissingExtraError(ImportError):
    """An optional dependency is not installed: the message holds the pip line."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'dpbandits[{extra}]'")


MOST = 2**53  # beyond it a float no longer counts by ones


def _number(value: object) -> bool:
    """Whether a value is a number, Python's or NumPy's, and not a truth value."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def positive(name: str, value: float) -> float:
    """``value`` if it is a positive, finite number.

    >>> positive("epsilon", -1)
    Traceback (most recent call last):
    dpbandits.errors.InputError: epsilon must be positive and finite, got -1
    """
    if not (_number(value) and 0 < value < math.inf):
        raise InputError(f"{name} must be positive and finite, got {value}")
    return float(value)


def at_least(name: str, value: float, least: int) -> int:
    """``value`` if it is a whole number of at least ``least``.

    >>> at_least("runs", 0, 1)
    Traceback (most recent call last):
    dpbandits.errors.InputError: runs must be a whole number of at least 1, got 0
    """
    whole = _number(value) and math.isfinite(value) and value == int(value)
    if not whole or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value}")
    if value > MOST:
        raise InputError(f"{name} must be at most 2^53, got {value:g}")
    return int(value)


def flag(name: str, value: bool) -> bool:
    """``value`` if it is true or false.

    >>> flag("as_printed", "false")
    Traceback (most recent call last):
    dpbandits.errors.InputError: as_printed must be True or False, got 'false'
    """
    if value is not True and value is not False:
        raise InputError(f"{name} must be True or False, got {value!r}")
    return value


def fraction(name: str, value: float, *, zero: bool = False) -> float:
    """``value`` if it lies in (0, 1), or in [0, 1) where zero is allowed.

    >>> fraction("delta", 1.5, zero=True)
    Traceback (most recent call last):
    dpbandits.errors.InputError: delta must be in [0, 1), got 1.5
    """
    if not (_number(value) and (0 < value < 1 or (zero and value == 0))):
        raise InputError(f"{name} must be in {'[' if zero else '('}0, 1), got {value}")
    return float(value)


def known(what: str, name: str, names: Iterable[str]) -> str:
    """``name`` if it is one of ``names``; otherwise the nearest ones are named.

    >>> known("policy", "adap-klcub", ["adap-klucb", "ucb1"])
    Traceback (most recent call last):
    dpbandits.errors.InputError: unknown policy 'adap-klcub': did you mean adap-klucb?
    """
    names = list(names)
    if name in names:
        return name
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(names)}"
    raise InputError(f"unknown {what} '{name}': {hint}")
