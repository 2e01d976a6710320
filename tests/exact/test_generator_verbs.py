"""The verbs of a generator on exact noise: uniform numbers, and Laplace noise that stays on the grid of 2^-16."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpbandits.errors import InputError
from dpbandits.exact import DiscreteLaplace, GridNoise, RiggedNoise, SystemNoise
from dpbandits.exact.noise import ENLARGED, GRID_STEPS, SAMPLERS_KEPT

#: Enough that a wrong law is seen: its statistics are at least 7 standard deviations above their thresholds.
DRAWS = 40_000


@pytest.mark.parametrize("value", [0.3, 0.1234567, 2**-17, 1 + 2**-20, -0.7654321, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("number", [float, np.float64])
def test_what_is_off_the_grid_is_refused_and_not_shown(value: float, number: Callable[[float], float]) -> None:
    with pytest.raises(TypeError, match="this value is not one") as caught:
        number(value) + GridNoise(5)
    digits = repr(value).lstrip("-").replace("0.", "")[:4]
    assert digits not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("value", [0.25, 0, 1, np.float64(0.5), np.int64(3), -2.5, 2.0**37 + 2**-15])
def test_on_the_grid_the_sum_is_exact(value: Any) -> None:
    for steps in (0, 1, -1, 65536, 12345678901):
        exact = Fraction(float(value)) + Fraction(steps, GRID_STEPS)
        found = value + GridNoise(steps)
        assert type(found) is float
        assert found == float(exact)


def test_what_is_shown_is_a_function_of_the_private_sum() -> None:
    """Where a float cannot hold all digits, two ways to the same sum give the same float."""
    far = 10**20 + 1
    assert 1.0 + GridNoise(far) == 0.0 + GridNoise(far + GRID_STEPS) == 0.5 + GridNoise(far + GRID_STEPS // 2)


def test_noise_has_no_value_of_its_own() -> None:
    noise: Any = GridNoise(7)
    for use in (float, int, abs, lambda x: x + 1.0, lambda x: x * 2.0, lambda x: 1.0 - x, lambda x: x > 0.0):
        with pytest.raises(TypeError):
            use(noise)


def test_one_noise_is_not_spread_over_several_values() -> None:
    with pytest.raises(TypeError):
        np.zeros(3) + GridNoise(5)  # type: ignore[operator]


@pytest.mark.parametrize("steps", [0.5, 4.0])
def test_laplace_noise_has_the_discrete_law(
    steps: float, fit: Callable[..., bool], two_sided: Callable[..., object]
) -> None:
    """At a scale of this many steps. Fails with probability 1e-9; a rate that is 10 % off is caught."""
    source, scale = SystemNoise(), steps / GRID_STEPS
    draws = [round((0.0 + source.laplace(0.0, scale)) * GRID_STEPS) for _ in range(DRAWS)]
    assert fit(draws, two_sided(1 / steps))
    assert not fit(draws, two_sided(1.1 / steps))


@pytest.mark.parametrize("numerator", [1, 2, 7, 10, 1000])
def test_rounding_never_makes_the_noise_smaller_than_epsilon_asks(numerator: int) -> None:
    """Epsilon as a float, divided as curators do it, against the rational that was promised."""
    source = SystemNoise()
    for denominator in [*range(1, 300), 10**6, 10**9 + 7, 3**40]:
        epsilon = Fraction(numerator, denominator)
        for sensitivity in (1, 5, 17):
            scale = float(sensitivity) / float(epsilon)
            assert Fraction(scale) * ENLARGED >= sensitivity / epsilon
            assert Fraction(scale) * ENLARGED <= sensitivity / epsilon * (1 + Fraction(1, 2**49))
    noise = source._sampler(scale)
    assert isinstance(noise, DiscreteLaplace)
    assert noise.rate == 1 / (Fraction(scale) * ENLARGED * GRID_STEPS)


@pytest.mark.parametrize(("loc", "scale"), [(0.0, 0.0), (0.0, -1.0), (0.0, math.nan), (0.0, math.inf), (0.5, 1.0)])
def test_a_scale_that_is_none_is_refused_by_name(loc: float, scale: float) -> None:
    with pytest.raises(InputError, match="scale must be positive and finite, around 0, got") as caught:
        SystemNoise().laplace(loc, scale)
    assert caught.value.parameter == "scale"


def test_a_uniform_number_is_the_first_53_bits_of_a_word() -> None:
    def drawn(word: int) -> float:
        return RiggedNoise(lambda n: word.to_bytes(n, "little")).random()

    assert drawn(0) == drawn(2**11 - 1) == 0.0
    assert drawn(2**11) == 2.0**-53
    assert drawn(2**63) == 0.5
    assert drawn(2**64 - 1) == 1.0 - 2.0**-53
    for word in (123456789012345678, 2**64 - 2**11, 3 << 60):
        assert Fraction(drawn(word)) == Fraction(word >> 11, 2**53)


def test_uniform_numbers_are_uniform_to_their_last_bits(fit: Callable[..., bool]) -> None:
    """The first four bits, and the last four of 53. Each fails with probability 1e-9."""
    source = SystemNoise()
    draws = [int(source.random() * 2**53) for _ in range(DRAWS)]
    for bits in ([draw >> 49 for draw in draws], [draw & 15 for draw in draws]):
        assert fit(bits, lambda k: (0 <= k < 16) / 16)
    assert not fit([draw >> 49 for draw in draws], lambda k: (0 <= k < 15) / 15)


def test_the_memory_for_scales_is_bounded() -> None:
    source = SystemNoise()
    for number in range(SAMPLERS_KEPT + 5):
        source.laplace(0.0, (1.0 + number) / GRID_STEPS)
    assert len(vars(source)["_samplers"]) <= SAMPLERS_KEPT
    assert source._sampler(1.0) is source._sampler(1.0)
