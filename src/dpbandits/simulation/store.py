"""Where compiled code is kept between processes. A file that is damaged or is not the one asked for is not used.

Each entry is one file, named by its key. A file is written aside and then renamed, so that no reader sees half of it.
It holds its key and a checksum, so that a truncated, exchanged or foreign file is recognised. Processes share no index,
so they cannot give one another's entries the wrong name.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

__all__ = ["CodeStore", "Contents", "folder"]

MAGIC = b"dpbandits code 1\n"
SUFFIX = ".code"
UNFINISHED = ".part"
KEEP_SECONDS = 30 * 24 * 3600


def folder() -> Path:
    """Where compiled code is kept: ``DPBANDITS_CACHE``, or ``dpbandits`` in the user's cache folder."""
    root = os.environ.get("DPBANDITS_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "dpbandits"
    try:
        return Path(root).expanduser()
    except RuntimeError:  # the user has no home folder
        return Path(root)


class Contents(NamedTuple):
    """How many entries a store holds, and how many bytes they take."""

    entries: int
    bytes: int


class CodeStore:
    """Entries in one folder. No method raises because of what the folder holds, or because it cannot be written.

    >>> with tempfile.TemporaryDirectory() as name:
    ...     store = CodeStore(Path(name))
    ...     store.write("ab" * 32, b"machine code")
    ...     store.read("ab" * 32), store.read("cd" * 32), store.contents().entries, store.clear().entries
    (b'machine code', None, 1, 1)
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, key: str) -> bytes | None:
        """The entry of this key (64 hexadecimal digits); None where there is none that is whole and our own."""
        path = self._path(key)
        try:
            with open(path, "rb", opener=_open_at_once) as file:
                if not _is_own_file(os.fstat(file.fileno())):
                    return None
                content = file.read()
            with suppress(OSError):
                os.utime(path)  # in use: not to be removed
        except OSError:
            return None
        head, body = content[: len(MAGIC) + 64], content[len(MAGIC) + 64 :]
        return body if head == _head(key, body) else None

    def write(self, key: str, body: bytes) -> None:
        """Keep an entry, in place of the one that is there; where nothing can be written, do nothing."""
        with suppress(OSError):
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._remove_old()
            handle, aside = tempfile.mkstemp(suffix=UNFINISHED, dir=self.path)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_head(key, body) + body)
                Path(aside).replace(self._path(key))
            except BaseException:
                Path(aside).unlink(missing_ok=True)
                raise

    def contents(self) -> Contents:
        """What the folder holds."""
        sizes = []
        for path in self._files():
            with suppress(OSError):
                sizes.append(path.stat().st_size)
        return Contents(len(sizes), sum(sizes))

    def clear(self) -> Contents:
        """Remove every entry, and nothing else; what was removed."""
        sizes = []
        for path in self._files():
            with suppress(OSError):
                size = path.stat().st_size
                path.unlink()
                sizes.append(size)
        return Contents(len(sizes), sum(sizes))

    def _remove_old(self) -> None:
        """Remove entries that no process has read for a month, and what a killed process left half written."""
        for path in self._files():
            with suppress(OSError):
                if path.stat().st_mtime < time.time() - KEEP_SECONDS:
                    path.unlink()

    def _files(self) -> list[Path]:
        try:
            return [path for path in self.path.iterdir() if path.suffix in (SUFFIX, UNFINISHED)]
        except OSError:
            return []

    def _path(self, key: str) -> Path:
        return self.path / f"{key}{SUFFIX}"


def _head(key: str, body: bytes) -> bytes:
    digest = hashlib.sha256(body)
    return MAGIC + bytes.fromhex(key) + digest.digest()


def _open_at_once(path: str, flags: int) -> int:
    """Open without waiting: a named pipe would wait for somebody who writes."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _is_own_file(status: os.stat_result) -> bool:
    """Whether this is a file that this user or the administrator wrote: code of anybody else is not run."""
    return stat.S_ISREG(status.st_mode) and (not hasattr(os, "getuid") or status.st_uid in (os.getuid(), 0))
