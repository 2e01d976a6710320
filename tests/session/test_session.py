"""Sessions: what they take, what they refuse, what they keep."""

from __future__ import annotations

import json
import math
import random
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpbandits as dp
from dpbandits import policies
from dpbandits.client import BernoulliCurator, LaplaceCurator, LocalCurator, SigmoidCurator, Store
from dpbandits.client import Device as ClientDevice
from dpbandits.errors import InputError
from dpbandits.exact import RiggedNoise, SystemNoise
from dpbandits.parts import freeze
from dpbandits.session import Decision, Response, Session, saved

SECRET = "123456"
REWARD = 0.123456


def signed(record: dict[str, Any]) -> str:
    """A record with the checksum that fits it."""
    body = {name: value for name, value in record.items() if name != "checksum"}
    return json.dumps({**body, "checksum": saved.checksum(body)})


# --- decisions ------------------------------------------------------------------------------------------------------


def test_every_question_is_a_decision_of_its_own() -> None:
    asked = Session("ucb1", arms=["red", "green"])
    decisions = [asked.ask() for _ in range(3)]
    assert len({decision.id for decision in decisions}) == 3
    assert asked.rounds == 3
    assert {decision.arm for decision in decisions} <= {"red", "green"}
    assert all(asked.arms[decision.number] == decision.arm for decision in decisions)


def test_many_open_decisions_are_answered_in_any_order() -> None:
    asked = Session("ldp-ucb-b", arms=3, epsilon=1)
    device, decisions = asked.device(), [asked.ask() for _ in range(300)]
    told = random.Random(0).sample(decisions, 200)
    assert {asked.tell(decision, device.respond(decision, 1.0)) for decision in told} == {"used"}
    counts = [sum(decision.number == arm for decision in told) for arm in range(3)]
    curator: Any = asked.policy.curator
    assert curator.counts.tolist() == counts
    assert asked.version == 200
    left = [decision for decision in decisions if decision not in told]
    assert {asked.tell(decision.id, None) for decision in left} == {"missing"}
    assert curator.counts.tolist() == counts


def test_an_answer_is_taken_once() -> None:
    for name in ("ldp-ucb-b", "adap-ucb", "ucb1"):
        asked = Session(name, arms=2, epsilon=None if name == "ucb1" else 1)
        local = name.startswith("ldp")
        one, two = asked.ask(), asked.ask()
        asked.tell(one, asked.device().respond(one, 1.0) if local else 1.0)
        asked.tell(two, None)
        for decision in (one, two):
            before = asked.freeze()
            with pytest.raises(InputError, match=f"decision must be one that waits for a response, got {decision.id}"):
                asked.tell(decision, asked.device().respond(decision, 1.0) if local else 1.0)
            assert asked.freeze() == before


@pytest.mark.parametrize("decision", ["7", "abc", "", "-1", "1.0", 7, None, 1.0, ("1", 0, 0)])
def test_what_was_never_asked_is_refused(decision: Any) -> None:
    asked = Session("ucb1", arms=2)
    asked.ask()
    with pytest.raises(InputError, match="decision must be one that") as caught:
        asked.tell(decision, REWARD)
    assert caught.value.parameter == "decision"
    assert SECRET not in str(caught.value)


def test_threads_share_a_session() -> None:
    asked = Session("ldp-ucb-b", arms=2, epsilon=1)
    device, seen, start = asked.device(), list[str](), threading.Barrier(6)

    def work() -> None:
        start.wait()
        for _ in range(50):
            decision = asked.ask()
            seen.append(decision.id)
            asked.tell(decision, device.respond(decision, 1.0))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    curator: Any = asked.policy.curator
    assert len(set(seen)) == len(seen) == asked.rounds == curator.counts.sum() == 300


def test_a_session_ends_at_the_horizon_its_policy_was_made_for() -> None:
    asked = Session(policies.private_ucb(arms=2, epsilon=1.0, horizon=3))
    for _ in range(3):
        asked.tell(asked.ask(), 1.0)
    with pytest.raises(InputError, match="horizon is 3 rounds"):
        asked.ask()


