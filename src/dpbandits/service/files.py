"""Files of SQLite: which file has a name now, whose log lies beside it, and what is refused before it is opened."""

from __future__ import annotations

import fcntl
import os
import re
import stat
import sys
from pathlib import Path

from dpbandits.errors import InputError

__all__ = [
    "REFUSED",
    "LostFileError",
    "beside",
    "generation",
    "held",
    "held_open",
    "identity",
    "refuse_link",
    "refuse_log_of_another",
    "refuse_no_file",
    "refuse_not_open",
    "refuse_unwritable",
    "resolved",
    "size",
]

#: What a lock holds while a server runs: the inode numbers of the database, of the lock itself and of the log, and the
#: generation of the database, which earlier versions left out. If the lock or the log has another number now, it was
#: copied or made anew, and nothing is known of whose log it is.
OPEN = re.compile(rb"open (\d+) (\d+) (\d+)(?: (\d+))?")

#: What a lock holds after the log was deleted under a server, until the lock is moved away.
REFUSED = b"refused: the log was deleted or replaced while a server ran"

GET_GENERATION = 0x8008_7601  # FS_IOC_GETVERSION of Linux


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


def beside(path: Path) -> list[tuple[int, int] | None]:
    """Which files SQLite's log and its index are now."""
    return [identity(f"{path}-wal"), identity(f"{path}-shm")]


def generation(descriptor: int) -> int:
    """The file's generation number, which tells files with a reused inode number apart; 0 if it is not known."""
    try:
        return int.from_bytes(fcntl.ioctl(descriptor, GET_GENERATION, bytes(8)), sys.byteorder)
    except OSError:
        return 0


def held(lock: int) -> bytes:
    """The first line of a lock, by its descriptor. What follows is left of an earlier one, which was longer."""
    return os.pread(lock, 200, 0).partition(b"\n")[0]


def held_open(path: Path, file: int, lock: int) -> bytes:
    """What a lock is to hold while a server has a file open, with the log that is there now; by their descriptors."""
    numbers = os.fstat(file).st_ino, os.fstat(lock).st_ino, _number(f"{path}-wal"), generation(file)
    return b"open %d %d %d %d" % numbers


def _number(path: Path | str) -> int:
    """The inode number of a file; 0 where there is none."""
    found = identity(path)
    return 0 if found is None else found[1]


def refuse_log_of_another(name: str, path: Path, lock: int | None = None) -> None:
    """Refuse a file beside which lies the log or the journal of another: SQLite would write that into it.

    Nothing is written. ``lock`` is the descriptor of the lock, which this process holds.
    """
    wal, shm, journal = (Path(f"{path}{end}") for end in ("-wal", "-shm", "-journal"))
    for one in (wal, shm, journal):
        refuse_no_file(name, one)
    if size(wal) and not size(path):  # SQLite would delete the log
        text = f"is empty or gone, and its log is not: put {path} back; or, to begin anew, move {wal} and {shm} away"
        raise InputError(name, text)
    if lock is None:
        return
    if held(lock) == REFUSED:
        text = "lost its log (-wal or -shm) while the last server ran, and may lack what was stored last"
        text += f": keep a copy of the folder; then move {path}.lock away, and start: {path}"
        raise InputError(name, f"{text}; restore a backup only if something is missing")
    left = f"{wal} and {shm}" if size(wal) else str(journal) if size(journal) and size(path) else ""
    if left and _is_of_another(path, lock):
        text = f"must lie beside its own log, and the log beside it belongs to another file: put that back as {path}"
        text += f"; or, if this is a backup that was restored and not used yet, move {left} to another folder"
        raise InputError(name, f"{text}; or, if it is the same file, which was moved or copied, move {path}.lock away")


def _is_of_another(path: Path, lock: int) -> bool:
    """Whether the last server had another file open, and neither the lock nor a log was copied or made anew since.

    The file is opened. To close it ends SQLite's own locks on it in this process, so none of it may use the file yet.
    """
    found = OPEN.fullmatch(held(lock))
    if found is None or int(found[2]) != os.fstat(lock).st_ino:
        return False
    if size(f"{path}-wal") and int(found[3]) != _number(f"{path}-wal"):
        return False
    with path.open("rb") as file:
        before, now = int(found[4] or 0), generation(file.fileno())
    return int(found[1]) != _number(path) or (before != now and 0 not in (before, now))


def refuse_not_open(name: str, path: Path) -> None:
    """Refuse a file that the server which holds the lock does not have open, with the log that is there now.

    A number is enough: as long as a server has a file open, no other gets its number.
    """
    with open(f"{path}.lock", "rb") as lock:
        found, own = OPEN.fullmatch(held(lock.fileno())), os.fstat(lock.fileno()).st_ino
    if found is None or [int(one) for one in found.groups()[:3]] != [_number(path), own, _number(f"{path}-wal")]:
        text = f"is used by a server that does not have this file open: {path}; look at the log of that server"
        raise InputError(name, f"{text}; if it was just started or stopped, try again")


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


def refuse_link(name: str, lock: Path) -> None:
    """Refuse a lock that is a link, symbolic or hard: what it leads to would be overwritten."""
    if lock.is_symlink() or (lock.is_file() and lock.stat().st_nlink > 1):
        raise InputError(name, f"cannot be locked: {lock} is a link: delete the link")


def refuse_no_file(name: str, path: Path) -> None:
    """Refuse what is there and is no file, such as a folder.

    One look, because another process may delete the file meanwhile, as SQLite does with a journal.
    """
    try:
        found = os.stat(path)
    except OSError:  # there is none; or who opens it says what is wrong
        return
    if not stat.S_ISREG(found.st_mode):
        raise InputError(name, f"must be a file, got {path}, which is none")
