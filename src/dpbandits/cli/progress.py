"""Progress on standard error: a bar on a terminal, and elsewhere a line every ten seconds, whatever is going on."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dpbandits.cli.shared import echo
from dpbandits.formats import duration

__all__ = ["EVERY_SECONDS", "Report", "working"]

EVERY_SECONDS = 10.0  # between lines of progress, if standard error is no terminal
SHOWN_AFTER = 0.5  # seconds until a terminal shows a bar

#: What a command calls with the number of finished steps, of all, and where it is known the seconds that are left.
Report = Callable[..., None]


class _State:
    """How far the work is, in words."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.started = time.monotonic()
        self.done = self.total = 0
        self.left: float | None = None
        self.compiling_since: float | None = None

    def report(self, done: int, total: int, left: float | None = None) -> None:
        self.done, self.total, self.left = done, total, left

    def compiling(self, begins: bool) -> None:
        self.compiling_since = time.monotonic() if begins else None

    def words(self) -> str:
        since, now = self.compiling_since, time.monotonic()
        if since is not None:
            from dpbandits.simulation import compiling

            stopping = "; then it stops (Ctrl-C again: now)" if compiling.stopping else ""
            return f"{self.what}: compiling ... {duration(now - since)}{stopping}"
        spent = now - self.started
        if not self.total:
            return f"{self.what}: {duration(spent)} so far"
        left = self.left
        if left is None and self.done:
            left = spent * (self.total - self.done) / self.done
        about = "" if left is None else f", about {duration(left)} left"
        return f"{self.what}: {self.done:,} of {self.total:,}, {duration(spent)} so far{about}"


@contextmanager
def working(what: str) -> Iterator[Report]:
    """Show progress while something is computed. What is yielded may be called with how far it is."""
    from dpbandits.simulation import compiling

    state = _State(what)
    stop = threading.Event()
    show = _bar if sys.stderr.isatty() else _lines
    shower = threading.Thread(target=show, args=(state, stop), daemon=True)
    compiling.watch(state.compiling)
    shower.start()
    try:
        yield state.report
    finally:
        compiling.watch(None)
        stop.set()
        shower.join()


def _lines(state: _State, stop: threading.Event) -> None:
    while not stop.wait(EVERY_SECONDS):
        echo(state.words(), err=True)


def _bar(state: _State, stop: threading.Event) -> None:
    if stop.wait(SHOWN_AFTER):
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (BarColumn(bar_width=24), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("", total=None)
        while not stop.wait(0.2):
            total = state.total or None
            bar.update(task, description=state.words(), completed=state.done, total=total, refresh=True)
