"""The bytes of a response: what is written is read, and what nobody of ours wrote is refused without being shown."""

from __future__ import annotations

import json
from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as some

from dpbandits.errors import InputError
from dpbandits.exact.rational import writable
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
        b"[" * 1000,
        b"[" * 100_000,
        b'[["decision","d-1"],["epsilon","1/10"],["response",73313]]',
        b'{"decision":"d-1","epsilon":"1/10","response":0,"response":73313}',
        b'{"decision":"d-1","epsilon":"1/10","response":1,"reward":73313}',
        b'{"decision":"d-1","epsilon":"1/10","response":{"response":73313}}',
        b'{"decision":"d-1","epsilon":"1/10","response":73313e0}',
        b'{"decision":"d-1","epsilon":"1/10","response":NaN}',
        b'{"decision":"d-1","epsilon":"1/10","response":-Infinity}',
        b'{"decision":"d-1","epsilon":"1/10","response":73313}{}',
        b'{"decision":"d-1","epsilon":"1/10","response":73313' + b" " * 2000 + b"}",
        b'{"decision":"d-1","epsilon":"1/10","response":' + b"73313" * 1000 + b"}",
        json.dumps(GOOD).encode("utf-16"),
        json.dumps(GOOD).encode("utf-8-sig"),
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


@given(some.binary(max_size=80))
def test_bytes_of_any_kind_are_refused_or_read(content: bytes) -> None:
    for told in (content, b'{"decision":"d-1","epsilon":"1/10","response":' + content + b"}"):
        with suppress(InputError):
            assert isinstance(decode(told).response, int)


@given(some.integers(0, 60), some.integers(0, 255))
def test_one_changed_byte_is_refused_or_gives_another_response(place: int, byte: int) -> None:
    """Nothing but an InputError, whatever byte is changed."""
    content = bytearray(encode("d-1", Fraction(1, 10), 73313))
    content[place % len(content)] = byte
    with suppress(InputError):
        assert decode(encode(*decode(bytes(content)))) == decode(bytes(content))


@pytest.mark.parametrize("response", [0.7, True, None, "1", 1j])
def test_only_integers_are_written(response: object) -> None:
    with pytest.raises(InputError, match="response must be a whole number, got a") as caught:
        encode("d-1", Fraction(1, 10), response)  # type: ignore[arg-type]
    assert "0.7" not in str(caught.value)


def test_what_a_curator_can_be_made_with_and_sent_can_be_read() -> None:
    """A text of 150 decimals has 300 characters in lowest terms, which no reader of ours takes."""
    for text in ("0." + "3" * 97, "1/" + "7" * 197, "9" * 200):
        level = writable("epsilon", text)
        assert decode(encode("d-1", level, 1)).epsilon == level
    for value in ("0." + "3" * 150, 1e-250, Fraction(1, 10**5000), 10**5000):
        with pytest.raises(InputError, match="epsilon must have at most 200 characters in lowest terms"):
            writable("epsilon", value)


@pytest.mark.parametrize("epsilon", ["0", "-1", "1e3", "nan", "1/0", "", "9" * 201])
def test_a_level_that_is_none_is_refused_by_name(epsilon: str) -> None:
    with pytest.raises(InputError, match="epsilon must be positive") as caught:
        decode(json.dumps({**GOOD, "epsilon": epsilon}))
    assert "73313" not in str(caught.value)
