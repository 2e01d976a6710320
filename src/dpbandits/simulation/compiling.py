"""How long this process has been compiling, and who wants to know when it begins and ends."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["begins", "ends", "seconds", "stopping", "watch"]

_watcher: Callable[[bool], None] | None = None
_depth = 0  # compilations that are under way: one may ask for another
_since = 0.0
_spent = 0.0
stopping = False  # whether Ctrl-C came while something is compiled, and waits for the end of it


def watch(watcher: Callable[[bool], None] | None) -> None:
    """Call this with True when compiling begins and with False when it ends; None: call nobody any more."""
    global _watcher
    _watcher = watcher


def seconds() -> float:
    """How many seconds this process has spent compiling.

    >>> seconds() >= 0.0
    True
    """
    return _spent + (time.perf_counter() - _since if _depth else 0.0)


def begins() -> None:
    """The compiler begins."""
    global _depth, _since
    _depth += 1
    if _depth == 1:
        _since = time.perf_counter()
        if _watcher is not None:
            _watcher(True)


def ends() -> None:
    """The compiler has ended."""
    global _depth, _spent
    _depth -= 1
    if _depth == 0:
        _spent += time.perf_counter() - _since
        if _watcher is not None:
            _watcher(False)
