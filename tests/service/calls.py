"""Requests that many tests send."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from starlette.testclient import TestClient

from dpbandits.service.service import Service
from dpbandits.service.tables import states


def wait_for(reached: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until something is so; on a busy machine what takes a second may take many."""
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, f"it did not happen within {seconds:g} s"
        time.sleep(0.05)


def served(client: TestClient) -> Service:
    """The service behind a client."""
    found: Any = client.app
    return found.service


def create(client: TestClient, name: str = "shop", **settings: Any) -> dict[str, Any]:
    """An experiment; local with one bit by default."""
    asked = {"name": name, "arms": ["red", "green", "blue"], "policy": "ldp-ucb-b", **settings}
    if "epsilon" not in settings and "levels" not in settings and asked["policy"] != "ucb1":
        asked["epsilon"] = "1"
    answer = client.post("/v1/experiments", json=asked)
    assert answer.status_code == 201, answer.text
    return answer.json()


def decide(client: TestClient, name: str = "shop", **asked: Any) -> dict[str, Any]:
    answer = client.post(f"/v1/experiments/{name}/decisions", json=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def respond(client: TestClient, token: str, response: Any) -> str:
    """The status that a response gets."""
    return client.post("/v1/responses", json={"token": token, "response": response}).json()["status"]


def reward(client: TestClient, token: str, value: Any) -> str:
    return client.post("/v1/rewards", json={"token": token, "reward": value}).json()["status"]


def read(client: TestClient, what: str, name: str = "shop") -> dict[str, Any]:
    answer = client.get(f"/v1/experiments/{name}/{what}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def folded(client: TestClient, name: str = "shop") -> dict[str, Any]:
    """The summary, once everything that was stored is folded.

    On a busy machine the tally may answer too late for one of the requests.
    """
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        asked = [client.get(f"/v1/experiments/{name}/{what}") for what in ("export.csv", "series", "summary")]
        for answer in asked:
            assert answer.status_code in (200, 503), answer.text
        if all(answer.status_code == 200 for answer in asked):
            stored, points, found = asked[0].text.count("\n") - 1, asked[1].json()["points"], asked[2].json()
            counted = sum(one["decisions"] for point in points for one in point["arms"].values())  # what is folded
            if found["responses"]["waiting"] == 0 and counted == stored == found["decisions"]:
                return dict(found)
        time.sleep(0.02)
    raise AssertionError(f"it was not folded within two minutes: {[answer.status_code for answer in asked]}")


def put_back(client: TestClient) -> None:
    """Draw noise in a new experiment, and make its stored state that of an old copy, which knows of no draw."""
    create(client, policy="adap-ucb")
    assert reward(client, decide(client)["token"], 1) == "accepted"
    folded(client)
    service = served(client)
    assert service._folder is not None
    service._folder.stop()
    with service.store.engine.begin() as connection:
        connection.execute(sa.update(states).values(draws=0, changed=0))
