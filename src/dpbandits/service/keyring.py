"""The secrets of a server, in a small file outside the database: the database alone reveals little."""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from dpbandits.errors import InputError

__all__ = ["TAG", "Keyring", "Signer", "alone", "replace_secrets", "signer", "token_code"]

FORMAT = 1
TOKEN_KEYS_KEPT = 8  # older tokens than those of the last eight keys are no longer read
TOKEN_KEY_NUMBERS = 255  # a token names its key by one byte
NONCE = 12
USER = 16  # bytes of a pseudonym
TAG = 16  # bytes of the code that signs a token
LAYOUT = b"token 2"  # part of that code, so that a token with another order of its fields is not one of ours


Signer = Callable[[bytes], bytes]


def signer(key: bytes) -> Signer:
    """HMAC-SHA256 (RFC 2104) with one key that is prepared once: a third of the time that ``hmac.digest`` takes.

    >>> import hmac
    >>> signer(b"key" * 10)(b"text") == hmac.digest(b"key" * 10, b"text", "sha256")
    True
    """
    block = key.ljust(64, b"\0")
    if len(block) > 64:
        raise ValueError("the key must have at most 64 bytes")
    begin_inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block)).copy
    begin_outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block)).copy

    def sign(message: bytes) -> bytes:
        inner, outer = begin_inner(), begin_outer()
        inner.update(message)
        outer.update(inner.digest())
        return outer.digest()

    return sign


def token_code(key: bytes) -> Callable[[], hashlib.blake2s]:
    """What begins the code that signs a token: BLAKE2s with a key (RFC 7693), 16 bytes.

    It takes half of the time of HMAC, and a list has 1000 tokens. Pseudonyms are still made with HMAC, so that those
    in a database stand for the same users.

    >>> code, other = token_code(b"k" * 32)(), token_code(b"l" * 32)()
    >>> code.update(b"text"), other.update(b"text")
    (None, None)
    >>> len(code.digest()), code.digest() == other.digest()
    (16, False)
    """
    return hashlib.blake2s(key=key, digest_size=TAG, person=LAYOUT).copy


