"""A time limit for a user's code: ``Refused`` is raised in a thread whose user's code does not return in time.

Only time shows that a loop on an infinite reward never ends. ``beat`` restarts the timer for the next call. Code that
catches every exception cannot be ended from inside its process: see ``last_resort``.
"""

from __future__ import annotations

import ctypes
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dpbandits.audit.refusals import Refused

__all__ = ["beat", "rest", "watched"]

#: The limits for one call of a user's code: processor time, so that a busy machine refuses nothing, and time by the
#: clock, for code that only waits.
SECONDS, WAITING = 10.0, 60.0
MOST_CAUGHT = 3  # refusals that a user's code may catch before the last resort

#: What to do about code that catches every refusal and goes on: the command line ends the process.
last_resort: Callable[[str], None] | None = None


class EndlessError(Refused):
    """A user's code did not return in time."""

    def __init__(self) -> None:
        super().__init__(f"the code does not return within {SECONDS:g} seconds of work or {WAITING:g} of waiting")


class _Watch:
    """The timer of one thread."""

    def __init__(self) -> None:
        self.thread, self.done, self.lock = threading.get_ident(), threading.Event(), threading.Lock()
        self.beat()

    def beat(self) -> None:
        """Start the timer again."""
        self.raised = 0
        self._restart()

    def _restart(self) -> None:
        self.worked, self.waited = time.process_time(), time.monotonic()

    def rest(self) -> None:
        """Stop the timer until the next ``beat``."""
        self.worked = self.waited = math.inf

    @property
    def late(self) -> bool:
        """Whether a limit has passed since the last ``beat``."""
        return time.process_time() - self.worked > SECONDS or time.monotonic() - self.waited > WAITING

    def run(self) -> None:
        """Raise ``EndlessError`` in the watched thread whenever a limit has passed."""
        while not self.done.wait(min(0.5, SECONDS / 4.0)):
            with self.lock:
                if not self.done.is_set() and self.late:
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(
                        ctypes.c_ulong(self.thread), ctypes.py_object(EndlessError)
                    )
                    self.raised += 1
                    self._restart()
                    if self.raised > MOST_CAUGHT and last_resort is not None:
                        last_resort(f"{EndlessError()}, and catches every exception")


_RUNNING: dict[int, _Watch] = {}


def beat() -> None:
    """A call of a user's code has returned, or begins: start the timer again."""
    watch = _RUNNING.get(threading.get_ident())
    if watch is not None:
        watch.beat()


def rest() -> None:
    """No user's code runs until the next ``beat``: stop the timer."""
    watch = _RUNNING.get(threading.get_ident())
    if watch is not None:
        watch.rest()


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
