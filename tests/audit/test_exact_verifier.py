"""The exact verifier against what is known otherwise."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpbandits import policies
from dpbandits.agents import UCB, Doubling
from dpbandits.audit import actions, curators, releases, responses, verify, verify_curator
from dpbandits.audit.instruments import NotVerifiableError, Sealed, Silent, Tape
from dpbandits.curators import Batch, Hybrid, LocalBernoulli
from dpbandits.curators.rounds import OneByOne
from dpbandits.environments import Scripted
from dpbandits.errors import InputError
from dpbandits.policies.policy import Parts, Policy, published
from dpbandits.simulation import trials


@pytest.mark.parametrize("rate", [0.3, 1.0, 2.5])
def test_folded_noise_is_discrete_laplace_and_loses_its_rate_at_every_value(rate: float) -> None:
    steps = np.arange(-40, 43)
    at_zero, at_one = (actions.discrete_laplace(steps - shift, rate) for shift in (0, 1))
    assert at_zero.sum() == pytest.approx(1.0, abs=1e-12)
    assert at_zero[1:-1] == pytest.approx(stats.dlaplace.pmf(steps[1:-1], rate), rel=1e-9)
    assert np.abs(np.log(at_zero / at_one)) == pytest.approx(np.full(83, rate), rel=1e-9)


class WholeNoise:
    """Discrete Laplace noise on the grid of a stint's sum, from a generator: the verifier's mechanism, drawn."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def laplace(self, loc: float, scale: float) -> float:
        rate = 1.0 - math.exp(-1.0 / scale)
        return loc + float(self.rng.geometric(rate) - self.rng.geometric(rate))


def test_the_probabilities_of_actions_are_those_of_simulated_play() -> None:
    """40,000 plays of the mechanism that is verified, by another way (chi-square; a correct one fails with 1e-6)."""
    policy, rounds, count = policies.adap_ucb(2, epsilon=1.0), 6, 40_000
    rewards = (0, 1, 1, 0, 0, 0)
    found: dict[tuple[int, ...], Any] = {}
    start = actions.State(0, (), policy.agent, policy.curator, np.zeros((1, 2)), {(): (policy.curator, np.ones(1))})
    actions._follow(start, rounds, found)
    environment = Scripted.start(np.array([rewards], float)[:, :, None].repeat(2, axis=2))
    seen, parts = np.zeros((count, rounds), np.int64), trials.buffered(policy.agent, policy.curator)
    noise: Any = WholeNoise(3)
    trials.play_trials(
        environment,
        OneByOne(parts.curator),
        parts.agent,
        parts.floats,
        parts.integers,
        parts.floats.copy(),
        parts.integers.copy(),
        np.zeros(count, np.int64),
        seen,
        np.zeros((0, rounds)),
        noise,
        np.random.default_rng(0),
    )
    observed = np.array([np.all(seen == sequence, axis=1).sum() for sequence in found])
    expected = count * np.array([table[rewards] for table in found.values()])
    assert observed.sum() == count
    assert stats.chisquare(observed, expected).pvalue > 1e-6