class Keyring:
    """Three secrets: token keys, which rotate; the key that turns users into pseudonyms; the key that seals states.

    The last two never change. Without them the experiments of a database cannot go on: keep a copy of the file, and
    keep it away from copies of the database.

    The next token key follows from the file. So machines with copies of one file renew it alike, and each reads the
    tokens of a machine that was quicker.

    >>> keys = Keyring.fresh()
    >>> keys.unseal(keys.seal(b"sums", b"shop"), b"shop"), len(keys.pseudonym("ann"))
    (b'sums', 16)
    """

    def __init__(self, record: dict[str, Any]) -> None:
        self._record = record
        self._number = int(record["tokens"][-1]["id"])
        self.age = float(record["tokens"][-1]["created"])  # when the newest token key was made
        if not math.isfinite(self.age):
            raise ValueError
        self.newest = _byte(self._number)
        self._users = signer(bytes.fromhex(record["users"]))
        self._seal = ChaCha20Poly1305(bytes.fromhex(record["seal"]))
        self._root = signer(bytes.fromhex(record.get("root", record["seal"])))
        known = [*record["tokens"], self._token_key(self._number + 1)]
        self.codes = {_byte(int(one["id"])): token_code(bytes.fromhex(one["secret"])) for one in known}

    @classmethod
    def fresh(cls, clock: Callable[[], float] = time.time) -> Keyring:
        """New secrets."""
        first = {"id": 1, "secret": secrets.token_hex(32), "created": clock()}
        record = {"format": FORMAT, "tokens": [first]}
        return cls({**record, **{name: secrets.token_hex(32) for name in ("users", "seal", "root")}})

    @classmethod
    def open(cls, path: Path, *, create: bool = True) -> Keyring:
        """The keys in this file; a new file with new keys where there is none. Only its owner may read it."""
        if create and not path.exists():
            cls._create(path)
        try:
            record = json.loads(path.read_text())
            if record["format"] != FORMAT:
                raise ValueError
            return cls(record)
        except FileNotFoundError:
            raise InputError("keys", f"must be the file of a server, got {path}, which does not exist") from None
        except OSError as error:
            raise InputError("keys", f"cannot be read: {path}: {error.strerror}") from None
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
            raise InputError("keys", f"must be a key file of dpbandits serve, got {path}") from None

    @classmethod
    def _create(cls, path: Path) -> None:
        draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        try:
            write_secrets(draft, cls.fresh()._record, os.O_TRUNC)
        except OSError as error:
            raise InputError("keys", f"cannot be written: {path}: {error.strerror}") from None
        with suppress(FileExistsError):  # another process was quicker
            os.link(draft, path)
        draft.unlink()

    def _token_key(self, number: int) -> dict[str, Any]:
        return {"id": number, "secret": self._root(b"token key %d" % number).hex()}

    def renewed(self, path: Path, period: float, now: float) -> Keyring:
        """The same with as many further token keys as are due, one in each period, written to ``path``.

        Tokens that are out stay valid, until there are eight newer keys. When a key is due follows from the file alone,
        so a machine that was off catches up with the others.
        """
        due = int(max(now - self.age, 0.0) // period)
        if due == 0:
            return self
        numbers = range(self._number + max(due - TOKEN_KEYS_KEPT, 0) + 1, self._number + due + 1)
        made = [{**self._token_key(n), "created": self.age + (n - self._number) * period} for n in numbers]
        return self._with(path, made)

    def rotated(self, path: Path, clock: Callable[[], float] = time.time) -> Keyring:
        """The same with a token key that cannot be computed from the file as it was, written to ``path``.

        It is for a file that may be known to others. The keys that follow from it are unknown to them, too.
        """
        anew = Keyring({**self._record, "root": secrets.token_hex(32)})
        return anew._with(path, [{**anew._token_key(anew._number + 1), "created": clock()}])

    def _with(self, path: Path, made: list[dict[str, Any]]) -> Keyring:
        record = {**self._record, "tokens": [*self._record["tokens"], *made][-TOKEN_KEYS_KEPT:]}
        replace_secrets(path, record)
        return Keyring(record)

    def goes_on(self, before: Keyring) -> bool:
        """Whether what was sealed before can be opened, and users have the same pseudonyms."""
        return all(self._record[name] == before._record[name] for name in ("users", "seal"))

    @property
    def guarded(self) -> bool:
        """Whether an API key was ever made: then one is needed, also where a restored copy of the database has none."""
        return bool(self._record.get("guarded"))

    def guarding(self, path: Path) -> Keyring:
        """The same, written to ``path``, with the remark that an API key was made."""
        record = {**self._record, "guarded": True}
        replace_secrets(path, record)
        return Keyring(record)

    def pseudonym(self, user: str) -> bytes:
        """What stands for a user in the database."""
        return self._users(user.encode(errors="surrogatepass"))[:USER]

    def chosen(self, user: bytes, experiment: int) -> float:
        """A number in [0, 1) that is fixed for a pseudonym in an experiment."""
        tag = self._users(b"%d:" % experiment + user)
        return int.from_bytes(tag[:7], "big") / 2**56

    def seal(self, content: bytes, about: bytes) -> bytes:
        """Encrypted, and bound to what it is about."""
        nonce = os.urandom(NONCE)
        return nonce + self._seal.encrypt(nonce, content, about)

    def unseal(self, sealed: bytes, about: bytes) -> bytes:
        """What was sealed."""
        try:
            return self._seal.decrypt(sealed[:NONCE], sealed[NONCE:], about)
        except (InvalidTag, ValueError):  # the latter where it is too short
            raise InputError(
                "keys", "must be the file that this database was written with; it is another one, or this is damaged"
            ) from None


def _byte(number: int) -> int:
    """The byte in a token that says which key it was made with."""
    return (number - 1) % TOKEN_KEY_NUMBERS + 1


def write_secrets(path: Path, record: dict[str, Any], how: int) -> None:
    """Write a file that only its owner may read."""
    with open(os.open(path, os.O_CREAT | os.O_WRONLY | how, 0o600), "w") as file:
        json.dump(record, file)
        file.flush()
        os.fsync(file.fileno())


def replace_secrets(path: Path, record: dict[str, Any]) -> None:
    """Write it anew: whoever reads it meanwhile sees the old one or the new one.

    A draft that was left behind is deleted and not written: it may be somebody else's, a link, or a pipe, which waits.
    """
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    write_secrets(draft, record, os.O_EXCL)
    draft.replace(path)
    folder = os.open(path.absolute().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Be the only process that changes secrets in this folder."""
    folder = os.open(path.absolute().parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
