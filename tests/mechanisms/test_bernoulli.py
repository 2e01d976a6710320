"""Convert-to-Bernoulli: probabilities in closed form, rounded to the private side only."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dpbandits.exact import RiggedNoise
from dpbandits.mechanisms import (
    attenuate,
    attenuation,
    convert_to_bernoulli,
    debias,
    debias_variance,
    response_probability,
    truth_probability,
)

MANY = [
    *(10.0**power for power in np.linspace(-20, 3, 400)),
    *np.linspace(0.001, 45.0, 2000).tolist(),
    *(math.nextafter(x, side) for x in (1e-15, 1e-3, 0.1, 1.0, 36.7, 100.0) for side in (0.0, math.inf)),
    5e-324,
    1e308,
]


def exact_truth(epsilon: float) -> mpmath.mpf:
    """e^epsilon / (1 + e^epsilon) to 400 bits beyond the leading ones, of which there are less than 1500 up to 1000."""
    return 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))


def test_the_truth_is_never_told_more_often_than_epsilon_allows() -> None:
    """A multiple of 2^-53 that is not above the real number, and not far below it."""
    with mpmath.workprec(2000):
        for epsilon in MANY:
            truth = truth_probability(epsilon)
            assert 0.5 <= truth < 1.0
            assert (Fraction(truth) * 2**53).denominator == 1
            real = exact_truth(min(epsilon, 1000.0))  # beyond it the real number only grows
            assert mpmath.mpf(truth) <= real, epsilon
            if epsilon <= 1000.0:
                assert real - mpmath.mpf(truth) <= mpmath.mpf(2) ** -50, epsilon


def test_the_ratio_of_both_answers_is_at_most_e_to_the_epsilon() -> None:
    """At the ends, where it is largest: exactly, as quotients of the floats that are compared with."""
    with mpmath.workprec(2000):
        for epsilon in MANY:
            low, high = (Fraction(response_probability(reward, epsilon)) for reward in (0.0, 1.0))
            assert low + high == 1
            ratio = high / low
            log = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
            assert log <= mpmath.mpf(epsilon), epsilon


@pytest.mark.parametrize("epsilon", [1e-8, 0.3, 1.0, 20.0, 1000.0])
def test_what_is_between_the_ends_is_between_their_probabilities(epsilon: float) -> None:
    low, high = (response_probability(reward, epsilon) for reward in (0.0, 1.0))
    rewards = np.sort(np.concatenate([np.random.default_rng(0).random(2000), [5e-324, 1e-16, 1 - 2**-53]]))
    found = [response_probability(float(reward), epsilon) for reward in rewards]
    assert found == sorted(found)
    assert low <= found[0]
    assert found[-1] <= high


@pytest.mark.parametrize("reward", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("epsilon", [1e-8, 1.0, 100.0, 800.0, 1000.0])
def test_the_probability_of_a_one_is_the_closed_form_up_to_rounding(reward: float, epsilon: float) -> None:
    p = response_probability(reward, epsilon)
    assert 0.0 < p < 1.0
    with mpmath.workprec(2000):
        truth = exact_truth(epsilon)
        exact = mpmath.mpf(reward) * truth + (1 - mpmath.mpf(reward)) * (1 - truth)
        assert abs(mpmath.mpf(p) - exact) <= mpmath.mpf(2) ** -50
    assert debias(p, attenuation(epsilon)) == pytest.approx(reward, abs=1e-6 if epsilon < 1 else 1e-12)
    assert debias_variance(attenuation(epsilon)) >= 1.0


def test_at_huge_levels_the_least_probability_is_the_rounding() -> None:
    """e^-100 is 3.7e-44. A device with 53 random bits cannot lie so rarely, and lies more often instead."""
    assert response_probability(0.0, 100.0) == response_probability(0.0, 1e6) == 2.0**-51


@pytest.mark.parametrize("epsilon", [1e-8, 0.2, 1.0, 5.0, 100.0])
@pytest.mark.parametrize("mean", [0.0, 0.3, 1.0])
def test_two_ways_to_write_the_probability_of_a_one_agree(mean: float, epsilon: float) -> None:
    """And the second is what ``debias`` undoes."""
    slope = attenuation(epsilon)
    assert attenuate(mean, slope) == pytest.approx(response_probability(mean, epsilon), abs=1e-15)
    assert debias(attenuate(mean, slope), slope) == pytest.approx(mean, abs=1e-15 / slope)


@pytest.mark.parametrize(("reward", "epsilon"), [(0.0, 0.5), (0.25, 1.0), (0.7, 1e-6), (1.0, 2.0)])
def test_of_all_uniform_numbers_of_53_bits_exactly_those_below_the_probability_say_one(
    reward: float, epsilon: float
) -> None:
    """As many as the probability says, rounded up: which never leaves the span between both ends."""
    count = math.ceil(Fraction(response_probability(reward, epsilon)) * 2**53)
    assert 2**53 - Fraction(truth_probability(epsilon)) * 2**53 <= count <= Fraction(truth_probability(epsilon)) * 2**53

    def answer(uniform: int) -> float:
        source = RiggedNoise(lambda n: (uniform << 11).to_bytes(n, "little"))
        return convert_to_bernoulli(reward, epsilon, source)  # type: ignore[arg-type]

    assert answer(count - 1) == 1.0
    assert answer(count) == 0.0
