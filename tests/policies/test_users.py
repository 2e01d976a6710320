"""Users with several rewards: the promise is the user's, the noise is for a share of it, and audits agree."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import pytest

import dpbandits as dp
from dpbandits import audit, policies
from dpbandits.agents import UCB
from dpbandits.curators import LocalBernoulli, Plain
from dpbandits.errors import InputError
from dpbandits.planning import ask
from dpbandits.planning.document import document
from dpbandits.policies import lookup
from dpbandits.policies.policy import Parts, published
from dpbandits.privacy import Guarantee
from dpbandits.privacy.composition import optimal
from dpbandits.privacy.users import delta_of_reward, for_users, group, of_response, of_reward

EPSILONS = (1e-9, 0.1, 0.3, 1 / 3, 1.0, 2.7, 1e6)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("rewards", [1, 2, 3, 7, 10, 49, 1000])
def test_the_shares_of_rewards_never_exceed_the_users_epsilon(epsilon: float, rewards: int) -> None:
    each = of_reward(epsilon, rewards)
    assert Fraction(each) * rewards <= Fraction(epsilon)
    assert each >= epsilon / rewards * (1 - 1e-15)
    promised = for_users(Guarantee.central(each), rewards).epsilon
    assert promised is not None
    assert Fraction(promised) >= Fraction(each) * rewards
    assert promised == pytest.approx(epsilon, rel=1e-14)


@pytest.mark.parametrize("text", ["0.1", "0.3", "0.7", "1", "2.5", "1e-3"])
@pytest.mark.parametrize("rewards", range(1, 40))
def test_an_epsilon_as_people_write_it_is_promised_as_it_was_written(text: str, rewards: int) -> None:
    epsilon = float(text)
    assert policies.adap_ucb(2, epsilon=epsilon).for_users(rewards).guarantee.epsilon == epsilon


def test_deltas_of_rewards_add_up_by_group_privacy() -> None:
    for epsilon in (0.1, 1.0, 5.0, 50.0):
        for rewards in (2, 10, 100):
            each = delta_of_reward(epsilon, 1e-5, rewards)
            total = group(of_reward(epsilon, rewards), each, rewards)[1]
            assert 0.999e-5 < total <= 1e-5
            direct = math.fsum(each * math.exp(k * epsilon / rewards) for k in range(rewards))
            assert direct == pytest.approx(total, rel=1e-9)  # Vadhan 2017, Lemma 2.2, as the sum that it comes from


@pytest.mark.parametrize("rewards", [2, 10, 100])
def test_responses_compose_to_the_users_epsilon_and_delta(rewards: int) -> None:
    each = of_response(1.0, 1e-6, rewards)
    assert each >= of_reward(1.0, rewards)
    assert 0.999 < optimal(each, rewards, 1e-6) <= 1.0
    policy = policies.ldp_ucb_b(2, epsilon=1.0).for_users(rewards, 1e-6)
    assert (policy.guarantee.epsilon, policy.guarantee.delta) == (1.0, 1e-6)
    assert policy.curator.guarantee().epsilon == each


def test_the_curator_is_that_of_a_share() -> None:
    for name in ("adap-ucb", "ldp-ucb-l", "dp-ucb-bound", "dp-glr-imed"):
        make: Any = lookup.find(name)
        many, one = make(3, epsilon=1.0, rewards_per_user=4), make(3, epsilon=0.25)
        assert repr(many.curator) == repr(one.curator)
        assert repr(many.agent) == repr(one.agent)
        assert many.fresh().settings == many.settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rewards_per_user": 0}, "rewards_per_user must be a whole number of at least 1, got 0"),
        ({"rewards_per_user": 2.5}, "rewards_per_user must be a whole number of at least 1, got 2.5"),
        ({"user_delta": 0.1}, "rewards_per_user is required by user_delta"),
        ({"rewards_per_user": 2, "user_delta": 0.1}, "user_delta must be given only where privacy is local and pure"),
    ],
)
def test_what_makes_no_sense_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        policies.adap_ucb(2, epsilon=1.0, **settings)


def test_policies_without_privacy_have_no_users() -> None:
    with pytest.raises(InputError, match="must be private to promise something to users, got ucb1"):
        policies.ucb1(2).for_users(3)
    with pytest.raises(InputError, match="rewards_per_user is not a parameter of ucb1, which is not private"):
        dp.simulate("ucb1", arms="0.9,0.6", horizon=100, rewards_per_user=2)


# --- simulations ----------------------------------------------------------------------------------------------------


def test_a_simulation_for_users_is_that_of_their_share() -> None:
    """Epsilon for a user with 4 rewards gives the numbers of a quarter of it for each reward, and says so."""
    common: dict[str, Any] = {"arms": "0.9,0.6", "horizon": 5000, "runs": 3, "seed": 1}
    many = dp.simulate("adap-klucb", epsilon=1, rewards_per_user=4, **common)
    one = dp.simulate("adap-klucb", epsilon=0.25, **common)
    assert (many.pulls == one.pulls).all()
    record = json.loads(json.dumps(many.to_json(), allow_nan=False))
    assert record["rewards_per_user"] == 4
    assert record["guarantee"]["unit"] == "one user"
    assert record["guarantee"]["epsilon"] == 1.0
    assert "no user gives more than 4 rewards, each private at epsilon 0.25" in record["guarantee"]["conditions"]
    assert [bound.value for bound in many.bounds()] == [bound.value for bound in one.bounds()]


def test_levels_are_the_users() -> None:
    common: dict[str, Any] = {"arms": "0.9,0.6", "horizon": 5000, "runs": 3, "seed": 1}
    many = dp.simulate("heldp-ucb-b", levels="choice(0,2,4)", options={"epsilon_min": 2}, rewards_per_user=2, **common)
    one = dp.simulate("heldp-ucb-b", levels="choice(0,1,2)", options={"epsilon_min": 1}, **common)
    assert (many.pulls == one.pulls).all()
    assert (many.guarantee.unit, many.guarantee.epsilon) == ("one user", None)
    for levels in ("choice(0,0.3,2,6)", "normal(3,1)"):
        auto = dp.simulate("heldp-ucb-b", levels=levels, options={"epsilon_min": "auto"}, rewards_per_user=3, **common)
        assert auto.simulation.levels_of_rewards is not None
        assert auto.simulation.levels_of_rewards.accepted(auto.options["epsilon_min"] / 3) > 0


# --- audits: neighbours differ in all rewards of a user --------------------------------------------------------------


@pytest.mark.parametrize("rewards", [2, 3])
def test_the_loss_of_a_user_is_proved_and_is_near_the_claim(rewards: int) -> None:
    """By the sum of the losses of single rewards, and, for the actions, by all pairs that differ in these rewards."""
    verdict = audit.verify("adap-ucb", epsilon=1.0, rewards_per_user=rewards)
    assert (verdict.verdict, verdict.released) == ("proved", 1.0)
    assert verdict.epsilon is not None
    single = audit.verify("adap-ucb", epsilon=1.0 / rewards)
    assert single.epsilon is not None
    assert single.epsilon < verdict.epsilon <= 1.0
    pairs = zip(verdict.witness["rewards"], verdict.witness["neighbour"], strict=True)
    assert 1 < sum(a != b for a, b in pairs) <= rewards


def test_a_cap_that_is_not_kept_is_violated() -> None:
    """Noise for each reward alone breaks a promise for users with three: the witness changes three rewards."""
    policy = policies.dp_ucb_bound(2, epsilon=1.0, as_printed=True).for_users(3)
    verdict = audit.verify(policy, claim=1.0)
    assert verdict.verdict == "violated"
    assert verdict.witness["changed"].startswith("rewards ")
    assert verdict.epsilon is not None
    assert 1.0 < verdict.epsilon <= 2.0


@pytest.mark.parametrize("name", ["ldp-ucb-b", "ldp-ucb-l"])
def test_the_responses_of_a_user_are_proved_together(name: str) -> None:
    verdict = audit.verify(name, epsilon=1.2, rewards_per_user=4)
    assert verdict.verdict == "proved"
    assert verdict.epsilon == pytest.approx(1.2, rel=1e-9)
    assert audit.verify(name, epsilon=1.2, rewards_per_user=4, claim=1.1).verdict == "violated"


def test_composed_responses_are_proved_at_their_delta() -> None:
    policy = policies.ldp_ucb_b(2, epsilon=1.0).for_users(20, 1e-6)
    verdict = audit.verify(policy)
    assert (verdict.verdict, verdict.delta) == ("proved", 1e-6)
    assert verdict.epsilon == pytest.approx(1.0, rel=1e-5)
    assert audit.verify(policy, claim=0.5).verdict == "violated"
    users: dict[str, Any] = {"rewards_per_user": 20, "user_delta": 1e-6}
    assert audit.verify("ldp-ucb-b", epsilon=1.0, **users).to_json() == verdict.to_json()
    assert audit.attack("ldp-ucb-b", epsilon=1.0, trials=20_000, **users).verdict == "not refuted"
    with pytest.raises(InputError, match="policy is an instance: set user_delta where it is made, got 1e-05"):
        audit.verify(policy, user_delta=1e-5)


def test_the_game_plays_whole_users() -> None:
    """It finds more with three rewards changed than the share of one reward (wrong with probability below 1e-3)."""
    verdict = audit.attack("adap-ucb", epsilon=1.5, rewards_per_user=3, claim=0.5, trials=60_000)
    assert verdict.verdict == "violated"
    assert "in rounds" in verdict.witness["input"]
    assert audit.attack("adap-ucb", epsilon=1.5, rewards_per_user=3, trials=60_000).verdict == "not refuted"


# --- plans ----------------------------------------------------------------------------------------------------------


def test_a_plan_for_users_is_that_of_their_share() -> None:
    asked: dict[str, Any] = {"horizon": 5000, "runs": 4, "policies": ["adap-klucb", "ldp-ucb-b"]}
    many = dp.plan("0.9,0.6", epsilon=2, rewards_per_user=4, **asked)
    one = dp.plan("0.9,0.6", epsilon=0.5, **asked)
    best = many.best(2.0, "central"), one.best(0.5, "central")
    assert best[0] is not None
    assert best[1] is not None
    assert best[0].regret == best[1].regret
    record = document(many)
    assert record["promise_for"] == "one user"
    assert record["question"]["rewards_per_user"] == 4
    assert any(
        "for a user with at most 4 rewards: at epsilon 2 each of them is private at 0.5" in a for a in record["answers"]
    )
    assert ask("0.9,0.6", horizon=100, rewards_per_user="3").rewards_per_user == 3  # type: ignore[arg-type]


def test_a_plan_with_a_delta_is_that_of_responses_that_compose() -> None:
    """The delta is used where a user's responses compose to it; other policies are played without it."""
    asked: dict[str, Any] = {"horizon": 5000, "runs": 4, "policies": ["adap-klucb", "ldp-ucb-b"]}
    many, composed = dp.plan("0.9,0.6", epsilon=1, rewards_per_user=64, user_delta=1e-6, **asked), 0.030191349
    assert composed == of_response(1.0, 1e-6, 64)
    for trust, each, delta in (("central", 1 / 64, 0.0), ("local", composed, 1e-6)):
        one, best = dp.plan("0.9,0.6", epsilon=each, **asked).best(each, trust), many.best(1.0, trust)
        assert one is not None
        assert best is not None
        assert (best.regret, best.delta) == (one.regret, delta), trust
    record = document(many)
    assert record["question"]["user_delta"] == 1e-6
    said = "each of them is private at 0.0156, or 0.0302 where responses compose to a delta of 1e-06"
    assert any(said in answer for answer in record["answers"])
    with pytest.raises(InputError, match="rewards_per_user is required by user_delta"):
        ask("0.9,0.6", horizon=100, user_delta=1e-6)
    with pytest.raises(InputError, match="user_delta is for trust local, got 1e-06 with trust central"):
        ask("0.9,0.6", horizon=100, user_delta=1e-6, rewards_per_user=2, trust="central")


