"""The exact verifier against what is known otherwise."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from dpbandits import policies
from dpbandits.audit import actions, curators, releases, verify, verify_curator
from dpbandits.audit.accounts import Accounts
from dpbandits.audit.instruments import NotVerifiableError, Tape
from dpbandits.audit.memory import check_apart, check_memory, symbolic
from dpbandits.audit.poison import Poison, Varies
from dpbandits.audit.proof import prove
from dpbandits.audit.reading import read_curator
from dpbandits.audit.refusals import Refused, Used
from dpbandits.audit.states import fresh
from dpbandits.audit.symbols import Num
from dpbandits.curators import Batch, Hybrid
from dpbandits.curators.rounds import OneByOne
from dpbandits.environments import Scripted
from dpbandits.errors import InputError
from dpbandits.policies import lookup
from dpbandits.policies.policy import Parts, Policy, published
from dpbandits.simulation import trials

PRIVATE = [name for name in lookup.names() if lookup.sample(name).guarantee.trust != "none"]
CENTRAL = [name for name in PRIVATE if lookup.sample(name).guarantee.trust == "central"]


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 3.0])
@pytest.mark.parametrize("name", PRIVATE)
def test_every_private_policy_is_proved_at_every_level(name: str, epsilon: float) -> None:
    """The worst case is the claim itself, but where less is spent by design."""
    policy = lookup.sample(name, epsilon=epsilon, horizon=32, **lookup.traits(name).tight)
    claim = epsilon if policy.guarantee.epsilon is None else None
    rounds = None if policy.guarantee.trust == "local" or policy.guarantee.delta else 32
    verdict = verify(policy, horizon=rounds, claim=claim)
    unknown = ("not Laplace", "more than one uniform number")  # adac-ucb; ldp-imed-p, whose device is proved instead
    if verdict.verdict in ("refused", "not refuted") and any(reason in verdict.reason for reason in unknown):
        return
    assert verdict.verdict in (("proved", "vacuous") if verdict.delta else ("proved",)), f"{verdict}"
    if not verdict.delta:
        assert max(verdict.epsilon or 0.0, verdict.released or 0.0) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("factory", [policies.dp_ucb, policies.dp_ucb_bound])
def test_the_hybrid_as_printed_loses_twice_its_epsilon_at_every_horizon(factory: Any) -> None:
    for horizon in (5, 8, 9, 16, 64):
        assert verify(factory(2, epsilon=1.0), horizon=horizon).epsilon == 1.0
        printed = verify(factory(2, epsilon=1.0, as_printed=True), claim=1.0, horizon=horizon)
        assert (printed.verdict, printed.epsilon, printed.view) == ("violated", 2.0, "released values")
    assert verify(factory(2, epsilon=1.0), horizon=4).epsilon == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adap-ucb", "dp-ucb", "dp-ucb-bound", "private-ucb"])
def test_a_thousand_rounds(name: str) -> None:
    verdict = verify(name, epsilon=1.0, horizon=1000)
    assert (verdict.verdict, verdict.horizon) == ("proved", 1000)
    assert verdict.epsilon == (0.5 if name == "private-ucb" else 1.0)


def test_the_probabilities_of_actions_are_those_of_simulated_play() -> None:
    """40,000 plays with continuous noise. Cells move probabilities by less than 2 %, which the tolerance allows.

    A correct one fails with probability below 1e-6: 5 standard errors for each of the sequences.
    """
    policy, rounds, count = policies.adap_ucb(2, epsilon=1.0), 6, 40_000
    rewards = (0, 1, 1, 0, 0, 0)
    following = actions.Following(policy, rounds)
    start = fresh(policy.curator, read_curator(policy.curator))
    following.follow(0, (), policy.agent, start, [None, None], {(): np.ones((1, 1))})
    environment = Scripted.start(np.array([rewards], float)[:, :, None].repeat(2, axis=2))
    seen, parts = np.zeros((count, rounds), np.int64), trials.buffered(policy.agent, policy.curator)
    memory = (parts.floats, parts.integers, parts.floats.copy(), parts.integers.copy())
    generators = (np.random.default_rng(3), np.random.default_rng(0))
    views = (np.zeros(count, np.int64), seen, np.zeros((0, rounds)))
    trials.play_trials(environment, OneByOne(parts.curator), parts.agent, *memory, *views, *generators)
    total = 0
    for sequence, table in following.found.items():
        observed = int(np.all(seen == sequence, axis=1).sum())
        total += observed
        p = table[rewards]
        assert abs(observed / count - p) < 0.02 * max(p, 0.05) + 5.0 * math.sqrt(p * (1.0 - p) / count) + 1e-3
    assert total == count


def test_one_decision_by_hand() -> None:
    """Two rounds and a choice: arm 1 is chosen where its noisy reward is larger. The difference of two Laplace noises
    of scale b exceeds x > 0 with probability (2 + x/b) exp(-x/b) / 4."""

    class Greedy(NamedTuple):
        arms: int

        def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
            if t <= 2:
                return t - 1, 1, -math.inf
            return (1 if releases.mean(1) > releases.mean(0) else 0), 1, -math.inf

    @published("a test")
    def greedy(arms: int, *, epsilon: float) -> Parts:
        return Parts(Greedy(arms), Batch.start(arms, epsilon=epsilon))

    above = (2.0 + 0.5) * math.exp(-0.5) / 4.0
    chosen = {-1: above, 0: 0.5, 1: 1.0 - above}  # by the difference of the rewards
    worst = max(abs(math.log(chosen[a] / chosen[b])) for a, b in ((-1, 0), (0, 1)))
    assert actions.worst_actions(greedy(2, epsilon=0.5), 3).epsilon == pytest.approx(worst, rel=0.02)


def test_the_verdict_names_horizon_domain_and_level() -> None:
    verdict = verify(policies.adap_ucb(2, epsilon=1.0), horizon=6)
    assert (verdict.verdict, verdict.view, verdict.horizon, verdict.released) == ("proved", "actions", 6, 1.0)
    assert "rewards 0 and 1" in verdict.domain
    assert "2 arms for 6 rounds, 3 arms for 6 rounds" in verdict.domain
    assert "private" not in str(verdict)
    assert "epoch_factor 1e-06" in verify("dp-se", epsilon=1.0, horizon=8).domain


def test_what_releases_nothing_is_vacuous() -> None:
    verdict = verify("dp-ucb-int", epsilon=1.0, horizon=8)
    assert (verdict.verdict, verdict.epsilon, verdict.exit_status) == ("vacuous", 0.0, 0)
    assert "little is released" in str(verdict)
    early = verify(policies.dp_se(2, epsilon=1.0, horizon=8), view="actions")  # one sequence of actions
    assert early.verdict == "vacuous"


def test_losses_of_the_hybrid_by_hand() -> None:
    """Reward 3 is in the tree's node of round 3 and in the block that closes in round 4, at scales 2 and 2."""
    curator = Hybrid.start(2, epsilon_log=0.5, epsilon_tree=0.5)
    loss = next(releases.losses(curator, [releases.Step(0, False)] * 4, [2]))
    assert [cost for _, cost in loss.costs] == pytest.approx([0.5, 0.5])
    assert (0.5, 0.5) in prove(policies.dp_ucb_bound(2, epsilon=1.0), 4).costs


