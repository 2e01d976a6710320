"""What the skipping agents rely on: every stint stands while its line says so, and curators foresee their evidence."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from dpbandits.agents import LikelihoodIMED, skip_ahead
from dpbandits.curators import BinnedBernoulli, LocalPiecewise, Plain, RunningSum, WeightedBernoulli, WeightedLaplace
from dpbandits.environments import Arms, Bernoulli, parse_levels
from dpbandits.environments.population import users_of
from dpbandits.numerics import kl, kl_lower, kl_lower_near
from dpbandits.parts import in_plain_python
from dpbandits.policies import lookup
from dpbandits.policies.policy import Parts, published
from dpbandits.protocols import NO_LINE
from dpbandits.simulation import simulate

PROBLEMS = {
    "clicks": "0.036,0.03,0.03,0.03,0.03",
    "equal": "0.5,0.5",
    "two best": "0.9,0.9,0.1",
    "sure": "1,0,0.5",
    "nothing": "0,0,0",
}
LEVELS = ["choice(0,0.2,1,2,100)", "choice(1,1.01,5)", "clipped_normal(1,1,4)"]  # apart, two in one bin, continuous


def skips(name: str) -> bool:
    policy = lookup.sample(name)
    return skip_ahead(policy.agent, policy.curator) is not policy.agent


@pytest.mark.parametrize("before", [1, 5000])
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", [name for name in lookup.names() if skips(name)])
def test_a_stint_stands_while_the_mean_is_above_its_line(name: str, problem: str, before: int) -> None:
    """The agent itself is asked in each of 400 rounds, after each arm was played ``before`` times."""
    levels = parse_levels(LEVELS[len(problem) % 3]) if lookup.traits(name).levels else None
    environment: Any = Arms.of(PROBLEMS[problem]).environment(levels)
    arms, rng = len(environment.means), np.random.default_rng(before)
    policy = lookup.sample(name, arms=arms, horizon=10**6)
    for arm in range(arms):
        policy.curator.absorb(environment, arm, before, NO_LINE, rng, rng)
    curator: Any = in_plain_python(policy.curator)
    agent: Any = in_plain_python(policy.agent)
    skipping: Any = in_plain_python(skip_ahead(policy.fresh().agent, policy.curator))
    chosen, end, line = 0, 0, NO_LINE
    for t in range(arms * before + 1, arms * before + 401):
        if t >= end or (line > NO_LINE and curator.mean(chosen) <= line):
            chosen, stint, line = skipping.act(curator, t, rng)
            end = t + stint
        assert agent.act(curator, t, rng)[0] == chosen, t
        curator.absorb(environment, chosen, 1, NO_LINE, rng, rng)


CURATORS: dict[str, Callable[[], Any]] = {
    "binned": lambda: BinnedBernoulli.start(1),
    "weighted": lambda: WeightedBernoulli.start(1),
    "laplace": lambda: WeightedLaplace.start(1),
    "piecewise": lambda: LocalPiecewise.start(1, epsilon=2.0),
    "piecewise, little noise": lambda: LocalPiecewise.start(1, epsilon=12.0),
}


@pytest.mark.parametrize("name", CURATORS)
def test_evidence_is_what_the_curator_foresaw(name: str) -> None:
    """200 times: no steeper than it said, and within the budget for as long as the mean is above the line."""
    rng, lasted = np.random.default_rng(1), 0
    for trial in range(200):
        environment, curator = Bernoulli.start([rng.random() ** 2], users_of(parse_levels(LEVELS[0]))), CURATORS[name]()
        curator.absorb(environment, 0, int(10 ** rng.uniform(1.5, 4)), NO_LINE, rng, rng)
        mean = curator.mean(0)
        top = mean + (0.999 - mean) * rng.random() ** 3
        points = [mean + (top - mean) * k / 50 for k in range(51)]
        misfits = [curator.misfit(0, point) for point in points]
        evidence, step = misfits[50] - misfits[0], (top - mean) / 50
        steepest = max(right - left for left, right in pairwise(misfits))
        assert steepest <= curator.steepness(0, top) * step + 1e-9
        assert curator.steepness(0, top) * step <= 3 * steepest + 1e-9  # and it does not say much more
        ahead, budget = int(rng.integers(2, 50)), evidence + rng.exponential()
        line = curator.lower(0, top, evidence, budget, ahead)
        for _ in range(ahead):
            curator.absorb(environment, 0, 1, NO_LINE, rng, rng)
            mean = curator.mean(0)
            if mean <= line:
                break
            lasted += 1
            assert mean >= top or curator.misfit(0, top) - curator.misfit(0, mean) <= budget + 1e-9, trial
    assert lasted > 500


class OwnLikelihood(Plain):
    """A user's curator that is a ``protocols.Likelihood``, and no more."""

    __slots__ = ()

    def misfit(self, arm: int, mean: float) -> float:
        off = mean - self.mean(arm)
        return 2.0 * self.counts[arm] * off * off


@published("nobody yet")
def own_likelihood(arms: int) -> Parts:
    """IMED on a likelihood of one's own.

    Reference: none.
    Guarantee: none.
    """
    return Parts(LikelihoodIMED.start(arms), OwnLikelihood.start(arms))


@published("nobody yet")
def likelihood_of_running_sums(arms: int, *, epsilon: float) -> Parts:
    """IMED on a likelihood that foresees nothing.

    Reference: none.
    Guarantee: epsilon-DP.
    """
    return Parts(LikelihoodIMED.start(arms), RunningSum.start(arms, epsilon=epsilon))


@pytest.mark.parametrize(("policy", "more"), [(own_likelihood, {}), (likelihood_of_running_sums, {"epsilon": 1.0})])
def test_a_likelihood_that_foresees_nothing_is_played_round_by_round(policy: Any, more: dict[str, float]) -> None:
    made = policy(2, **more)
    assert skip_ahead(made.agent, made.curator) is made.agent
    settings: dict[str, Any] = {"arms": "0.9,0.6", "horizon": 300, "runs": 2, **more}
    compiled, plain = (simulate(policy, engine=engine, **settings) for engine in ("compiled", "python"))
    assert np.array_equal(compiled.pulls, plain.pulls)


def test_bins_that_several_attenuations_share_foresee_nothing() -> None:
    curator, rng = BinnedBernoulli.start(1), np.random.default_rng(0)
    for levels, sure in ((LEVELS[0], True), (LEVELS[1], False), (LEVELS[2], False)):
        curator.absorb(Bernoulli.start([0.3], users_of(parse_levels(levels))), 0, 100, NO_LINE, rng, rng)
        assert (curator.lower(0, 0.5, 1.0, 2.0, 4) < math.inf) is sure


def test_the_nearby_root_is_not_below_the_root() -> None:
    """It is close to the root where the divergence is close to the budget, and q where the budget is smaller."""
    rng = np.random.default_rng(0)
    for _ in range(2000):
        p, q = np.sort(rng.random(2)).tolist()
        divergence = kl(p, q)
        budget = divergence * (1.0 + 10 ** rng.uniform(-6, 1))
        root, near = kl_lower(q, budget), kl_lower_near(p, q, divergence, budget)
        assert root - 1e-9 <= near <= q
        if budget < 1.01 * divergence:
            assert near - root <= 0.1 * (p - root) + 1e-9
        assert kl_lower_near(p, q, divergence, 0.99 * divergence) == q
