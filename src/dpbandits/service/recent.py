"""What was sent in the last hour, as digests: enough to tell a repetition from a contradiction, also after a restart.

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
from typing import Any

from dpbandits.service.keyring import Signer, alone, replace_secrets, signer

__all__ = ["Recent"]

LIFE = 3600.0  # seconds for which a key makes digests; it is kept as long again
NUMBER, TAG = 4, 8  # bytes of a digest: the number of its key, and the tag


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

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock, self._seen = path, clock, -1
        self._until = 0.0  # when the next key is to be made or erased
        self._signers: dict[bytes, Signer] = {}
        self.refresh()

    def refresh(self) -> None:
        """Take over what another process has written; make a new key, and erase old ones, when it is time."""
        now = self._clock()
        if now < self._until and self._written() == self._seen:
            return
        with alone(self._path):
            stored = self._read()
            keys = [key for key in stored if now - 2 * LIFE < key["made"] <= now]
            if not keys or keys[-1]["made"] <= now - LIFE:
                keys.append({"number": secrets.token_hex(NUMBER), "secret": secrets.token_hex(32), "made": now})
            if keys != stored:
                replace_secrets(self._path, {"keys": keys})
            self._seen = self._written()
        self._until = min(keys[-1]["made"] + LIFE, keys[0]["made"] + 2 * LIFE)
        self._signers = {bytes.fromhex(key["number"]): signer(bytes.fromhex(key["secret"])) for key in keys}
        self._newest = bytes.fromhex(keys[-1]["number"])  # last: another thread may read both

    def _written(self) -> int:
        with suppress(FileNotFoundError):
            return self._path.stat().st_mtime_ns
        return -1

    def _read(self) -> list[dict[str, Any]]:
        """The keys in the file; none where it is lost or damaged, which costs no more than some comparisons."""
        try:
            return [{name: key[name] for name in ("number", "secret", "made")} for key in self._stored()]
        except (OSError, ValueError, KeyError, TypeError):
            return []

    def _stored(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self._path.read_text())["keys"]
        return found

    def digest(self, token: bytes, reward: float) -> bytes:
        """What is stored in the place of a reward that came with a token."""
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
