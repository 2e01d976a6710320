"""Tokens: a signed, single-use right to answer one decision. A token holds all that is needed to take the answer."""

from __future__ import annotations

import struct
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Iterator, Sequence
from hmac import compare_digest

import msgspec

from dpbandits.service.keyring import TAG, Keyring

__all__ = ["Lease", "Token", "read", "write", "write_each"]

_TO_URL, _TO_PLAIN = bytes.maketrans(b"+/", b"-_"), bytes.maketrans(b"-_", b"+/")
_OWN = struct.Struct(">BIHQ")  # the number of the key, then what differs within a lease: item, arm, stint
_ITEM = slice(1, 5)  # where the item is
_LEASE = struct.Struct(">IHBqB")  # experiment, level, kind, made, length of the user


class Lease(msgspec.Struct, gc=False):
    """What the tokens of one request for decisions have in common; one decision is a lease, too."""

    experiment: int
    level: int  # which of the experiment's levels
    kind: int  # who chose the arm
    made: int  # when, in milliseconds
    user: bytes  # a pseudonym, or nothing
    decision: str


class Token(msgspec.Struct, gc=False):
    """What is signed."""

    lease: Lease
    item: int  # which decision of the lease
    arm: int
    stint: int


def write(token: Token, keys: Keyring) -> str:
    """The text of a token.

    >>> keys = Keyring.fresh()
    >>> token = Token(Lease(1, 0, 0, 1700000000000, b"", "d1"), item=0, arm=2, stint=7)
    >>> text = write(token, keys)
    >>> read([text, text[:-4] + "AAAA"], keys) == [token, None]
    True
    """
    return next(write_each(token, (token.item,), keys))


def write_each(token: Token, items: Iterable[int], keys: Keyring) -> Iterator[str]:
    """The texts of tokens of a lease that differ in their items alone."""
    *numbers, user, decision = msgspec.structs.astuple(token.lease)
    own = _OWN.pack(keys.newest, 0, token.arm, token.stint)
    before, after = own[: _ITEM.start], own[_ITEM.stop :] + _LEASE.pack(*numbers, len(user)) + user + decision.encode()
    begin = keys.codes[keys.newest]
    for item in items:
        body = before + item.to_bytes(4, "big") + after
        code = begin()
        code.update(body)
        yield b2a_base64(code.digest() + body, newline=False).rstrip(b"=").translate(_TO_URL).decode()


def read(texts: Sequence[str], keys: Keyring) -> list[Token | None]:
    """The tokens in texts; None in place of one that is not ours.

    What a list needs is done for the whole list, step by step, which takes less time than token by token. If any of
    them is not ours, each is looked at alone. Those of one lease have the same object as their lease.
    """
    codes, signed = keys.codes, []
    try:
        plain = "===,".join([*texts, ""]).encode("ascii").translate(_TO_PLAIN).split(b",")[:-1]
        contents = list(map(a2b_base64, plain))
        bodies = [content[TAG:] for content in contents]
        for body in bodies:
            code = codes[body[0]]()
            code.update(body)
            signed.append(code.digest())
    except (ValueError, IndexError, KeyError):  # no base64, too short, an unknown key
        ours = False
    else:
        ours = compare_digest(b"".join(signed), b"".join([content[:TAG] for content in contents]))
    if not ours or len(bodies) != len(texts):  # a text had a comma
        return [None] if len(texts) == 1 else [read([text], keys)[0] for text in texts]
    found: list[Token | None] = []
    leases: dict[bytes, Lease] = {}
    for body in bodies:
        _, item, arm, stint = _OWN.unpack_from(body)
        common = body[_OWN.size :]
        lease = leases.get(common)
        if lease is None:
            lease = leases[common] = _lease(common)
        found.append(Token(lease, item, arm, stint))
    return found


def _lease(body: bytes) -> Lease:
    experiment, level, kind, made, size = _LEASE.unpack_from(body)
    start, end = _LEASE.size, _LEASE.size + size
    return Lease(experiment, level, kind, made, body[start:end], body[end:].decode())
