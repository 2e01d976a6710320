"""Numbers as people read them: no digits that mean nothing, and no error of zero."""

from __future__ import annotations

import math

__all__ = ["amount", "duration", "estimate", "plural"]

#: An error that is smaller than this share of its value is rounding, not chance.
ROUNDING = 1e-9


def amount(value: float) -> str:
    """A number: whole from 1000 on, four significant digits below, and 0 where only rounding is left.

    >>> amount(6144.2), amount(0.012345), amount(-3e-13), amount(1e7)
    ('6,144', '0.01235', '0', '10,000,000')
    """
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value if abs(value) > 1e-12 else 0.0:.4g}"


def estimate(value: float, error: float | None) -> str:
    """A number with its error, both to the digits that the error leaves; the number alone where there is no error.

    >>> estimate(1905.23, 11.87), estimate(0.51234, 0.00321), estimate(118553.2, 716.4)
    ('1,905 ± 12', '0.5123 ± 0.0032', '118,553 ± 716')
    >>> estimate(6144.0, 1.69e-13), estimate(7.0, None), estimate(7.0, math.nan)
    ('6,144', '7', '7')
    """
    if error is None or not abs(value) * ROUNDING < error < math.inf:
        return amount(value)
    digits = max(0, 1 - math.floor(math.log10(error)))
    return f"{value:,.{digits}f} ± {error:,.{digits}f}"


def duration(seconds: float) -> str:
    """A time.

    >>> duration(0.0123), duration(6.84), duration(75.2), duration(7300)
    ('0.01 s', '6.8 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def plural(count: int, thing: str) -> str:
    """A count with its noun.

    >>> plural(1, "run"), plural(20_000, "round")
    ('1 run', '20,000 rounds')
    """
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
