"""What is read about an experiment is whole, exact, and costs those who decide little."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
from calls import create, decide, folded, read, reward, served
from starlette.testclient import TestClient

from dpbandits.privacy.users import delta_of_reward, group
from dpbandits.service import events, reports
from dpbandits.service.events import Watched
from dpbandits.service.tables import people


def test_pages_of_the_ledger_hold_every_release(client: TestClient) -> None:
    create(client, policy="dp-ucb", arms=["red", "green"])
    tokens = [one["token"] for one in decide(client, count=40)["decisions"]]
    client.post("/v1/rewards", json=[{"token": token, "reward": 1} for token in tokens])
    folded(client)
    whole = read(client, "ledger")["entries"]
    assert len({one["release"] for one in whole}) < len(whole), "several arms are released with one number"
    paged: list[Any] = []
    after = 0
    while after is not None:
        page = read(client, f"ledger?limit=1&after={after}")
        paged, after = paged + page["entries"], page["next"]
    assert paged == whole


def test_the_database_counts_users_who_sent_alike(client: TestClient) -> None:
    create(client, policy="heldp-ucb-b", levels=["0.5", "1", "2"], options={"epsilon_min": "auto"})
    experiment = served(client).names["shop"].experiment
    sent = [{i % 3: 1 + i % 5, (i + i % 2) % 3: 2} for i in range(200)]  # level: responses; one or two levels
    rows = [
        {"experiment": experiment.id, "person": b"%016d" % i, "level": level, "responses": responses}
        for i, one in enumerate(sent)
        for level, responses in one.items()
    ]
    with served(client).store.engine.begin() as connection:
        connection.execute(sa.insert(people), rows)
    spent = sorted(sum(n * experiment.costs[level] for level, n in one.items()) for one in sent)
    users = read(client, "summary")["users"]
    assert users["count"] == 200
    at = {"0.5": 100, "0.9": 180, "0.99": 198, "1.0": 199}
    assert users["epsilon"] == {q: str(spent[i]) for q, i in at.items()}
    with served(client).store.reading() as connection:
        assert len(reports._spent(connection, experiment)) < 40


def test_all_who_watch_an_experiment_share_one_summary() -> None:
    made: list[str] = []

    async def make(name: str) -> bytes:
        made.append(name)
        await asyncio.sleep(0.01)
        return b"{}"

    async def watch() -> list[bytes]:
        watched = Watched(make)
        return await asyncio.gather(*(watched.latest("shop") for _ in range(5)))

    assert asyncio.run(watch()) == [b"{}"] * 5
    assert made == ["shop"]


def test_a_summary_that_waited_long_for_the_database_is_kept_for_ten_seconds_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(events, "time", SimpleNamespace(monotonic=lambda: now[0]))
    made: list[float] = []

    async def make(name: str) -> bytes:
        made.append(now[0])
        now[0] += 60.0
        return b"{}"

    async def watch() -> None:
        watched = Watched(make)
        for later in (0.0, 69.9, 70.1):
            now[0] = max(now[0], later)
            await watched.latest("shop")

    asyncio.run(watch())
    assert made == [0.0, 70.1]


def test_a_large_epsilon_with_a_delta_is_reported(embedded: TestClient) -> None:
    create(embedded, policy="adac-ucb", epsilon="1000")
    token = decide(embedded, user="ann")["token"]
    assert reward(embedded, token, 1) == "accepted"
    users = read(embedded, "summary")["users"]
    assert users["epsilon"]["1.0"] == read(embedded, "ledger")["users"]["epsilon"]["1.0"]
    assert 0.0 < users["delta"] < 1.0


def test_group_privacy_is_computed_where_e_to_the_epsilon_is_no_float() -> None:
    assert group(1000.0, 1e-5, 1)[1] == pytest.approx(1e-5)
    assert group(1000.0, 1e-5, 3)[1] == 1.0
    assert 0.0 < delta_of_reward(1420.0, 1e-5, 2) < 1e-300
    assert group(1e-12, 1e-5, 3)[1] == pytest.approx(3e-5, rel=1e-9)


def test_events_that_cannot_be_made_are_refused(embedded: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    create(embedded)

    def broken(*_: object) -> dict[str, Any]:
        raise sa.exc.OperationalError("select", {}, Exception("away"))

    monkeypatch.setattr(reports, "summary", broken)
    assert embedded.get("/v1/experiments/shop/events").status_code == 503
