"""Ends code that never ends: it raises ``Refused`` in a thread that has not come back from a user's code for long.

A loop that runs for ever on an infinite reward is found by time alone. ``beat`` says that one call has come back.
"""

from __future__ import annotations

import ctypes
import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from dpbandits.audit.symbols import Refused

__all__ = ["beat", "rest", "watched"]

SECONDS = 10.0  # for one call of a user's code


class EndlessError(Refused):
    """A user's code did not come back."""

    def __init__(self) -> None:
        super().__init__(f"the code does not come back within {SECONDS:g} seconds")


class _Watch:
    """The time of the last sign of life of one thread."""

    def __init__(self) -> None:
        self.at, self.thread, self.done = time.monotonic(), threading.get_ident(), threading.Event()
        self.lock = threading.Lock()

    def run(self) -> None:
        """Wait for signs of life, and raise where there are none."""
        while not self.done.wait(min(0.5, SECONDS / 4.0)):
            with self.lock:
                if not self.done.is_set() and time.monotonic() - self.at > SECONDS:
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(
                        ctypes.c_ulong(self.thread), ctypes.py_object(EndlessError)
                    )
                    self.at = time.monotonic()


_RUNNING: dict[int, _Watch] = {}


def beat() -> None:
    """A call of a user's code has come back, or begins."""
    watch = _RUNNING.get(threading.get_ident())
    if watch is not None:
        watch.at = time.monotonic()


def rest() -> None:
    """No user's code runs until the next ``beat``, so that nothing is to be watched."""
    watch = _RUNNING.get(threading.get_ident())
    if watch is not None:
        watch.at = math.inf


@contextmanager
def watched() -> Iterator[None]:
    """``Refused`` is raised inside if there is no ``beat`` for some seconds."""
    here = threading.get_ident()
    if here in _RUNNING:
        yield
        return
    watch = _RUNNING[here] = _Watch()
    thread = threading.Thread(target=watch.run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        with watch.lock:
            watch.done.set()
        del _RUNNING[here]
