"""Verdicts: what is clear, what is not, and what the print leaves open."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from dpbandits.experiments.claims import (
    NOT_REPRODUCED,
    REPRODUCED,
    UNDECIDED,
    Claim,
    Estimate,
    below,
    compare,
    mean,
    orderings,
    printed_ratio,
    ratio,
    regret,
    together,
)
from dpbandits.simulation import Trace, simulate

CLAIM = Claim("c", "statement", "page 1", "measured", "tolerance")
KNOWN = dataclasses.replace(CLAIM, known="because")


@pytest.fixture(scope="module")
def slow() -> Trace:
    return simulate("ldp-ucb-b", arms="0.9,0.6", epsilon=1, horizon=20_000, runs=20, checkpoints=40)


@pytest.fixture(scope="module")
def fast() -> Trace:
    return simulate("ucb1", arms="0.9,0.6", horizon=20_000, runs=20, checkpoints=40)


def test_few_runs_widen_the_margin() -> None:
    rng = np.random.default_rng(0)
    wrong = dict.fromkeys((3, 30), 0)
    for runs in wrong:
        for _ in range(4000):
            ours = mean(rng.standard_normal(runs))
            wrong[runs] += abs(ours.value) > ours.margin
    # 0.27 % of 4000 is 10.8; more than 30 has probability below 1e-6
    assert all(1 <= count <= 30 for count in wrong.values())


def test_one_run_decides_nothing() -> None:
    assert compare(mean(np.array([1.0])), Estimate(100.0, 0.0)) == UNDECIDED


def test_together() -> None:
    assert together([REPRODUCED, UNDECIDED, NOT_REPRODUCED]) == NOT_REPRODUCED
    assert together([REPRODUCED, UNDECIDED]) == UNDECIDED
    assert together([REPRODUCED]) == REPRODUCED


def test_ratio_error_agrees_with_resampling() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(10, 1, (20_000, 25)), rng.normal(5, 1, (20_000, 25))
    estimated = ratio(mean(a[0]), mean(b[0])).error
    assert math.isclose(estimated, float((a.mean(axis=1) / b.mean(axis=1)).std()), rel_tol=0.5)


def test_an_ordering_fails_where_one_pair_does() -> None:
    good, bad = (Estimate(1, 0.1), Estimate(2, 0.1)), (Estimate(2, 0.1), Estimate(1, 0.1))
    assert orderings(CLAIM, {"x": good}).verdict == REPRODUCED
    found = orderings(CLAIM, {"x": good, "y": bad})
    assert found.verdict == NOT_REPRODUCED
    assert "y" in found.ours
    assert "1 of 2 hold" in found.ours
    assert found.fails
    assert not orderings(KNOWN, {"x": bad}).fails


def test_below() -> None:
    assert below(CLAIM, {"x": (Estimate(1, 0.1), 2.0)}).verdict == REPRODUCED
    assert below(CLAIM, {"x": (Estimate(1.9, 0.1), 2.0)}).verdict == UNDECIDED
    assert below(CLAIM, {"x": (Estimate(3, 0.1), 2.0)}).verdict == NOT_REPRODUCED


def test_printed_ratio(slow: Trace, fast: Trace) -> None:
    ours = ratio(regret(slow), regret(fast)).value
    early = ratio(regret(slow, 500), regret(fast, 500)).value
    assert ours > early + 1
    assert printed_ratio(CLAIM, slow, fast, ours, 0.1, 20, True).verdict == REPRODUCED
    assert printed_ratio(CLAIM, slow, fast, early, 0.01, 20, True).verdict == UNDECIDED
    assert printed_ratio(CLAIM, slow, fast, 50.0, 1.0, 20, True).verdict == NOT_REPRODUCED
    assert printed_ratio(CLAIM, slow, fast, ours, 0.1, 20, False).verdict == UNDECIDED