def test_two_sessions_of_one_policy_know_nothing_of_each_other() -> None:
    policy = policies.ldp_ucb_b(arms=2, epsilon=1.0)
    one, two = Session(policy), Session(policy)
    decision = one.ask()
    one.tell(decision, one.device().respond(decision, 1.0))
    assert one.policy.curator.counts.tolist() == [1, 0]  # type: ignore[attr-defined]
    assert two.policy.curator.counts.tolist() == [0, 0]  # type: ignore[attr-defined]


# --- making a session -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"arms": ["a", "a"]}, "arms must be 2 different names"),
        ({"arms": ["a"]}, "arms must be at least two names, got ['a']"),
        ({"arms": 1}, "arms must be a whole number of at least 2, got 1"),
        ({}, "arms is required"),
        ({"arms": 2, "window": 0}, "window must be positive and finite, got 0"),
        ({"arms": 2, "seed": 3}, "seed is for simulated noise alone, got 3"),
        ({"arms": 2, "noise": np.random.default_rng(0)}, "noise must be exact where rewards are real, got Generator"),
        ({"arms": 2, "noise": "simulatd"}, "noise must be 'simulated' or a source of exact noise, got 'simulatd'"),
        ({"arms": 2, "noise": RiggedNoise(bytes)}, "noise must be exact where rewards are real, got RiggedNoise"),
        ({"arms": 2, "options": {"alhpa": 1}}, "alhpa is not an option of adap-ucb: did you mean alpha?"),
        (
            {"arms": 2, "epsilon": "0"},
            'epsilon must be positive, as a decimal number or a fraction such as "0.1" or "1/3" (no exponent), got '
            "'0'",
        ),
        ({"arms": 2, "epsilon": None}, "epsilon is required by adap-ucb, got none"),
    ],
)
def test_bad_settings_are_refused_by_name(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Session("adap-ucb", **{"epsilon": 1, **given})
    assert message in str(caught.value)
    assert message.startswith(caught.value.parameter)


def test_a_policy_that_is_made_keeps_its_own_settings() -> None:
    made = policies.adap_ucb(arms=2, epsilon=1.0)
    with pytest.raises(InputError, match="policy is an instance: epsilon"):
        Session(made, epsilon=1)
    for arms in (3, ["a", "b", "c"]):
        with pytest.raises(InputError, match="arms must be 2 different names"):
            Session(made, arms=arms)
    assert Session(made, arms=["a", "b"]).ask().arm == "a"
    assert Session(made, arms=2).ask().arm == 0


def test_the_guarantee_says_which_noise_it_rests_on() -> None:
    exact, simulated = (Session("adap-ucb", arms=2, epsilon=1, noise=noise) for noise in (SystemNoise(), "simulated"))
    assert "the noise is exact" in exact.guarantee.conditions
    assert "no promise on real rewards" in simulated.guarantee.conditions
    assert (exact.guarantee.epsilon, exact.guarantee.trust) == (1.0, "central")


def test_seeds_decide_a_session_with_simulated_noise() -> None:
    def choices(seed: int) -> list[Any]:
        asked, arms = Session("thompson", arms=3, noise="simulated", seed=seed), []
        for t in range(50):
            decision = asked.ask()
            arms.append(decision.arm)
            asked.tell(decision, t % 2)
        return arms

    assert choices(1) == choices(1)
    assert choices(1) != choices(2)


# --- the local model ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [None, "simulated"])
def test_a_raw_reward_is_refused_in_the_local_model(noise: Any) -> None:
    for name, options in (("ldp-ucb-b", {}), ("ldp-ucb-l", {}), ("heldp-ucb-l", {"epsilon_min": 1})):
        epsilon = None if options else 1
        asked = Session(name, arms=2, epsilon=epsilon, options=options, noise=noise)
        decision = asked.ask()
        for raw in (REWARD, 1, 0.0, np.float64(REWARD), (1.0, 1), [REWARD]):
            with pytest.raises(InputError, match="response must be made by a device, not a reward") as caught:
                asked.tell(decision, raw)
            assert SECRET not in str(caught.value)
        level = None if epsilon else 1
        assert asked.tell(decision, asked.device(level=level).respond(decision, REWARD)) == "used"


def test_levels_travel_with_the_response() -> None:
    asked = Session("heldp-ucb-l", arms=2, options={"epsilon_min": 1.0})
    decision = asked.ask()
    with pytest.raises(InputError, match="level is required by heldp-ucb-l, got none"):
        asked.device()
    with pytest.raises(InputError, match="level must be positive"):
        asked.device(level=0)
    assert asked.tell(decision, asked.device(level="2").respond(decision, 0.5)) == "used"
    curator: Any = asked.policy.curator
    assert (curator.counts.tolist(), curator.variances.tolist()) == ([1, 0], [0.25, 0.0])
    decision = asked.ask()
    assert asked.tell(decision, asked.device(level="1/2").respond(decision, 0.5)) == "used"
    assert curator.counts.tolist() == [1, 0], "a response below epsilon_min was used"
    assert asked.tell(asked.ask(), None) == "missing"
    assert asked.rounds == 3
    with pytest.raises(InputError, match="level is not a parameter of ldp-ucb-l"):
        Session("ldp-ucb-l", arms=2, epsilon=1).device(level=1)
    with pytest.raises(InputError, match="device is for the local model; adap-ucb takes rewards"):
        Session("adap-ucb", arms=2, epsilon=1).device()


CLIENTS: dict[str, Callable[[str], LocalCurator]] = {
    "ldp-ucb-b": BernoulliCurator,
    "ldp-ucb-l": LaplaceCurator,
    "ldp-ucb-bs": lambda epsilon: SigmoidCurator(BernoulliCurator(epsilon)),
    "ldp-ucb-ls": lambda epsilon: SigmoidCurator(LaplaceCurator(epsilon)),
    "heldp-ucb-b": BernoulliCurator,
    "heldp-ucb-l": LaplaceCurator,
}


@pytest.mark.parametrize("name", CLIENTS)
def test_a_session_takes_the_bytes_of_the_client(name: str, tmp_path: Path) -> None:
    leveled = name.startswith("heldp")
    asked = Session(name, arms=2, epsilon=None if leveled else "1/3", options={"epsilon_min": 0.3} if leveled else None)
    device, make = ClientDevice(Store(tmp_path / "responses", limit="100")), CLIENTS[name]
    total = [0.0, 0.0]
    for _ in range(20):
        decision = asked.ask()
        body = device.respond(decision.id, 0.7, make("1/3"))
        assert asked.tell(decision, body if decision.number else body.decode()) == "used"
        total[decision.number] += json.loads(body)["response"]
    curator: Any = asked.policy.curator
    assert curator.counts.sum() == 20
    if "-b" not in name:
        assert curator.sums.tolist() == [steps / 65536 for steps in total]
    elif not leveled:
        assert curator.sums.tolist() == total


def test_a_response_at_another_level_is_refused() -> None:
    asked = Session("ldp-ucb-b", arms=2, epsilon="1/3")
    decision = asked.ask()
    for other in ("1/2", "0.3333333333333333", "1"):
        body = json.dumps({"decision": decision.id, "epsilon": other, "response": 1})
        with pytest.raises(InputError, match="response must be made at epsilon 1/3, got one at "):
            asked.tell(decision, body)
    assert asked.tell(decision, json.dumps({"decision": decision.id, "epsilon": "2/6", "response": 1})) == "used"


def test_a_level_that_was_typed_as_a_float_means_what_was_typed() -> None:
    asked = Session(policies.ldp_ucb_b(arms=2, epsilon=0.1))
    decision = asked.ask()
    assert asked.tell(decision, json.dumps({"decision": decision.id, "epsilon": "1/10", "response": 1})) == "used"


@pytest.mark.parametrize("response", [2, -1, 73313, 10**400, -(10**400)])
def test_what_no_device_of_this_policy_makes_is_refused_and_not_shown(response: int) -> None:
    asked = Session("ldp-ucb-b", arms=2, epsilon=1)
    decision = asked.ask()
    with pytest.raises(InputError, match="response is a value that no device of ldp-ucb-b sends") as caught:
        asked.tell(decision, json.dumps({"decision": decision.id, "epsilon": "1", "response": response}))
    assert str(response)[:5] not in str(caught.value)
    assert caught.value.__cause__ is None
    assert asked.tell(decision, None) == "missing", "what was refused has used the decision up"


def test_a_response_larger_than_any_float_is_refused() -> None:
    asked = Session("ldp-ucb-l", arms=2, epsilon=1)
    decision = asked.ask()
    with pytest.raises(InputError, match="response is a value that no device of ldp-ucb-l sends"):
        asked.tell(decision, json.dumps({"decision": decision.id, "epsilon": "1", "response": 10**400}))


def test_a_response_belongs_to_its_decision() -> None:
    asked = Session("ldp-ucb-b", arms=2, epsilon=1)
    one, two = asked.ask(), asked.ask()
    with pytest.raises(InputError, match=f"response must be the one to decision {two.id}, got that to {one.id}"):
        asked.tell(two, asked.device().respond(one, 1.0))


def test_simulated_responses_do_not_meet_real_ones() -> None:
    real = Session("ldp-ucb-b", arms=2, epsilon=1)
    tried = Session("ldp-ucb-b", arms=2, epsilon=1, noise="simulated", seed=0)
    laplace = Session("ldp-ucb-l", arms=2, epsilon=1)
    decision = real.ask()
    tried.ask()
    laplace.ask()
    simulated = tried.device().respond(decision, 1.0)
    with pytest.raises(InputError, match="response must be made by a device of this session"):
        real.tell(decision, simulated)
    with pytest.raises(InputError, match="response must be made by a device of this session"):
        laplace.tell(decision, real.device().respond(decision, 1.0))
    with pytest.raises(InputError, match="noise must be exact for responses of real devices"):
        tried.tell(decision, real.device().respond(decision, 1.0).to_bytes())
    with pytest.raises(InputError, match="response must be made with exact noise to leave a device"):
        simulated.to_bytes()
    assert tried.tell(decision, simulated) == "used"


def test_the_bytes_of_a_response_are_those_of_the_client() -> None:
    response = Response("17", Fraction(1, 3), -1.25, 65536, exact=True)
    assert response.to_bytes() == b'{"decision":"17","epsilon":"1/3","response":-81920}'


# --- rewards --------------------------------------------------------------------------------------------------------


def test_a_session_without_privacy_takes_rewards_in_0_to_1_or_squashes_them() -> None:
    plain = Session("kl-ucb", arms=2)
    with pytest.raises(InputError, match=r"reward must lie in \[0, 1\] for kl-ucb; this one does not") as caught:
        plain.tell(plain.ask(), -5.25)
    assert "5.25" not in str(caught.value)
    squashing = Session("ucb1", arms=2, options={"sigmoid": True})
    squashing.tell(squashing.ask(), 3.0)
    assert squashing.policy.curator.mean(0) == pytest.approx(0.952574, abs=1e-6)


def test_a_private_session_clips_rewards_to_the_grid_of_its_noise() -> None:
    asked = Session("dp-se", arms=2, epsilon=1, horizon=1000)
    for reward in (0.3, 7.0, -math.inf, math.nan, np.float32(0.25)):
        assert asked.tell(asked.ask(), reward) == "used"
    curator: Any = asked.policy.curator
    assert curator.raw_sums.tolist() == [round(0.3 * 65536) / 65536 + 1.0 + 0.25, 0.0]


def test_what_is_told_never_stands_in_an_error() -> None:
    asked = Session("adap-ucb", arms=2, epsilon=1)
    decision = asked.ask()
    for told in ("0.8731x", [0.8731], {"reward": 0.8731}):
        with pytest.raises(InputError, match="reward must be a number; this is not one") as caught:
            asked.tell(decision, told)
        assert "8731" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__


# --- late and never -------------------------------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_after_its_window_a_response_is_late_and_not_used() -> None:
    clock = Clock()
    asked = Session("ldp-ucb-b", arms=2, epsilon=1, window=10, clock=clock)
    one, two, three = (asked.ask() for _ in range(3))
    device, curator = asked.device(), asked.policy.curator
    clock.now = 10.0
    assert asked.tell(one, device.respond(one, 1.0)) == "used"
    before = freeze(curator)
    clock.now = 10.5
    assert asked.tell(two, device.respond(two, 1.0)) == "late"
    assert freeze(curator) == before
    with pytest.raises(InputError, match=f"decision must be one that waits for a response, got {two.id}"):
        asked.tell(two, device.respond(two, 1.0))
    later = Session.thaw(asked.freeze(), clock=clock)
    assert later.window == 10
    assert later.tell(three, device.respond(three, 1.0)) == "late"
    four = later.ask()
    assert later.tell(four, device.respond(four, 1.0)) == "used"


def test_a_stint_to_which_nothing_comes_in_time_is_begun_again() -> None:
    """Nothing is released for it, and the next response is."""
    clock = Clock()
    asked = Session("adap-ucb", arms=2, epsilon=1, window=10, clock=clock)
    for _ in range(2):
        asked.tell(asked.ask(), 1.0)
    assert asked.version == 2
    lost = asked.ask()
    clock.now = 11.0
    again = asked.ask()
    assert (again.number, asked.version) == (lost.number, 2), "a stint without responses was released, or given up"
    assert asked.tell(lost, 1.0) == "late"
    assert asked.tell(again, 1.0) == "used"
    assert asked.version == 3


def test_a_user_who_sends_nothing_is_no_zero() -> None:
    asked = Session("adap-ucb", arms=2, epsilon=1)
    assert asked.tell(asked.ask(), None) == "missing"
    assert asked.version == 0
    decision = asked.ask()
    assert decision.number == 0, "the stint still waits for a response"
    assert asked.tell(decision, 1.0) == "used"
    curator: Any = asked.policy.curator
    assert curator.counts.tolist() == [1, 0]


# --- frozen ---------------------------------------------------------------------------------------------------------


def test_a_frozen_session_is_plain_json_with_sums_only() -> None:
    asked = Session("dp-se", arms=["a", "b"], epsilon="1/3", horizon=1000, window=3600)
    for reward in (0.125, 0.25, 0.0625):
        asked.tell(asked.ask(), reward)
    text = asked.freeze()
    record = json.loads(text)
    assert (record["policy"], record["arms"], record["epsilon"], record["window"]) == ("dp-se", ["a", "b"], "1/3", 3600)
    assert record["live"]["desk"]["decisions"] == [3]
    assert record["live"]["curator"]["raw_sums"] == [0.4375, 0.0]
    for shown in ("0.125", "0.25", "0.0625"):
        assert shown not in text, "a single reward is in the frozen session"
    assert Session.thaw(text).freeze() == text


def test_a_frozen_session_with_exact_noise_holds_no_state_of_a_generator() -> None:
    for name in ("adap-ucb", "thompson"):
        text = Session(name, arms=2, epsilon=None if name == "thompson" else 1).freeze()
        record = json.loads(text)
        assert record["noise"] == "exact"
        assert "generators" not in record
        assert "PCG64" not in text
        assert "state" not in text
    simulated = json.loads(Session("adap-ucb", arms=2, epsilon=1, noise="simulated", seed=0).freeze())
    assert set(simulated["generators"]) == {"noise", "choices"}


def test_thawed_exact_sessions_draw_noise_of_their_own() -> None:
    """Two copies release different sums of the same rewards; equal ones have probability below 1e-6."""
    asked = Session("adap-ucb", arms=2, epsilon="1/1000")
    decision = asked.ask()
    copies = [Session.thaw(asked.freeze()) for _ in range(2)]
    for copy in copies:
        copy.tell(decision, 1.0)
    assert copies[0].policy.curator.mean(0) != copies[1].policy.curator.mean(0)


def test_open_decisions_are_frozen_too() -> None:
    asked = Session("ldp-ucb-l", arms=["red", "green"], epsilon="0.5")
    open_ = [asked.ask() for _ in range(3)]
    answers = [asked.device().respond(decision, 0.5) for decision in open_]
    thawed = Session.thaw(asked.freeze())
    assert {thawed.tell(*pair) for pair in zip(reversed(open_), reversed(answers), strict=True)} == {"used"}
    assert thawed.version == 3
    assert thawed.arms == ("red", "green")


def test_a_frozen_session_that_was_changed_is_refused() -> None:
    asked = Session("adap-ucb", arms=2, epsilon=1)
    asked.tell(asked.ask(), 1.0)
    text = asked.freeze()
    record = json.loads(text)
    changed = [
        {**record, "epsilon": "2"},
        {**record, "settings": {**record["settings"], "epsilon": 10.0}},
        {**record, "live": {**record["live"], "open": [[9, 0, 1, 0.0]]}},
        {name: value for name, value in record.items() if name != "checksum"},
        {**record, "more": 1},
    ]
    for wrong in changed:
        with pytest.raises(InputError, match="text was changed after it was saved: its checksum does not fit"):
            Session.thaw(json.dumps(wrong))
    assert Session.thaw(json.dumps(dict(reversed(record.items())))).rounds == 1, "the order of keys says nothing"


@pytest.mark.parametrize("text", ["nonsense", "[]", "{}", "3", "null", '"text"', ""])
def test_what_is_no_frozen_session_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="text must be a saved session"):
        Session.thaw(text)


