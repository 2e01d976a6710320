"""The bytes of a response: what is written is read, and what nobody of ours wrote is refused without being shown."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as some

from dpbandits.errors import InputError
from dpbandits.exact.wire import Sent, decode, encode

GOOD = {"decision": "d-1", "epsilon": "1/10", "response": 73313}


@given(
    some.from_regex(r"[A-Za-z0-9._:=~-]{1,200}", fullmatch=True),
    some.fractions(min_value=Fraction(1, 10**6), max_value=10**6),
    some.integers(min_value=-(2**60), max_value=2**60),
)
def test_what_is_written_is_read(decision: str, epsilon: Fraction, response: int) -> None:
    content = encode(decision, epsilon, response)
    assert decode(content) == decode(content.decode()) == Sent(decision, epsilon, response)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"73313",
        b"[73313]",
        b"null",
        b'"73313"',
        b"\xff\xfe73313",
        b'{"decision":"d-1","epsilon":"1/10","response":73313',
        b"[" * 100_000,
        *(json.dumps({k: v for k, v in GOOD.items() if k != name}).encode() for name in GOOD),
        *(
            json.dumps({**GOOD, name: value}).encode()
            for name, value in (
                ("decision", ""),
                ("decision", "a b 73313"),
                ("decision", 73313),
                ("decision", "x" * 201),
                ("epsilon", 0.1),
                ("response", 73313.5),
                ("response", "73313"),
                ("response", True),
                ("response", None),
                ("response", [73313]),
            )
        ),
    ],
    ids=lambda content: repr(content)[:40],
)
def test_what_is_no_response_is_refused_and_not_shown(content: bytes) -> None:
    with pytest.raises(InputError) as caught:
        decode(content)
    assert caught.value.parameter == "response"
    assert "73313" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("epsilon", ["0", "-1", "1e3", "nan", "1/0", "", "9" * 201])
def test_a_level_that_is_none_is_refused_by_name(epsilon: str) -> None:
    with pytest.raises(InputError, match="epsilon must be positive") as caught:
        decode(json.dumps({**GOOD, "epsilon": epsilon}))
    assert "73313" not in str(caught.value)