def test_one_decision_by_hand() -> None:
    """Two rounds and a choice: arm 1 is chosen where its noisy reward is larger, so the loss is a ratio of two sums."""

    class Greedy(UCB):
        def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
            if t <= 2:
                return t - 1, 1, -math.inf
            return int(releases.mean(1) > releases.mean(0)), 1, -math.inf

    @published("a test")
    def greedy(arms: int, *, epsilon: float) -> Parts:
        return Parts(Greedy.start(arms), Batch.start(arms, epsilon=epsilon))

    k = np.arange(-200, 201)
    law = stats.dlaplace.pmf(k, 0.5)
    chosen = {shift: law @ stats.dlaplace.sf(k - shift, 0.5) for shift in (-1, 0, 1)}  # P(noise 1 + shift > noise 0)
    ratios = [abs(math.log(p / q)) for p, q in itertools.combinations(chosen.values(), 2)]
    refused = [abs(math.log((1 - p) / (1 - q))) for p, q in itertools.combinations(chosen.values(), 2)]
    neighbours = [0, 2]  # shifts that differ by 1
    worst = max([*(ratios[i] for i in neighbours), *(refused[i] for i in neighbours)])
    assert actions.worst_actions(greedy(2, epsilon=0.5), 3).epsilon == pytest.approx(worst, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_central_policies_come_near_their_claim_at_every_level(epsilon: float) -> None:
    for factory in (policies.adap_ucb, policies.adap_klucb):
        verdict = verify(factory(2, epsilon=epsilon))
        assert verdict.verdict == "proved"
        assert 0.9 * epsilon < verdict.epsilon <= epsilon


def test_the_verdict_names_horizon_domain_and_level() -> None:
    verdict = verify(policies.adap_ucb(2, epsilon=1.0), horizon=6)
    assert (verdict.verdict, verdict.view, verdict.horizon) == ("proved", "actions", 6)
    assert "rewards 0 and 1" in verdict.domain
    assert "private" not in str(verdict)
    assert "scale 1e-06" in verify("dp-se", epsilon=1.0, horizon=8).domain


def test_dp_se_as_published_releases_nothing_so_early() -> None:
    assert verify(policies.dp_se(2, epsilon=1.0, horizon=8)).epsilon == 0.0


def test_private_ucb_as_printed_spends_half() -> None:
    """Each of two trees gets epsilon/2, and a reward is in one tree only."""
    assert verify(policies.private_ucb(2, epsilon=1.0, horizon=8)).epsilon == 0.5


def test_losses_of_the_hybrid_by_hand() -> None:
    """Reward 3 is in the tree's node of round 3 and in the block that closes in round 4, at scales 2 and 2."""
    curator = Hybrid.start(2, epsilon_log=0.5, epsilon_tree=0.5)
    loss = next(releases.losses(curator, [Step(0, False)] * 4, [2]))
    assert [cost for _, cost in loss.costs] == pytest.approx([0.5, 0.5])


Step = releases.Step


def test_accounting_of_dp_ucb_int_is_that_of_its_schedule() -> None:
    from dpbandits.privacy.interval_accounting import schedule_cost

    policy = policies.dp_ucb_int(2, epsilon=1.0)
    curator: Any = policy.curator
    cost = schedule_cost(curator.rate, curator.v, 2000, curator.delta, "y")
    expected = min(cost.pure, cost.optimal, cost.renyi)
    assert verify(policy, horizon=2000).epsilon == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_the_exact_schedule_of_dp_ucb_int_spends_what_it_may(epsilon: float) -> None:
    """Its interval is the shortest that keeps the claim at the horizon, so the releases come near it, and not above."""
    policy = policies.dp_ucb_int(2, epsilon=epsilon, schedule="exact", horizon=500)
    verdict = verify(policy)
    assert (verdict.verdict, verdict.horizon) == ("proved", 500)
    assert 0.9 * epsilon < verdict.epsilon <= epsilon
    with pytest.raises(InputError, match="horizon must be at most 500, for which dp-ucb-int was made, got 501"):
        verify(policy, horizon=501)


@pytest.mark.parametrize("name", curators.EXACT)
@pytest.mark.parametrize("epsilon", ["1", "1/3", "0.01", "7"])
def test_threshold_words_enclose_epsilon(name: str, epsilon: str) -> None:
    verdict = verify_curator(name, epsilon)
    assert verdict.verdict == "proved"
    low, high = (Fraction(bound) for bound in verdict.witness["epsilon"])
    assert abs(low - Fraction(epsilon)) <= Fraction(1, 10**29)  # as many digits as are printed
    assert abs(high - Fraction(epsilon)) <= Fraction(1, 10**29)
    less = Fraction(epsilon) - Fraction(1, 10**40)
    assert verify_curator(name, epsilon, less).violated


@pytest.mark.parametrize(
    ("factory", "settings"),
    [
        (policies.ldp_ucb_b, {"epsilon": 0.1}),
        (policies.ldp_ucb_bs, {"epsilon": 5.0}),
        (policies.ldp_ucb_l, {"epsilon": 0.1}),
        (policies.heldp_ucb_b, {"epsilon_min": 0.5}),
        (policies.heldp_ucb_ls, {"epsilon_min": 2.0}),
        (policies.heldp_ucb_bs, {"epsilon_min": 2.0}),
    ],
)
def test_local_curators_in_closed_form(factory: Any, settings: dict[str, float]) -> None:
    verdict = verify(factory(2, **settings))
    assert verdict.verdict == "proved"
    assert verdict.epsilon == pytest.approx(next(iter(settings.values())), rel=1e-9)
    assert verify(factory(2, **settings), claim=0.09).verdict == ("proved" if "epsilon_min" in settings else "violated")


def test_a_response_that_shows_what_is_not_a_number_is_caught() -> None:
    class Leaky(LocalBernoulli):
        def respond(self, reward: float, level: float, rng: Any) -> float:
            return 0.0 if math.isnan(reward) else super().respond(reward, level, rng)

    with pytest.raises(NotVerifiableError, match="one uniform draw"):
        responses.worst_response(Leaky.start(2, epsilon=1.0), 1.0)
    silent = responses._loss((0.0, responses.Noisy(math.nan, 1.0)), (1.0, responses.Noisy(0.0, 1.0)))
    assert silent.epsilon == math.inf


def test_large_levels_are_not_verified_in_floats() -> None:
    with pytest.raises(NotVerifiableError, match="at most about 30"):
        verify(policies.ldp_ucb_b(2, epsilon=36.0))


def test_too_large_a_horizon_names_the_largest() -> None:
    with pytest.raises(InputError, match=r"horizon must be at most 11 .* got 40"):
        verify(policies.adap_ucb(2, epsilon=1.0), horizon=40)
    with pytest.raises(InputError, match="horizon must be at most 20000"):
        verify(policies.dp_ucb_int(2, epsilon=1.0), horizon=10**6)


def test_what_does_not_apply_says_why() -> None:
    with pytest.raises(NotVerifiableError, match="arms must be 2"):
        actions.worst_actions(policies.adap_ucb(3, epsilon=1.0), 4)
    with pytest.raises(NotVerifiableError, match="delta must be 0"):
        verify(policies.dp_ucb_int(2, epsilon=1.0), view="actions")
    with pytest.raises(NotVerifiableError, match="earlier releases"):
        verify(policies.dp_ucb(2, epsilon=1.0), view="actions")
    with pytest.raises(NotVerifiableError, match=r"must be Laplace .* got normal"):
        Tape(float).normal(0.0, 1.0)
    with pytest.raises(NotVerifiableError, match="a draw of beta"):
        Silent().beta(1.0, 1.0)
    with pytest.raises(InputError, match="ucb1 promises nothing"):
        verify(policies.ucb1(2))


@pytest.mark.parametrize(
    "read", [lambda m: m[0], lambda m: m.max(), lambda m: m + 1.0, list, np.sum, lambda m: m.copy()]
)
def test_sealed_numbers_cannot_be_read(read: Any) -> None:
    sealed = Sealed.like(np.zeros((2, 3)), [], 0)
    sealed[1, 2] = 4.0
    assert sealed.writes == [(5, 4.0)]
    with pytest.raises(NotVerifiableError, match="earlier releases"):
        read(sealed)


def test_noise_that_depends_on_releases_is_not_verified() -> None:
    class Nervous(Batch):
        def close(self, arm: int, rng: Any) -> None:
            scale = 1.0 if self.means[arm] > 0.0 else 2.0
            self.means[arm] = self.raw_sums[arm] + rng.laplace(0.0, scale)

    with pytest.raises(NotVerifiableError, match="depend on what was released"):
        list(releases.losses(Nervous.start(2, epsilon=1.0), [Step(0, True)] * 8, [0]))


def test_an_agent_that_looks_at_raw_fields_sees_poison() -> None:
    class Peeking(Doubling[UCB]):
        def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
            if t > 2:
                assert np.isnan(releases.raw_sums).all()
            return (t - 1) % 2, 1, -math.inf

    policy = policies.adap_ucb(2, epsilon=1.0)
    agent = Peeking(*policy.agent)  # type: ignore[misc]
    peeking = Policy(**{**vars(policy), "agent": agent})
    assert actions.worst_actions(peeking, 4).epsilon == 0.0  # it chooses in turn, whatever is released


def test_a_draw_keeps_account_of_what_is_done_to_it() -> None:
    seen = []

    def settle(draw: Any) -> float:
        seen.append((draw.value, draw.scale))
        return 7.0

    draw = Tape(settle).laplace(0.0, 2.0)
    both = np.float64(1.0) + 3.0 * draw - 0.5
    assert (both.value, both.scale) == (0.5, 6.0)
    assert (float(both), float(both), seen) == (7.0, 7.0, [(0.5, 6.0)])
    assert float(10.0 - draw) == pytest.approx(10.0 - (7.0 - 0.5) / 3.0)  # the same noise, seen once, is known
    assert draw / 2.0 > 0.0
    assert -draw <= 0.0
