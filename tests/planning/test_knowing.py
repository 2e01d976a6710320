"""How many users a test needs: the plan says so, for each trust model, and what no test can do without."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from dpbandits.errors import InputError
from dpbandits.planning import ask
from dpbandits.planning.knowing import know


def test_a_shorter_horizon_does_not_change_what_a_test_needs() -> None:
    short, long = (know(ask("0.9,0.6", horizon=horizon), "central", 1.0) for horizon in (50, 10**6))
    assert short is not None
    assert long is not None
    assert short.users == long.users
    assert short.policy == "dp-tt"
    assert short.ended == long.ended == short.runs == 100
    assert short.at_least is not None
    assert short.mean is not None
    assert short.at_least <= short.mean <= short.users  # type: ignore[operator]


def test_more_confidence_less_epsilon_and_refusals_need_more_users() -> None:
    def users(trust: str, epsilon: float, **given: object) -> float:
        found = know(ask("0.9,0.6", horizon=1000, **given), trust, epsilon)  # type: ignore[arg-type]
        assert found is not None
        assert found.mean is not None
        return found.mean

    plain = users("central", 1.0)
    assert users("central", 1.0, confidence="99.9%") > plain
    assert users("central", 0.05) > plain
    assert users("central", 1.0, refuse="50%") == 2.0 * plain
    assert users("local", 1.0) > plain


def test_arms_that_no_test_can_tell_apart_in_time() -> None:
    found = know(ask("uniform(0,1)+uniform(0,0.9999)", horizon=1000, runs=2), "central", 1.0)
    assert found is not None
    assert found.users is None
    assert found.at_least is None


def test_confidence_is_checked() -> None:
    for wrong in (0.0, 1.0, "100%", -1, 95):
        with pytest.raises(InputError, match="confidence"):
            ask("0.9,0.6", horizon=1000, confidence=wrong)


def test_the_command_says_how_many_users(dpbandits: Callable[..., tuple[int, str, str]]) -> None:
    words = ("plan", "--arms", "0.9,0.6", "--horizon", "2000", "--epsilon", "1", "--runs", "4", "--policy", "dp-tt")
    status, out, _ = dpbandits(*words, "--confidence", "90%", "--json")
    assert status == 0
    found = json.loads(out)
    test = found["to_know"]["central"]
    assert test["policy"] == "dp-tt"
    assert test["confidence"] == 0.9
    assert test["wrong"] <= 25  # 10 % of 100 runs are allowed; more than 25 come with probability below 1e-5
    (sentence,) = [one for one in found["answers"] if "best arm is known" in one]
    about = float(f"{test['users']:.2g}")
    assert f"needs about {about:,.0f} users in 19 of 20 cases" in sentence
    assert "No private test needs fewer than" in sentence
