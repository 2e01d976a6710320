"""The API, on each kind of database."""

from __future__ import annotations

import csv
import io
import itertools
import math
import time
from fractions import Fraction
from typing import Any

import pyarrow.parquet as pq
import pytest
from calls import create, decide, folded, read, respond, reward, wait_for
from starlette.testclient import TestClient

from dpbandits.client import BernoulliCurator, LaplaceCurator


def test_an_experiment_from_the_first_decision_to_what_was_spent(client: TestClient) -> None:
    made = create(client)
    assert made["guarantee"]["trust"] == "local"
    assert made["status"] == "running"
    curator = BernoulliCurator("1")
    for user in range(30):
        one = decide(client, user=f"user {user % 10}")
        assert one["arm"] in made["arms"]
        assert one["curator"]["mechanism"] == "bernoulli"
        assert one["curator"]["epsilon"] == "1"
        assert respond(client, one["token"], curator.respond(1)) == "accepted"
    found = folded(client)
    assert found["responses"]["used"] == found["decisions"] == 30
    assert found["version"] == 30
    assert found["users"]["count"] == 10
    assert found["users"]["epsilon"]["1.0"] == "3"
    assert sum(arm["share"] for arm in found["arms"]) == pytest.approx(1)
    for arm in found["arms"]:
        low, high = arm["estimate"]["interval"]
        assert low <= arm["estimate"]["mean"] <= high
    assert read(client, "ledger")["worst_reward"] == "1"
    points = read(client, "series")["points"]
    assert sum(one["decisions"] for point in points for one in point["arms"].values()) == 30
    assert [one["action"] for one in read(client, "audit-log")["entries"]] == ["create"]


def test_central_rewards_are_released_by_stints_and_never_shown(client: TestClient) -> None:
    create(client, policy="adap-ucb")
    for _ in range(20):
        one = decide(client)
        assert one["curator"]["mechanism"] == "none"
        assert reward(client, one["token"], 0.31415) == "accepted"
        folded(client)
    book = read(client, "ledger")
    assert book["worst_reward"] == "1"
    assert [entry["release"] for entry in book["entries"]] == sorted({entry["release"] for entry in book["entries"]})
    assert {entry["closed_by"] for entry in book["entries"]} == {"count"}
    assert "0.31415" not in client.get("/v1/experiments/shop/export.csv").text


def test_the_same_decision_again_gets_the_same_answer(client: TestClient) -> None:
    create(client)
    first = client.post("/v1/experiments/shop/decisions", json={"decision": "order:7", "user": "ann"})
    again = client.post("/v1/experiments/shop/decisions", json={"decision": "order:7", "user": "ann"})
    assert first.json()["decision"] == "order:7"
    assert first.text == again.text
    assert folded(client)["decisions"] == 1


def test_a_lease_is_many_decisions_and_can_be_repeated(client: TestClient) -> None:
    create(client, policy="adap-klucb")
    first = decide(client, decision="lease", count=200)
    assert first == decide(client, decision="lease", count=200)
    names = [one["decision"] for one in first["decisions"]]
    assert len(set(names)) == 200
    assert len({one["arm"] for one in first["decisions"]}) == 1  # all of them in the open stint
    items = [{"token": one["token"], "reward": 1} for one in first["decisions"][:3]]
    statuses = [one["status"] for one in client.post("/v1/rewards", json=items).json()]
    assert statuses[0] == "accepted"
    found = folded(client)
    assert found["decisions"] == 200
    assert found["responses"]["used"] == 1  # the first stint asks for one response


def test_a_lease_of_an_index_policy_is_decided_one_by_one(client: TestClient) -> None:
    create(client)
    lease = decide(client, count=6)
    assert sorted({one["arm"] for one in lease["decisions"]}) == ["blue", "green", "red"]
    for one in lease["decisions"]:
        assert respond(client, one["token"], 1) == "accepted"
    assert folded(client)["responses"]["used"] == 6


def test_a_response_is_taken_once(client: TestClient) -> None:
    create(client)
    token = decide(client)["token"]
    assert respond(client, token, 1) == "accepted"
    assert respond(client, token, 1) == "duplicate"
    assert respond(client, token, 0) == "conflict"
    assert client.post("/v1/responses", json={"token": token, "response": 0}).status_code == 409
    found = folded(client)
    assert found["responses"]["used"] == 1
    assert found["responses"]["duplicate"] == 1


