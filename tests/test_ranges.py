"""A range for rewards of unknown size, found privately."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import dpbandits as dp
from dpbandits import audit
from dpbandits.errors import InputError
from dpbandits.exact import RiggedNoise, ThresholdCurator
from dpbandits.ranges import RangeFinder, find_range


def played(finder: RangeFinder, rewards: np.ndarray[Any, Any], seed: int) -> tuple[float, float]:
    """The range that devices find whose noise is drawn from a seed."""
    rng = random.Random(seed)
    noise, devices = RiggedNoise(rng.randbytes), dict[float, ThresholdCurator]()
    while not finder.done:
        threshold = finder.ask()
        if threshold not in devices:
            devices[threshold] = ThresholdCurator(finder.epsilon, threshold, noise)
        finder.tell(devices[threshold].respond(float(rng.choice(rewards))))
    return finder.range


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ([100.0], (64.0, 128.0)),
        ([-3.0], (-4.0, -2.0)),
        ([0.0, 10.0], (-0.0009765625, 16.0)),
        ([5e9], (524288.0, 1048576.0)),
    ],
)
def test_without_noise_the_range_is_the_nearest_powers_of_two(rewards: list[float], expected: Any) -> None:
    assert played(RangeFinder("40", users=6000), np.array(rewards), 0) == expected


@pytest.mark.parametrize(("reward", "beyond"), [(5e9, True), (-5e9, True), (1e6, True), (5e5, False), (-5e5, False)])
def test_of_rewards_beyond_the_last_threshold_it_promises_nothing(reward: float, beyond: bool) -> None:
    """The last threshold, 2^20, is taken if no smaller one will do; nobody is asked whether it will."""
    finder = RangeFinder("40", users=6000)
    played(finder, np.array([reward]), 0)
    assert (finder.most_outside == 1.0) == beyond


def test_few_rewards_are_outside_as_it_says() -> None:
    """Over 200 finders, more than 5 % of misses would have a probability below 1e-6 if each misses with 1 %.

    The bound adds Hoeffding's error for all estimates at once, so that misses are far rarer than its 5 %.
    """
    rng = np.random.default_rng(1)
    for epsilon in ("0.5", "2"):
        misses = 0
        for seed in range(100):
            rewards = rng.normal(rng.uniform(-50, 50), rng.uniform(0.1, 20), 4000)
            finder = RangeFinder(epsilon, users=4000)
            low, high = played(finder, rewards, seed)
            misses += max((rewards > high).mean(), (rewards < low).mean()) > finder.most_outside
        assert misses <= 5


def test_what_a_device_sends_is_private_and_thresholds_are_public() -> None:
    verdict = audit.verify_curator(ThresholdCurator("1/3", 0.5), "1/3")
    assert verdict.verdict == "proved", verdict
    answers = {ThresholdCurator("1000", 20.0).respond(reward) for reward in (20.0, -1e308, float("nan"), None)}  # type: ignore[arg-type]
    assert answers == {0}
    assert ThresholdCurator("1000", 20.0).respond(20.5) == 1


def test_a_range_that_is_found_can_be_played() -> None:
    arms = "normal(22,3)+normal(20,3)"
    found = find_range(arms, epsilon=1, users=5000, seed=3)
    assert found.users <= 5000
    assert found.range == find_range(arms, epsilon=1, users=5000, seed=3).range
    trace = dp.simulate("ldp-imed-b", arms=arms, epsilon=1, horizon=20_000, reward_range=found.range, runs=5)
    worst = 2.0 * 20_000
    assert trace.final_regret.mean() < 0.2 * worst
    assert "rewards are first clipped to" in trace.guarantee.conditions


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"users": 3}, "users must be a whole number of at least 12"),
        ({"tail": 0.5}, "tail must be below 1/2"),
        ({"tail": 0}, "tail must be in"),
        ({"smallest": 8.0, "largest": 4.0}, "largest must be at least smallest"),
        ({"epsilon": 0}, "epsilon must be positive"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], message: str) -> None:
    asked = {"epsilon": "1", "users": 1000, **given}
    with pytest.raises(InputError, match=message):
        RangeFinder(asked.pop("epsilon"), **asked)


def test_answers_are_checked() -> None:
    finder = RangeFinder("1", users=1000)
    with pytest.raises(InputError, match="answer must be 0 or 1"):
        finder.tell(2)
    with pytest.raises(InputError, match="range is not known yet"):
        _ = finder.range
