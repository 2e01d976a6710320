"""Delays: how they are written, and their laws. Probabilities of failing a correct one are stated."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpbandits.environments.delays import Delay, parse_delay
from dpbandits.errors import InputError

FAILURE = 1e-9


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("constant(100)", "constant(100)"),
        (" constant( 0 ) ", "constant(0)"),
        ("exponential(1e2)", "exponential(100)"),
        ("lognormal(100,1)", "lognormal(100,1)"),
        ("lognormal( 0.5 , 0.25 )", "lognormal(0.5,0.25)"),
        ("exponential(0.1)", "exponential(0.1)"),
        ("constant(1_000)", "constant(1000)"),
    ],
)
def test_a_delay_is_read_and_written(text: str, written: str) -> None:
    delay = parse_delay(text)
    assert str(delay) == written
    assert parse_delay(written) == delay


@pytest.mark.parametrize(
    "text",
    [
        "",
        "constant",
        "constant()",
        "constant(1,2)",
        "constant(-1)",
        "constant(nan)",
        "constant(inf)",
        "constant(1",
        "exponential(1)+constant(1)",
        "exponential(x)",
        "exponential(1,1)",
        "lognormal(1)",
        "lognormal(1,-1)",
        "lognormal(1,1,1)",
        "poisson(3)",
        "Constant(3)",
        "3",
    ],
)
def test_what_is_no_delay_is_refused_with_what_is(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_delay(text)
    assert caught.value.parameter == "delay"
    assert "\n" not in str(caught.value)
    said = str(caught.value)
    assert "constant(rounds), exponential(mean) or lognormal(median,sigma)" in said or "must be a number" in said


def test_a_constant_is_a_constant() -> None:
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    assert [parse_delay("constant(2.5)").rounds(rng) for _ in range(3)] == [2.5] * 3
    assert rng.bit_generator.state == before, "a constant draws nothing"


@pytest.mark.parametrize(
    ("text", "law", "other"),
    [
        ("exponential(20)", stats.expon(scale=20), stats.expon(scale=24)),
        (
            "lognormal(100,0.5)",
            stats.lognorm(0.5, scale=100),
            stats.lognorm(0.5, scale=math.exp(math.log(100) + 0.125)),
        ),
        ("lognormal(100,0.5)", stats.lognorm(0.5, scale=100), stats.lognorm(0.6, scale=100)),
    ],
)
def test_random_delays_have_the_law_that_is_written(text: str, law: Any, other: Any) -> None:
    """Kolmogorov and Smirnov's test on 20 000 delays; a mean in the median's place would be caught."""
    delay, rng = parse_delay(text), np.random.default_rng(1)
    draws = [delay.rounds(rng) for _ in range(20_000)]
    assert stats.kstest(draws, law.cdf).pvalue > FAILURE
    assert stats.kstest(draws, other.cdf).pvalue < FAILURE


def test_a_kind_without_a_branch_is_an_error_and_not_a_number() -> None:
    with pytest.raises(ValueError, match="no branch draws from a delay of this kind"):
        Delay(7, 1.0, 0.0).rounds(np.random.default_rng(0))
