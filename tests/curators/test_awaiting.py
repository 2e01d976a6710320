"""What an agent sees while responses are on their way."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpbandits.curators import Batch, HeterogeneousBernoulli, LocalLaplace, Plain
from dpbandits.curators.awaiting import Awaiting, awaiting
from dpbandits.curators.rounds import OneByOne


def told() -> LocalLaplace:
    curator = LocalLaplace.start(2, epsilon=1.0)
    for arm in (0, 0, 1):
        curator.add(arm, 0.5, 0.0, np.random.default_rng(0))
    return curator


def test_decisions_that_are_out_count_as_samples_and_not_in_the_mean() -> None:
    curator, out = told(), np.array([3, 0])
    seen = awaiting(curator, out, 10.0)
    assert isinstance(seen, Awaiting)
    assert (seen.samples(0, 0), seen.samples(0, 2), seen.samples(1, 0)) == (5.0, 7.0, 1.0)
    assert seen.width(0, 1.0, 0) == curator.width(0, 1.0, 3) < curator.width(0, 1.0, 0)
    assert seen.width(1, 1.0, 0) == curator.width(1, 1.0, 0)
    assert (seen.mean(0), seen.lowest(0, 4)) == (curator.mean(0), curator.lowest(0, 4))
    assert [seen.ready(arm, 1.5) for arm in (0, 1)] == [True, False], "what is out makes no arm ready"
    out[0] = 0
    assert seen.samples(0, 0) == 2.0, "the count is looked at whenever it is asked for"


def test_without_a_window_nothing_that_is_out_counts() -> None:
    curator = told()
    assert awaiting(curator, np.array([3, 0]), math.inf) is curator


@pytest.mark.parametrize(
    ("curator", "counts"), [(Plain.start(2), True), (HeterogeneousBernoulli.start(2, epsilon_min=1.0), False)]
)
def test_a_curator_says_whether_what_is_out_can_be_counted(curator: Plain, counts: bool) -> None:
    seen = awaiting(curator, np.array([1, 1]), 10.0)
    assert (seen is not curator) == counts == curator.counts_ahead == OneByOne(curator).counts_ahead


class OwnLikelihood(Plain):
    """A user's likelihood, on a curator that counts what is out."""

    __slots__ = ()

    counts_ahead = False

    def evidence(self, arm: int, mean: float, top: float) -> float:
        return 2.0 * self.counts[arm] * (top - mean) ** 2


class OwnHelpers(Plain):
    """A user's curator with helpers whose names are those of a likelihood and of a bound."""

    __slots__ = ()

    def upper(self, text: str) -> str:
        return text.upper()

    def evidence(self) -> str:
        return "none"


def test_on_a_likelihood_nothing_that_is_out_counts() -> None:
    curator = OwnLikelihood.start(2)
    assert awaiting(curator, np.array([3, 0]), 10.0) is curator


def test_a_helper_that_is_called_like_a_bound_changes_nothing() -> None:
    curator = OwnHelpers.start(2)
    seen = awaiting(curator, np.array([3, 0]), 10.0)
    assert isinstance(seen, Awaiting)
    assert seen.samples(0, 0) == 3.0


def test_a_likelihood_that_counts_what_is_out_is_still_one() -> None:
    class Counted(OwnLikelihood):
        __slots__ = ()
        counts_ahead = True

    curator = Counted.start(2)
    curator.add(0, 0.5, 0.0, np.random.default_rng(0))
    seen: Any = awaiting(curator, np.array([3, 0]), 10.0)
    assert (seen.samples(0, 0), seen.evidence(0, 0.5, 1.0), seen.reaches(0, 0.5)) == (4.0, 0.5, True)


def test_whole_stints_do_not_change_while_they_are_open() -> None:
    curator, rng = Batch.start(2, epsilon=1.0), np.random.default_rng(0)
    curator.add(0, 1.0, 0.0, rng)
    curator.close(0, rng)
    seen = awaiting(curator, np.array([5, 0]), 10.0)
    assert seen.samples(0, 0) == curator.samples(0, 5) == 1.0
    assert seen is curator
