"""What a policy declares about itself is asked from its declaration, and never guessed from the name of an option."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dpbandits as dp
from dpbandits import policies
from dpbandits.agents import UCB
from dpbandits.audit.subjects import claim_of
from dpbandits.checks import positive
from dpbandits.curators import HeterogeneousBernoulli, LocalBernoulli, WeightedBernoulli
from dpbandits.errors import InputError
from dpbandits.policies import lookup
from dpbandits.policies.policy import Parts, published
from dpbandits.service.experiment import Experiment, Settings
from dpbandits.testing import LAWS, Case
from dpbandits.testing.playing import on_proven_ground

FIVE_LEVELS = "choice(0,0.2,1,2,100)"
PLAYED: dict[str, Any] = {"arms": "0.9,0.6", "horizon": 1000, "runs": 2}


@published("a test", levels="bernoulli", threshold="least", cost="noise", sample={"least": 1.0})
def own_threshold(arms: int, *, least: float) -> Parts:
    """HeLDP-UCB-B, whose threshold has another name."""
    curator = HeterogeneousBernoulli.start(arms, epsilon_min=positive("least", least))
    return Parts(UCB.start(arms, alpha=4.0, lag=1), curator)


@published("a test", levels="bernoulli", cost="noise")
def no_threshold(arms: int, *, epsilon_min: float = 7.0) -> Parts:
    """It discards nobody. Its option is no threshold, though HeLDP's threshold has the same name."""
    return Parts(UCB.start(arms, alpha=4.0), WeightedBernoulli.start(arms))


@published("a test", cost="bulk")
def broken_promise(arms: int, *, epsilon: float, as_printed: bool = True) -> Parts:
    """Promises twice the epsilon that was asked for, and does not declare it."""
    return Parts(UCB.start(arms, alpha=4.0), LocalBernoulli.start(arms, epsilon=2.0 * positive("epsilon", epsilon)))


# --- thresholds ------------------------------------------------------------------------------------------------------


def test_the_population_chooses_a_threshold_of_any_name() -> None:
    own = dp.simulate(own_threshold, levels=FIVE_LEVELS, options={"least": "auto"}, **PLAYED)
    ours = dp.simulate("heldp-ucb-b", levels=FIVE_LEVELS, options={"epsilon_min": "auto"}, **PLAYED)
    assert own.options == {"least": 2.0}
    assert (own.pulls == ours.pulls).all()
    with pytest.raises(InputError, match="levels is required by least=auto, got none"):
        dp.simulate(own_threshold, options={"least": "auto"}, **PLAYED)


def test_a_threshold_above_all_levels_is_refused_by_its_name() -> None:
    with pytest.raises(InputError, match=r"^least must be a level that some users have, of choice\(1,2\), got 3$"):
        dp.simulate(own_threshold, levels="choice(1,2)", options={"least": 3}, **PLAYED)
    assert dp.simulate(no_threshold, levels="choice(1,2)", **PLAYED).runs == 2


def test_a_threshold_is_shared_among_the_rewards_of_a_user() -> None:
    assert own_threshold(2, least=3.0).for_users(3).of_reward == {"arms": 2, "least": 1.0}
    assert own_threshold(2, least=3.0).for_users(3).threshold == 3.0
    assert no_threshold(2).for_users(3).of_reward == {"arms": 2, "epsilon_min": 7.0}


def test_audits_and_laws_take_the_threshold_as_the_level() -> None:
    assert claim_of(own_threshold(2, least=0.5), None, None) == (0.5, 0.0)
    assert claim_of(no_threshold(2), None, None) == (1.0, 0.0)
    lower = Case(own_threshold, settings={"least": 0.5})
    assert str(on_proven_ground(lower, horizon=100, runs=1).simulation.levels) == "constant(0.5)"
    assert str(on_proven_ground(Case(no_threshold), horizon=100, runs=1).simulation.levels) == "constant(1)"


def test_a_threshold_must_refuse_what_is_no_level() -> None:
    law = LAWS["bad_parameters_are_refused_by_name_and_value"]
    law(Case(own_threshold))
    law(Case(no_threshold))

    careless = published("a test", levels="bernoulli", threshold="least", sample={"least": 1.0})(unread)
    with pytest.raises(AssertionError, match=r"least=0.0 is accepted"):
        law(Case(careless))


def unread(arms: int, *, least: float) -> Parts:
    return Parts(UCB.start(arms, alpha=4.0), WeightedBernoulli.start(arms))


