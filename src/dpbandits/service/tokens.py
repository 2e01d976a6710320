"""Tokens: a signed, single-use right to answer one decision. A token holds all that is needed to take the answer."""

from __future__ import annotations

import struct
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Iterator, Sequence
from hmac import compare_digest

import msgspec

from dpbandits.service.keyring import TAG, Keyring

__all__ = ["Token", "read", "write", "write_each"]

_TO_URL, _TO_PLAIN = bytes.maketrans(b"+/", b"-_"), bytes.maketrans(b"-_", b"+/")
_HEAD = struct.Struct(">BIIHHBQqB")
_AFTER = _HEAD.size
_ITEM = slice(5, 9)  # where the number of the item is


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
    >>> text = write(token, keys)
    >>> read([text, text[:-4] + "AAAA"], keys) == [token, None]
    True
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
        yield b2a_base64(sign(body) + body, newline=False).rstrip(b"=").translate(_TO_URL).decode()


def read(texts: Sequence[str], keys: Keyring) -> list[Token | None]:
    """The tokens in texts; None in the place of one that is not ours.

    What a list needs is done for the whole list, step by step, which takes less time than token by token. If any of
    them is not ours, each is looked at alone.
    """
    signers = keys.signers
    try:
        contents = [a2b_base64(text.encode("ascii").translate(_TO_PLAIN) + b"===") for text in texts]
        bodies = [content[TAG:] for content in contents]
        signed = [signers[body[0]](body) for body in bodies]
    except (ValueError, IndexError, KeyError):  # no base64, too short, an unknown key
        ours = False
    else:
        ours = compare_digest(b"".join(signed), b"".join([content[:TAG] for content in contents]))
    if not ours:
        return [None] if len(texts) == 1 else [read([text], keys)[0] for text in texts]
    found: list[Token | None] = []
    for body in bodies:
        _, experiment, item, arm, level, kind, stint, made, size = _HEAD.unpack_from(body)
        start = _AFTER + size
        user, decision = body[_AFTER:start], body[start:].decode()
        found.append(Token(experiment, item, arm, level, kind, stint, made, user, decision))
    return found
