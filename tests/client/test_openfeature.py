"""The OpenFeature provider: an experiment is a string flag, evaluation is a decision, tracking is the report."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from moody import Hand, Moody, Still, moody
from openfeature import api
from openfeature.client import OpenFeatureClient
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import ErrorCode
from openfeature.track import TrackingEventDetails

from dpbandits.client import Client
from dpbandits.client.openfeature import Provider

ANN, BOB = EvaluationContext("ann"), EvaluationContext("bob")


class World:
    """A server with moods, a client of it, and OpenFeature's client of that."""

    def __init__(self, server: Moody, folder: Path) -> None:
        self.server, self.folder, self.clock = server, folder, Hand()
        self.events: list[dict[str, Any]] = []

    def flags(self, limit: str = "10", **settings: Any) -> OpenFeatureClient:
        store: dict[str, Any] = {"store": self.folder / "answers", "clock": self.clock, "observer": self.events.append}
        self.client = Still(self.server.url, limit=limit, **store)
        api.set_provider(Provider(self.client, **{"otherwise": 0, **settings}))
        return api.get_client()

    @property
    def drawn(self) -> list[tuple[str, float]]:
        return [(event["id"], event["reward"]) for event in self.events if event["type"] == "drawn"]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with moody() as server:
        yield World(server, tmp_path)
    api.shutdown()


def test_evaluation_is_a_decision_and_tracking_its_report(world: World) -> None:
    flags = world.flags()
    details = flags.get_string_details("banner", "red", ANN)
    assert (details.value, details.variant, details.reason, details.error_code) == ("green", "green", "SPLIT", None)
    assert details.flag_metadata["answered"] is True
    flags.track("banner", ANN)
    flags.track("banner", ANN, TrackingEventDetails(value=0))
    assert world.drawn == [(details.flag_metadata["decision"], 1.0)], "the first report stands"
    world.clock.now += 100
    world.client.flush()
    assert len(world.server.sent) == 1
    assert world.server.asked == [{"decision": details.flag_metadata["decision"], "user": "ann"}]


def test_a_user_keeps_an_arm_until_the_answer_is_due(world: World) -> None:
    flags = world.flags()

    def decision(user: EvaluationContext = ANN, flag: str = "banner") -> object:
        return flags.get_string_details(flag, "red", user).flag_metadata["decision"]

    first = decision()
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: decision(), range(8))) == {first}
    other = world.flags()  # another process
    assert other.get_string_details("banner", "red", ANN).flag_metadata["decision"] == first
    other.track("banner", ANN)
    assert decision() == first
    assert len({first, decision(BOB), decision(ANN, "price")}) == 3
    world.clock.now += 100
    assert decision() != first


def test_each_user_has_a_budget(world: World) -> None:
    flags = world.flags(limit="1/2")
    assert flags.get_string_details("banner", "red", ANN).flag_metadata["answered"] is True
    over = flags.get_string_details("price", "1.99", ANN)
    assert (over.value, over.error_code, over.flag_metadata["silent"]) == ("green", None, "budget")
    flags.track("price", ANN)
    assert flags.get_string_details("banner", "red", BOB).flag_metadata["answered"] is True
    assert world.drawn == []
    budget = world.client.budget("ann")
    assert budget is not None
    assert budget.spent == Fraction(1, 2)


def test_other_events_values_and_levels(world: World) -> None:
    flags = world.flags(events={"checkout": ["banner", "price"]}, otherwise={"banner": 0, "price": None}, after=5)
    flags.track("checkout", ANN)
    flags.get_string_value("price", "1.99", EvaluationContext("ann", {"level": "1/2"}))
    assert world.server.asked[0]["level"] == "1/2"
    assert world.events[0]["due"] - world.clock.now <= 5.5
    flags.track("checkout", ANN, TrackingEventDetails(value=0.5))
    assert [reward for _, reward in world.drawn] == [0.5]


@pytest.mark.parametrize(
    ("mood", "code"),
    [
        ("404", ErrorCode.FLAG_NOT_FOUND),
        ("garbled", ErrorCode.PARSE_ERROR),
        ("503", ErrorCode.GENERAL),
        ("401", ErrorCode.GENERAL),
        ("409", ErrorCode.GENERAL),
        ("422", ErrorCode.INVALID_CONTEXT),
        ("cut", ErrorCode.GENERAL),
    ],
)
def test_errors_are_codes_and_the_default(world: World, mood: str, code: ErrorCode) -> None:
    world.server.mood = mood
    details = world.flags().get_string_details("banner", "red", ANN)
    assert (details.value, details.reason, details.error_code) == ("red", "ERROR", code)


def test_what_cannot_be_evaluated(world: World) -> None:
    flags = world.flags(otherwise={"banner": 0})
    assert flags.get_string_details("banner", "red").error_code == ErrorCode.TARGETING_KEY_MISSING
    assert flags.get_string_details("other", "red", ANN).error_code == ErrorCode.FLAG_NOT_FOUND
    for details in (
        flags.get_boolean_details("banner", True, ANN),
        flags.get_integer_details("banner", 1, ANN),
        flags.get_float_details("banner", 1.0, ANN),
        flags.get_object_details("banner", {}, ANN),
    ):
        assert details.error_code == ErrorCode.TYPE_MISMATCH
    flags.track("banner")
    flags.track("banner", ANN)
    assert world.server.paths == []


def test_without_a_store_the_default(world: World) -> None:
    client = Client(world.server.url, store="/proc/none/answers")
    api.set_provider(Provider(client, otherwise=0))
    details = api.get_client().get_string_details("banner", "red", ANN)
    assert (details.value, details.error_code) == ("red", ErrorCode.GENERAL)


def test_the_loop_goes_on_meanwhile(world: World) -> None:
    flags = world.flags()

    async def evaluate() -> list[str]:
        return await asyncio.gather(*(flags.get_string_value_async("banner", "red", ANN) for _ in range(3)))

    assert asyncio.run(evaluate()) == ["green"] * 3
    assert len(world.server.asked) == 1