# --- sessions -------------------------------------------------------------------------------------------------------


def test_a_session_takes_no_more_rewards_of_a_user_than_promised() -> None:
    session = dp.Session("adap-ucb", arms=["a", "b"], epsilon="1", rewards_per_user=2)
    assert session.guarantee.unit == "one user"
    assert [session.tell(session.ask("ann"), 1) for _ in range(4)] == ["used", "used", "over", "over"]
    assert session.tell(session.ask("bob"), 1) == "used"
    thawed = dp.Session.thaw(session.freeze())
    assert [thawed.ask("ann").counts, thawed.ask("bob").counts, thawed.ask("bob").counts] == [False, True, False]


def test_open_decisions_count_and_silence_gives_them_back() -> None:
    session = dp.Session("adap-ucb", arms=2, epsilon=1, rewards_per_user=2)
    first, second, third = session.ask_many(3, ["ann"] * 3)
    assert [first.counts, second.counts, third.counts] == [True, True, False]
    assert session.tell(first, None) == "missing"
    assert session.ask("ann").counts
    assert session.tell_many([(third, 1.0), (second, 1.0)]) == ["over", "used"]


def test_over_rewards_change_nothing() -> None:
    """What is not taken is not released: two sessions that differ in an over reward make the same decisions."""
    runs = []
    for reward in (0.0, 1.0):
        session = dp.Session("adap-ucb", arms=2, epsilon=1, rewards_per_user=1, noise="simulated", seed=3)
        made = []
        for user in range(60):
            decision = session.ask(user)
            made.append(decision.arm)
            session.tell(decision, 0.5)
            again = session.ask(user)
            made.append(again.arm)
            assert session.tell(again, reward) == "over"
        runs.append((made, session.means))
    assert runs[0] == runs[1]


