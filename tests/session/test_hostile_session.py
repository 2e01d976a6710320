"""Attacks on a session: bytes of any kind, saved sessions that were changed by somebody who can sign them."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from dpbandits import Session
from dpbandits.errors import InputError


def test_bytes_with_changes_are_refused_or_taken_and_nothing_else_happens() -> None:
    """The seed is fixed. Every refused decision still waits for its answer."""
    rng, session = random.Random(0), Session("ldp-ucb-b", arms=2, epsilon="1/3")
    refused = 0
    for _ in range(500):
        decision = session.ask()
        sent = bytearray(session.device().respond(decision, 0.5).to_bytes())
        for _ in range(rng.randrange(4)):
            place, kind = rng.randrange(len(sent)), rng.choice("cdi")
            sent[place : place + (kind != "i")] = b"" if kind == "d" else bytes([rng.randrange(256)])
        before = session.freeze()
        try:
            session.tell(decision, bytes(sent))
        except InputError:
            refused += 1
            assert session.freeze() == before
            assert session.tell(decision, None) == "missing"
    assert 250 < refused < 490
    assert all(mean is not None and 0.0 <= mean <= 1.0 for mean in session.means.values())


@pytest.mark.parametrize("told", [1, 1.0, 0.5, True, b"1", "1", b"", b"{}", [1], {"response": 1}, bytearray(b"1")])
def test_a_reward_is_never_taken_for_a_response(told: Any) -> None:
    session = Session("ldp-ucb-b", arms=2, epsilon=1)
    with pytest.raises(InputError, match="response must"):
        session.tell(session.ask(), told)


@pytest.mark.parametrize("value", [0.8414, 1 / 3, float("nan"), float("inf")])
def test_a_reward_that_is_dressed_up_as_a_response_is_refused(value: float) -> None:
    """What no device can have made: a number that is not on the grid of exact noise."""
    session = Session("ldp-ucb-l", arms=2, epsilon="1")
    decision = session.ask()
    made = session.device().respond(decision, 0.5)
    with pytest.raises(InputError, match="response must be made by a device of this session") as caught:
        session.tell(decision, made._replace(value=value))
    assert "8414" not in str(caught.value)
    assert session.tell(decision, made) == "used"


def test_a_response_is_told_once_and_to_its_own_decision() -> None:
    session = Session("ldp-ucb-b", arms=2, epsilon="1/3")
    one, two = session.ask(), session.ask()
    body = session.device().respond(one, 1).to_bytes()
    with pytest.raises(InputError, match="must be the one to decision"):
        session.tell(two, body)
    assert session.tell(one, body) == "used"
    with pytest.raises(InputError, match="decision must be one that waits"):
        session.tell(one, body)
    for epsilon in ("1/2", "10", "1/3000000"):
        with pytest.raises(InputError, match="response must be made at epsilon 1/3"):
            session.tell(two, json.dumps({"decision": two.id, "epsilon": epsilon, "response": 1}))


def test_the_level_of_a_sessions_device_cannot_be_changed() -> None:
    device = Session("ldp-ucb-b", arms=2, epsilon="1/3").device()
    with pytest.raises(AttributeError):
        device.epsilon = Fraction(1, 1000)  # type: ignore[misc]


def test_a_saved_session_says_how_secret_it_is() -> None:
    exact, simulated = (
        json.loads(Session("adap-ucb", arms=2, epsilon=1, noise=noise).freeze()) for noise in (None, "simulated")
    )
    assert exact["secret"].startswith("it holds open sums of rewards")
    assert "generators" not in exact
    assert simulated["secret"].endswith("it is as secret as the rewards")
    assert "generators" in simulated


def test_a_session_names_its_noise() -> None:
    exact = Session("adap-ucb", arms=2, epsilon=1)
    assert "the noise is exact" in exact.guarantee.conditions
    simulated = Session("adap-ucb", arms=2, epsilon=1, noise="simulated")
    said = "for simulation: no promise on real rewards"
    assert said in simulated.guarantee.conditions
    assert simulated.guarantee.in_short == said
    assert str(simulated.guarantee) == "For simulation: no promise on real rewards."
    assert simulated.guarantee.to_json()["promise"] == f"none: {said}"
    assert "promise" not in exact.guarantee.to_json()


def test_what_a_promise_rests_on_cannot_be_set_afterwards() -> None:
    simulated = Session("adap-ucb", arms=2, epsilon=1, noise="simulated")
    users = Session("adap-ucb", arms=2, epsilon=1, rewards_per_user=1)
    with pytest.raises(AttributeError):
        simulated.simulated = False  # type: ignore[misc]
    with pytest.raises(AttributeError):
        users.rewards_per_user = 100  # type: ignore[misc]


@pytest.mark.parametrize("name", ["adap-ucb", "ldp-ucb-b"])
def test_a_reward_in_the_place_of_a_decision_is_not_shown(name: str) -> None:
    session = Session(name, arms=2, epsilon=1)
    decision = session.ask()
    for wrong in (0.8414, "0.8414", [0.8414], ("0.8414", 1)):
        for refused in (
            lambda wrong=wrong: session.tell(wrong, decision),
            lambda wrong=wrong: session.tell_many([(wrong, decision)]),
        ):
            with pytest.raises(InputError, match="decision must be one that ask returned") as caught:
                refused()
            assert "8414" not in str(caught.value)


def signed(record: dict[str, Any]) -> str:
    content = {name: value for name, value in record.items() if name != "checksum"}
    checksum = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return json.dumps({**content, "checksum": checksum})


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from places(part, (*place, key))


WRONG: tuple[Any, ...] = (None, -1, 0, 1, 10**30, 1e308, "x", "nan", [], {}, [1], True, "1/0", 2.5, -0.5)


@pytest.mark.parametrize("name", ["adap-ucb", "ldp-ucb-b", "dp-ucb"])
def test_a_changed_session_is_refused_by_name_or_works(name: str) -> None:
    """Whoever can sign it can change anything; but nothing crashes, and nothing is read from outside the memory."""
    rng, session = random.Random(1), Session(name, arms=3, epsilon=1, horizon=100 if name == "dp-ucb" else None)
    for _ in range(10):
        decision = session.ask()
        session.tell(decision, session.device().respond(decision, 1) if name.startswith("ldp") else 1.0)
    session.ask()
    record = json.loads(session.freeze())
    spots = [place for place in places(record) if place and place[0] != "checksum"]
    refused = 0
    for _ in range(250):
        changed = json.loads(json.dumps(record))
        place, inner = rng.choice(spots), changed
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = rng.choice(WRONG)
        try:
            thawed = Session.thaw(signed(changed))
            thawed.ask()
            thawed.freeze()
        except InputError:
            refused += 1
    assert refused > 100
