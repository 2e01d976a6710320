"""The file of a SQLite database: one server holds it, under a lock that says which file and which log are open.

SQLite finds its log by the name of the database. After a file was moved, replaced or restored, the log of that name may
belong to another file, and SQLite would write it into this one. So the lock, which is a file beside the database, says
which file is open and which log is its own. What does not fit is refused.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import suppress
from pathlib import Path

import structlog

from dpbandits.errors import InputError
from dpbandits.service.files import (
    REFUSED,
    LostFileError,
    beside,
    held,
    held_open,
    identity,
    refuse_link,
    refuse_log_of_another,
    refuse_no_file,
    refuse_not_open,
    size,
)
from dpbandits.service.keyring import alone

__all__ = ["HeldFile"]

log = structlog.get_logger("dpbandits")

#: The server still has its file open, and keeps it by this name, on Linux.
SAVE = (
    "if the right file is nowhere else, copy it from /proc/{}/fd before the server is stopped, and keep the -wal file"
)
GONE = f"it was deleted, or moved away: put the file back; {SAVE}"
REPLACED = f"it was replaced by another file: {SAVE}; then stop the server, and put the right file back"
NO_LOG = (
    "its log (-wal or -shm) was deleted or replaced while the server ran: stop the server, keep a copy of the folder, "
    "move the .lock file away, and start; restore a backup only if something is missing"
)


class UsedError(InputError):
    """Another server holds the lock."""


class HeldFile:
    """The file of a SQLite database. Without a ``path`` (in memory, or on PostgreSQL) there is nothing to hold.

    ``name`` is that of the setting. With ``read_only`` nothing is written, not even what waits in the log. A connection
    waits ``patience`` seconds for a lock of SQLite's.
    """

    def __init__(self, name: str, path: Path | None, *, read_only: bool, patience: float) -> None:
        self.name, self.path = name, path
        self._read_only, self._patience = read_only, patience
        self._lock: int | None = None  # the descriptor of the lock
        self._file: tuple[int, int] | None = None  # which file this process has opened
        #: Its descriptor, until all is closed: a file that is deleted can be copied, and no other gets its number.
        self._held: int | None = None
        #: Which files SQLite's log and its index are; None where a new connection may find others.
        self.beside: list[tuple[int, int] | None] | None = None
        self.refused: str | None = None  # why the file is not used any more
        self.latest = 0.0  # when the last commit was made, by this process or an earlier one, as far as the lock tells
        self.unclean = True  # the last server was killed, the file has been replaced since, or it was not checked yet

    @property
    def locked(self) -> bool:
        """Whether this process is the one that writes the file."""
        return self._lock is not None

    @property
    def opened(self) -> bool:
        """Whether it is known which file this process has opened."""
        return self._file is not None

    def connect(self, mode: str = "rw", timeout: float | None = None) -> sqlite3.Connection:
        """Open the file that this server has opened before, and no other: the log beside it belongs to that one.

        SQLite is not allowed to make a file. In place of one that was moved away, it would make an empty one and
        delete the log.
        """
        assert self.path is not None
        self.refuse_another()
        if self._read_only and size(f"{self.path}-wal"):
            mode = "ro"  # or SQLite would write the log into the file when it is closed
        wait = timeout or self._patience
        made = sqlite3.connect(f"{self.path.as_uri()}?mode={mode}", uri=True, timeout=wait, check_same_thread=False)
        try:
            self.refuse_another()  # it may have been replaced meanwhile; nothing is read of the log before
        except BaseException:
            made.close()
            raise
        return made

    def refuse_another(self) -> None:
        """Refuse if another file, or no file, has the name of the one that this server has opened.

        A file that is gone may be put back, and the log that was left belongs to it. A process that
        opens it by another name meanwhile would not see that log, so the file no longer counts as clean.
        """
        if self.refused is not None:
            raise LostFileError(self.refused)
        if self.path is None or self._file is None:
            return
        try:
            found = identity(self.path)
        except OSError:  # it cannot be looked at now, nor opened, and SQLite says why
            return
        if found is None:
            self.unclean = True
            raise LostFileError(GONE.format(os.getpid()))
        if found != self._file:
            raise self.refuse_all(REPLACED.format(os.getpid()))

    def refuse_all(self, reason: str) -> LostFileError:
        """Stop using the file: it is not what this process has stored. The next server checks it for damage.

        A deleted log may be noticed by its consequences only. So the log is looked at here, too, and if it is gone the
        lock tells the next server.
        """
        if self.refused is None:
            if self._log_is_lost():
                reason = NO_LOG
                with suppress(OSError):
                    self._hold(REFUSED)
            log.error("refuses to write", reason=reason)
            self.refused = reason
        self.unclean = True
        return LostFileError(reason)

    def look_at_names(self) -> None:
        """Refuse to write if another file or log has the name now. SQLite itself would go on with the old one."""
        self.refuse_another()
        if self.beside is None:
            self.note_log()
        elif self._log_is_lost():
            raise self.refuse_all(NO_LOG)

    def forget_log(self) -> None:
        """A connection is about to be closed: with the last one the log may be deleted, and the next makes another.

        A log that was lost before is refused: perhaps a new connection has failed because of it.
        """
        try:
            lost = self.refused is None and self._log_is_lost()
        except OSError:  # it cannot be looked at now
            lost = False
        if lost:
            raise self.refuse_all(NO_LOG)
        self.beside = None

    def _log_is_lost(self) -> bool:
        """Whether the file is the one that this server has opened, and its log, or the log's index, is not."""
        if self.path is None or self.beside is None:
            return False
        return beside(self.path) != self.beside and identity(self.path) == self._file

    def lock(self, *, or_join: bool = False) -> None:
        """Become the one process that writes this file, which is made if it is new. Two would wait for each other.

        The lock says which file is open before SQLite opens it, and so whose log lies beside it after a crash. With
        ``or_join`` a file that a server has open is used beside that server.
        """
        if self.path is None:
            return
        self.refuse_odd()
        self.refused, self.unclean = None, True
        try:
            self._lock = descriptor = self._locked(os.O_CREAT, wait=not or_join)
        except UsedError:
            if not or_join:
                raise
            refuse_not_open(self.name, self.path)
            self._file = identity(self.path)
            return
        refuse_log_of_another(self.name, self.path, descriptor)
        latest = os.fstat(descriptor).st_mtime
        self.unclean = self.path.exists() and (held(descriptor) != self._mark() or size(f"{self.path}-wal") > 0)
        self.make()
        try:
            self._held = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise InputError(self.name, f"cannot be opened: {self.path}: {error.strerror}") from None
        found = os.fstat(self._held)
        self._file = found.st_dev, found.st_ino
        self.remember(latest)
        try:
            self.note_log()
        except OSError as error:  # the disk is full
            raise self._not_locked(error) from None

    def note_log(self) -> None:
        """Write into the lock which file is open, and which log lies beside it now. Without a lock, look at it."""
        if self.path is None or self._file is None:
            return
        if self._lock is None or self._held is None:
            refuse_not_open(self.name, self.path)
            return
        self.beside = beside(self.path)
        self._hold(held_open(self.path, self._held, self._lock))

    def _hold(self, text: bytes) -> None:
        """Write into the lock what the next server is to know. If this process is killed meanwhile, the lock holds the
        old text or the new one.
        """
        assert self._lock is not None
        line = text + b"\n"
        os.pwrite(self._lock, line, 0)
        os.ftruncate(self._lock, len(line))
        with suppress(OSError):
            os.fsync(self._lock)
        self.remember(self.latest)

    def make(self) -> None:
        """Make the file, where there is none. Nothing else makes it."""
        if self.path is None or self._file is not None:
            return
        refuse_log_of_another(self.name, self.path)
        # Only a new file is opened: to close an existing one would end SQLite's own locks on it, in this process.
        with suppress(OSError):  # it exists; or the driver says what is wrong
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))

    def remember(self, now: float) -> None:
        """Keep the time of a commit as that of the lock: a backup of the database that is restored has an older one.

        Where that is not possible, as with the lock of another user, the system's clock must not be set back.
        """
        self.latest = max(now, self.latest)
        if self._lock is not None:
            with suppress(OSError):
                os.utime(self._lock, (self.latest, self.latest))

    def _locked(self, how: int, *, wait: bool = True) -> int:
        """The descriptor of the lock, which this process holds until it closes it.

        With ``wait``, a key command or a check that has the lock for a moment is waited for: it holds the folder, too.
        """
        assert self.path is not None
        if wait:
            with suppress(UsedError):
                return self._locked(how, wait=False)
            with alone(self.path):
                return self._locked(how, wait=False)
        lock = Path(f"{self.path}.lock")
        refuse_link(self.name, lock)
        refuse_no_file(self.name, lock)
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | how, 0o600)
        except OSError as error:
            raise self._not_locked(error) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise UsedError(
                self.name, f"is used by another server: {self.path}; stop that one, or use PostgreSQL for several"
            ) from None
        return descriptor

    def unused(self) -> None:
        """Refuse a SQLite file that another server uses, or beside which lies the log of another. No file is made.

        A start waits meanwhile, as it does for a key command.
        """
        if self.path is None or not os.path.lexists(f"{self.path}.lock"):
            return
        self.refuse_odd()
        with alone(self.path):
            descriptor = self._locked(0, wait=False)
            try:
                refuse_log_of_another(self.name, self.path, descriptor)
            finally:
                os.close(descriptor)

    def _mark(self) -> bytes:
        """What the lock holds after a clean stop: which file it was, how large, and when it was last written."""
        if self.path is None or not self.path.exists():
            return b""
        found = self.path.stat()
        return f"clean {found.st_ino} {found.st_size} {found.st_mtime_ns}".encode()

    def refuse_odd(self) -> None:
        """Refuse what cannot be written, and a file of two names.

        SQLite keeps its log by the name of the file: by two names, two processes would not see each other's.
        """
        path = self.path
        if path is None:
            return
        refuse_no_file(self.name, path)
        if path.exists() and not os.access(path, os.W_OK):
            raise InputError(self.name, f"cannot be written: {path}")
        if path.exists() and path.stat().st_nlink > 1:
            raise InputError(
                self.name,
                f"must be a file of one name, and this one has hard links: {path}; "
                "another server may use it by another name: delete the other names",
            )

    def release(self) -> None:
        """Let others write. All connections must be closed."""
        if self._lock is not None:
            if self._is_clean():
                with suppress(OSError):  # the disk is full: the next server checks the file for damage
                    self._hold(self._mark())
            if self._held is not None:
                os.close(self._held)
            os.close(self._lock)
        self._lock = self._held = self._file = self.beside = None

    def _is_clean(self) -> bool:
        """Whether all that was stored is in the file that has the name."""
        if self.unclean or self.path is None:
            return False
        # A log without contents is that of another process, which may be about to write.
        return identity(f"{self.path}-wal") is None and identity(self.path) == self._file

    def damaged(self) -> InputError:
        """The refusal of a file in which SQLite finds damage."""
        text = f"is damaged: {self.path}; move it, its -wal and its -shm away, and restore a backup"
        return InputError(self.name, text)

    def _not_locked(self, error: OSError) -> InputError:
        return InputError(self.name, f"cannot be locked: {self.path}.lock: {error.strerror}")
