"""Arms from what people write: lists, arrays, names, distributions, texts, logs; and what is refused."""

from __future__ import annotations

import json
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpbandits.environments import PROBLEMS, Arms, Bernoulli, Levels, Mixed, parse_arms
from dpbandits.environments.distributions import Beta, Choice, Coin, Distribution, Normal, Uniform
from dpbandits.errors import InputError

TWO = (Coin(0.9), Coin(0.6))


@pytest.mark.parametrize(
    "given",
    [
        [0.9, 0.6],
        (0.9, 0.6),
        np.array([0.9, 0.6]),
        [np.float64(0.9), 0.6],
        [Coin(0.9), 0.6],
        "0.9,0.6",
        " 0.9 , 0.6 ",
        "bernoulli(0.9)+bernoulli(0.6)",
        Arms.of([0.9, 0.6]),
    ],
    ids=str,
)
def test_two_coins_are_two_coins_however_they_are_written(given: Any) -> None:
    arms = Arms.of(given)
    assert arms == Arms.of("0.9,0.6")
    assert arms.distributions == TWO
    assert arms.names == ("0", "1")
    assert not arms.named
    assert arms.means == (0.9, 0.6)
    assert (arms.binary, arms.support, len(arms)) == (True, (0.0, 1.0), 2)
    assert arms.digest() == Arms.of("0.9,0.6").digest()
    assert parse_arms(arms.text) == arms


@pytest.mark.parametrize("kind", [dict, OrderedDict])
def test_a_mapping_gives_names(kind: type[dict[Any, Any]]) -> None:
    arms = Arms.of(kind([("red", 0.9), ("green", Beta(4, 1)), (3, 0.5)]))
    assert arms.names == ("red", "green", "3")
    assert arms.named
    assert arms.distributions == (Coin(0.9), Beta(4, 1), Coin(0.5))
    record = json.loads(json.dumps(arms.to_json()))
    assert record == {"text": "bernoulli(0.9)+beta(4,1)+bernoulli(0.5)", "names": ["red", "green", "3"]}
    assert Arms.from_json(record) == arms
    assert arms != Arms.of([0.9, Beta(4, 1), 0.5]), "names are part of the arms"
    assert arms.digest() == Arms.of([0.9, Beta(4, 1), 0.5]).digest(), "and no part of what they pay"


def test_distributions_are_arms() -> None:
    given = [Coin(0.5), Beta(4, 1), Uniform(-1, 3), Normal(0.25, 2), Choice(np.array([0.4, 1.0]))]
    arms = Arms.of(given)
    assert arms.distributions == tuple(given)
    assert arms.text == "bernoulli(0.5)+beta(4,1)+uniform(-1,3)+normal(0.25,2)+choice(0.4,1)"
    assert Arms.of(arms.text) == arms
    assert arms.means == (0.5, 0.8, 1.0, 0.25, 0.7)
    assert arms.support == (-np.inf, np.inf)
    assert not arms.binary
    assert not arms.within(-100, 100)
    assert list(arms) == given


@pytest.mark.parametrize("number", [0.1, 1 / 3, 1e-17, 0.7500000000000001, 1 - 2**-53])
def test_means_survive_their_text(number: float) -> None:
    assert Arms.of(Arms.of([number, 0.5]).text).means == (number, 0.5)


def test_the_digest_is_of_what_every_arm_pays() -> None:
    texts = ["0.9,0.6", "0.9,0.5", "0.6,0.9", "0.9,0.6,0.6", "beta(9,1)+bernoulli(0.6)", "choice(1,2)+choice(3)"]
    texts += ["choice(1)+choice(2,3)", "bernoulli(0.9)+choice(0.6)"]
    assert len({Arms.of(text).digest() for text in texts}) == len(texts)


def test_counts_repeat_an_arm() -> None:
    assert Arms.of("2*beta(4,1)+ 3 * bernoulli(0.5)").means == (0.8, 0.8, 0.5, 0.5, 0.5)


