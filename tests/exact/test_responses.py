"""Curators: what they do with any reward, and how private they are by their own constants."""

from __future__ import annotations

import itertools
import math
import os
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from types import FrameType
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from dpbandits.errors import InputError
from dpbandits.exact import (
    BernoulliCurator,
    LaplaceCurator,
    LocalCurator,
    RandomisedResponse,
    RiggedNoise,
    SigmoidCurator,
    as_float,
    exponential,
    grid_steps,
    logistic,
)

EXTREME = ("1/1000000", "1", "100", "1000")
STRANGE = (0.0, 1.0, 0.3, -0.0, 5e-324, math.nan, math.inf, -math.inf, 1e308, -1e308)

Maker = Callable[..., LocalCurator]


def sigmoid_bernoulli(epsilon: str, noise: RiggedNoise | None = None) -> LocalCurator:
    return SigmoidCurator(BernoulliCurator(epsilon, noise))


def sigmoid_laplace(epsilon: str, noise: RiggedNoise | None = None) -> LocalCurator:
    return SigmoidCurator(LaplaceCurator(epsilon, noise))


BITS: tuple[Maker, ...] = (RandomisedResponse, BernoulliCurator, sigmoid_bernoulli)
ALL: tuple[Maker, ...] = (*BITS, LaplaceCurator, sigmoid_laplace)


