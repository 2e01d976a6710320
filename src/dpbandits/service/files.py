"""Files of SQLite: which file has a name now, whose log lies beside it, and what is refused before it is opened."""

from __future__ import annotations

import os
import re
from pathlib import Path

from dpbandits.errors import InputError

__all__ = [
    "LostFileError",
    "held_open",
    "identity",
    "refuse_log_of_another",
    "refuse_no_file",
    "refuse_unwritable",
    "resolved",
    "size",
]

#: What a lock holds while a server runs: the inode numbers of the database, of the lock itself and of the log. If the
#: lock or the log has another number now, it was copied or made anew, and nothing is known of whose log it is.
OPEN = re.compile(rb"open (\d+) (\d+) (\d+)")


class LostFileError(FileNotFoundError):
    """The file is not, or no longer, what this process has stored. The text is ours, and holds nothing of it."""


def identity(path: Path | str) -> tuple[int, int] | None:
    """Which file has this name; None where there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def size(path: Path | str) -> int:
    """How many bytes a file has; 0 where there is none."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def held_open(path: Path, lock: int) -> bytes:
    """What a lock, by its descriptor, is to hold while a server has a file open, with the log that is there now."""
    return f"open {path.stat().st_ino} {os.fstat(lock).st_ino} {_number(f'{path}-wal')}".encode()


def _number(path: str) -> int:
    """The inode number of a file; 0 where there is none."""
    found = identity(path)
    return 0 if found is None else found[1]


def refuse_log_of_another(name: str, path: Path, lock: int | None) -> None:
    """Refuse a file beside which lies the log of another: SQLite would write that log into it.

    Nothing is opened but the lock, and nothing is written. ``lock`` is its descriptor, where this process has it.
    """
    wal, shm = f"{path}-wal", f"{path}-shm"
    if not size(wal):
        return
    if not size(path):  # SQLite would delete the log
        text = f"is empty or gone, and its log is not: put {path} back; to begin anew, delete {wal} and {shm}"
        raise InputError(name, text)
    if _last_open(name, path, lock) not in (None, path.stat().st_ino):
        text = f"must lie beside its own log, and the log beside it belongs to another file: put that back as {path}"
        text += f"; or delete {wal} and {shm}, and with them what was stored last"
        raise InputError(name, f"{text}; or, if file and log were copied together, delete {path}.lock")


def _last_open(name: str, path: Path, lock: int | None) -> int | None:
    """The number of the file that the last server had open, if it did not stop cleanly; None where that is unknown."""
    if lock is not None:
        held, number = os.pread(lock, 200, 0), os.fstat(lock).st_ino
    else:
        beside = Path(f"{path}.lock")
        refuse_no_file(name, beside)  # one would wait for a pipe
        try:
            held, number = beside.read_bytes()[:200], beside.stat().st_ino
        except OSError:
            return None
    found = OPEN.fullmatch(held)
    if found is None or (int(found[2]), int(found[3])) != (number, _number(f"{path}-wal")):
        return None
    return int(found[1])


def refuse_unwritable(name: str, path: Path) -> None:
    """Refuse a file in a folder that is not there, or in which nothing may be written."""
    if not os.access(path.absolute().parent, os.W_OK):
        raise InputError(name, f"cannot be written: {path}")


def resolved(name: str, path: Path) -> Path:
    """The file that a path leads to."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # which of them depends on Python
        raise InputError(name, f"must be a file, got {path}, whose links lead nowhere") from None


def refuse_no_file(name: str, path: Path) -> None:
    """Refuse what is there and is no file, such as a folder."""
    if path.exists() and not path.is_file():
        raise InputError(name, f"must be a file, got {path}, which is none")