@pytest.mark.parametrize("name", PROBLEMS)
def test_problems_of_the_papers_are_arms(name: str) -> None:
    arms = Arms.of(f"@{name}")
    assert arms == Arms.of(PROBLEMS[name])
    assert arms.text == f"@{name}"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (0.9, "arms must be means such as [0.9, 0.8] or a text such as '0.9,0.8', got 0.9"),
        (None, "arms must be means such as [0.9, 0.8] or a text such as '0.9,0.8', got None"),
        ({0.9, 0.6}, "arms must be means such as"),
        ([], "arms must be at least two, got none"),
        ([0.9], "arms must be at least two, got one: '0.9'"),
        ("0.9", "arms must be at least two, got one: '0.9'"),
        ({"a": 0.9}, "arms must be at least two, got one"),
        ([0.9, "0.6"], "arms must be means or distributions, got '0.6'"),
        ([0.9, True], "arms must be means or distributions, got True"),
        ([0.9, None], "arms must be means or distributions, got None"),
        ([0.9, float("nan")], "arms must be means or distributions, got nan"),
        ([0.9, [0.6]], "arms must be means or distributions, got a list: give rewards as a data frame, or a file"),
        (np.array([[0.9, 0.6]]), "arms must be means or distributions, got"),
        ([0.9, 1.2], "arms: the mean of a bernoulli arm must be in [0, 1], got 1.2"),
        ([0.9, -0.1], "arms: the mean of a bernoulli arm must be in [0, 1], got -0.1"),
        ({1: 0.9, "1": 0.6}, "arms must have different names, got 1, 1"),
        ("0.9,0.8;0.7", "arms: cannot read '0.8;0.7' at character 5 of '0.9,0.8;0.7'"),
        ("0.9,,0.7", "arms: cannot read '' at character 5"),
        ("", "arms: cannot read '' at character 1"),
        ("beta(4,1)-beta(1,4)", "arms: expected '+' at character 10"),
        ("beta(4,1)+", "arms: cannot read '' at character 11"),
        ("beta(4)+beta(1,4)", "arms: beta takes 2 parameters, got 1 in 'beta(4)'"),
        ("beta(4,x)+beta(1,4)", "arms: cannot read 'x' at character 8"),
        ("beta(0,1)+beta(1,4)", "arms: the parameters of a beta arm must be positive and finite, got beta(0,1)"),
        ("uniform(2,1)+beta(1,4)", "arms: a uniform arm needs low < high, both finite, got uniform(2,1)"),
        ("normal(0,0)+beta(1,4)", "arms: a normal arm needs a finite mean and a positive sd, got normal(0,0)"),
        ("choice(1,inf)+beta(1,4)", "arms: a choice arm needs at least one value, all finite, got"),
        ("gama(1,2)+beta(1,4)", "arms: distribution 'gama' is unknown"),
        ("@azize2022-c9", "arms: problem 'azize2022-c9' is unknown: did you mean azize2022-c"),
        ("replay(nowhere.csv)", "arms: no file 'nowhere.csv'"),
    ],
)
def test_what_are_no_arms_is_refused(given: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Arms.of(given)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_arms_of_a_log_have_its_names_in_natural_order(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("arm,reward\nb,0\n10,1\n9,0.5\na,0.25\n10,0\n")
    arms = Arms.of(f"replay({log})")
    assert arms.names == ("9", "10", "a", "b")
    assert arms.means == (0.5, 0.5, 0.25, 0.0)
    assert arms.log is not None
    assert arms.to_json() == {"text": f"replay({log})", "log": arms.log.digest()}
    assert Arms.from_json(arms.to_json()) == arms


def test_the_environment_is_the_quick_one_where_it_may_be() -> None:
    coins, mixed = Arms.of("choice(0,1,1,1)+bernoulli(0.5)"), Arms.of("0.9,0.6")
    assert isinstance(coins.environment(), Bernoulli)
    assert coins.environment().means.tolist() == [0.75, 0.5]
    assert isinstance(mixed.environment(reward_range=(0.0, 1.0)), Bernoulli)
    assert isinstance(mixed.environment(reward_range=(0.0, 2.0)), Mixed)
    assert isinstance(Arms.of("beta(1,1)+bernoulli(0.5)").environment(), Mixed)
    users = mixed.environment(Levels.of([0, 1])).population
    assert users.values.tolist() == [0.0, 1.0]  # type: ignore[attr-defined]


def test_a_range_clips_rewards_and_keeps_means_in_their_unit() -> None:
    environment = Arms.of("choice(-1,3)+uniform(0,2)").environment(reward_range=(0.0, 2.0))
    assert environment.means.tolist() == [1.0, 1.0]
    assert environment.unit_means.tolist() == [0.5, 0.5]
    rng = np.random.default_rng(0)
    assert {environment.draw(0, rng) for _ in range(50)} == {0.0, 1.0}
    assert all(0.0 <= environment.draw(1, rng) <= 1.0 for _ in range(50))


@pytest.mark.parametrize("law", [Beta(1.0, 1.0), Beta(2.0, 3.0), Uniform(0.0, 1.0), Normal(0.5, 0.1)])
@pytest.mark.parametrize("ends", [(0.0, 1.0 + 2.0**-52), (-(2.0**-60), 1.0), (0.0, 1.0 - 2.0**-53)])
def test_a_range_that_ends_next_to_a_reward_is_integrated_without_a_warning(
    law: Distribution, ends: tuple[float, float]
) -> None:
    assert law.clipped_mean(*ends) == pytest.approx(law.clipped_mean(0.0, 1.0), rel=1e-12)
    assert law.sigmoid_mean(*ends) == pytest.approx(law.sigmoid_mean(0.0, 1.0), rel=1e-12)


def test_in_a_narrow_range_a_reward_is_clipped_to_one_of_its_ends() -> None:
    law = Beta(2.0, 3.0)
    assert law.clipped_mean(0.5, 0.5 + 1e-13) == pytest.approx(law.above(0.5), rel=1e-9)


class Three(Uniform):
    """Three parameters, where compiled code takes two."""

    @property
    def parameters(self) -> tuple[float, ...]:
        return (0.1, 0.2, 0.9)


def test_a_distribution_of_three_parameters_is_refused() -> None:
    with pytest.raises(InputError, match="a distribution has at most 2 parameters, got 3 of uniform"):
        Mixed.start([Three(0.0, 1.0), Uniform(0.0, 1.0)])