def test_a_reward_is_taken_once(client: TestClient) -> None:
    create(client, policy="dp-ucb-bound")
    token = decide(client)["token"]
    assert reward(client, token, 0.25) == "accepted"
    assert reward(client, token, 0.25) == "duplicate"
    assert reward(client, token, 0.5) == "conflict"
    folded(client)
    assert reward(client, token, 0.5) == "conflict"
    assert folded(client)["responses"]["used"] == 1


def test_a_list_is_answered_item_by_item(client: TestClient) -> None:
    create(client)
    create(client, "central", policy="adap-ucb")
    good, other = decide(client), decide(client, "central")
    items: list[Any] = [
        {"token": good["token"], "response": 1},
        {"token": good["token"], "response": 1},
        {"token": good["token"], "response": 0},
        {"token": good["token"], "response": 2},
        {"token": good["token"], "response": True},
        {"token": good["token"][:-2] + "xx", "response": 1},
        {"token": "", "response": 1},
        {"token": other["token"], "response": 1},
        {"response": 1},
        7,
    ]
    answer = client.post("/v1/responses", json=items)
    assert answer.status_code == 200
    statuses = [one["status"] for one in answer.json()]
    assert statuses == [
        "accepted", "duplicate", "conflict", "invalid", "invalid", "unknown", "unknown", "invalid", "invalid",
        "invalid",
    ]  # fmt: skip
    too_many = client.post("/v1/responses", json=items[:1] * 1001)
    assert too_many.status_code == 413


def test_what_a_device_writes_is_taken_as_it_is(client: TestClient) -> None:
    create(client, epsilon="1/3", policy="ldp-ucb-l")
    one = decide(client)
    sent = {"decision": one["decision"], "epsilon": "1/3", "response": LaplaceCurator("1/3").respond(0.5)}
    assert respond(client, one["token"], {**sent, "epsilon": "1"}) == "invalid"
    assert respond(client, one["token"], {**sent, "decision": "another"}) == "invalid"
    assert respond(client, one["token"], sent) == "accepted"
    assert respond(client, decide(client)["token"], 1 << 60) == "invalid"


def test_users_have_levels_of_their_own(client: TestClient) -> None:
    create(client, policy="heldp-ucb-b", levels=["0", "1/2", "2"], options={"epsilon_min": "auto"})
    low, high = decide(client, user="a", level="1/2"), decide(client, user="b", level=2)
    assert (low["curator"]["epsilon"], high["curator"]["epsilon"]) == ("1/2", "2")
    silent = decide(client, user="c", level=0)
    assert silent["token"] is None
    assert silent["arm"]
    assert respond(client, low["token"], 1) == respond(client, high["token"], 0) == "accepted"
    refused = client.post("/v1/experiments/shop/decisions", json={"level": "3"})
    assert refused.status_code == 422
    assert "must be one of 0, 1/2, 2" in refused.json()["detail"]
    assert folded(client)["users"]["epsilon"]["1.0"] == "2"


@pytest.mark.parametrize("level", ["0.1", "0.2", 0.3, "1/3"])
def test_one_level_may_be_the_least_that_is_used(refusing: TestClient, level: str | float) -> None:
    made = create(
        refusing,
        f"least-{level}".replace("/", "-"),
        policy="heldp-ucb-b",
        levels=[level],
        options={"epsilon_min": "auto"},
    )
    assert len(made["levels"]) == 1


def test_over_the_cap_nothing_is_taken(client: TestClient) -> None:
    create(client, policy="dp-ucb", max_responses_per_user=2)
    early = [decide(client, user="ann") for _ in range(4)]
    statuses = [reward(client, one["token"], 1) for one in early]
    assert statuses == ["accepted", "accepted", "invalid", "invalid"]
    late = decide(client, user="ann")
    assert late["arm"]
    assert late["token"] is None
    assert reward(client, decide(client, user="bob")["token"], 1) == "accepted"
    found = folded(client)
    assert found["users"]["count"] == 2
    assert found["users"]["epsilon"]["1.0"] == "2"
    assert found["responses"]["used"] == 3


