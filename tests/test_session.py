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
    with pytest.raises(InputError, match="level must be positive"):
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
    with pytest.raises(InputError, match="format of a frozen session"):
        dp.Session.thaw("{}")


def test_seeds_decide_a_session() -> None:
    def choices(seed: int) -> list[int]:
        session, arms = dp.Session(dp.policies.thompson(arms=3), seed=seed), []
        for t in range(50):
            arms.append(session.ask())
            session.tell(t % 2)
        return arms

    assert choices(1) == choices(1)
    assert choices(1) != choices(2)
