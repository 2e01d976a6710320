"""The results table: one row for each finished run, keyed by the hash of its settings and its number."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np

from dpbandits.errors import InputError
from dpbandits.types import Integers

WAIT_SECONDS = 10.0  # for another process that writes
SCHEMA = "CREATE TABLE IF NOT EXISTS runs (key TEXT, run INTEGER, pulls BLOB, seconds REAL, PRIMARY KEY (key, run))"


class Chunk(NamedTuple):
    """Finished runs of one cell, as a worker returns them."""

    key: str
    runs: list[int]
    pulls: list[Integers]
    seconds: list[float]


class Results:
    """A SQLite file. Only the main process writes it, one chunk a transaction: an interruption loses unfinished chunks.

    >>> with Results() as results:
    ...     results.add(Chunk("a", [1], [np.array([[1, 0], [2, 3]])], [0.5]))
    ...     results.done("a"), results.pulls("a", [1], (2, 2)).tolist()
    ({1: 0.5}, [[[1, 0], [2, 3]]])
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        with self._named():
            self._base = sqlite3.connect(path or ":memory:", check_same_thread=False, timeout=WAIT_SECONDS)
            self._base.execute(SCHEMA)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._base.close()

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Errors of the file name it, and say what to do."""
        try:
            yield
        except (sqlite3.Error, zlib.error, KeyError, TypeError, ValueError, OSError) as error:
            text = str(error).lower()
            if "locked" in text or "busy" in text:
                what = "is locked by another process: wait until it has ended, or use --out elsewhere"
            elif "full" in text:
                what = "cannot be written, because the disk is full: finished runs are kept; make room and run it again"
            elif "readonly" in text or "unable to open" in text:
                what = "cannot be opened or written: use --out elsewhere, or --fresh to compute everything again"
            else:
                what = "is damaged: use --fresh to compute everything again, or --out elsewhere"
            raise InputError("out", f": the results file '{self.path}' {what}") from None

    def add(self, chunk: Chunk) -> None:
        """Store the runs of a chunk; a run that is stored already stays as it is."""
        rows = [
            (chunk.key, run, zlib.compress(np.ascontiguousarray(pulls, "<i8").tobytes(), 1), seconds)
            for run, pulls, seconds in zip(chunk.runs, chunk.pulls, chunk.seconds, strict=True)
        ]
        with self._named(), self._base:
            self._base.executemany("INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?)", rows)

    def done(self, key: str) -> dict[int, float]:
        """The finished runs of a cell, and how many seconds each took."""
        with self._named():
            return dict(self._base.execute("SELECT run, seconds FROM runs WHERE key = ?", (key,)))

    def pulls(self, key: str, runs: list[int], shape: tuple[int, int]) -> Integers:
        """The pulls of these runs, with the shape (runs, checkpoints, arms)."""
        with self._named():
            found = dict(self._base.execute("SELECT run, pulls FROM runs WHERE key = ?", (key,)))
            return np.stack([np.frombuffer(zlib.decompress(found[run]), "<i8").reshape(shape) for run in runs])
