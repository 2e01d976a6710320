"""The exact law of a device's response, found from the real call: the thresholds of its random words.

A device compares random words of 64 bits with the binary digits of probabilities. Here the curator that is deployed is
made as usual, and its entropy is then replaced by words that the audit chooses. Bisection finds, for every random word
of a draw, the word that it is compared with, and for ties the words after that. So the running code is verified, and no
constant is read from the source. Other words around and far from every threshold, and random draws, are then compared
with the law that follows. A call that does anything else is not proved.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

from dpbandits.audit.driving import TOP, Call, NoLawError
from dpbandits.exact import LocalCurator
from dpbandits.exact.probability import WORD
from dpbandits.exact.responses import LAPLACE_GRID
from dpbandits.exact.sampling import WINDOW_GRID

__all__ = ["REWARDS", "Threshold", "WordsFound", "found_law"]

#: Rewards with which the call is driven: both ends, some between, and what must be clamped.
REWARDS: tuple[Any, ...] = (0.0, 1.0, 0.5, 0.25, 7.0, -1.0, 1e308, -1e308, math.inf, -math.inf, math.nan, None)

SIGNIFICANT = 4  # words of a probability that are found, from its first word that is not 0
MOST_WORDS = 64  # of a probability that are looked for
PROBES = 12  # random words on each side of every threshold
DRAWS = 100  # random draws that are compared with the law, of each reward
SEED = 3  # of those words; any would do
RAREST = 1e-12  # probability of a response in a loss that is computed in floating point
FLOAT_ERROR = Fraction(1, 10**6)  # relative, of such a loss; tails, which are left out, have probability below 2^-63
WINDOW_WORDS = 3  # of a draw of the piecewise mechanism; Laplace noise takes an even number


class Threshold(NamedTuple):
    """One threshold: what a draw below it adds to the response, and the words that were found."""

    adds: int
    words: tuple[int, ...]

    @property
    def low(self) -> Fraction:
        """The probability of a draw below it, rounded down to the words that were found."""
        digits = 0
        for word in self.words:
            digits = digits << WORD | word
        return Fraction(digits, 1 << WORD * len(self.words))

    @property
    def high(self) -> Fraction:
        """The probability, rounded up."""
        return self.low + Fraction(1, 1 << WORD * len(self.words))


class WordsFound(NamedTuple):
    """What was found. Without ``faults`` the loss is the curator's own epsilon, which ``epsilon`` encloses.

    ``loss`` is a lower bound on the worst loss, with or without faults, and ``witness`` says where it is.
    """

    epsilon: tuple[Decimal, Decimal] | None
    loss: Fraction
    faults: list[str]
    witness: dict[str, Any]
    thresholds: int


def _find(says_below: Callable[[list[int]], bool]) -> tuple[int, ...]:
    """The words of a threshold, by bisection: the smallest word that is not below it, and after a tie the next one."""
    words: list[int] = []
    significant = 0
    while significant < SIGNIFICANT:
        if len(words) == MOST_WORDS:
            raise NoLawError(f"compares with a probability below 2^-{WORD * MOST_WORDS}, or with none")
        low, high = 0, TOP + 1
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if says_below([*words, middle]) else (low, middle)
        if low > TOP:
            raise NoLawError("compares with a probability of 1")
        words.append(low)
        significant += bool(low or significant)
    return tuple(words)


def _probe(says_below: Callable[[list[int]], bool], words: tuple[int, ...], rng: random.Random) -> None:
    """Compare other words with the threshold that was found, on both sides, at every depth."""
    for depth, word in enumerate(words):
        below = {0, word - 1, word >> 1, word >> 3, *(rng.randrange(max(word, 1)) for _ in range(PROBES))}
        above = {TOP, word + 1, word << 1, word << 3, *(rng.randrange(word, TOP + 1) for _ in range(PROBES))}
        for side, expected in ((below, True), (above, False)):
            for other in side:
                inside = 0 <= other < word if expected else word < other <= TOP
                if inside and says_below([*words[:depth], other]) is not expected:
                    raise NoLawError(f"is not decided by one threshold: word {other:016x} against {word:016x}")


def found_law(curator: LocalCurator) -> WordsFound:
    """The law of the response, found by driving the curator's real call.

    >>> from dpbandits.exact import BernoulliCurator
    >>> law = found_law(BernoulliCurator("1/3"))
    >>> low, high = law.epsilon
    >>> law.faults, Fraction(low) < Fraction(1, 3) < Fraction(high), Fraction(high) - Fraction(low) < 1e-50
    ([], True, True)
    """
    call = Call(curator)
    try:
        call.measure()
        if call.width == WINDOW_WORDS:
            return _window(call)
        return _bits(call) if call.width <= 2 else _laplace(call)
    except NoLawError as error:
        return WordsFound(None, Fraction(0), [f"the response {error}"], {}, 0)
    finally:
        call.restore()


def _bits(call: Call) -> WordsFound:
    """Randomised response: the last word decides whether the bit is flipped; an earlier one, if any, draws it."""
    rng, lie, shares = random.Random(SEED), call.width - 1, list[int]()
    found = set()
    for reward in REWARDS:
        for before in ((), (0,))[: call.width]:
            truth = call.at(reward, lie, [TOP], before)
            if truth not in (0, 1):
                raise NoLawError(f"is {truth}, and not a bit")

            def lies(words: list[int], reward: Any = reward, before: Any = before, truth: int = truth) -> bool:
                return call.at(reward, lie, words, before) != truth

            words = _find(lies)
            _probe(lies, words, rng)
            found.add(words)
        shares.append(_share(call, reward))
    if len(found) > 1:
        raise NoLawError("lies with another probability if the reward or another word is another one")
    threshold = Threshold(1, found.pop())

    def answer(share: int, draw: list[int]) -> int:
        return int((draw[0] < share) != (draw[lie] < threshold.words[0]))

    for reward, share in zip(REWARDS, shares, strict=True):
        _compare(call, reward, partial(answer, share), rng)
    # Between a reward that is always 1 and one that is always 0, every other reward is a mixture.
    bounds, level = _logit(threshold), call.curator.epsilon
    faults = [] if holds(bounds, level) else [f"the words give epsilon {bounds[0]:.25g}, and not {level}"]
    low = float(threshold.low)
    witness = {"rewards": ["0", "1"], "response": 1, "probabilities": [low, 1.0 - low]}
    return WordsFound(bounds, Fraction(bounds[0]), faults, witness, 1)


def _share(call: Call, reward: Any) -> int:
    """Of all first words, those below this one make the bit 1."""
    if call.width == 1:
        return TOP + 1 if call.respond(reward, []) else 0
    low, high = 0, TOP + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if call.respond(reward, [middle]) == 1 else (low, middle)
    return low


def _compare(call: Call, reward: Any, expected: Callable[[list[int]], int], rng: random.Random) -> None:
    """Compare random draws with the law. A tie has probability 2^-58."""
    for _ in range(DRAWS):
        draw = [rng.getrandbits(WORD) for _ in range(call.width)]
        if call.respond(reward, draw) != expected(draw) or call.rig.used != call.width:
            raise NoLawError(f"to the reward {reward} is not what the thresholds say")


def _window(call: Call) -> WordsFound:
    """The piecewise mechanism: the first word decides whether the response is outside of a window from the input on.

    The second word is the place inside, and the third the place outside. Every border between two places is tried.
    """
    rng, others = random.Random(SEED), 1 << WINDOW_GRID
    width = call.respond(0.0, [TOP, TOP, 0]) + 1
    inputs, found = [call.respond(reward, [TOP, 0, 0]) for reward in REWARDS], set()
    for reward, given in zip(REWARDS, inputs, strict=True):
        if not 0 <= given <= others:
            raise NoLawError(f"to the reward {reward} is not clamped to the grid")
        inside = call.respond(reward, [])

        def outside(words: list[int], reward: Any = reward, inside: int = inside) -> bool:
            return call.at(reward, 0, words) != inside

        words = _find(outside)
        _probe(outside, words, rng)
        found.add(words)
    if len(found) > 1:
        raise NoLawError("is outside with another probability if the reward is another one")
    threshold = Threshold(1, found.pop())
    _check_places(call, width, others, threshold.words)

    def answer(given: int, draw: list[int]) -> int:
        there = draw[2] >> WORD - WINDOW_GRID
        if draw[0] < threshold.words[0]:
            return there if there < given else there + width
        return given + (draw[1] * width >> WORD)

    for reward, given in zip(REWARDS, inputs, strict=True):
        _compare(call, reward, partial(answer, given), rng)
    low, high = _logit(threshold)
    with localcontext() as context:
        context.prec = PRECISION
        more = (Decimal(others) / Decimal(width)).ln()
        bounds, level = (low + more - ERROR, high + more + ERROR), call.curator.epsilon
    faults = [] if holds(bounds, level) else [f"the words give epsilon {bounds[0]:.25g}, and not {level}"]
    p = float(threshold.low)
    witness = {"rewards": ["0", "1"], "response": 0, "probabilities": [(1.0 - p) / width, p / others]}
    return WordsFound(bounds, max(Fraction(bounds[0]), Fraction(0)), faults, witness, 1)


def _check_places(call: Call, width: int, others: int, outside: tuple[int, ...]) -> None:
    """Every place inside and outside of the window of the lowest reward has exactly its share of the words."""
    for place in range(1, width):
        border, rest = divmod(place << WORD, width)
        below, above = ([border - 1], [border + 1]) if rest else ([border - 1], [border])
        tried = [(below, place - 1), (above, place)]
        if rest:  # the next word decides: the border is inside this one
            next_word = (rest << WORD) // width
            low = [border, max(next_word - 1, 0)]
            tried += [(low, place - 1 if next_word else place), ([border, next_word + 1], place)]
        for words, expected in tried:
            if call.at(0.0, 1, words) != expected:
                raise NoLawError(f"has a place in the window that is not {width} times a uniform number")
    for place in range(others):
        word = place << WORD - WINDOW_GRID
        tie = [*outside[1:-1], max(outside[-1] - 1, 0)]  # what decides a tie of the first word
        last = word + (1 << WORD - WINDOW_GRID) - 1
        ends = [call.respond(0.0, [outside[0], 0, one, *tie]) for one in (word, last)]
        if ends != [place + width] * 2:
            raise NoLawError("has places outside the window that are not equally likely")


def _laplace(call: Call) -> WordsFound:
    """An integer, plus the difference of two sums of independent bits, each with a tail."""
    rng = random.Random(SEED)
    inputs = [call.respond(reward, []) for reward in REWARDS]
    for reward, place in zip(REWARDS, inputs, strict=True):
        if not 0 <= place <= 1 << LAPLACE_GRID:
            raise NoLawError(f"to the reward {reward} is not clamped to the grid")
    if len(set(inputs)) == 1:
        raise NoLawError("does not depend on the reward")
    found = [_threshold(call, place, rng) for place in range(call.width)]
    half = call.width // 2
    steps = [1 << place for place in reversed(range(half))]
    if [one.adds for one in found] != [*steps, *(-step for step in steps)]:
        raise NoLawError("does not add the binary digits of two numbers")
    for first in (0, half):
        _check_tail(call, first, found[first], rng)

    def noisy(given: int, draw: list[int]) -> int:
        return given + sum(one.adds for one, word in zip(found, draw, strict=True) if word < one.words[0])

    for reward, given in zip(REWARDS, inputs, strict=True):
        _compare(call, reward, partial(noisy, given), rng)
    return _laplace_law(call, found, max(inputs) - min(inputs))


def _threshold(call: Call, place: int, rng: random.Random) -> Threshold:
    silent = call.respond(0.0, [])

    def below(words: list[int]) -> bool:
        return call.at(0.0, place, words) != silent

    words = _find(below)
    _probe(below, words, rng)
    under = (*words[:-1], words[-1] - 1) if words[-1] else (*words, 0)
    return Threshold(call.at(0.0, place, list(under)) - silent, words)


def _check_tail(call: Call, place: int, tail: Threshold, rng: random.Random) -> None:
    """Once the tail is reached, it goes on with the same probability, and each time adds the same."""
    inside = [*tail.words[:-1], max(tail.words[-1] - 1, 0)]
    once = call.at(0.0, place, inside)

    def goes_on(words: list[int]) -> bool:
        return call.at(0.0, place, inside + words) != once

    words = _find(goes_on)
    _probe(goes_on, words, rng)
    again = [*words[:-1], max(words[-1] - 1, 0)]
    if words != tail.words or call.at(0.0, place, inside + again) - once != tail.adds:
        raise NoLawError("has a tail that goes on with another probability")


def _laplace_law(call: Call, found: list[Threshold], sensitivity: int) -> WordsFound:
    level, half, faults = call.curator.epsilon, len(found) // 2, list[str]()
    bounds = []
    for number, one in enumerate(found):
        low, high = (_minus_log if number % half == 0 else _logit)(one)
        with localcontext() as context:
            context.prec = PRECISION
            step = Decimal(abs(one.adds)) / sensitivity
            bounds.append((low / step, high / step))
        if not holds(bounds[-1], level):
            name = "the tail" if number % half == 0 else f"bit {half - 1 - number % half}"
            faults.append(f"the words of {name} give epsilon {bounds[-1][0]:.12g}, and not {level}")
    loss, witness = _worst(found, sensitivity)
    least = Fraction(loss) * (1 - FLOAT_ERROR)
    return WordsFound(
        (max(low for low, _ in bounds), min(high for _, high in bounds)), least, faults, witness, len(found)
    )


def _worst(found: list[Threshold], sensitivity: int) -> tuple[float, dict[str, Any]]:
    """The largest loss that is found between two inputs at most ``sensitivity`` apart, in floating point."""
    half = len(found) // 2
    up, down = ([float(one.low) for one in reversed(found[start + 1 : start + half])] for start in (0, half))
    moves = [sensitivity, *(1 << place for place in range(half - 1) if 1 << place < sensitivity)]
    points = {0, *(1 << place for place in range(half - 2)), *(sensitivity + (1 << place) for place in range(half - 2))}
    law: dict[int, float] = {}

    def probability(noise: int) -> float:
        if noise not in law:
            law[noise] = _difference(up, down, noise)
        return law[noise]

    worst, witness = 0.0, dict[str, Any]()
    for move in moves:
        for point in points:
            for noise in (point, -point):
                one, other = probability(noise), probability(noise - move)
                loss = abs(math.log(one / other)) if min(one, other) > RAREST else 0.0
                if loss > worst:
                    rewards = ["0", f"{move}/{sensitivity}"]
                    worst, witness = loss, {"rewards": rewards, "response": noise, "probabilities": [one, other]}
    return worst, witness


def _difference(up: list[float], down: list[float], value: int) -> float:
    """P(sum 2^j (A_j - B_j) = value) for independent bits, without tails: digit by digit, with the carry."""
    bits = value % (1 << len(up))
    carried = {0: 1.0}
    for place, (p, q) in enumerate(zip(up, down, strict=True)):
        after: dict[int, float] = {}
        for carry, mass in carried.items():
            for digit, chance in ((1, p * (1 - q)), (-1, q * (1 - p)), (0, p * q + (1 - p) * (1 - q))):
                left = carry + digit - (bits >> place & 1)
                if left % 2 == 0:
                    after[left // 2] = after.get(left // 2, 0.0) + mass * chance
        carried = after
    return carried.get(-1 if value < 0 else 0, 0.0) if abs(value) < 1 << len(up) else 0.0


def holds(bounds: tuple[Decimal, Decimal], level: Fraction) -> bool:
    """Whether an enclosure contains the level itself."""
    return Fraction(bounds[0]) <= level <= Fraction(bounds[1])


PRECISION = 120  # decimal digits; four words have 77
ERROR = Decimal("1e-100")  # an upper bound on the rounding errors here


def _decimals(one: Threshold) -> Iterator[Decimal]:
    for exact in (one.low, one.high):
        yield Decimal(exact.numerator) / Decimal(exact.denominator)


def _logit(one: Threshold) -> tuple[Decimal, Decimal]:
    """log(1/p - 1): the privacy loss of randomised response that lies with probability p."""
    with localcontext() as context:
        context.prec = PRECISION
        low, high = _decimals(one)
        return (1 / high - 1).ln() - ERROR, (1 / low - 1).ln() + ERROR


def _minus_log(one: Threshold) -> tuple[Decimal, Decimal]:
    """-log p: the privacy loss of one step of a tail that continues with probability p."""
    with localcontext() as context:
        context.prec = PRECISION
        low, high = _decimals(one)
        return -high.ln() - ERROR, -low.ln() + ERROR
