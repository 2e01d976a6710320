"""What a policy declares about itself is asked from its declaration, and never guessed from the name of an option."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpbandits as dp
from dpbandits import policies
from dpbandits.agents import UCB
from dpbandits.audit.subjects import claim_of
from dpbandits.checks import positive
from dpbandits.curators import HeterogeneousBernoulli, LocalBernoulli, Plain, WeightedBernoulli
from dpbandits.errors import InputError
from dpbandits.experiments.azize2022 import table1
from dpbandits.planning.grid import Candidate, Outcome
from dpbandits.policies import lookup
from dpbandits.policies.policy import CAUTION_DUE, Parts, published
from dpbandits.service.experiment import Experiment, Settings
from dpbandits.simulation.tails import tail_of
from dpbandits.testing import LAWS, Case
from dpbandits.testing.playing import on_proven_ground

Command = Callable[..., tuple[int, str, str]]

ROOT = Path(__file__).parents[2]
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
    positive("epsilon_min", epsilon_min)
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
    rule = r"^least must be a level that some users reach, where users have choice\(1,2\), got 3$"
    with pytest.raises(InputError, match=rule):
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


@pytest.mark.parametrize("annotation", ["float", float, float | str, "int | None"])
def test_a_number_of_any_name_must_be_finite(annotation: Any) -> None:
    """Postponed annotations are text, others are types."""

    def careless(arms: int, *, kappa: float = 1.0) -> Parts:
        return Parts(UCB.start(arms, alpha=4.0 if kappa < 2.0 else 3.0), Plain.start(arms))

    def careful(arms: int, *, kappa: float = 1.0) -> Parts:
        return careless(arms, kappa=positive("kappa", kappa))

    law = LAWS["bad_parameters_are_refused_by_name_and_value"]
    for build in (careless, careful):
        build.__annotations__["kappa"] = annotation
    law(Case(published("a test", private=False)(careful)))
    with pytest.raises(AssertionError, match=r"kappa=nan is accepted"):
        law(Case(published("a test", private=False)(careless)))


def test_options_are_read_from_text_where_annotations_are_types(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dpbandits: Command
) -> None:
    """As on docs/howto/add-a-policy.md, whose module does not postpone its annotations."""
    (tmp_path / "own_typed.py").write_text(
        "from dpbandits.agents import UCB\n"
        "from dpbandits.checks import positive\n"
        "from dpbandits.curators import Plain\n"
        "from dpbandits.policies.policy import Parts, published\n"
        "@published('a test', private=False)\n"
        "def mine(arms: int, *, c: float = 5.0) -> Parts:\n"
        "    return Parts(UCB.start(arms, alpha=positive('c', c)), Plain.start(arms))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    asked = "simulate own_typed:mine --arms 0.9,0.6 --horizon 100 --runs 2 --engine python --option c=3 --json"
    status, out, err = dpbandits(*asked.split())
    assert status == 0, err
    assert json.loads(out)["options"] == {"c": 3.0}


def test_the_service_chooses_and_checks_a_threshold_of_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_leveled.py").write_text(
        "from dpbandits.agents import UCB\n"
        "from dpbandits.curators import HeterogeneousBernoulli\n"
        "from dpbandits.policies.policy import CAUTION_DUE, Parts, published\n"
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
    rule = r"^least must be a level that some users reach, where users have choice\(0,0.2,.*, got 200"
    with pytest.raises(InputError, match=rule):
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


def test_an_epsilon_that_is_not_one_of_privacy_promises_nothing() -> None:
    """That of epsilon-greedy is a share of rounds."""

    @published("a test", private=False)
    def greedy(arms: int, *, epsilon: float) -> Parts:
        return Parts(UCB.start(arms, alpha=positive("epsilon", epsilon)), Plain.start(arms))

    LAWS["guarantee_is_complete"](Case(greedy))


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


# --- horizons --------------------------------------------------------------------------------------------------------


def scheduled(arms: int, *, epsilon: float, horizon: int | None = None, how: str = "open") -> Parts:
    return Parts(UCB.start(arms, alpha=4.0), LocalBernoulli.start(arms, epsilon=epsilon))


def test_whether_a_horizon_is_needed_is_said_once_and_may_depend_on_options() -> None:
    mine = published("a test", needs_horizon={"how": "ended"})(scheduled)
    assert [lookup.needs_horizon(mine, options) for options in (None, {"how": "open"}, {"how": "ended"})] == [
        False,
        False,
        True,
    ]
    assert "horizon" not in mine(2, epsilon=1.0, horizon=9).settings
    assert mine(2, epsilon=1.0, horizon=9, how="ended").horizon == 9
    with pytest.raises(InputError, match=r"^horizon is required by .*scheduled with how=ended: how many rounds it"):
        lookup.make(mine, arms=2, epsilon=1.0, given={"how": "ended"})


def test_every_place_agrees_that_one_schedule_of_dp_ucb_int_needs_a_horizon() -> None:
    tail = tail_of(np.ones(3))
    for schedule, needed in (("y", False), ("exact", True)):
        options = {"schedule": schedule}
        made = lookup.make("dp-ucb-int", arms=2, epsilon=1.0, horizon=50, given=options)
        outcome = Outcome(
            Candidate("dp-ucb-int"), "central", 1.0, 0.0, options, 3, 0.0, 0.0, (0.0, 0.0), tail, None, (), ()
        )
        assert (made.horizon is not None) == lookup.needs_horizon("dp-ucb-int", options) == needed
        assert outcome.needs_horizon == needed
    assert table1.anytime("dp-ucb-int") == (not lookup.needs_horizon("dp-ucb-int"))


def test_a_declaration_that_contradicts_the_parameters_is_refused() -> None:
    with pytest.raises(InputError, match=r"^needs_horizon must name options of scheduled, got 'hwo': did you mean how"):
        published("a test", needs_horizon={"hwo": "ended"})(scheduled)
    with pytest.raises(InputError, match=r"^needs_horizon is a trait of policies with a parameter horizon, and unread"):
        published("a test", needs_horizon=True, levels="bernoulli")(unread)


# --- cautions --------------------------------------------------------------------------------------------------------


def disasters() -> dict[str, float]:
    """For each policy as a plan would play it: the most disasters per 10,000 runs in a table of the benchmark."""
    most: dict[str, float] = {}
    for block in (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8").split("\n\n"):
        if block.split("\n")[0].endswith("| disasters |"):
            for line in block.strip().split("\n")[2:]:
                policy, *_, number = line.strip("| ").replace("`", "").split(" | ")
                most[policy] = max(most.get(policy, 0.0), float(number.replace("–", "0")))
    return {policy: number for policy, number in most.items() if policy in lookup.names()}


def test_a_policy_has_a_caution_where_disasters_are_as_frequent_as_the_rule_says() -> None:
    found = disasters()
    assert len(found) > 20
    due = {name for name, number in found.items() if number >= CAUTION_DUE}
    assert due == {name for name in lookup.names() if lookup.traits(name).caution}