def test_a_response_after_its_window_is_late(client: TestClient) -> None:
    create(client, response_window=0.2)
    token = decide(client)["token"]
    time.sleep(0.3)
    answer = client.post("/v1/responses", json={"token": token, "response": 1})
    assert (answer.status_code, answer.json()["status"]) == (410, "late")
    assert respond(client, token, 0) == "late"
    found = folded(client)
    assert found["responses"]["late"] == 1
    assert found["responses"]["used"] == 0


def test_a_stint_closes_when_its_window_is_over(client: TestClient) -> None:
    create(client, policy="dp-se", horizon=100_000, response_window=60, options={"beta": 0.5})
    one = decide(client)
    assert reward(client, one["token"], 1) == "accepted"
    assert decide(client, count=1000)["decisions"][-1]["arm"] == one["arm"]
    client.app.service.clock._offset += 61.0  # type: ignore[attr-defined]  # a minute later
    wait_for(lambda: decide(client, count=1000)["decisions"][-1]["arm"] != one["arm"])
    first = read(client, "ledger")["entries"][0]
    assert first["closed_by"] == "deadline"
    assert first["responses"] == 1


def test_pause_resume_stop_archive(client: TestClient) -> None:
    create(client)
    token = decide(client)["token"]
    paused = client.patch("/v1/experiments/shop", json={"status": "paused"})
    assert paused.json()["status"] == "paused"
    refused = client.post("/v1/experiments/shop/decisions", json={})
    assert (refused.status_code, refused.json()["state"]) == (409, "paused")
    assert respond(client, token, 1) == "accepted"  # responses to what was decided are still taken
    client.patch("/v1/experiments/shop", json={"status": "running"})
    token = decide(client)["token"]
    assert client.post("/v1/experiments/shop:archive").status_code == 409
    assert client.post("/v1/experiments/shop:stop").json()["status"] == "stopped"
    assert respond(client, token, 1) == "late"
    assert client.patch("/v1/experiments/shop", json={"status": "running"}).status_code == 409
    assert client.post("/v1/experiments/shop:archive").json()["status"] == "archived"
    assert client.get("/v1/experiments").json() == {"experiments": []}
    actions = [one["action"] for one in read(client, "audit-log")["entries"]]
    assert actions == ["create", "change", "change", "stop", "archive"]


@pytest.mark.parametrize("policy", ["ldp-ucb-b", "adap-imed"])
def test_a_paused_arm_is_given_to_nobody(client: TestClient, policy: str) -> None:
    create(client, policy=policy)

    def play(rounds: int) -> set[str]:
        arms = set()
        for n in range(rounds):
            one = decide(client)
            arms.add(one["arm"])
            value = n % 2
            _ = respond(client, one["token"], value) if policy == "ldp-ucb-b" else reward(client, one["token"], value)
            folded(client)
        return arms

    play(4)
    client.patch("/v1/experiments/shop", json={"paused_arms": ["red"]})
    assert "red" not in play(12)
    client.patch("/v1/experiments/shop", json={"paused_arms": []})
    refused = client.patch("/v1/experiments/shop", json={"paused_arms": ["red", "green", "blue"]})
    assert refused.status_code == 422
    assert "did you mean red" in client.patch("/v1/experiments/shop", json={"paused_arms": ["rde"]}).json()["detail"]


def test_an_arm_can_be_added_where_every_statistic_is_an_arms_own(client: TestClient) -> None:
    create(client)
    for _ in range(6):
        respond(client, decide(client)["token"], 1)
    folded(client)
    answer = client.patch("/v1/experiments/shop", json={"add_arm": "violet"})
    assert answer.json()["arms"] == ["red", "green", "blue", "violet"]
    assert decide(client)["arm"] == "violet"  # of which nothing is known
    assert folded(client)["responses"]["used"] == 6
    for change in ({"status": "paused"}, {"status": "running", "add_arm": "black"}, {"paused_arms": ["red"]}):
        assert client.patch("/v1/experiments/shop", json=change).status_code == 200
    create(client, "tree", policy="private-ucb", horizon=1000)
    refused = client.patch("/v1/experiments/tree", json={"add_arm": "violet"})
    assert refused.status_code == 422
    assert "depend on how many arms there are" in refused.json()["detail"]
    create(client, "turns", policy="dp-se", horizon=1000)
    assert "cannot be paused" in client.patch("/v1/experiments/turns", json={"paused_arms": ["red"]}).json()["detail"]


