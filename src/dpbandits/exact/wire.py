"""The bytes of a response that leaves a device: how to write and read them. The JavaScript client writes the same."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import NamedTuple

from dpbandits.errors import InputError
from dpbandits.exact.rational import rational

__all__ = ["DECISION", "Sent", "decode", "encode"]

#: The valid names of a decision.
DECISION = re.compile(r"[A-Za-z0-9._:=~-]{1,200}")


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
    return json.dumps(
        {"decision": decision, "epsilon": str(epsilon), "response": response}, separators=(",", ":")
    ).encode()


def decode(content: bytes | str) -> Sent:
    """The response in these bytes. Error messages do not show the content, because it is private.

    >>> decode(encode("d1", Fraction("0.1"), 1))
    Sent(decision='d1', epsilon=Fraction(1, 10), response=1)
    """
    try:
        record = json.loads(content)
        decision, epsilon, response = (record[name] for name in ("decision", "epsilon", "response"))
    except (KeyError, TypeError, ValueError, RecursionError):
        raise InputError("response", "must be what a device sent; this is not") from None
    if not isinstance(decision, str) or DECISION.fullmatch(decision) is None or not isinstance(epsilon, str):
        raise InputError("response", "must name its decision and its epsilon; this does not")
    if not isinstance(response, int) or isinstance(response, bool):
        raise InputError("response", "must be a whole number; this is not one")
    return Sent(decision, rational("epsilon", epsilon), response)
