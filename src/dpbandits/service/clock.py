"""Time that neither stops nor goes back while a server runs, whatever happens to the clock on the wall."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["Clock"]


class Clock:
    """Seconds since 1970, by the wall clock at the start and by a steady clock from then on.

    Workers on several machines take the same wall clock: where one of them were ahead, it would take the responses to
    the others' decisions for late. ``not_before`` is the latest time that was stored: after a restart with a clock that
    was set back, time goes on from there, at its usual pace.

    >>> wall, steady = iter([1000.0]), iter([5.0, 6.5])
    >>> Clock(not_before=2000.0, wall=lambda: next(wall), steady=lambda: next(steady))()
    2001.5
    """

    def __init__(
        self,
        not_before: float = 0.0,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._steady = steady
        self._offset = max(wall(), not_before) - steady()

    def __call__(self) -> float:
        return self._offset + self._steady()
