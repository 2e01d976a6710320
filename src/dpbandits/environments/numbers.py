"""Numbers as people write them."""

from __future__ import annotations

from dpbandits.errors import InputError


def number(name: str, text: str) -> float:
    """``10000000``, ``1e7`` and ``10_000_000`` are the same number.

    >>> number("horizon", "1e7") == number("horizon", "10_000_000")
    True
    """
    try:
        return float(text)
    except ValueError:
        raise InputError(name, f"must be a number, got '{text.strip()}'") from None
