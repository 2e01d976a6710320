"""The tokens of a list are read together."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpbandits.service import tokens
from dpbandits.service.keyring import Keyring
from dpbandits.service.tokens import Lease, Token

KEYS = Keyring.fresh()


def a_token(item: int, user: bytes = b"") -> Token:
    lease = Lease(1, 0, 0, 1_700_000_000_000, user, "d" * (1 + item % 5))
    return Token(lease, item, 2, 7)


OURS = [a_token(item, bytes(16) if item % 3 == 0 else b"") for item in range(20)]
GOOD = tokens.write(OURS[1], KEYS)
OTHER = tokens.write(OURS[1], Keyring.fresh())

#: By their kind: texts that are no token of ours.
FORGED = {
    "empty": "",
    "one sign": "A",
    "no base64": GOOD[:-1] + "\N{SNOWMAN}",
    "half a surrogate": GOOD[:-1] + "\ud800",
    "a tag alone": GOOD[:22],
    "the end is missing": GOOD[:-4],
    "something was added": GOOD + "AAAA",
    "two tokens": GOOD + "\n" + GOOD,
    "a comma": GOOD + ",",
    "two tokens and a comma": GOOD + "," + GOOD,
    "another server's": OTHER,
    "the tag of another": tokens.write(OURS[2], KEYS)[:20] + GOOD[20:],
}  # fmt: skip


def test_tokens_are_read_together() -> None:
    """Of different lengths, with users and without."""
    assert tokens.read([tokens.write(one, KEYS) for one in OURS], KEYS) == OURS
    assert tokens.read([], KEYS) == []


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_token_spoils_no_other(kind: str) -> None:
    """It is None at its place, wherever it stands in the list."""
    texts = [tokens.write(one, KEYS) for one in OURS]
    assert tokens.read([FORGED[kind]], KEYS) == [None]
    for place in (0, 7, len(texts)):
        read = tokens.read([*texts[:place], FORGED[kind], *texts[place:]], KEYS)
        assert read == [*OURS[:place], None, *OURS[place:]]


def test_one_changed_bit_is_seen_in_a_list() -> None:
    """Any bit of the tag or of the content, beside tokens that are ours."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for place in range(len(GOOD) - 1):  # the last sign has bits that mean nothing
        changed = alphabet[alphabet.index(GOOD[place]) ^ 1]
        assert tokens.read([GOOD, GOOD[:place] + changed + GOOD[place + 1 :]], KEYS) == [OURS[1], None]


def test_tokens_of_several_keys_in_one_list(tmp_path: Path) -> None:
    """After a rotation, old and new ones come together."""
    rotated = KEYS.rotated(tmp_path / "keys")
    texts = [tokens.write(one, keys) for one in OURS for keys in (KEYS, rotated)]
    assert tokens.read(texts, rotated) == [one for one in OURS for _ in range(2)]
    assert tokens.read(texts, KEYS) == [read for one in OURS for read in (one, None)]