def test_a_frozen_session_of_another_version_is_refused() -> None:
    record = json.loads(Session("adap-ucb", arms=2, epsilon=1).freeze())
    with pytest.raises(InputError, match="text must be a saved session of format 2, got 1"):
        Session.thaw(signed({**record, "format": 1}))
    curator = record["live"]["curator"]
    for memory, message in (
        ({**curator, "raw_sums": [1.0]}, r"text does not fit: Batch\.raw_sums needs float64 \(2,\)"),
        ({**curator, "counts": [0.5, 0.0]}, r"text does not fit: Batch\.counts needs int64 \(2,\)"),
        ({k: v for k, v in curator.items() if k != "raw_sums"}, "text was saved by another policy or version: Batch"),
        ({**curator, "more": [1.0]}, "text was saved by another policy or version: Batch"),
    ):
        with pytest.raises(InputError, match=message):
            Session.thaw(signed({**record, "live": {**record["live"], "curator": memory}}))


def test_a_session_that_was_saved_before_an_option_was_renamed_goes_on() -> None:
    asked = Session("dp-se", arms=2, epsilon=1, horizon=5000, epoch_factor=0.01)
    for _ in range(20):
        asked.tell(asked.ask(), 1.0)
    text = asked.freeze()
    record = json.loads(text)
    record["settings"]["scale"] = record["settings"].pop("epoch_factor")
    assert Session.thaw(signed(record)).freeze() == text
    with pytest.raises(InputError, match="scale is not an option of dp-se"):
        Session("dp-se", arms=2, epsilon=1, horizon=5000, scale=0.01)


