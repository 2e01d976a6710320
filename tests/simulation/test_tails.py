"""The tail of the regret: which runs are disasters, and where none is possible."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpbandits as dp
from dpbandits.simulation.tails import may_fail, tail_of


@pytest.mark.parametrize(
    ("median", "worst", "possible"),
    [(1.0, 10.0, False), (1.0, 10.1, True), (1.0, math.inf, True), (0.0, 10.0, False)],
)
def test_a_disaster_is_possible_where_a_run_can_lose_more_than_ten_times_the_median(
    median: float, worst: float, possible: bool
) -> None:
    assert may_fail(median, worst) is possible
    values = np.full(20, median)
    assert tail_of(values, worst).disasters_in_percent == ("0 %" if possible else "–")


def test_no_run_is_a_disaster_where_half_of_them_lose_nothing() -> None:
    tail = tail_of(np.array([0.0] * 6 + [1.0] * 4), worst=100.0)
    assert tail.disasters == 0.0
    assert str(tail).endswith("; half of the runs lose nothing")


def test_a_simulation_says_where_no_disaster_is_possible() -> None:
    """Two arms that can hardly be told apart: every run loses about half of what it can lose."""
    trace = dp.simulate("ldp-imed-b", arms=[0.036, 0.03], epsilon=1, horizon=1000, runs=10, seed=0)
    assert trace.tail.worst == pytest.approx(6.0)
    assert "no run can lose more than 10 times the median" in str(trace.tail)
    assert trace.to_json()["final"]["tail"]["disaster_possible"] is False
    assert dp.simulate("imed", arms=[0.9, 0.1], horizon=10_000, runs=10, seed=0).tail.may_fail


def test_what_is_not_known_is_null_in_json() -> None:
    assert tail_of(np.ones(3)).to_json()["worst"] is None
