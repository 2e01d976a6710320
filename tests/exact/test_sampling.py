"""Exact samplers: their law, the parts of it that chance would never show, and the work that they take."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from fractions import Fraction

import mpmath
import pytest

from dpbandits.exact import DiscreteLaplace, Flip, logistic
from dpbandits.exact.sampling import bit_probabilities


def stream(words: list[int]) -> tuple[Callable[[int], bytes], Iterator[int]]:
    """Entropy that gives these 64-bit words and no others, and what is left of it."""
    left = iter(words)
    return lambda n: b"".join(next(left).to_bytes(8, "little") for _ in range(n // 8)), left


def geometric_law(rate: Fraction, k: int) -> mpmath.mpf:
    """P(G = k) from the digits that the sampler compares with: 320 of them for each coin."""
    tail, *bits = bit_probabilities(rate)
    above, below = divmod(k, 1 << len(bits))
    law = mpmath.mpf(1)
    for i, bit in enumerate(reversed(bits)):
        p = mpmath.ldexp(mpmath.mpf(bit.digits(5)), -320)
        law *= p if below >> i & 1 else 1 - p
    p = mpmath.ldexp(mpmath.mpf(tail.digits(5)), -320)
    return law * p**above * (1 - p)


@pytest.mark.parametrize("rate", [Fraction(1, 8), Fraction(1, 3), Fraction(3), Fraction(50)])
def test_the_bits_make_a_geometric_variable_beyond_the_tail_too(rate: Fraction) -> None:
    with mpmath.workprec(600):
        a = mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator)
        length = 1 << len(bit_probabilities(rate)) - 1
        for k in [*range(40), length - 1, length, length + 5, 2 * length, 3 * length + 1]:
            closed = (1 - a) * a**k
            assert abs(geometric_law(rate, k) / closed - 1) < mpmath.mpf(2) ** -150


def test_the_difference_is_the_discrete_laplace() -> None:
    rate = Fraction(1, 2)
    with mpmath.workprec(400):
        a = mpmath.exp(-mpmath.mpf(1) / 2)
        law = [geometric_law(rate, k) for k in range(430)]
        for k in range(30):
            difference = mpmath.fsum(law[k + j] * law[j] for j in range(400))
            assert abs(difference - (1 - a) / (1 + a) * a**k) < mpmath.mpf(10) ** -90


@pytest.mark.parametrize("rate", [Fraction(1, 8), Fraction(1), Fraction(3)])
def test_draws_fit_the_closed_form(rate: Fraction, fit: Callable[..., bool], two_sided: Callable[..., object]) -> None:
    """A correct sampler fails with probability 1e-9; one whose rate is 10 % off is caught, so the test can fail.

    The statistic of 40 000 draws at the wrong rate is at least 6.7 of its standard deviations above the threshold.
    """
    noise = DiscreteLaplace(rate, os.urandom)
    draws = [noise(0) for _ in range(40_000)]
    assert fit(draws, two_sided(float(rate)))
    assert not fit(draws, two_sided(1.1 * float(rate)))


def test_flips_fit_the_closed_form(fit: Callable[..., bool]) -> None:
    """A correct sampler fails with probability 1e-9."""
    flip = Flip(logistic(Fraction(1)), os.urandom)
    lie = 1 / (1 + mpmath.e)
    draws = [int(flip(False)) for _ in range(20_000)]
    assert fit(draws, lambda k: float(lie if k else 1 - lie) * (k in (0, 1)))
    assert not fit(draws, lambda k: 0.5 * (k in (0, 1)))


def test_a_tied_word_is_decided_by_the_next_one() -> None:
    rate = Fraction(1, 4)
    probabilities = bit_probabilities(rate)
    for place, probability in enumerate(probabilities):
        for outcome in (True, False):
            words = [2**64 - 1] * (2 * len(probabilities))
            words[place] = probability.word(0)
            further = [probability.word(1) + (-1 if outcome else 1)]
            more = [2**64 - 1] if outcome and place == 0 else []  # the tail goes on until a coin says no
            entropy, left = stream(words + further + more)
            value = 1 << len(probabilities) - 1 - place if outcome else 0
            assert DiscreteLaplace(rate, entropy)(100) == 100 + value
            assert next(left, None) is None


def test_the_tail_goes_on_as_long_as_its_coin_says() -> None:
    rate = Fraction(1, 4)
    tail, *bits = bit_probabilities(rate)
    top = 2**64 - 1
    first_half = [0] + [top] * len(bits)
    second_half = [top] * len(bits) + [top]
    entropy, _ = stream([*first_half, *second_half, 0, 0, 0, 0, 0, top])
    assert tail.word(1) > 0, "0 then 0 is below the tail's digits"
    assert DiscreteLaplace(rate, entropy)(0) == 3 << len(bits)


class Counted(int):
    """A threshold that counts the comparisons with it."""

    count = 0

    def __gt__(self, other: int) -> bool:
        type(self).count += 1
        return int(self) > int(other)

    def __eq__(self, other: object) -> bool:
        type(self).count += 1
        return int(self) == other

    __hash__ = int.__hash__


def test_every_draw_takes_the_same_bytes_and_comparisons() -> None:
    asked: list[int] = []

    def entropy(n: int) -> bytes:
        asked.append(n)
        return os.urandom(n)

    noise = DiscreteLaplace(Fraction(1, 1 << 16), entropy)
    noise._words = tuple(map(Counted, noise._words))
    work: dict[tuple[int, ...], list[int]] = {}
    for _ in range(2000):
        asked.clear()
        Counted.count = 0
        value = noise(0)
        work.setdefault((Counted.count, *asked), []).append(abs(value))
    assert list(work) == [(2 * 46, 368)], "46 words, each compared twice"
    sizes = sorted(next(iter(work.values())))
    assert sizes[1900] > 10 * sizes[400], "small and large noise were both seen"