def test_held_out_users_and_chance(client: TestClient) -> None:
    create(client, holdout=0.5, baseline="blue", floor=0.1)
    chosen: dict[str, set[str]] = {}
    for user, _ in itertools.product(range(40), range(3)):
        one = decide(client, user=f"u{user}")
        chosen.setdefault(f"u{user}", set()).add(one["arm"])
        assert 0 < one["propensity"] <= 1
        assert respond(client, one["token"], 1) == "accepted"
    found = folded(client)
    assert found["responses"]["apart"] > 0  # of those who are held out; the policy does not learn from them
    assert found["responses"]["apart"] + found["responses"]["used"] == 120
    rows = list(csv.DictReader(io.StringIO(client.get("/v1/experiments/shop/export.csv").text)))
    held = {row["chosen_by"] for row in rows}
    assert {"policy", "holdout"} <= held
    assert all(row["arm"] == "blue" for row in rows if row["chosen_by"] == "holdout")
    share = sum(row["chosen_by"] == "holdout" for row in rows) / len(rows)
    assert 0.1 < share < 0.9  # 40 users at 1/2: fails with probability below 1e-6
    said = found["holdout"]
    assert said["arm"] == "blue"
    assert said["decisions"] == said["responses"] == found["responses"]["apart"]
    low, high = said["estimate"]["interval"]
    debiased = 0.5 + 0.5 / math.tanh(0.5)  # everybody sends 1
    assert said["estimate"]["mean"] == pytest.approx(debiased)
    assert low <= debiased <= high


def test_central_rewards_of_held_out_users_are_not_kept(client: TestClient) -> None:
    create(client, policy="adap-ucb", holdout=1 - 1e-9, baseline="blue")  # all 20, but for a probability of 2e-8
    for _ in range(20):
        assert reward(client, decide(client)["token"], 1) == "accepted"
    found = folded(client)
    assert read(client, "summary")["holdout"]["estimate"] is None
    assert "nothing of them is released" in found["holdout"]["note"]
    create(client, "all")
    assert read(client, "summary", "all")["holdout"] is None


def test_in_shadow_mode_everybody_gets_the_baseline(client: TestClient) -> None:
    create(client, mode="shadow", baseline="green")
    for _ in range(9):
        one = decide(client)
        assert one["arm"] == "green"
        assert respond(client, one["token"], 1) == "accepted"
    found = folded(client)
    assert found["responses"]["used"] + found["responses"]["apart"] == 9
    assert client.patch("/v1/experiments/shop", json={"mode": "live"}).json()["mode"] == "live"
    assert {decide(client)["arm"] for _ in range(6)} != {"green"}


def test_in_shadow_mode_a_policy_that_waits_for_an_arm_that_nobody_gets_is_noticed(client: TestClient) -> None:
    create(client, mode="shadow", baseline="green", policy="adap-ucb")
    assert reward(client, decide(client)["token"], 1) == "accepted"
    (shadow,) = (one for one in folded(client)["health"] if one["about"] == "shadow")
    assert shadow["level"] == "warning"
    assert "waits for a response to red, which nobody gets" in shadow["text"]


def test_before_the_policy_begins_arms_are_drawn(embedded: TestClient) -> None:
    create(embedded, policy="adap-ucb", burn_in=200)
    arms = [one["arm"] for one in decide(embedded, count=200)["decisions"]]
    assert min(arms.count(arm) for arm in ("red", "green", "blue")) > 20  # 200 at 1/3: fails with probability 1e-12
    assert {one["arm"] for one in decide(embedded, count=50)["decisions"]} == {arms[0] for arms in [["red"]]}