def test_a_device_of_a_user_spends_exact_shares() -> None:
    session = dp.Session("ldp-ucb-b", arms=2, epsilon="1", rewards_per_user=3)
    assert session.device().epsilon == Fraction(1, 3)
    for _ in range(3):
        decision = session.ask("ann")
        response = session.device().respond(decision, 1)
        assert session.tell(decision, response.to_bytes()) == "used"
    over = session.ask("ann")
    with pytest.raises(InputError, match="is over rewards_per_user"):
        session.device().respond(over, 1)
    levels = dp.Session("heldp-ucb-b", arms=2, epsilon_min=1, rewards_per_user=4)
    assert levels.device(level="2").epsilon == Fraction(1, 2)
    composed = dp.Session("ldp-ucb-b", arms=2, epsilon=1, rewards_per_user=100, user_delta=1e-6)
    assert composed.device().epsilon == Fraction("0.02401108")
    decision = composed.ask(1)
    assert composed.tell(decision, composed.device().respond(decision, 1)) == "used"
    assert dp.Session.thaw(composed.freeze()).device().epsilon == composed.device().epsilon


@pytest.mark.parametrize("user", [None, "", True, 2.5, "x" * 201, b"ann"])
def test_users_must_be_named(user: Any) -> None:
    session = dp.Session("adap-ucb", arms=2, epsilon=1, rewards_per_user=2)
    with pytest.raises(InputError, match="user must be a text of 1 to 200 characters"):
        session.ask(user)


