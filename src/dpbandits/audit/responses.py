"""The exact privacy loss of one response, in closed form, from the constants that the code uses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from decimal import Decimal, localcontext
from typing import Any, NamedTuple, NoReturn

from dpbandits.audit.instruments import Draw, NotVerifiableError, Tape
from dpbandits.exact import DiscreteLaplace, Flip
from dpbandits.exact.probability import WORD, Probability

__all__ = ["REWARDS", "Bit", "Noisy", "Pair", "enclosed_epsilon", "response", "worst_response"]

#: Rewards between which the largest loss is sought: 0 and 1, some between, and some that curators must clip.
REWARDS = (0.0, 1.0, 0.5, 0.25, 0.75, -1.0, 7.0, -1e3, 1e3, -1e308, 1e308, math.inf, -math.inf, math.nan)

WORDS = 8  # the number of 64-bit words of a probability that are read


class Bit(NamedTuple):
    """A response of 1 with this probability, of 0 otherwise."""

    one: float


class Noisy(NamedTuple):
    """A value with Laplace noise."""

    value: float
    scale: float


class Pair(NamedTuple):
    """The worst two rewards, the distribution of the response to each, and the rounding error of the loss."""

    epsilon: float
    rewards: tuple[float, float]
    responses: tuple[Bit | Noisy, Bit | Noisy]
    rounding: float


class _Uniform(Tape):
    """A source of noise that answers ``random`` with a fixed number, and ``laplace`` with draws."""

    def __init__(self, uniform: float) -> None:
        super().__init__(_refuse)
        self.uniform = uniform
        self.asked = 0

    def random(self) -> float:
        self.asked += 1
        return self.uniform


def _refuse(draw: Draw) -> NoReturn:
    raise NotVerifiableError(
        "response", "must be the noisy value itself to be verified, got something computed from it"
    )


def response(curator: Any, reward: float, level: float) -> Bit | Noisy:
    """The distribution of the response to this reward, found by calling the curator's own ``respond``."""
    source = _Uniform(0.5)
    answer = curator.respond(reward, level, source)
    if isinstance(answer, Draw):
        return Noisy(answer.value, answer.scale)
    if source.asked != 1:
        raise NotVerifiableError("response", f"must take one uniform draw to be verified, got {source.asked}")

    def says_one(uniform: float) -> bool:
        return float(curator.respond(reward, level, _Uniform(uniform))) == 1.0

    low, high = 0.0, 1.0  # the response is 1 below a threshold; bisection ends at neighbouring floats
    if not says_one(low):
        return Bit(0.0)
    if says_one(math.nextafter(1.0, 0.0)):
        return Bit(1.0)
    while True:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            return Bit(high)
        low, high = (middle, high) if says_one(middle) else (low, middle)


def worst_response(curator: Any, level: float, rewards: Iterable[float] = REWARDS) -> Pair:
    """The largest loss between two rewards, for a user at this level."""
    laws = [(reward, response(curator, reward, level)) for reward in rewards]
    return max((_loss(*pair) for pair in itertools.combinations(laws, 2)), key=lambda pair: pair.epsilon)


def _loss(one: tuple[float, Bit | Noisy], two: tuple[float, Bit | Noisy]) -> Pair:
    (a, law), (b, other) = one, two
    if isinstance(law, Noisy) and isinstance(other, Noisy):
        moved = abs(law.value - other.value)
        hidden = law.scale == other.scale > 0.0 and math.isfinite(moved)
        return Pair(moved / law.scale if hidden else math.inf, (a, b), (law, other), 0.0)
    if not (isinstance(law, Bit) and isinstance(other, Bit)):
        return Pair(math.inf, (a, b), (law, other), 0.0)
    sides = [(law.one, other.one), (1.0 - law.one, 1.0 - other.one)]
    loss = max(_log_ratio(p, q) for p, q in sides)
    least = min(min(side) for side in sides)
    return Pair(loss, (a, b), (law, other), 2.0**-51 / least if least > 0.0 else 0.0)


def _log_ratio(p: float, q: float) -> float:
    if p == q:
        return 0.0
    return abs(math.log(p / q)) if p > 0.0 and q > 0.0 else math.inf


def enclosed_epsilon(mechanism: Flip | DiscreteLaplace, sensitivity: int = 1) -> tuple[Decimal, Decimal]:
    """A proved lower and upper bound on the epsilon of an exact mechanism, computed from its threshold words.

    Randomised response that flips a bit with probability p has the loss log(1/p - 1). Discrete Laplace noise is
    made of bits that are 1 with probability p_i: a step of 2^i costs log(1/p_i - 1), and the tail -log p.

    >>> from fractions import Fraction
    >>> from dpbandits.exact import SystemNoise
    >>> low, high = enclosed_epsilon(SystemNoise().randomised_response(Fraction(1)))
    >>> low <= 1 <= high, high - low < Decimal("1e-60")
    (True, True)
    """
    with localcontext() as context:
        context.prec = 120
        if isinstance(mechanism, Flip):
            return _logit(mechanism.probability)
        bounds = []
        for place, probability in enumerate(reversed(mechanism.probabilities)):
            tail = place == len(mechanism.probabilities) - 1
            low, high = _minus_log(probability) if tail else _logit(probability)
            step = Decimal(2) ** place / sensitivity
            bounds.append((low / step, high / step))
        return min(low for low, _ in bounds), max(high for _, high in bounds)


def _digits(probability: Probability) -> tuple[Decimal, Decimal]:
    """Lower and upper bounds on the probability, from its first words."""
    digits = 0
    for k in range(WORDS):
        digits = digits << WORD | probability.word(k)
    whole = Decimal(2) ** (WORD * WORDS)
    return Decimal(digits) / whole, Decimal(digits + 1) / whole


def _logit(probability: Probability) -> tuple[Decimal, Decimal]:
    low, high = _digits(probability)
    return (1 / high - 1).ln() - ERROR, (1 / low - 1).ln() + ERROR


def _minus_log(probability: Probability) -> tuple[Decimal, Decimal]:
    low, high = _digits(probability)
    return -high.ln() - ERROR, -low.ln() + ERROR


#: An upper bound on the rounding error of 120-digit arithmetic here.
ERROR = Decimal("1e-100")
