"""Scalar mathematics against slower ways to the same numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from dpbandits.exact import grid_steps as whole_steps
from dpbandits.numerics import GRID, kl, kl_upper, on_grid, top_bit, unit


def test_kl_upper_is_the_root_that_bisection_finds() -> None:
    rng = np.random.default_rng(0)
    for _ in range(2000):
        p, budget = rng.random() ** 3, 10.0 ** rng.uniform(-12, 2)
        low, high = p, 1.0
        for _ in range(80):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if kl(p, middle) <= budget else (low, middle)
        assert kl_upper(p, budget) == pytest.approx(low, abs=2e-9 if budget < 1e-9 else 1e-11)


@given(some.floats(min_value=0.0, max_value=1.0))
@example(0.0)
@example(1.0)
@example(0.5 / 65536)
@example(1.5 / 65536)
@example(1.0 - 0.5 / 65536)
@example(5e-324)
def test_on_the_grid_is_the_nearest_multiple_of_2_to_the_minus_16(x: float) -> None:
    found = Fraction(on_grid(x))
    steps = found * 2**16
    assert steps.denominator == 1
    assert 0 <= steps <= 2**16
    assert abs(found - Fraction(x)) <= Fraction(1, 2**17)
    assert on_grid(on_grid(x)) == on_grid(x)


def test_every_point_of_the_grid_stays_where_it_is() -> None:
    assert GRID == 65536.0
    assert all(on_grid(k / 65536) == k / 65536 for k in range(65537))


@given(some.floats())
def test_the_server_and_the_device_put_a_reward_on_the_same_point(reward: float) -> None:
    """But for what lies halfway between two points, to the last bit: one rounds it to even, the other up."""
    server, device = on_grid(unit(reward)) * 65536, whole_steps(reward, 16)
    halfway = abs(Fraction(unit(reward)) * 2**16 % 1 - Fraction(1, 2)) <= Fraction(1, 2**35)
    assert server == device or (halfway and abs(server - device) == 1)


@given(some.integers(min_value=1, max_value=2**53 - 1))
def test_the_top_bit_is_that_of_the_integer(n: int) -> None:
    assert top_bit(n) == n.bit_length() - 1


def test_what_is_not_a_number_is_clipped_to_0() -> None:
    assert [unit(x) for x in (math.nan, -math.inf, math.inf, -0.0, 2.0)] == [0.0, 0.0, 1.0, 0.0, 1.0]