def test_what_does_not_fit_a_session_for_users_is_refused() -> None:
    with pytest.raises(InputError, match="user is for sessions with rewards_per_user"):
        dp.Session("adap-ucb", arms=2, epsilon=1).ask("ann")
    with pytest.raises(InputError, match="log must not be used with rewards_per_user"):
        dp.Session("adap-ucb", arms=["a", "b"], epsilon=1, rewards_per_user=2).warm_start([("a", 1)])
    with pytest.raises(InputError, match="users must be one for each"):
        dp.Session("adap-ucb", arms=2, epsilon=1, rewards_per_user=2).ask_many(3, ["ann"])


def test_the_memory_of_open_decisions_does_not_grow_for_ever() -> None:
    now = [0.0]
    session = dp.Session("ldp-ucb-b", arms=2, epsilon=1, rewards_per_user=1, window=1.0, clock=lambda: now[0])
    for user in range(2000):
        now[0] += 10.0
        session.tell(session.ask(user), None) if user % 2 else session.ask(user)
    assert len(session._users.whose) <= 2 * (len(session._live.open) + len(session._live.expired)) + 101


def test_what_is_declared_private_is_what_promises_something() -> None:
    for name in lookup.names():
        assert lookup.traits(name).private == (lookup.sample(name).guarantee.trust != "none"), name
        assert lookup.takes(name, "rewards_per_user") == lookup.traits(name).private, name


def test_a_policy_that_promises_nothing_has_no_promise_for_users() -> None:
    """Also where its declaration does not say so; and a private one may call its epsilon anything."""

    @published("nobody")
    def open_ucb(arms: int) -> Parts:
        return Parts(UCB.start(arms, alpha=1.0), Plain.start(arms))

    @published("nobody")
    def own_words(arms: int, *, budget: float) -> Parts:
        return Parts(UCB.start(arms, alpha=1.0), LocalBernoulli.start(arms, epsilon=budget))

    with pytest.raises(InputError, match="policy must be private to promise something to users, got open-ucb"):
        open_ucb(2).for_users(3)
    assert own_words(2, budget=0.5).for_users(3).guarantee.epsilon == 1.5