def words(*values: int) -> RiggedNoise:
    """Noise from these 64-bit words."""
    left = iter(values)
    return RiggedNoise(lambda n: b"".join(next(left).to_bytes(8, "little") for _ in range(n // 8)))


def silent() -> RiggedNoise:
    """Noise whose every random bit is 1: no flip, and 0 from the discrete Laplace."""
    return RiggedNoise(lambda n: b"\xff" * n)


@given(some.floats(), some.integers(min_value=1, max_value=48))
def test_every_float_has_a_nearest_point_on_the_grid(reward: float, bits: int) -> None:
    point = grid_steps(reward, bits)
    assert 0 <= point <= 1 << bits
    clamped = 0.0 if not reward > 0 else min(reward, 1.0)
    # Half a unit, and the last bit of the addition of one half.
    assert abs(Fraction(point, 1 << bits) - Fraction(clamped)) <= Fraction(1, 2 << bits) + Fraction(1, 2**53)


@pytest.mark.parametrize(
    "reward", [np.float16(1), np.float32(0.5), np.float64("nan"), 10**400, -(10**400), True, np.int64(1)]
)
def test_other_numbers_are_rewards_too(reward: Any) -> None:
    assert grid_steps(reward, 48) == (0 if not reward > 0 else (1 << 48) // (2 if reward < 1 else 1))
    assert SigmoidCurator(BernoulliCurator("1")).respond(reward) in (0, 1)


class Hostile:
    """Not a number, and not even polite."""

    def __float__(self) -> float:
        raise ZeroDivisionError("0.8414")

    def __gt__(self, other: object) -> bool:
        raise ZeroDivisionError("0.8414")


@pytest.mark.parametrize(
    "reward",
    [None, Decimal("NaN"), Decimal("sNaN"), "text", "", b"\xff", 1j, [], {}, object(), Hostile(), np.array([1.0, 2.0])],
    ids=lambda reward: type(reward).__name__,
)
@pytest.mark.parametrize("make", ALL)
def test_what_is_no_number_is_answered_like_nan(make: Maker, reward: Any) -> None:
    """An error would leave the decision unanswered, and the silence would tell."""
    for random in (b"\x00", b"\x5a", b"\xff"):
        noise = RiggedNoise(lambda n, random=random: random * n)  # type: ignore[misc]
        if random != b"\x00" or make in BITS:  # all bits 0 make the tail of Laplace noise endless
            assert make("1", noise).respond(reward) == make("1", noise).respond(math.nan)


@pytest.mark.parametrize("make", ALL)
def test_the_level_cannot_be_changed_afterwards(make: Maker) -> None:
    curator = make("1")
    for name in ("epsilon", "level", "noise"):
        with pytest.raises(AttributeError):
            setattr(curator, name, Fraction(1, 1000))
    with pytest.raises(AttributeError):
        del curator.epsilon
    assert curator.epsilon == 1


@pytest.mark.parametrize("make", BITS)
@given(reward=some.floats(), first=some.integers(0, 2**64 - 1), second=some.integers(0, 2**64 - 1))
def test_a_response_of_one_bit_is_one_bit(make: Maker, reward: float, first: int, second: int) -> None:
    assert make("1", words(first, second, 0)).respond(reward) in (0, 1)


@given(some.floats())
def test_without_noise_a_laplace_response_is_the_reward_on_the_grid(reward: float) -> None:
    assert LaplaceCurator("1", silent()).respond(reward) == grid_steps(reward, 16)


@given(some.floats(min_value=-700, max_value=700))
def test_the_sigmoid_is_the_logistic_function(reward: float) -> None:
    response = SigmoidCurator(LaplaceCurator("1", silent())).respond(reward)
    assert abs(response - 65536 / (1 + math.exp(-reward))) <= 0.5 + 1e-9


def test_what_is_not_a_number_counts_as_the_lowest_reward() -> None:
    for make in (LaplaceCurator, sigmoid_laplace):
        assert make("1", silent()).respond(math.nan) == make("1", silent()).respond(-math.inf) == 0


@pytest.mark.parametrize("epsilon", EXTREME)
@pytest.mark.parametrize("make", ALL)
def test_extreme_levels_and_rewards_give_a_response(make: Maker, epsilon: str) -> None:
    curator = make(epsilon)
    assert curator.epsilon == Fraction(epsilon)
    for reward in STRANGE:
        response = curator.respond(reward)
        assert isinstance(response, int)
        assert make not in BITS or response in (0, 1)


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", 0, -0.5, math.inf])
def test_a_level_that_is_not_positive_is_refused(make: Callable[..., Any], epsilon: Any) -> None:
    with pytest.raises(InputError, match="epsilon must be positive"):
        make(epsilon)


def test_a_bit_is_flipped_below_the_threshold_and_not_above() -> None:
    lie = logistic(Fraction("0.1"))
    for reward in (0, 1):
        assert RandomisedResponse("0.1", words(lie.word(0) - 1)).respond(reward) == 1 - reward
        assert RandomisedResponse("0.1", words(lie.word(0) + 1)).respond(reward) == reward
        assert RandomisedResponse("0.1", words(lie.word(0), lie.word(1) - 1)).respond(reward) == 1 - reward
        assert RandomisedResponse("0.1", words(lie.word(0), lie.word(1) + 1)).respond(reward) == reward


def test_convert_to_bernoulli_says_one_for_exactly_the_reward_of_all_48_bit_words() -> None:
    for point, flipped in itertools.product((1, 12345, 2**47, 2**48 - 1), (False, True)):
        flip = 0 if flipped else 2**64 - 1
        below = BernoulliCurator("1", words((point - 1) << 16 | 0xFFFF, flip)).respond(point / 2**48)
        above = BernoulliCurator("1", words(point << 16, flip)).respond(point / 2**48)
        assert (below, above) == ((0, 1) if flipped else (1, 0))


@pytest.mark.parametrize("epsilon", ["1/1000000", "0.1", "1/3", "1", "10", "100"])
def test_the_constants_give_the_promised_epsilon(epsilon: str) -> None:
    """From the digits that are compared with: the worst log-ratio over inputs and outputs, to 40 digits."""
    level = Fraction(epsilon)
    with mpmath.workprec(600):
        claim = mpmath.mpf(level.numerator) / level.denominator
        lie = mpmath.ldexp(mpmath.mpf(logistic(level).digits(8)), -512)
        assert abs(mpmath.log((1 - lie) / lie) - claim) < mpmath.mpf(10) ** -40
        step = mpmath.ldexp(mpmath.mpf(exponential(level / 2**16).digits(8)), -512)
        assert abs(-(2**16) * mpmath.log(step) - claim) < mpmath.mpf(10) ** -40


def opcodes(call: Callable[[], object]) -> int:
    """How many bytecode instructions of ours ``call`` executes; not those of a garbage collector's hooks, for one."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        if not frame.f_globals["__name__"].startswith("dpbandits.exact"):
            return None
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("make", ALL)
def test_the_instructions_executed_do_not_depend_on_reward_or_noise(make: Maker) -> None:
    asked: list[int] = []

    def entropy(n: int) -> bytes:
        asked.append(n)
        return os.urandom(n)

    curator = make("1", RiggedNoise(entropy))
    work = set()
    for reward in STRANGE * 20:
        asked.clear()
        count = opcodes(lambda r=reward: curator.respond(r))  # type: ignore[misc]
        work.add((count, *asked))
    assert len(work) == 1
    assert next(iter(work))[0] > 10


class Huge:
    """Too large for a float, and it cannot be compared either."""

    def __float__(self) -> float:
        raise OverflowError

    def __gt__(self, other: object) -> bool:
        raise RuntimeError("a secret")


def test_a_reward_that_cannot_be_compared_is_answered_like_one_that_is_no_number() -> None:
    assert math.isnan(as_float(Huge()))
