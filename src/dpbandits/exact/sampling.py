"""The two random variables that all exact noise is made of: a bit turned over, and the discrete Laplace."""

from __future__ import annotations

import struct
from fractions import Fraction
from functools import lru_cache
from operator import eq, lt

from dpbandits.exact.probability import WORD, Entropy, Probability, exponential, logistic

#: e^-45 is below 2^-64: bits of a geometric variable that are rarer are drawn together, as its tail.
_RARE = 45

_TO_DIGITS = bytes.maketrans(b"\x00\x01", b"01")


class Flip:
    """Turns a bit over with exactly the given probability: one random word, two comparisons, save once in 2^64 draws.

    >>> Flip(logistic(Fraction(1)), bytes)(True)  # for tests: all random bits are zero
    False
    """

    __slots__ = ("_entropy", "_first", "probability")

    def __init__(self, probability: Probability, entropy: Entropy) -> None:
        self.probability = probability
        self._first = probability.word(0)
        self._entropy = entropy

    def __call__(self, bit: bool) -> bool:
        uniform = int.from_bytes(self._entropy(WORD // 8), "little")
        if uniform == self._first:
            return bit != self.probability.draw(self._entropy, known=1)
        return bit != (uniform < self._first)


@lru_cache(maxsize=256)
def bit_probabilities(rate: Fraction) -> tuple[Probability, ...]:
    """The independent coins that make a geometric variable, P(G >= k) = e^(-rate k): its tail, then bits from the top.

    Bit i is 1 with probability 1 / (1 + e^(rate 2^i)) whatever the others are, because P(G = k) is a product over the
    bits of k (Dwork et al., "Our data, ourselves", 2006). With n bits kept, G >> n is geometric at the
    rate 2^n rate; "the tail" is the coin that asks whether it is more than 0.

    >>> len(bit_probabilities(Fraction(1, 1 << 16)))  # 22 bits and the tail
    23
    """
    bits = 0
    while rate * (1 << bits) < _RARE:
        bits += 1
    tail = exponential(rate * (1 << bits))
    return (tail, *(logistic(rate * (1 << i)) for i in reversed(range(bits))))


class DiscreteLaplace:
    """Adds integer noise, P(k) proportional to e^(-rate |k|), exactly: the difference of two geometric variables.

    An integer that one reward moves by at most s becomes purely (rate s)-private: delta is 0, because the tail is
    drawn too. Every draw takes the same random bytes and the same comparisons, save once in 2^58 draws or so:
    no rejection loop, whose length would tell the size of the noise to who can time it (Jin et al. 2022).

    >>> noise = DiscreteLaplace(Fraction(1, 1 << 16), lambda n: b"\\xff" * n)  # for tests: no bit is set
    >>> noise(7), noise.bytes_per_draw
    (7, 368)
    """

    __slots__ = ("_entropy", "_unpack", "_width", "_words", "bytes_per_draw", "probabilities", "rate")

    def __init__(self, rate: Fraction, entropy: Entropy) -> None:
        self.rate = rate
        self.probabilities = bit_probabilities(rate)
        self._entropy = entropy
        self._words = 2 * tuple(probability.word(0) for probability in self.probabilities)
        self._width = len(self.probabilities)
        layout = struct.Struct(f"<{len(self._words)}Q")
        self._unpack = layout.unpack
        self.bytes_per_draw = layout.size

    def __call__(self, value: int) -> int:
        uniforms = self._unpack(self._entropy(self.bytes_per_draw))
        # All comparisons first, then one number from their outcomes: no branch on a bit of the noise.
        bits = int(bytes(map(lt, uniforms, self._words)).translate(_TO_DIGITS), 2)
        if any(map(eq, uniforms, self._words)):
            return value + self._settle(uniforms)
        return value + (bits >> self._width) - (bits & (1 << self._width) - 1)

    def _settle(self, uniforms: tuple[int, ...]) -> int:
        """The noise when some first word did not decide: also the only way to a tail, whose first word is 0."""
        bits = 0
        for uniform, word, probability in zip(uniforms, self._words, 2 * self.probabilities, strict=True):
            decided = uniform < word if uniform != word else probability.draw(self._entropy, known=1)
            bits = bits << 1 | decided
        first, second = bits >> self._width, bits & (1 << self._width) - 1
        return self._extend(first) - self._extend(second)

    def _extend(self, geometric: int) -> int:
        """A geometric variable whose tail bit, if set, stands for 1 or more."""
        step = 1 << self._width - 1
        more = geometric >= step
        while more:
            more = self.probabilities[0].draw(self._entropy)
            geometric += step * more
        return geometric
