"""Tokens: a signed, single-use right to answer one decision. A token holds all that is needed to take the answer."""

from __future__ import annotations

import binascii
import struct
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Iterator
from hmac import compare_digest

import msgspec

from dpbandits.service.keyring import USER, Keyring

__all__ = ["Token", "read", "write", "write_each"]

TAG = 16  # bytes of the HMAC-SHA256 that are sent
_TO_URL, _TO_PLAIN = bytes.maketrans(b"+/", b"-_"), bytes.maketrans(b"-_", b"+/")
_HEAD = struct.Struct(">BIIHHBQqB")
_AFTER = TAG + _HEAD.size
_ITEM = slice(5, 9)  # where the number of the item is
_PADDING = (b"", b"===", b"==", b"=")


class Token(msgspec.Struct, gc=False):
    """What is signed."""

    experiment: int
    item: int  # which decision of a lease
    arm: int
    level: int  # which of the experiment's levels
    kind: int  # who chose the arm
    stint: int
    made: int  # when, in milliseconds
    user: bytes  # a pseudonym, or nothing
    decision: str


def write(token: Token, keys: Keyring) -> str:
    """The text of a token.

    >>> keys = Keyring.fresh()
    >>> token = Token(1, 0, 2, 0, 0, 7, 1700000000000, b"", "d1")
    >>> read(write(token, keys), keys) == token, read(write(token, keys)[:-4] + "AAAA", keys)
    (True, None)
    """
    return next(write_each(token, (token.item,), keys))


def write_each(token: Token, items: Iterable[int], keys: Keyring) -> Iterator[str]:
    """The texts of the tokens of a lease, which differ in their item."""
    *numbers, user, decision = msgspec.structs.astuple(token)
    body = _HEAD.pack(keys.newest, *numbers, len(user)) + user + decision.encode()
    before, after = body[: _ITEM.start], body[_ITEM.stop :]
    sign = keys.signers[keys.newest]
    for item in items:
        body = before + item.to_bytes(4, "big") + after
        yield b2a_base64(sign(body)[:TAG] + body, newline=False).rstrip(b"=").translate(_TO_URL).decode()


def read(text: str, keys: Keyring) -> Token | None:
    """The token in a text; None if it is not one of ours."""
    try:
        content = a2b_base64(text.encode("ascii").translate(_TO_PLAIN) + _PADDING[len(text) % 4])
        key, experiment, item, arm, level, kind, stint, made, size = _HEAD.unpack_from(content, TAG)
    except (struct.error, binascii.Error, ValueError):
        return None
    sign = keys.signers.get(key)
    if sign is None or size not in (0, USER) or not compare_digest(sign(content[TAG:])[:TAG], content[:TAG]):
        return None
    start = _AFTER + size
    user = content[_AFTER:start] if size else b""
    return Token(experiment, item, arm, level, kind, stint, made, user, content[start:].decode())
