"""SQLite files of a device: every change is one transaction that is on the disk before it is acted on.

Each transaction opens its own connection. So nothing has to be closed, and files are safe with threads, forks and
several processes. A connection costs little compared with the synchronisation. A fork waits for the transaction of
another thread: SQLite's own locks would stay closed in the child for ever.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path

from dpbandits.errors import InputError

__all__ = ["create", "damaged", "stored_number", "transaction"]

#: How long one process waits for another that is writing, in seconds.
LOCK_TIMEOUT = 60.0

_one_at_a_time = threading.RLock()
if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    _take, _give = _one_at_a_time.acquire, _one_at_a_time.release
    os.register_at_fork(before=_take, after_in_parent=_give, after_in_child=_give)


@contextmanager
def transaction(path: Path, timeout: float = LOCK_TIMEOUT) -> Iterator[sqlite3.Connection]:
    """One transaction on a file that exists. SQLite would make a missing one, with nothing spent."""
    where = f"{path.as_uri()}?mode=rw"
    with (
        _one_at_a_time,
        closing(sqlite3.connect(where, timeout=timeout, isolation_level=None, uri=True)) as database,
    ):
        database.execute("PRAGMA synchronous = EXTRA")
        database.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten: it may be a reward
        database.execute("BEGIN IMMEDIATE")
        try:
            yield database
        except BaseException:
            if database.in_transaction:  # SQLite itself rolls back when the disk is full
                database.execute("ROLLBACK")
            raise
        database.execute("COMMIT")


def create(path: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    """A complete new file, unless another process is first: it appears under its own name only when it is complete."""
    handle, name = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".new", dir=path.parent)  # only the user may read it
    os.close(handle)
    new = Path(name)
    try:
        with transaction(new) as database:
            fill(database)
        try:
            os.link(new, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            if not path.exists():
                new.rename(path)
    finally:
        new.unlink(missing_ok=True)


def stored_number(text: object) -> Fraction:
    """A number of a file; whatever cannot be read is a refusal, and never a budget that is unspent."""
    try:
        found = Fraction(text) if isinstance(text, str) else None
    except (ValueError, ZeroDivisionError):
        found = None
    if found is None or found < 0:
        raise damaged()
    return found


def damaged() -> InputError:
    """The refusal of a file of which it is not known what was spent."""
    return InputError("path", "must be an undamaged store; what was spent cannot be read from this one")