def test_the_service_chooses_and_checks_a_threshold_of_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_leveled.py").write_text(
        "from dpbandits.agents import UCB\n"
        "from dpbandits.curators import HeterogeneousBernoulli\n"
        "from dpbandits.policies.policy import Parts, published\n"
        "@published('a test', levels='bernoulli', threshold='least', sample={'least': 1.0})\n"
        "def mine(arms: int, *, least: float) -> Parts:\n"
        "    return Parts(UCB.start(arms, alpha=4.0), HeterogeneousBernoulli.start(arms, epsilon_min=least))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    own, asked = "own_leveled:mine", {"name": "shop", "arms": ["red", "green"], "levels": ["0", "1/5", "1", "2", "100"]}

    def made(least: Any) -> Experiment:
        settings = Settings.model_validate({**asked, "policy": own, "options": {"least": least}})
        return Experiment(1, settings, own=[own])

    assert made("auto").policy.threshold == 2.0
    with pytest.raises(InputError, match=r"^least must be a level that some users have, at most 100, got 200"):
        made(200.0)


def test_a_threshold_is_an_option_of_a_policy_with_levels() -> None:
    with pytest.raises(InputError, match=r"^threshold must be an option of unread, got 'lest': did you mean least"):
        published("a test", levels="bernoulli", threshold="lest")(unread)
    with pytest.raises(InputError, match=r"^threshold is a trait of policies with levels, and unread has none"):
        published("a test", threshold="least")(unread)


# --- deltas ----------------------------------------------------------------------------------------------------------


@published("a test")
def own_delta(arms: int, *, epsilon: float, delta: float = 0.3) -> Parts:
    """Its option is no delta of a promise, though that of dp-ucb-int has the same name."""
    return Parts(UCB.start(arms, alpha=delta), LocalBernoulli.start(arms, epsilon=positive("epsilon", epsilon)))


def test_only_the_delta_of_a_promise_is_shared_among_a_user_s_rewards() -> None:
    own = own_delta(2, epsilon=1.0).for_users(5)
    assert own.of_reward == {"arms": 2, "epsilon": pytest.approx(0.2), "delta": 0.3}
    for name in lookup.names():
        policy = lookup.sample(name)
        assert (lookup.traits(name).delta is not None) == (policy.guarantee.delta > 0.0), name


def test_a_delta_is_an_option_beside_epsilon() -> None:
    with pytest.raises(InputError, match=r"^delta must be an option of unread beside epsilon, and 'dleta' is none"):
        published("a test", delta="dleta")(unread)


def test_a_private_policy_without_an_epsilon_is_not_called_public() -> None:
    @published("a test")
    def by_rho(arms: int, *, rho: float = 0.1) -> Parts:
        return Parts(UCB.start(arms, alpha=4.0), LocalBernoulli.start(arms, epsilon=rho))

    with pytest.raises(
        InputError, match=r"^epsilon is not a parameter of \S+ \(its privacy has other parameters\), got 1"
    ):
        lookup.make(by_rho, arms=2, epsilon=1.0)


# --- promises --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factory", [policies.dp_ucb, policies.dp_ucb_bound])
def test_a_policy_may_promise_more_than_its_epsilon_where_it_declares_so(factory: lookup.Factory) -> None:
    assert (factory(2, epsilon=1.0, as_printed=True).overspends, factory(2, epsilon=1.0).overspends) == (True, False)
    LAWS["guarantee_is_complete"](Case(factory, settings={"as_printed": True}))


def test_an_option_called_as_printed_excuses_nothing() -> None:
    with pytest.raises(AssertionError, match="the promise is not the epsilon asked for"):
        LAWS["guarantee_is_complete"](Case(broken_promise))


def test_what_is_declared_to_be_more_than_epsilon_must_be_more() -> None:
    @published("a test", overspends={"lavish": True})
    def modest(arms: int, *, epsilon: float, lavish: bool = True) -> Parts:
        return Parts(UCB.start(arms, alpha=4.0), LocalBernoulli.start(arms, epsilon=epsilon))

    LAWS["guarantee_is_complete"](Case(modest, settings={"lavish": False}))
    with pytest.raises(AssertionError, match="the promise is not above the epsilon asked for"):
        LAWS["guarantee_is_complete"](Case(modest))


# --- recommendations -------------------------------------------------------------------------------------------------


def test_one_policy_is_recommended_in_each_trust_model() -> None:
    recommended = [lookup.sample(name) for name in lookup.names() if lookup.traits(name).recommended]
    assert sorted(policy.guarantee.trust for policy in recommended) == ["central", "local"]
    assert all(not policy.traits.caution and not policy.traits.slow for policy in recommended)