def test_accounting_of_dp_ucb_int_is_that_of_its_schedule() -> None:
    from dpbandits.privacy.interval_accounting import schedule_cost

    policy = policies.dp_ucb_int(2, epsilon=1.0)
    curator: Any = policy.curator
    cost = schedule_cost(curator.rate, curator.v, 1000, curator.delta, "y")
    expected = min(cost.pure, cost.optimal, cost.renyi)
    assert verify(policy, horizon=1000).epsilon == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_the_exact_schedule_of_dp_ucb_int_spends_what_it_may(epsilon: float) -> None:
    """Its interval is the shortest that keeps the claim at the horizon, so the releases come near it, and not above."""
    policy = policies.dp_ucb_int(2, epsilon=epsilon, schedule="exact", horizon=500)
    verdict = verify(policy)
    assert (verdict.verdict, verdict.horizon) == ("proved", 500)
    assert verdict.epsilon is not None
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


def test_large_levels_are_not_verified_in_floats() -> None:
    verdict = verify(policies.ldp_ucb_b(2, epsilon=36.0))
    assert verdict.verdict in ("refused", "not refuted")
    assert "at most about 30" in verdict.reason


def test_horizons_and_views_that_cannot_be() -> None:
    with pytest.raises(InputError, match="horizon must be at most 20000"):
        verify(policies.dp_ucb_int(2, epsilon=1.0), horizon=10**6)
    with pytest.raises(InputError, match=r"view must be released .* delta is"):
        verify(policies.dp_ucb_int(2, epsilon=1.0), view="actions")
    with pytest.raises(InputError, match=r"view must be released .*: a stint does not release one number"):
        verify(policies.dp_ucb(2, epsilon=1.0), view="actions", horizon=8)
    with pytest.raises(InputError, match=r"view must be released .* above 8"):
        verify(policies.adap_ucb(2, epsilon=1.0), view="actions", horizon=40)
    with pytest.raises(InputError, match="ucb1 promises nothing"):
        verify(policies.ucb1(2))
    assert verify(policies.adap_ucb(2, epsilon=1.0), horizon=40).view == "released values"