def test_exports_have_a_row_for_every_decision(client: TestClient) -> None:
    create(client)
    lease = decide(client, count=5)
    respond(client, lease["decisions"][2]["token"], 1)
    one = decide(client, decision="mine")
    folded(client)
    rows = list(csv.DictReader(io.StringIO(client.get("/v1/experiments/shop/export.csv").text)))
    assert len(rows) == 6
    assert {row["decision"] for row in rows} == {"mine", *(made["decision"] for made in lease["decisions"])}
    answered = [row for row in rows if row["outcome"]]
    assert [row["decision"] for row in answered] == [lease["decisions"][2]["decision"]]
    assert answered[0]["response"] == "1"
    table = pq.read_table(io.BytesIO(client.get("/v1/experiments/shop/export.parquet").content))
    assert sorted(table["decision"].to_pylist()) == sorted(row["decision"] for row in rows)
    assert one["decision"] == "mine"


def test_events_are_summaries(embedded: TestClient) -> None:
    create(embedded)
    embedded.app.service.stopping = True  # type: ignore[attr-defined]  # streams end at once
    with embedded.stream("GET", "/v1/experiments/shop/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")


def test_an_idempotency_key_makes_one_experiment(client: TestClient) -> None:
    asked = {"name": "once", "arms": ["a", "b"], "policy": "adap-ucb", "epsilon": "1"}
    first = client.post("/v1/experiments", json=asked, headers={"Idempotency-Key": "k1"})
    again = client.post("/v1/experiments", json=asked, headers={"Idempotency-Key": "k1"})
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    other = client.post("/v1/experiments", json={**asked, "epsilon": "2"}, headers={"Idempotency-Key": "k1"})
    assert other.status_code == 422
    assert client.post("/v1/experiments", json=asked).status_code == 409


REFUSED = [
    ({"policy": "adap-ucbb", "epsilon": 1}, "did you mean adap-ucb"),
    ({"policy": "adap-ucb"}, "epsilon is required by adap-ucb"),
    ({"policy": "adap-ucb", "epsilon": "-1"}, "epsilon must be positive"),
    ({"policy": "adap-ucb", "epsilon": 1, "options": {"alhpa": 2}}, "did you mean alpha"),
    ({"policy": "adap-ucb", "epsilon": 1, "reward": {"kind": "unbounded"}}, "reward must be bounded for adap-ucb"),
    ({"policy": "ldp-ucb-b", "epsilon": 1, "reward": {"kind": "unbounded"}}, "ldp-ucb-bs takes any reward"),
    ({"policy": "ldp-ucb-b", "epsilon": 1, "reward": {"low": 1, "high": 0}}, "must have low < high"),
    ({"policy": "heldp-ucb-b", "levels": [0.5], "options": {"epsilon_min": 1}}, "a level that some users reach"),
    ({"policy": "heldp-ucb-b", "options": {"epsilon_min": 1}}, "levels is required"),
    ({"policy": "adap-ucb", "epsilon": 1, "levels": [1]}, "one epsilon holds for all users"),
    ({"policy": "adap-moss", "epsilon": 1}, "horizon is required by adap-moss"),
    ({"policy": "ldp-ucb-b", "epsilon": 1, "horizon": 10}, "plays on for ever"),
    ({"policy": "ldp-ucb-b", "epsilon": 1, "holdout": 0.5}, "baseline is required"),
    ({"policy": "ldp-ucb-b", "epsilon": 1, "baseline": "c"}, "must be one of the arms a, b"),
    ({"policy": "ldp-ucb-b", "epsilon": 1, "arms": ["a", "a"]}, "different names"),
    ({"policy": "ldp-ucb-b", "epsilon": 1, "arms": ["a"]}, "arms"),
    ({"policy": "ldp-ucb-b", "epsilon": 1, "epsilom": 1}, "did you mean epsilon"),
    ({"policy": "os:system", "epsilon": 1}, "own_policies"),
    ({"policy": "ldp-ucb-b", "epsilon": 1, "name": "a b"}, "name"),
]


