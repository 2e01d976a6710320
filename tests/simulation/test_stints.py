"""What the skipping agents rely on: every stint stands while its line says so, and curators foresee their evidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from dpbandits.agents import IMED, KLUCB, UCB, CoveringUCB, LazyThompson, LazyUCB, LikelihoodIMED, skip_ahead
from dpbandits.curators import (
    Batch,
    BatchLikelihood,
    BinnedBernoulli,
    GaussianBatch,
    HeterogeneousBernoulli,
    Interval,
    Lazy,
    LocalBernoulli,
    LocalPiecewise,
    Plain,
    RunningSum,
    WeightedBernoulli,
    WeightedLaplace,
)
from dpbandits.curators.rounds import OneByOne
from dpbandits.environments import Arms, Bernoulli, parse_levels
from dpbandits.environments.levels import users_of
from dpbandits.mechanisms import attenuate
from dpbandits.numerics import kl, kl_lower, kl_lower_near
from dpbandits.parts import copied, in_plain_python
from dpbandits.policies import lookup
from dpbandits.policies.policy import Parts, published
from dpbandits.protocols import NO_LINE
from dpbandits.simulation import simulate
from dpbandits.simulation.loop import play

PROBLEMS = {
    "clicks": "0.036,0.03,0.03,0.03,0.03",
    "equal": "0.5,0.5",
    "two best": "0.9,0.9,0.1",
    "sure": "1,0,0.5",
    "nothing": "0,0,0",
}
LEVELS = ["choice(0,0.2,1,2,100)", "choice(1,1.01,5)", "clipped_normal(1,1,4)"]  # apart, two in one bin, continuous


def skips(name: str) -> bool:
    """Whether the policy's agent proves stints. ``LazyThompson`` draws them: test_skip_thompson.py."""
    policy = lookup.sample(name)
    proves = not isinstance(policy.agent, LazyThompson)
    return proves and skip_ahead(policy.agent, policy.curator) is not policy.agent


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


def assert_choices_of(agent: Any, curator: Any, means: Sequence[float] = (0.6, 0.5), rounds: int = 400) -> None:
    """On the same rewards, the agent that skips ahead chooses as the agent itself, in every round of 8 runs."""
    for seed in range(8):
        pulls = []
        for skipping in (True, False):
            made, kept = agent(), curator()
            pulls.append(np.zeros((rounds, 2), np.int64))
            streams = [np.random.default_rng([seed, stream]) for stream in range(3)]
            chosen = skip_ahead(made, kept) if skipping else made
            play(Bernoulli.start(means), OneByOne(kept), chosen, np.arange(1, rounds + 1), pulls[-1], *streams)
        assert np.array_equal(pulls[0], pulls[1]), seed


class Needy(Lazy):
    """A curator whose means can be bounded up to an exponent that grows with the rewards."""

    __slots__ = ()

    def ready(self, arm: int, exponent: float) -> bool:
        return self.counts[arm] > 0.5 * exponent


LAZY: dict[str, Callable[[], Any]] = {
    "plain": lambda: Plain.start(2),
    "local": lambda: LocalBernoulli.start(2, epsilon=1.0),
    "interval": lambda: Interval.start(2, epsilon=30.0, delta=1e-2, v=1.1, schedule="constant"),
    "needy": lambda: Needy.start(2, epsilon=1.0),
}


@pytest.mark.parametrize("name", LAZY)
@pytest.mark.parametrize("agent", [LazyUCB, CoveringUCB])
def test_lazy_agents_choose_as_they_do_when_asked_in_every_round(agent: Any, name: str) -> None:
    assert_choices_of(lambda: agent.start(2), LAZY[name])


def test_imed_chooses_as_when_asked_in_every_round_where_samples_jump() -> None:
    """Without a width for its noise, ``Interval`` releases the mean of 23 new rewards at once."""

    def curator() -> Interval:
        return Interval.start(2, epsilon=3.0, delta=1e-2, v=1.1, schedule="constant")

    assert_choices_of(lambda: IMED.start(2), curator, means=[0.5, 0.5], rounds=2000)


