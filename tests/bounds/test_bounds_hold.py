"""Bounds and measured regret: the law that compares them can fail, and lower bounds are below what policies lose."""

from __future__ import annotations

import math
from typing import NamedTuple

import pytest

import dpbandits as dp
from dpbandits import policies
from dpbandits.curators import Batch
from dpbandits.experiments.theorems import below_theorem
from dpbandits.policies.policy import Parts, published
from dpbandits.protocols import NO_LINE, Releases
from dpbandits.testing import Case
from dpbandits.testing.playing import regret_is_below_the_bounds
from dpbandits.types import Rng

PROVEN = {
    "adac-ucb": "0.9,0.6",
    "adap-imed": "0.9,0.6",
    "adap-moss": "0.9,0.6",
    "adap-klucb": "0.9,0.6",
    "adap-ucb": "0.9,0.6",
    "dp-ucb-bound": "0.9,0.6",
    "heldp-ucb-b": "0.9,0.6",
    "heldp-ucb-l": "0.9,0.6",
    "ldp-ucb-b": "0.9,0.6",
    "ldp-ucb-bs": "normal(0.9,1)+normal(0.6,1)",
    "ldp-ucb-l": "0.9,0.6",
    "ldp-ucb-ls": "normal(0.9,1)+normal(0.6,1)",
}


@pytest.mark.parametrize("name", PROVEN)
def test_the_law_has_something_to_say_about(name: str) -> None:
    leveled = name.startswith("heldp")
    trace = dp.simulate(
        name,
        arms=PROVEN[name],
        horizon=1000,
        runs=1,
        epsilon=None if leveled else 1.0,
        levels="constant(1)" if leveled else None,
        options={"epsilon_min": 1.0} if leveled else {},
    )
    assert [one.name for one in trace.bounds() if one.kind == "upper" and one.checked and one.rate is None]


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


def test_every_policy_with_a_proof_is_covered() -> None:
    """A new proven bound of a policy of ours must come with arms on which the law sees it."""
    from dpbandits.bounds import Problem, theorems

    ours = {name.replace("_", "-") for name in policies.__all__}
    problem = Problem.bernoulli([0.9, 0.6], 1000, epsilon=1.0)
    proven = {
        policy
        for one in theorems()
        if one.statement.kind == "upper"
        and one.statement.checked
        and (one.about is not Problem or one(problem).rate is None)
        for policy in one.statement.policies
    }
    assert proven & ours == set(PROVEN)
