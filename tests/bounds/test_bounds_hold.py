"""Bounds and measured regret: the law that compares them can fail, and lower bounds are below what policies lose."""

from __future__ import annotations

import math
from typing import NamedTuple

import pytest

import dpbandits as dp
from dpbandits.bounds import theorems
from dpbandits.curators import Batch
from dpbandits.experiments.theorems import below_theorem
from dpbandits.policies import lookup
from dpbandits.policies.policy import Parts, published
from dpbandits.protocols import NO_LINE, Releases
from dpbandits.testing import Case
from dpbandits.testing.playing import on_proven_ground, proven_bounds, regret_is_below_the_bounds
from dpbandits.types import Rng

PROVEN = sorted(
    {*lookup.names()}
    & {
        p
        for one in theorems()
        if one.statement.kind == "upper" and one.statement.checked
        for p in one.statement.policies
    }
)


@pytest.mark.parametrize("name", PROVEN)
def test_the_law_has_something_to_say_about(name: str) -> None:
    """Every policy with a proof is played where the proof holds, so that the law can see it."""
    trace = on_proven_ground(Case(lookup.find(name)), horizon=1000, runs=1)
    found = [bound for bound in trace.bounds() if bound.kind == "upper" and bound.checked and bound.value is not None]
    assert found
    assert [bound.name for bound in proven_bounds(trace)] == [bound.name for bound in found if bound.rate is None]


def test_policies_with_a_proof_are_found() -> None:
    assert {"adac-ucb", "adap-ucb", "ldp-ucb-ls", "heldp-ucb-b"} <= {*PROVEN}


class Turns(NamedTuple):
    """An agent that learns nothing: every arm in turn."""

    arms: int

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        return t % self.arms, 1, NO_LINE


@published("nobody")
def adap_ucb(arms: int, *, epsilon: float, alpha: float = 3.1) -> Parts:
    """A policy that learns nothing, under the name of one that has a theorem."""
    return Parts(Turns(arms), Batch.start(arms, epsilon=epsilon))


@published("nobody")
def dp_klucb(arms: int, *, epsilon: float) -> Parts:
    """The same under the name of a policy whose theorem is on the limit of regret / log T."""
    return Parts(Turns(arms), Batch.start(arms, epsilon=epsilon))


def test_the_law_can_fail() -> None:
    with pytest.raises(AssertionError, match="exceeds adap-ucb"):
        regret_is_below_the_bounds(Case(adap_ucb))


def test_no_measured_regret_contradicts_a_limit() -> None:
    trace = dp.simulate(dp_klucb, arms="0.9,0.6,0.4", epsilon=1.0, horizon=20_000, runs=1, checkpoints=1)
    (bound,) = [one for one in trace.bounds() if one.kind == "upper"]
    assert bound.checked
    assert bound.value is not None
    assert trace.final_regret.mean() > 10 * bound.value
    regret_is_below_the_bounds(Case(dp_klucb))
    with pytest.raises(ValueError, match="dp-klucb is about the limit of regret / log T"):
        below_theorem("turns", trace, "dp-klucb")


@pytest.mark.parametrize(
    ("name", "arms", "epsilon", "horizon"),
    [
        ("adap-ucb", "@azize2022-c2", 1.0, 10**7),
        ("adap-klucb", "@azize2022-c2", 1.0, 10**7),
        ("adap-klucb", "@azize2022-fig3", 0.05, 10**7),
        ("adap-imed", "@azize2022-c1", 0.25, 10**7),
        ("dp-se", "@azize2022-c4", 0.5, 10**7),
        ("ldp-ucb-b", "@azize2022-c2", 1.0, 10**7),
        ("ldp-ucb-l", "0.9,0.6", 0.5, 10**6),
        ("ucb1", "@azize2022-c2", None, 10**7),
    ],
)
def test_lower_bounds_are_below_what_good_policies_lose(
    name: str, arms: str, epsilon: float | None, horizon: int
) -> None:
    """10 runs; a policy whose regret is the bound is refused with probability below 1e-3, and these are far above."""
    trace = dp.simulate(name, arms=arms, epsilon=epsilon, horizon=horizon, runs=10, checkpoints=1)
    lowers = [bound for bound in trace.bounds() if bound.kind == "lower"]
    assert len(lowers) >= 1
    for bound in lowers:
        assert bound.scope == "this problem"
        assert bound.value is not None
        assert math.isfinite(bound.value)
        assert bound.value <= trace.final_regret.mean() + 5.0 * trace.stderr[-1], bound
