"""The bytes of a response that leaves a device: how to write and read them. The JavaScript client writes the same."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import NamedTuple

from dpbandits.errors import InputError
from dpbandits.exact.rational import rational

__all__ = ["DECISION", "MAX_BYTES", "Sent", "decode", "encode", "named"]

#: The valid names of a decision.
DECISION = re.compile(r"[A-Za-z0-9._:=~-]{1,200}")

FIELDS = ("decision", "epsilon", "response")

#: The longest content that is read. A response has at most about 200 digits more than epsilon.
MAX_BYTES = 2000


class Sent(NamedTuple):
    """A response as a device sent it: the decision, the epsilon, and the integer that the curator made."""

    decision: str
    epsilon: Fraction
    response: int


def encode(decision: str, epsilon: Fraction, response: int) -> bytes:
    """The bytes of a response.

    >>> encode("d1", Fraction("0.1"), 1)
    b'{"decision":"d1","epsilon":"1/10","response":1}'
    """
    if not isinstance(response, int) or isinstance(response, bool):
        raise InputError("response", f"must be a whole number, got a {type(response).__name__}")
    return json.dumps(
        {"decision": named(decision), "epsilon": str(epsilon), "response": response}, separators=(",", ":")
    ).encode()


def named(decision: object) -> str:
    """``decision`` if it is a valid name. A value that is not text is not shown: it may be the reward."""
    if not isinstance(decision, str) or DECISION.fullmatch(decision) is None:
        shown = f"{decision!r:.80}" if isinstance(decision, str) else f"a {type(decision).__name__}"
        raise InputError("decision", f"must be 1 to 200 letters, digits or ._:=~- signs, got {shown}")
    return decision


def decode(content: bytes | str) -> Sent:
    """The response in these bytes: JSON with these three fields, once each, and no others.

    A further field could carry anything, even the reward. Error messages do not show the content, because it is
    private.

    >>> decode(encode("d1", Fraction("0.1"), 1))
    Sent(decision='d1', epsilon=Fraction(1, 10), response=1)
    """
    if len(content) > MAX_BYTES:
        raise InputError("response", f"must be at most {MAX_BYTES} bytes; this is longer")
    try:
        record = json.loads(content if isinstance(content, str) else content.decode(), object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, tuple) or sorted(name for name, _ in record) != sorted(FIELDS):
        raise InputError("response", f"must be what a device sent, with {', '.join(FIELDS)} and no more; this is not")
    decision, epsilon, response = (dict(record)[name] for name in FIELDS)
    if not isinstance(decision, str) or DECISION.fullmatch(decision) is None or not isinstance(epsilon, str):
        raise InputError("response", "must name its decision and its epsilon; this does not")
    if not isinstance(response, int) or isinstance(response, bool):
        raise InputError("response", "must be a whole number; this is not one")
    return Sent(decision, rational("epsilon", epsilon), response)