def test_a_policy_without_privacy_is_violated() -> None:
    assert verify(policies.ucb1(2), claim=1.0, horizon=8).violated


def test_noise_that_depends_on_releases_is_not_entered_in_a_ledger() -> None:
    class Nervous(Batch):
        def close(self, arm: int, rng: Any) -> None:
            scale = 1.0 if self.means[arm] > 0.0 else 2.0
            self.means[arm] = self.raw_sums[arm] + rng.laplace(0.0, scale)

    with pytest.raises(NotVerifiableError, match="depend on what was released"):
        list(releases.losses(Nervous.start(2, epsilon=1.0), [releases.Step(0, True)] * 8, [0]))


def test_a_policy_object_is_verified_as_it_is() -> None:
    """Its function makes another one: that is not what is asked about."""

    class Peeking(NamedTuple):
        arms: int

        def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
            return ((t - 1) % 2 if t <= 2 else 0 if releases.raw_sums[0] > 0.5 else 1), 2, -math.inf

    policy = policies.adap_ucb(2, epsilon=1.0)
    peeking = Policy(**{**vars(policy), "agent": Peeking(2)})
    assert verify(policy, horizon=6).verdict == "proved"
    assert verify(peeking, horizon=6).verdict != "proved"


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


def _reward(log: Accounts, number: int = 0) -> Num:
    return Num(log, 0.0, 1, {("reward", number, ("unit",)): 1}, 1.0)


def test_symbols_add_up_and_cost_what_they_should() -> None:
    log = Accounts()
    total = 2.0 * _reward(log) + np.float64(1.0) - _reward(log, 1) / 4 + log.noise(2.0)
    log.release(total)
    assert log.costs == {0: (1.0,), 1: (0.125,)}
    assert log.tight
    log.release(total * 3.0)  # the same number again costs nothing
    assert log.costs[0] == (1.0,)
    assert log.leak is None
    log.release(_reward(log) - total)
    assert log.leak is not None
    assert "no noise of its own" in log.leak


@pytest.mark.parametrize(
    "use",
    [
        lambda x: int(x), lambda x: float(x), lambda x: x**2, lambda x: x % 1, lambda x: 1 / x, lambda x: f"{x}",
        lambda x: hash(x), lambda x: x * x, lambda x: x > 0.5, lambda x: x == 0.3, lambda x: range(x),
        lambda x: x + np.ones(2), lambda x: math.exp(x), lambda x: round(x), lambda x: x * math.inf,
        lambda x: [1, 2][x],
        lambda x: x // 1, lambda x: divmod(x, 1), lambda x: repr(x), lambda x: x / 0.0, lambda x: x * 1e200,
    ],
)  # fmt: skip
def test_a_bare_reward_never_becomes_a_plain_number(use: Any) -> None:
    with pytest.raises((Refused, TypeError)):
        use(_reward(Accounts()))


def test_certain_comparisons_are_answered_and_noisy_ones_followed() -> None:
    log = Accounts()
    assert _reward(log) >= 0.0
    assert not _reward(log) > 1.0
    assert -math.inf < _reward(log)
    assert not (_reward(log) + log.noise(1.0) > 0.0)  # the first of two answers
    assert (log.taken, log.tight, list(log.costs.values())) == ([False], False, [(1.0,)])
    large = 1e12 * _reward(log) + log.noise(1.0)
    with pytest.raises(Refused, match="swallow"):
        log.release(large)


def test_poison_may_be_overwritten_and_not_used() -> None:
    for use in (lambda p: p + 1, lambda p: -p, lambda p: p > 0, lambda p: bool(p), lambda p: float(p), lambda p: p & 1):
        with pytest.raises(Used):
            use(Poison())
    counted = Varies(2, 3, {(0, 0): 1}) + Varies(2, 4, {(0, 1): 1})
    assert counted == 8
    with pytest.raises(Used):
        Varies(2, 3, {(0, 0): 1}) * 2


def test_memory_that_cannot_be_followed_is_refused() -> None:
    class Odd(NamedTuple):
        kept: Any

    for kept, text in (
        ([], "list"),
        (np.zeros(2, np.float32), "float32"),
        ({}, "dict"),
        (np.random, "module"),
    ):
        with pytest.raises(Refused, match=text):
            check_memory(Odd(kept), "curator")
    shared = np.zeros(3)
    with pytest.raises(Refused, match="share memory"):
        check_apart(Odd(shared), Odd(shared[1:]))
    whole = symbolic(Odd(np.zeros(2, np.int64))).kept
    whole[0] = 3.0
    assert whole[0] == 3
    with pytest.raises(Refused, match="not whole"):
        whole[0] = 0.5
    assert list(itertools.chain(whole)) == [3, 0]
    assert stats.laplace.cdf(0.0) == actions._between(-math.inf, 0.0)