@pytest.mark.parametrize(("wrong", "said"), REFUSED)
def test_what_cannot_be_promised_is_refused_with_the_reason(refusing: TestClient, wrong: Any, said: str) -> None:
    answer = refusing.post("/v1/experiments", json={"name": "x", "arms": ["a", "b"], **wrong})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert said in str(problem), problem
    assert problem["status"] == 422
    assert problem["parameter"]


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        (b"{", 400, "JSON"),
        (b"[]", 422, "object"),
        (b'{"cuont": 3}', 422, "cuont"),
        (b'{"count": 1001}', 422, "count must be from 1 to 1000"),
        (b'{"count": "x"}', 422, "count"),
        (b'{"decision": "a b"}', 422, "decision must be"),
        (b'{"user": ""}', 422, "user must be"),
        (b'{"level": "1"}', 422, "level is not a setting"),
    ],
)
def test_a_wrong_request_for_a_decision_is_refused(refusing: TestClient, body: bytes, code: int, said: str) -> None:
    if refusing.get("/v1/experiments/shop").status_code == 404:
        create(refusing)
    answer = refusing.post("/v1/experiments/shop/decisions", content=body)
    assert answer.status_code == code
    assert said in answer.json()["detail"]
    assert refusing.post("/v1/experiments/none/decisions").status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "content", "code", "parameter", "said"),
    [
        ("PATCH", "/v1/experiments/shop", '{"epsilon": 2}', 422, "epsilon", "these can: status, mode, paused_arms"),
        ("PATCH", "/v1/experiments/shop", '{"staus": "paused"}', 422, "staus", "did you mean status"),
        ("POST", "/v1/experiments", "{nope", 400, "body", "must be JSON"),
        ("POST", "/v1/experiments", '{"arms": ["a", "b"]}', 422, "name", "is required"),
        ("POST", "/v1/experiments", "[]", 422, "body", "content-type: application/json"),
        ("POST", "/v1/experiments/shop/decisions", '{"cuont": 3}', 422, "cuont", "allowed are decision, user, level"),
        ("GET", "/v1/experiments/shop/decisions", None, 405, None, "allowed: POST"),
        ("DELETE", "/v1/experiments/shop", None, 405, None, "does not take DELETE; allowed: GET, PATCH"),
        ("GET", "/nowhere", None, 404, None, "/docs lists all addresses"),
        ("POST", "/v1/rewards", "3", 422, None, "token (a text) and reward (a number)"),
    ],
)
def test_a_refusal_says_what_is_allowed(
    refusing: TestClient, method: str, path: str, content: str | None, code: int, parameter: str | None, said: str
) -> None:
    if refusing.get("/v1/experiments/shop").status_code == 404:
        create(refusing)
    answer = refusing.request(method, path, content=content, headers={"content-type": "application/json"})
    assert answer.status_code == code, answer.text
    assert said in answer.json()["detail"]
    assert answer.json().get("parameter") == parameter


def test_a_refusal_does_not_repeat_what_was_sent(embedded: TestClient) -> None:
    create(embedded, policy="adap-ucb")
    token = decide(embedded)["token"]
    answer = embedded.post("/v1/rewards", json={"token": token, "reward": "my secret 0.123"})
    assert answer.status_code == 422
    assert "secret" not in answer.text
    for value in (1e308, -5, 10**400, True):
        one = decide(embedded)
        sent = str(value).lower() if isinstance(value, bool) else value
        body = f'{{"token": "{one["token"]}", "reward": {sent}}}'
        assert embedded.post("/v1/rewards", content=body).json()["status"] in ("accepted", "late", "invalid")


def test_the_spend_of_a_user_is_exact(embedded: TestClient) -> None:
    create(embedded, epsilon="0.1")
    for _ in range(3):
        respond(embedded, decide(embedded, user="ann")["token"], 1)
    assert Fraction(read(embedded, "summary")["users"]["epsilon"]["0.5"]) == Fraction(3, 10)


def test_the_ledger_says_what_is_promised_and_not_what_was_asked(embedded: TestClient) -> None:
    create(embedded, policy="dp-ucb-bound", epsilon="1", options={"as_printed": True})
    assert reward(embedded, decide(embedded)["token"], 1) == "accepted"
    assert read(embedded, "ledger")["worst_reward"] == "2"  # as printed it is 2 epsilon


def test_a_policy_made_for_a_horizon_serves_on_when_it_is_over(client: TestClient) -> None:
    create(client, policy="adap-moss", horizon=5)
    tokens = []
    for _ in range(8):
        one = decide(client)
        tokens.append(one["token"])
        if one["token"]:
            reward(client, one["token"], 1)
        folded(client)
    assert tokens[:5].count(None) == 0
    assert tokens[5:] == [None] * 3