def test_imed_chooses_as_itself_where_the_evidence_against_a_rival_is_rounded() -> None:
    """Evidence against an arm with 10^11 samples is rounded by more than the margin of an arm with 10^8."""
    stints, arms = 0, 3
    for seed in range(400):
        rng = np.random.default_rng(seed)
        agent, curator = IMED.start(arms), Plain.start(arms)
        few, many, top, evidence = 10**8, 10**11, 0.3, 0.3
        explored = top - math.sqrt(0.42 * (evidence + math.log(many / few)) / few) + 1e-8 * rng.random()
        curator.counts[:] = (few, many, many // 2)
        curator.sums[:] = curator.counts * np.array([explored, top - math.sqrt(0.42 * evidence / many), top])
        skipping = skip_ahead(agent, curator)
        if skipping.act(curator, int(curator.counts.sum()) + 1, rng)[0] != 2:
            continue
        curator.counts[2], curator.sums[2] = 2 * many, 2 * many * (top + 1e-9 * rng.random())
        t = int(curator.counts.sum()) + 1
        arm, stint, line = skipping.act(curator, t, rng)
        if arm != 0 or stint < 2:
            continue
        curator.counts[0] += stint - 1
        curator.sums[0] = max(curator.sums[0], (line + 2e-15) * curator.counts[0])
        if curator.mean(0) > line:
            stints += 1
            assert agent.act(curator, t + stint - 1, rng)[0] == 0, seed
    assert stints > 30


def test_a_very_large_correction_is_no_error() -> None:
    curator = BinnedBernoulli.start(2)
    for arm, (ones, count) in enumerate(((148_719, 405_025), (5_514_941_607_277, 5_553_912_066_277))):
        curator.take(arm, float(ones), float(count - ones), 1.0)
    curator.apart[0] = 1
    agent = skip_ahead(LikelihoodIMED.start(2, correction=1e6), curator)
    assert agent.act(curator, 5_553_912_471_303, np.random.default_rng(0))[0] in (0, 1)


class NeedyLikelihood(WeightedBernoulli):
    """A likelihood whose means can be bounded up to an exponent that grows with the weight."""

    __slots__ = ()

    def ready(self, arm: int, exponent: float) -> bool:
        return self.weights[arm] > exponent


@pytest.mark.parametrize(("weight", "long"), [(8.0, False), (40.0, True)])
def test_a_stint_on_a_likelihood_ends_before_an_arm_must_be_explored(weight: float, long: bool) -> None:
    curator = NeedyLikelihood.start(2)
    curator.weights[:], curator.sums[:] = (1000.0, weight), (900.0, 0.0)
    arm, stint, _ = skip_ahead(LikelihoodIMED.start(2), curator).act(curator, 2900, np.random.default_rng(0))
    assert (arm, stint > 1) == (0, long)
    assert curator.ready(1, math.log(2900 + stint - 1))


def assert_every_response_is_seen(agent: Any, curator: Any, response: float, level: float, rounds: int) -> None:
    """The agent, and the one that skips ahead, choose as an agent that remembers nothing."""
    rng = np.random.default_rng(0)
    made, skipping = agent.start(2), skip_ahead(agent.start(2), curator)
    chosen = []
    for t in range(10**4, 10**4 + rounds):
        chosen.append(agent.start(2).act(curator, t, rng)[0])
        assert skipping.act(curator, t, rng)[0] == made.act(curator, t, rng)[0] == chosen[-1]
        curator.add(chosen[-1], response, level, rng)
    assert set(chosen) == {0, 1}


@pytest.mark.parametrize("agent", [IMED, KLUCB])
@pytest.mark.parametrize(
    ("kind", "response"), [(WeightedBernoulli, 0.0), (WeightedLaplace, -1e6), (BinnedBernoulli, 0.0)]
)
def test_a_response_that_weighs_next_to_nothing_is_seen(kind: Any, response: float, agent: Any) -> None:
    """A level of 1e-6 weighs about 1e-13, and 5000 plus that is 5000."""
    curator = kind.start(2)
    if kind is BinnedBernoulli:
        for arm, ones in ((0, 2500.0 + 1.03e-5), (1, 2500.0)):
            curator.take(arm, ones, 5000.0 - ones, 1.0)
    else:
        curator.weights[:], curator.sums[:] = 5000.0, (2500.0 + 1.03e-5, 2500.0)
    assert_every_response_is_seen(agent, curator, response, 1e-6, rounds=100)


@pytest.mark.parametrize("agent", [IMED, KLUCB])
def test_a_response_that_leaves_the_samples_as_they_were_is_seen(agent: Any) -> None:
    """One response of variance 1, then one of variance 3: n^2 / V is 1 both times."""
    level = 2.0 * math.atanh(1.0 / math.sqrt(3.0)) * (1.0 - 2.2e-16)
    rng, curator = np.random.default_rng(0), HeterogeneousBernoulli.start(2, epsilon_min=0.5)
    for arm in (0, 1):
        curator.add(arm, 1.0, 100.0, rng)
    assert_every_response_is_seen(agent, curator, 0.0, level, rounds=3)


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
        levels, curator = parse_levels(LEVELS[trial % 3]), CURATORS[name]()
        environment = Bernoulli.start([rng.random() ** 2], users_of(levels))
        curator.absorb(environment, 0, int(10 ** rng.uniform(1.5, 4)), NO_LINE, rng, rng)
        mean = curator.mean(0)
        top = mean + (0.999 - mean) * rng.random() ** 3
        points = [mean + (top - mean) * k / 50 for k in range(51)]
        against = [curator.evidence(0, mean, point) for point in points]
        evidence, step = against[50], (top - mean) / 50
        steepest = max(right - left for left, right in pairwise(against))
        assert steepest <= curator.steepness(0, top) * step + 1e-9
        assert curator.steepness(0, top) * step <= 3 * steepest + 1e-9  # and it does not say much more
        ahead, budget = int(rng.integers(2, 50)), evidence + rng.exponential()
        line = curator.lower(0, mean, top, evidence, budget, ahead)
        for _ in range(ahead):
            curator.absorb(environment, 0, 1, NO_LINE, rng, rng)
            mean = curator.mean(0)
            if mean <= line:
                break
            lasted += 1
            assert mean >= top or curator.evidence(0, mean, top) <= budget + 1e-9, trial
    assert lasted > 500


class OwnLikelihood(Plain):
    """A user's curator that is a ``protocols.Likelihood``, and no more."""

    __slots__ = ()

    def evidence(self, arm: int, mean: float, top: float) -> float:
        off = top - mean
        return 2.0 * self.counts[arm] * off * off


class OwnHelpers(OwnLikelihood):
    """The same, with helpers whose names are those of ``protocols.Foreseeable``."""

    __slots__ = ()

    def steepness(self) -> str:
        return "steep"

    def rise(self) -> str:
        return "up"

    def lower(self, text: str) -> str:
        return text.lower()


def test_helpers_that_are_called_like_a_foresight_are_none() -> None:
    agent = LikelihoodIMED.start(2)
    assert skip_ahead(agent, OwnHelpers.start(2)) is agent


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
    late = simulate(policy, engine="python", delay="constant(5)", window=50, **settings)
    assert late.pulls[:, -1].sum() == 2 * 300


@pytest.mark.parametrize("agent", [UCB, KLUCB, IMED, LazyUCB, CoveringUCB, LikelihoodIMED])
def test_where_whole_stints_are_released_no_stint_is_made_longer(agent: Any) -> None:
    """A longer stint would be one release in place of many."""
    plain = agent.start(2)
    for curator in (Batch, RunningSum, BatchLikelihood):
        assert skip_ahead(plain, curator.start(2, epsilon=1.0)) is plain
    assert skip_ahead(plain, GaussianBatch.start(2, epsilon=1.0, delta=1e-6)) is plain


def bits_of(rng: np.random.Generator, bins: int, apart: bool = False) -> Any:
    """A curator with 30 to 10,000 bits of one arm, of attenuations that share bins, or do not (``apart``)."""
    curator, mean = BinnedBernoulli.start(1, bins=bins), rng.random() ** rng.choice([1, 3])
    if rng.random() < 0.3:
        mean = 1.0 - mean
    slopes = rng.random(int(10 ** rng.uniform(1.5, 4))) ** rng.choice([0.3, 1.0])
    if apart:
        slopes, curator.apart[0] = (np.floor(slopes * bins) + 0.5) / bins, 1
    for slope, bit in zip(slopes, rng.random(len(slopes)) < attenuate(mean, slopes), strict=True):
        curator.take(0, float(bit), 1.0 - bit, slope)
    return curator


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("bins", [1, 4, 12])
def test_no_bits_bring_more_evidence_than_was_foreseen(bins: int, apart: bool) -> None:
    """Whoever chooses the bits takes, of four, the one with the most evidence at which the mean is above the line."""
    rng, cases, largest = np.random.default_rng(bins), 0, 0.0
    while cases < 40:
        curator = bits_of(rng, bins, apart)
        mean = curator.mean(0)
        top, line = mean + (0.999 - mean) * rng.random() ** 4, mean * (1.0 - 0.5 * rng.random() ** 2)
        if top - mean > 2.0 * line:
            continue
        cases += 1
        evidence, ahead = curator.evidence(0, mean, top), int(rng.integers(1, 60))
        growth = curator.growth(0, line, mean, top, ahead)
        edges = [
            (number + place) / bins for number in range(bins) for place in ((0.5,) if apart else (1e-9, 1.0 - 1e-9))
        ]
        own = rng.choice(edges, 2)  # the attenuations that come
        for _ in range(ahead):
            found = []
            for number, (slope, bit) in enumerate(product(own, (0.0, 1.0))):
                tried = copied(curator)
                read = in_plain_python(tried)
                read.take(0, bit, 1.0 - bit, slope)
                read.settle(0)
                mean = read.mean(0)
                if mean > line:
                    found.append((read.evidence(0, mean, top) if mean < top else 0.0, number, tried))
            if not found:
                break
            most, _, curator = max(found)
            assert most <= evidence + growth
            largest = max(largest, (most - evidence) / growth)
    assert largest > 0.3  # so the bound is not far from what is possible


def test_a_line_is_not_below_the_least_estimate_of_a_mean() -> None:
    """A mean that is clipped to 1e-9 is no least point of the misfit, and the bound does not hold for it."""
    curator = BinnedBernoulli.start(1)
    curator.take(0, 2.0, 1_985_916_705.0, 1.0)
    curator.apart[0] = 1
    mean, top = curator.mean(0), 1.1531e-9
    assert 1e-9 < mean < top
    for budget in (0.0727, 1.0, 10.0):
        line = curator.lower(0, mean, top, curator.evidence(0, mean, top), budget, 892_130_439)
        assert line >= 1e-9


def test_the_mean_is_the_least_point_of_the_misfit() -> None:
    """To 1e-12: the slope changes its sign within that distance."""
    rng = np.random.default_rng(0)
    for trial in range(200):
        curator = bits_of(rng, (1, 4, 12)[trial % 3])
        mean = curator.mean(0)
        assert mean <= 1e-9 or curator.score(0, mean - 1e-12)[0] < 0.0
        assert mean >= 1.0 - 1e-9 or curator.score(0, mean + 1e-12)[0] > 0.0


def test_arms_whose_means_differ_by_rounding_are_played_in_stints() -> None:
    """Between such means the slope of the divergence rounds to 0."""
    p, q = 0.15, math.nextafter(0.15, 1.0)
    assert kl_lower_near(p, q, kl(p, q), 0.1) == kl_lower(q, 0.1)
    curator = in_plain_python(Plain.start(2))
    curator.counts[0], curator.sums[0], curator.counts[1], curator.sums[1] = 4, 4 * p, 12, 12 * q
    assert curator.mean(0) < curator.mean(1)
    assert skip_ahead(IMED.start(2), curator).act(curator, 17, np.random.default_rng(0))[:2] == (0, 2)


def test_a_stint_is_never_longer_than_an_integer_can_be() -> None:
    curator = Plain.start(2)
    curator.counts[:], curator.sums[:] = 10**12, (1e11, 9e11)
    arm, stint, line = skip_ahead(IMED.start(2), curator).act(curator, 2 * 10**12, np.random.default_rng(0))
    assert (arm, stint, 0.0 < line < 0.9) == (1, 10**18, True)


def test_kl_ucb_leaves_room_for_rounding_at_large_counts() -> None:
    """300 times, with nearly equal arms at counts of 1e10 to 1e12: the agent itself chooses as the line says."""
    rng, stints = np.random.default_rng(0), 0
    for _ in range(300):
        curator = in_plain_python(Plain.start(2))
        mean, most = rng.random(), 10 ** rng.uniform(10, 12)
        for arm in (0, 1):
            curator.counts[arm] = int(most * (1.0 - 10 ** rng.uniform(-10, -1)))
            curator.sums[arm] = mean * curator.counts[arm]
        agent: Any = KLUCB.start(2, alpha=0.01)
        t = sum(curator.counts) + 1
        arm, stint, line = skip_ahead(agent, curator).act(curator, t, rng)
        assert agent.act(curator, t, rng)[0] == arm
        if stint > 1:
            n = curator.counts[arm] + stint - 1
            least = max(line * n, curator.sums[arm])
            while least / n <= line:
                least = math.nextafter(least, math.inf)
            curator.counts[arm], curator.sums[arm] = n, least
            assert agent.act(curator, t + stint - 1, rng)[0] == arm
            stints += 1
    assert stints > 50


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
