"""Sessions: what they take, what they refuse, what they keep."""

import json

import pytest

import dpbandits as dp
from dpbandits.errors import InputError


def test_ask_is_idempotent_and_tell_needs_it() -> None:
    session = dp.Session(dp.policies.ucb1(arms=2))
    with pytest.raises(InputError, match="tell must follow ask"):
        session.tell(1.0)
    assert session.ask() == session.ask()
    session.tell(1.0)
    assert session.rounds == 1


def test_a_local_session_takes_only_what_a_device_can_send() -> None:
    session = dp.Session(dp.policies.ldp_ucb_b(arms=2, epsilon=1.0))
    session.ask()
    with pytest.raises(InputError, match="response") as caught:
        session.tell(0.123456)
    assert "0.123456" not in str(caught.value)
    session.tell(1)


def test_levels_travel_with_the_response() -> None:
    session = dp.Session(dp.policies.heldp_ucb_l(arms=2, epsilon_min=1.0))
    session.ask()
    with pytest.raises(InputError, match="level must be positive and finite, got None"):
        session.tell(0.5)
    session.tell(0.5, level=2.0)
    session.ask()
    session.tell(None)
    assert session.rounds == 2
    plain = dp.Session(dp.policies.ldp_ucb_l(arms=2, epsilon=1.0))
    plain.ask()
    with pytest.raises(InputError, match="level is not a parameter"):
        plain.tell(0.5, level=1.0)
    with pytest.raises(InputError, match="response is required"):
        plain.tell(None)


def test_a_session_ends_at_the_horizon_its_policy_was_made_for() -> None:
    session = dp.Session(dp.policies.private_ucb(arms=2, epsilon=1.0, horizon=3))
    for _ in range(3):
        session.ask()
        session.tell(1.0)
    with pytest.raises(InputError, match="horizon is 3 rounds"):
        session.ask()


def test_a_frozen_session_is_plain_json_with_sums_only() -> None:
    session = dp.Session(dp.policies.dp_se(arms=2, epsilon=1.0, horizon=1000), seed=0)
    for reward in (0.125, 0.25, 0.0625):
        session.ask()
        session.tell(reward)
    text = session.freeze()
    record = json.loads(text)
    assert record["policy"] == "dp-se"
    assert record["rounds"] == 3
    assert record["curator"]["raw_sums"] == [0.4375, 0.0]
    assert not any(reward in text for reward in ("0.125", "0.25", "0.0625")), "a single reward is in the frozen session"
    with pytest.raises(InputError, match="format of a frozen session must be 1, got 0"):
        dp.Session.thaw(json.dumps({**record, "format": 0}))


def test_seeds_decide_a_session() -> None:
    def choices(seed: int) -> list[int]:
        session, arms = dp.Session(dp.policies.thompson(arms=3), seed=seed), []
        for t in range(50):
            arms.append(session.ask())
            session.tell(t % 2)
        return arms

    assert choices(1) == choices(1)
    assert choices(1) != choices(2)


def test_two_sessions_of_one_policy_know_nothing_of_each_other() -> None:
    policy = dp.policies.ldp_ucb_b(arms=2, epsilon=1.0)
    one, two = dp.Session(policy), dp.Session(policy)
    one.ask()
    one.tell(1)
    assert two.policy.curator.counts.tolist() == [0, 0]  # type: ignore[attr-defined]


def test_a_session_without_privacy_takes_rewards_in_0_to_1_or_squashes_them() -> None:
    plain = dp.Session(dp.policies.kl_ucb(arms=2))
    plain.ask()
    with pytest.raises(InputError, match="response must be one that kl-ucb can be told"):
        plain.tell(-5.25)
    squashing = dp.Session(dp.policies.ucb1(arms=2, sigmoid=True))
    squashing.ask()
    squashing.tell(3.0)
    assert squashing.policy.curator.mean(0) == pytest.approx(0.952574, abs=1e-6)


def test_what_is_told_never_stands_in_an_error() -> None:
    session = dp.Session(dp.policies.adap_ucb(arms=2, epsilon=1.0))
    session.ask()
    with pytest.raises(InputError) as caught:
        session.tell("0.8731x")  # type: ignore[arg-type]
    assert "8731" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_frozen_session_that_does_not_fit_is_refused() -> None:
    session = dp.Session(dp.policies.adap_ucb(arms=2, epsilon=1.0))
    record = json.loads(session.freeze())
    for wrong in ("nonsense", "[]", "{}"):
        with pytest.raises(InputError, match="frozen session"):
            dp.Session.thaw(wrong)
    record["curator"]["raw_sums"] = [1.0]
    with pytest.raises(InputError, match=r"raw_sums has shape \(1,\), not \(2,\)"):
        dp.Session.thaw(json.dumps(record))
    del record["curator"]["raw_sums"]
    with pytest.raises(InputError, match="Batch remembers other things"):
        dp.Session.thaw(json.dumps(record))
