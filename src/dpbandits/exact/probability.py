"""Exact probabilities: integers enclose a probability, to as many bits as a comparison needs.

Three probabilities are needed, e^-x, 1/(1 + e^x) and a/(a + b e^x), for rational x > 0 and whole a and b. All are
transcendental (Lindemann 1882), so their binary digits never end, and a narrow enough enclosure decides any digit.
Hence Ziv's loop ("Fast evaluation of elementary mathematical functions with correctly rounded last bit", 1991) ends.
Only integers are used. ``clients/js`` contains the same code.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

#: How many random bits are compared with a probability at a time.
WORD = 64

_MASK = (1 << WORD) - 1

#: A source of random bytes, called with the number of bytes.
Entropy = Callable[[int], bytes]


def enclose_exp(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers low <= e^-x 2^bits <= high, for x > 0.

    Let y = x / 2^k be below 1/4. Each Taylor term of e^-y is computed from the one before and rounded down, so it is
    too small by less than 2. The terms after the first zero add up to less than 2. So n terms have an error of less
    than 2n + 2. The k squarings that lead back to e^-x round outwards. Each at most doubles the width of the enclosure,
    which the k + 16 extra bits absorb.

    >>> enclose_exp(Fraction(1), 20)  # 1048576 / e = 385749.5
    (385749, 385750)
    """
    squarings = 8 + max(0, (x.numerator // x.denominator).bit_length())
    precision = bits + squarings + 16
    y = (x.numerator << precision) // (x.denominator << squarings)
    term = total = 1 << precision
    n = 0
    while term:
        n += 1
        term = (term * y >> precision) // n
        total += -term if n & 1 else term
    low, high = total - 2 * n - 2, total + 2 * n + 2
    for _ in range(squarings):
        low = low * low >> precision
        high = -(-high * high >> precision)
    return low >> precision - bits, -(-high >> precision - bits)


def enclose_logistic(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers low <= 2^bits / (1 + e^x) <= high, for x > 0, from the increasing function z / (1 + z) of z = e^-x.

    >>> enclose_logistic(Fraction(1), 20)  # 1048576 / (1 + e) = 282005.5
    (282005, 282006)
    """
    one = 1 << bits
    low, high = enclose_exp(x, bits)
    return (low << bits) // (one + low), -((-high << bits) // (one + high))


def enclose_beside(x: Fraction, inside: int, outside: int, bits: int) -> tuple[int, int]:
    """Integers low <= 2^bits outside / (outside + inside e^x) <= high, for x > 0: increasing in z = e^-x.

    >>> enclose_beside(Fraction(1), 1, 1, 20) == enclose_logistic(Fraction(1), 20)
    True
    """
    one = 1 << bits
    low, high = enclose_exp(x, bits)
    return (
        (low * outside << bits) // (inside * one + outside * low),
        -((-high * outside << bits) // (inside * one + outside * high)),
    )


class Probability:
    """A probability whose binary digits are computed on demand.

    >>> hex(logistic(Fraction(1)).word(0))
    '0x44d9585152ea1935'
    """

    __slots__ = ("_enclose", "_words")

    def __init__(self, enclose: Callable[[int], tuple[int, int]]) -> None:
        self._enclose = enclose
        self._words: tuple[int, ...] = ()

    def word(self, k: int) -> int:
        """The binary digits 64 k + 1 to 64 k + 64."""
        words = self._words
        if k >= len(words):
            digits = self.digits(k + 1)
            words = self._words = tuple(digits >> WORD * (k - j) & _MASK for j in range(k + 1))
        return words[k]

    def digits(self, words: int) -> int:
        """The first ``words`` words, as one integer: the probability rounded down."""
        guard = 32
        while True:
            low, high = self._enclose(WORD * words + guard)
            if low >> guard == high >> guard:
                return low >> guard
            guard *= 2

    def draw(self, entropy: Entropy, known: int = 0) -> bool:
        """True with exactly this probability: uniform bits are compared with its digits until they differ.

        The first ``known`` words have been compared already, and were equal. A comparison after k equal words happens
        with probability 2^-64k.
        """
        while True:
            uniform, word = int.from_bytes(entropy(WORD // 8), "little"), self.word(known)
            if uniform != word:
                return uniform < word
            known += 1


@lru_cache(maxsize=4096)
def exponential(x: Fraction) -> Probability:
    """e^-x.

    >>> hex(exponential(Fraction(1)).word(0))
    '0x5e2d58d8b3bcdf1a'
    """
    return Probability(lambda bits: enclose_exp(x, bits))


@lru_cache(maxsize=4096)
def logistic(x: Fraction) -> Probability:
    """1 / (1 + e^x): the probability that randomised response at epsilon x answers falsely.

    >>> logistic(Fraction(1000)).word(0), logistic(Fraction(1000)).word(22) > 0
    (0, True)
    """
    return Probability(lambda bits: enclose_logistic(x, bits))


@lru_cache(maxsize=4096)
def beside(x: Fraction, inside: int, outside: int) -> Probability:
    """outside / (outside + inside e^x): the share of values outside a window, where each value inside weighs e^x.

    >>> beside(Fraction(1), 1, 1).word(0) == logistic(Fraction(1)).word(0)
    True
    """
    return Probability(lambda bits: enclose_beside(x, inside, outside, bits))
