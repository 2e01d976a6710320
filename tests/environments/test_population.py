"""Users as they come: levels with the law of the population. Probabilities of failing a correct one are stated."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpbandits.environments import AnyLevels, Levels, NormalLevels, parse_levels
from dpbandits.environments.levels import NOBODY, users_of
from dpbandits.errors import InputError
from dpbandits.mechanisms import attenuation

DRAWS, FAILURE = 20_000, 1e-9
POPULATIONS: list[AnyLevels] = [Levels.of([0, 0.2, 1, 2, 100]), Levels.of([1, 1, 3]), NormalLevels(1.0, 1.0, 1.8)]


@pytest.mark.parametrize("population", POPULATIONS, ids=str)
@pytest.mark.parametrize("threshold", [0.1, 1.0, 1.5])
def test_as_many_users_are_at_or_above_a_threshold_as_the_population_says(
    population: AnyLevels, threshold: float
) -> None:
    """Two-sided binomial tests, each at 1e-9; one that is a twentieth off is caught."""
    users, rng = users_of(population), np.random.default_rng(0)
    hits = sum(users.level(rng) >= threshold for _ in range(DRAWS))
    share = population.accepted(threshold)
    if share < 1.0:
        assert stats.binomtest(hits, DRAWS, share).pvalue > FAILURE
        assert stats.binomtest(hits, DRAWS, share - 0.05).pvalue < FAILURE
    else:
        assert hits == DRAWS


@pytest.mark.parametrize("population", POPULATIONS, ids=str)
def test_the_slope_of_a_bit_is_that_of_the_level_or_0_below_the_threshold(population: AnyLevels) -> None:
    users = users_of(population)
    one, two = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(300):
        level = users.level(one)
        assert users.bit_slope(1.0, two) == (attenuation(level) if level >= 1.0 else 0.0)


def test_listed_slopes_are_those_at_or_above_the_threshold() -> None:
    slopes, share = users_of(Levels.of([2, 0, 1, 1])).bit_slopes(1.0)
    assert slopes.tolist() == [attenuation(1.0), attenuation(1.0), attenuation(2.0)]
    assert share == 0.75
    none, nobody = users_of(Levels.of([0.5])).bit_slopes(1.0)
    assert (none.size, nobody) == (0, 0.0)
    assert users_of(NormalLevels(1.0, 1.0)).bit_slopes(0.5)[0].size == 0, "continuous levels cannot be listed"


def test_one_level_for_all_draws_nothing() -> None:
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    assert users_of(Levels.of([1.5])).level(rng) == 1.5
    assert NOBODY.level(rng) == 0.0
    assert users_of(None) is NOBODY
    assert rng.bit_generator.state == before


def test_normal_levels_are_clipped_to_both_ends() -> None:
    users, rng = users_of(NormalLevels(1.0, 5.0, 3.0)), np.random.default_rng(1)
    levels = [users.level(rng) for _ in range(1000)]
    assert (min(levels), max(levels)) == (0.0, 3.0)


@pytest.mark.parametrize(
    "text", ["constant(1)", "choice(0,0.2,1,2,100)", "choice(1,1,3)", "normal(1,0.5)", "normal(-1,2)"]
)
def test_levels_survive_their_text(text: str) -> None:
    assert str(parse_levels(text)) == text
    assert parse_levels(str(parse_levels(f" {text} "))) == parse_levels(text)


@pytest.mark.parametrize(
    "text",
    ["", "1", "constant()", "constant(1,2)", "choice()", "choice(-1)", "choice(1,inf)", "choice(nan)", "normal(1)",
     "normal(1,0)", "normal(1,-1)", "normal(nan,1)", "normal(1,inf)", "normal(1,1,1)", "poisson(1)", "choice(a)"],
)  # fmt: skip
def test_what_is_no_population_is_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_levels(text)
    assert caught.value.parameter == "levels"


def test_expectations_are_over_the_accepted_users() -> None:
    assert Levels.of([0, 1, 2, 4]).expected(lambda x: x, 1.0) == pytest.approx(7 / 3)
    normal = NormalLevels(1.0, 1.0, 1.5)
    x = np.linspace(0.5, 1.5, 200_001)
    density = stats.norm.pdf(x, 1.0, 1.0)
    above = stats.norm.sf(1.5, 1.0, 1.0)
    by_hand = (float(np.trapezoid(x * density, x)) + 1.5 * above) / (stats.norm.sf(0.5, 1.0, 1.0))
    assert normal.expected(lambda level: level, 0.5) == pytest.approx(by_hand, rel=1e-6)
    assert math.isclose(normal.accepted(0.5), stats.norm.sf(0.5, 1.0, 1.0))
    assert normal.accepted(1.5) == pytest.approx(above)
    assert normal.accepted(1.5, strictly=True) == 0.0
    assert normal.accepted(0.0) == 1.0
    assert normal.accepted(0.0, strictly=True) == pytest.approx(stats.norm.sf(-1.0))