def test_a_policy_that_cannot_be_imported_is_thawed_with_its_function() -> None:
    @policies.policy.published("a test")
    def local_policy(arms: int, *, epsilon: float) -> Any:
        made = policies.adap_ucb(arms, epsilon=epsilon)
        return policies.policy.Parts(made.agent, made.curator)

    text = Session(local_policy, arms=2, epsilon=1).freeze()
    with pytest.raises(InputError, match="policy must be a function at the top level of a module"):
        Session.thaw(text)
    assert Session.thaw(text, local_policy).ask() == Decision("1", 0, 0)


def test_the_package_has_the_session_at_its_top() -> None:
    assert dp.Session is Session


@pytest.mark.parametrize("reward", ["secret", 10**400, 1j, [0.5]], ids=["text", "huge", "complex", "list"])
def test_a_device_answers_what_is_no_number_and_a_server_refuses_it_without_showing_it(reward: Any) -> None:
    """A device that refused would stay silent, and the silence would tell."""
    local, central = Session("ldp-ucb-b", arms=2, epsilon=1), Session("adap-ucb", arms=2, epsilon=1)
    decision = local.ask()
    assert local.tell(decision, local.device().respond(decision, reward)) == "used"
    with pytest.raises(InputError, match=r"^reward must be a number; this is not one$"):
        central.tell(central.ask(), reward)


def test_a_response_at_a_level_beyond_all_floats_is_refused() -> None:
    session = Session("heldp-ucb-b", arms=2, options={"epsilon_min": 1})
    decision = session.ask()
    response = session.device(level=2).respond(decision, 1.0)._replace(epsilon=Fraction(10) ** 400)
    with pytest.raises(InputError, match="response must be made at an epsilon below 1e308"):
        session.tell(decision, response)
