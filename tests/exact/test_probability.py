"""Rationals and the digits of probabilities, against a computation that shares nothing with ours."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from dpbandits.errors import InputError
from dpbandits.exact import exponential, logistic, rational
from dpbandits.exact.probability import enclose_exp, enclose_logistic
from dpbandits.exact.sampling import bit_probabilities

EPSILONS = ("1/1000000", "0.01", "0.1", "1/3", "1", "2.5", "10", "100", "1000")


def digits(value: mpmath.mpf, words: int) -> int:
    """The first 64 ``words`` binary digits, by mpmath at 400 bits beyond the leading zeros of e^-1000."""
    return int(mpmath.floor(mpmath.ldexp(value, 64 * words)))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_digits_are_those_of_mpmath(epsilon: str) -> None:
    rate = Fraction(epsilon)
    with mpmath.workprec(400 + 1443):
        for x in (rate, rate / 2**16, rate * 2**20):
            real = mpmath.mpf(x.numerator) / x.denominator
            assert logistic(x).digits(5) == digits(1 / (1 + mpmath.exp(real)), 5)
            assert exponential(x).digits(5) == digits(mpmath.exp(-real), 5)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_laplace_thresholds_are_those_of_mpmath(epsilon: str) -> None:
    rate = Fraction(epsilon) / 2**16
    tail, *bits = bit_probabilities(rate)
    with mpmath.workprec(400):
        gamma = mpmath.mpf(rate.numerator) / rate.denominator
        for i, bit in enumerate(reversed(bits)):
            assert bit.digits(3) == digits(1 / (1 + mpmath.exp(mpmath.ldexp(gamma, i))), 3)
        assert tail.digits(3) == digits(mpmath.exp(-mpmath.ldexp(gamma, len(bits))), 3)
    assert tail.word(0) == 0, "the tail must be rarer than one word tells"


@given(
    some.fractions(min_value=Fraction(1, 10**9), max_value=2000, max_denominator=10**9),
    some.integers(min_value=1, max_value=300),
)
@example(Fraction(1, 10**60), 300)
@example(Fraction(10**6), 10)
def test_enclosures_hold_and_are_narrow(x: Fraction, bits: int) -> None:
    with mpmath.workprec(1000):
        z = mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator)
        for (low, high), real in ((enclose_exp(x, bits), z), (enclose_logistic(x, bits), z / (1 + z))):
            assert low <= mpmath.ldexp(real, bits) <= high
            assert high - low <= 3


def test_words_are_consecutive_digits() -> None:
    probability = logistic(Fraction(1, 7))
    joined = sum(probability.word(k) << 64 * (3 - k) for k in range(4))
    assert joined == probability.digits(4)


def test_draw_compares_until_the_words_differ() -> None:
    probability = logistic(Fraction(1))
    for ties in range(4):
        for last, outcome in ((-1, True), (1, False)):
            words = [probability.word(k) for k in range(ties)] + [probability.word(ties) + last]
            stream = iter(words)
            assert probability.draw(lambda n, s=stream: next(s).to_bytes(n, "little")) is outcome  # type: ignore[misc]
            assert next(stream, None) is None


@given(some.floats(min_value=1e-300, max_value=1e300))
def test_a_float_means_its_shortest_text(value: float) -> None:
    exact = rational("epsilon", value)
    assert float(exact) == value
    assert exact == Fraction(repr(value))


RULE = r'limit must be positive, as a decimal number or a fraction such as "0.1" or "1/3" \(no exponent\), got'
BAD_TEXTS = ("", "0", "0.0", "-1", "+1", "1e-3", " 1", "1 ", "1/0", "1/", "/3", ".5", "1.", "1/2.5", "nan", "inf")


@pytest.mark.parametrize("value", [*BAD_TEXTS, "\N{ARABIC-INDIC DIGIT ONE}", "9" * 201])
def test_text_that_is_no_positive_rational_is_refused_by_name(value: str) -> None:
    with pytest.raises(InputError, match=rf"^{RULE} '"):
        rational("limit", value)


@pytest.mark.parametrize("value", [0, -1, 0.0, -0.5, math.nan, math.inf, True, None, b"1", Fraction(-1, 3)])
def test_what_is_no_positive_rational_is_refused_by_name(value: object) -> None:
    with pytest.raises(InputError, match=f"^{RULE} "):
        rational("limit", value)  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "value"), [("0.1", Fraction(1, 10)), ("2/6", Fraction(1, 3)), ("007", Fraction(7))])
def test_text_is_read_exactly(text: str, value: Fraction) -> None:
    assert rational("epsilon", text) == value


@pytest.mark.parametrize(
    ("text", "value"), [("0.1", Fraction(1, 10)), ("1E-5", Fraction(1, 10**5)), ("2.50", Fraction(5, 2))]
)
def test_a_decimal_is_read_exactly(text: str, value: Fraction) -> None:
    assert rational("epsilon", Decimal(text)) == value


@pytest.mark.parametrize("text", ["0", "-1", "NaN", "sNaN", "Infinity", "1E+1000000", "1E-1000000"])
def test_a_decimal_that_is_no_level_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^limit must be positive, "):
        rational("limit", Decimal(text))
