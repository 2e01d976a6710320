"""The samplers that all exact noise is made of: a bit flip, discrete Laplace and Gaussian noise, and the window."""

from __future__ import annotations

import struct
from fractions import Fraction
from functools import lru_cache, partial
from math import isqrt
from operator import eq, lt

from dpbandits.exact.probability import WORD, Entropy, Probability, beside, enclose_exp, exponential, logistic

#: Bits of a geometric variable that are rarer than e^-45, which is below 2^-64, are drawn together as its tail.
_TAIL_EXPONENT = 45

_TO_DIGITS = bytes.maketrans(b"\x00\x01", b"01")


class Flip:
    """Flips a bit with exactly the given probability.

    A draw takes one random word and two comparisons. Once in 2^64 draws it takes more.

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
    """The probabilities of the independent bits of a geometric variable G, where P(G >= k) = e^(-rate k).

    The tail comes first, then the bits from the highest down. Bit i is 1 with probability 1 / (1 + e^(rate 2^i)),
    independently of the others, because P(G = k) is a product over the bits of k (Dwork et al., "Our data, ourselves",
    2006). With n bits kept, G >> n is geometric with rate 2^n rate. The tail bit is 1 if G >> n is more than 0.

    >>> len(bit_probabilities(Fraction(1, 1 << 16)))  # 22 bits and the tail
    23
    """
    bits = 0
    while rate * (1 << bits) < _TAIL_EXPONENT:
        bits += 1
    tail = exponential(rate * (1 << bits))
    return (tail, *(logistic(rate * (1 << i)) for i in reversed(range(bits))))


class DiscreteLaplace:
    """Adds integer noise, exactly with P(k) proportional to e^(-rate |k|): the difference of two geometric variables.

    If one reward changes an integer by at most s, the noisy integer is (rate s)-private. Delta is 0, because the tail
    is drawn too. Every draw takes the same number of random bytes and comparisons, except about once in 2^58 draws.
    There is no rejection loop, whose running time would reveal the size of the noise (Jin et al. 2022).

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
        # Make all comparisons first, then one number from their outcomes: no branch depends on a bit of the noise.
        bits = int(bytes(map(lt, uniforms, self._words)).translate(_TO_DIGITS), 2)
        if any(map(eq, uniforms, self._words)):
            return value + self._settle(uniforms)
        return value + (bits >> self._width) - (bits & (1 << self._width) - 1)

    def _settle(self, uniforms: tuple[int, ...]) -> int:
        """The noise if some first words were equal. A tail can only occur here, because its first word is 0."""
        bits = 0
        for uniform, word, probability in zip(uniforms, self._words, 2 * self.probabilities, strict=True):
            decided = uniform < word if uniform != word else probability.draw(self._entropy, known=1)
            bits = bits << 1 | decided
        first, second = bits >> self._width, bits & (1 << self._width) - 1
        return self._extend(first) - self._extend(second)

    def _extend(self, geometric: int) -> int:
        """Completes a geometric variable: if its tail bit is set, the tail is 1 or more."""
        step = 1 << self._width - 1
        more = geometric >= step
        while more:
            more = self.probabilities[0].draw(self._entropy)
            geometric += step * more
        return geometric


#: Values of the input of ``Window``, less one, as a power of two: inputs are 0 to 2^16.
WINDOW_GRID = 16


def window_width(epsilon: Fraction) -> int:
    """How many values are in the window of ``Window`` at this epsilon: 2^16 e^(-epsilon/2), rounded down, at least 1.

    >>> window_width(Fraction(2)), window_width(Fraction(100))
    (24109, 1)
    """
    return max(1, exponential(epsilon / 2).word(0) >> WORD - WINDOW_GRID)


class Window:
    """The piecewise mechanism (Wang et al. 2019) on integers: P(k | j) = e^epsilon / Z in a window, 1 / Z beside it.

    The input j is from 0 to G = 2^16, and the output k from 0 to G + w - 1. The window is j to j + w - 1: so w values
    are in it and G are not, and Z = w e^epsilon + G does not depend on j. Hence P(k | j) <= e^epsilon P(k | j') for all
    j, j' and k: it is epsilon-private, delta 0, for every width w. The width of ``window_width`` is that of the paper,
    where it has the least variance for the worst input.

    A draw takes three random words: whether k is outside, and a place inside and one outside, of which one is used. A
    place in the window is the integer part of w U, where U is uniform on [0, 1). If the first 64 digits of U do not
    decide it, about once in 2^48 draws, more are drawn. G is a power of two, so the place outside is the first digits.

    >>> Window(Fraction(2), bytes)(0), Window(Fraction(2), lambda n: b"\\xff" * n)(7)  # for tests: all bits 0, or all 1
    (24109, 24115)
    """

    __slots__ = ("_entropy", "_first", "outside", "width")

    def __init__(self, epsilon: Fraction, entropy: Entropy) -> None:
        self.width = window_width(epsilon)
        self.outside = beside(epsilon, self.width, 1 << WINDOW_GRID)
        self._first = self.outside.word(0)
        self._entropy = entropy

    def __call__(self, value: int) -> int:
        first, second, third = _THREE.unpack(self._entropy(_THREE.size))
        out = first < self._first if first != self._first else self.outside.draw(self._entropy, known=1)
        here, there = value + self._place(second), third >> WORD - WINDOW_GRID
        there += self.width * (there >= value)
        return there if out else here

    def _place(self, digits: int) -> int:
        """The integer part of width times a uniform number that begins with these 64 binary digits."""
        bits = WORD
        while digits * self.width >> bits != (digits + 1) * self.width - 1 >> bits:
            digits = digits << WORD | int.from_bytes(self._entropy(WORD // 8), "little")
            bits += WORD
        return digits * self.width >> bits


_THREE = struct.Struct("<3Q")


class DiscreteGaussian:
    """Adds integer noise, exactly with P(k) proportional to e^(-k^2 / (2 variance)).

    If one reward changes an integer by at most s, the noisy integer is s^2 / (2 variance)-zCDP (Canonne, Kamath &
    Steinke 2020, Theorem 4). Their Algorithm 3: a discrete Laplace variable is accepted with the quotient of the two
    laws, about every second time. The number of trials does not depend on the value, but it tells a little about the
    noise, so the time of a draw must not be shown to an adversary.

    >>> import os
    >>> abs(DiscreteGaussian(Fraction(4), os.urandom)(0)) < 100
    True
    """

    __slots__ = ("_entropy", "_proposal", "_shift", "variance")

    def __init__(self, variance: Fraction, entropy: Entropy) -> None:
        self.variance = variance
        scale = isqrt(int(variance)) + 1
        self._proposal = DiscreteLaplace(Fraction(1, scale), entropy)
        self._shift = variance / scale
        self._entropy = entropy

    def __call__(self, value: int) -> int:
        while True:
            noise = self._proposal(0)
            exponent = (abs(noise) - self._shift) ** 2 / (2 * self.variance)
            if exponent == 0 or Probability(partial(enclose_exp, exponent)).draw(self._entropy):
                return value + noise
