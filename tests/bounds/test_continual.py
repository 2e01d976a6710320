"""Tossou & Dimitrakakis 2016: each theorem on a value computed here by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bound_cases import PI2, TWO, value

from dpbandits.bounds import Problem, continual


def test_tossou_theorem_3_2_printed() -> None:
    problem = Problem.bernoulli([0.9, 0.6, 0.7], 10**5, epsilon=1.0)
    log = math.log(10**5)

    def at(share: float) -> float:
        b = math.sqrt(8) * math.log(4 * 1e20) / (1 - share)
        return sum(max(b * (math.log(b) + 7), 8 * log / (share**2 * gap)) for gap in (0.3, 0.2))

    by_hand = min(at(share) for share in np.linspace(0.001, 0.999, 200_001)) + (1 + 2 * PI2 / 3) * 0.5
    assert value(continual.dp_ucb_bound_printed(problem)) == pytest.approx(by_hand, rel=1e-5)


def test_tossou_theorem_3_2_corrected_by_counting() -> None:
    """The least count beyond which both conditions of the proof hold for ever, at the best of many lambdas."""
    gap, epsilon, log = 0.3, 1.0, math.log(10**5)
    n = np.arange(1.0, 200_001)
    noise = math.sqrt(8) / (epsilon / 2) * math.log(4e20) * (np.log2(n) + 1) / n
    best = math.inf
    for share in np.linspace(0.05, 0.6, 1101):
        fails = ((1 - share) * gap < 2 * noise) | (share * gap < 2 * np.sqrt(2 * log / n))
        best = min(best, float(n[np.flatnonzero(fails)[-1]]))
    bound = value(continual.dp_ucb_bound(Problem.bernoulli([0.9, 0.6], 10**5, epsilon=epsilon)))
    assert bound == pytest.approx(gap * (best + 1 + 2 * PI2 / 3), rel=2e-3)
    assert bound > value(continual.dp_ucb_bound_printed(Problem.bernoulli([0.9, 0.6], 10**5, epsilon=epsilon)))


def test_tossou_theorem_3_3() -> None:
    log = math.log(10**5)
    c = 56 * (2 + math.sqrt(3.5)) * math.sqrt(log)
    zeta = 2.612375348685488
    by_hand = 0.3 * (c * (math.log(c) + 7)) ** 2 + 0.3 * (1 + 4 * zeta)
    printed, split = continual.dp_ucb_printed, continual.dp_ucb
    assert value(printed(Problem.bernoulli([0.9, 0.6], 10**5, epsilon=1.0))) == pytest.approx(by_hand)
    assert value(split(Problem.bernoulli([0.9, 0.6], 10**5, epsilon=2.0))) == pytest.approx(by_hand)
    loose = 8 * log / 0.3 + 0.3 * (1 + 4 * zeta)
    assert value(continual.dp_ucb(Problem.bernoulli([0.9, 0.6], 10**5, epsilon=1e9))) == pytest.approx(loose)


@pytest.mark.parametrize(("schedule", "first"), [("y", 46), ("x", 124), ("constant", 253)])
def test_tossou_theorem_3_5(schedule: str, first: int) -> None:
    by_hand = 0.3 * (first + 8 * math.log(10**5) / 0.09 + 1 + 4 * 2.612375348685488)
    problem = Problem.bernoulli([0.9, 0.6], 10**5, epsilon=1.0)
    bound = continual.dp_ucb_int(problem, schedule=schedule)
    assert bound.claimed == pytest.approx(by_hand)
    assert bound.value is None
    assert np.isnan(bound.at([10**5])).all()
    assert "epsilon must be at most 1" in continual.dp_ucb_int(TWO).holds
