"""Digests of what was sent in the last one to two hours: they tell a repetition from a contradiction, also after a
restart.

A device's response is private already. It is stored, and a repetition is compared with it. A reward of the central
model is not stored. In its place there is a keyed digest of the token and the reward. Without the key a digest tells
nothing. With the key anybody can try the few rewards that are possible: then a digest is as good as the reward. So

* the key is outside the database, in a file of its own beside the server's secrets;
* a key is used for an hour, kept for another one, and then erased. From then on nobody can learn anything from the
  digests that were made with it, not even with the database and all other secrets. The file is not to be backed up;
* what came longer ago, or through another machine, can no longer be compared, and counts as a repetition. The first
  answer stands in any case: this decides only what the sender is told.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from dpbandits.service.files import refuse_no_file
from dpbandits.service.keyring import Signer, alone, replace_secrets, signer

__all__ = ["Recent"]

LIFE = 3600.0  # seconds for which a key makes digests; it is kept as long again
NUMBER, TAG = 4, 8  # bytes of a digest: the number of its key, and the tag
SECRET = 32  # bytes of a key


class _Key(NamedTuple):
    """As it is in the file: two texts of hexadecimal digits, and a time."""

    number: str
    secret: str
    made: float


def _key(number: str, secret: str, made: float) -> _Key:
    """A key that was read; raises where it cannot be one."""
    if (len(bytes.fromhex(number)), len(bytes.fromhex(secret))) != (NUMBER, SECRET):
        raise ValueError
    return _Key(number, secret, float(made))


class Recent:
    """The keys of the last two hours.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     recent = Recent(Path(folder) / "recent")
    ...     digest = recent.digest(b"decision 1", 1.0)
    ...     again = Recent(Path(folder) / "recent")  # after a restart
    ...     again.contradicts(digest, b"decision 1", 1.0), again.contradicts(digest, b"decision 1", 0.0)
    (False, True)
    """

    def __init__(
        self, path: Path, clock: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._path, self._clock, self._steady, self._seen = path, clock, steady, -1
        self._keys: list[_Key] = []
        self._began: dict[str, float] = {}  # by the steady clock, when each key was made
        self._signers: dict[bytes, Signer] = {}
        self.refresh()

    def refresh(self) -> None:
        """Take over what another process has written; make a new key, and erase old ones, when it is time."""
        if self._keys and self._written() == self._seen and self._due(self._keys) == self._keys:
            return
        refuse_no_file("keys.recent", self._path)
        with alone(self._path):
            stored = self._read()
            keys = self._due(stored)
            if keys != stored:
                replace_secrets(self._path, {"keys": [key._asdict() for key in keys]})
            self._seen = self._written()
        steady = self._steady()
        self._keys, self._began = keys, {key.number: self._began.get(key.number, steady) for key in keys}
        self._signers = {bytes.fromhex(key.number): signer(bytes.fromhex(key.secret)) for key in keys}
        self._newest = bytes.fromhex(keys[-1].number)  # last: another thread may read both

    def _due(self, keys: list[_Key]) -> list[_Key]:
        """The keys without those that are too old, and with a new one if it is time."""
        now, steady = self._clock(), self._steady()

        def age(key: _Key) -> float:
            """By the clock that says more: one may be set back, and the other may stop while the machine sleeps."""
            began = self._began.setdefault(key.number, steady - (now - key.made))
            return max(now - key.made, steady - began)

        kept = [key for key in keys if key.made <= now and age(key) < 2 * LIFE]
        if not kept or age(kept[-1]) >= LIFE:
            kept.append(_Key(secrets.token_hex(NUMBER), secrets.token_hex(SECRET), now))
        return kept

    def _written(self) -> int:
        with suppress(FileNotFoundError):
            return self._path.stat().st_mtime_ns
        return -1

    def _read(self) -> list[_Key]:
        """The keys in the file; none where it is lost or damaged, which costs no more than some comparisons."""
        try:
            return [_key(**key) for key in json.loads(self._path.read_text())["keys"]]
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return []

    def digest(self, token: bytes, reward: float) -> bytes:
        """What is stored in place of a reward that came with a token."""
        number = self._newest
        return number + self._tag(self._signers[number], token, reward)

    def contradicts(self, digest: bytes, token: bytes, reward: float) -> bool:
        """Whether another reward came before, as far as is known."""
        number = digest[:NUMBER]
        if number not in self._signers:
            self.refresh()  # another process may have made the key
        sign = self._signers.get(number)
        return sign is not None and self._tag(sign, token, reward) != digest[NUMBER:]

    @staticmethod
    def _tag(sign: Signer, token: bytes, reward: float) -> bytes:
        return sign(b"%s %s" % (token, repr(reward).encode()))[:TAG]
