"""Refusals name what was wrong as the client wrote it, and standard requests are answered as HTTP says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from calls import create, served
from starlette.testclient import TestClient

from dpbandits.service import access

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def shop(refusing: TestClient) -> TestClient:
    """A service with an experiment that takes no more arms, and one that does."""
    create(refusing, "fixed", policy="dp-se", horizon=1000)
    create(refusing)
    return refusing


def test_a_body_in_pieces_that_is_too_large_is_refused_as_such(shop: TestClient) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(33):
            yield b" " * 2**15

    for path in ("/v1/experiments", "/v1/responses"):
        assert shop.post(path, content=pieces(), headers=JSON).status_code == 413
    assert shop.post("/v1/experiments", content=b" " * 2**21, headers=JSON).status_code == 413


@pytest.mark.parametrize(("body", "said"), [(b"[" * 100_000, "nested"), (b'"\xff"', "UTF-8")])
def test_a_body_that_cannot_be_read_is_named(shop: TestClient, body: bytes, said: str) -> None:
    problem = shop.post("/v1/experiments", content=body, headers=JSON).json()
    assert (problem["status"], problem["parameter"]) == (400, "body")
    assert said in problem["detail"]


@pytest.mark.parametrize(
    ("method", "path", "body", "parameter"),
    [
        ("POST", "/v1/experiments/shop/decisions", [], "body"),
        ("POST", "/v1/experiments/shop/decisions", 3, "body"),
        ("POST", "/v1/experiments/shop/decisions", None, "body"),
        ("POST", "/v1/experiments/shop/decisions", {"count": "x"}, "count"),
        ("POST", "/v1/experiments/shop/decisions", {"my count": 1}, "my count"),
        ("POST", "/v1/experiments", {"epsilon": [1]}, "epsilon"),
        ("POST", "/v1/experiments", {"levels": ["1", {}]}, "levels.1"),
        ("POST", "/v1/experiments", {"options": {"alpha": []}}, "options.alpha"),
        ("PATCH", "/v1/experiments/shop", {"add_arm": "red"}, "add_arm"),
        ("PATCH", "/v1/experiments/shop", {"add_arm": "a\nb"}, "add_arm"),
        ("PATCH", "/v1/experiments/fixed", {"add_arm": "new"}, "add_arm"),
        ("GET", "/v1/plan?policy=ucb1&arms=9&best=0.5&gap=0.1&traffic=1&days=2", None, "days"),
    ],
)
def test_the_parameter_is_named_as_it_was_written(
    shop: TestClient, method: str, path: str, body: Any, parameter: str
) -> None:
    asked = {"name": "x", "arms": ["a", "b"], "policy": "ldp-ucb-b", **body} if path == "/v1/experiments" else body
    answer = shop.request(method, path, content=json.dumps(asked), headers=JSON)
    assert (answer.status_code, answer.json()["parameter"]) == (422, parameter)


def test_an_idempotency_key_that_was_used_is_named(shop: TestClient) -> None:
    asked = {"name": "once", "arms": ["a", "b"], "policy": "ucb1"}
    keyed = {"idempotency-key": "k"}
    assert shop.post("/v1/experiments", json=asked, headers=keyed).status_code == 201
    problem = shop.post("/v1/experiments", json={**asked, "name": "twice"}, headers=keyed).json()
    assert (problem["status"], problem["parameter"]) == (422, "Idempotency-Key")


@pytest.mark.parametrize("path", ["/v1/experiments/none", "/nowhere", "/v1/experiments/none/decisions"])
def test_every_problem_has_the_id_of_its_request(shop: TestClient, path: str) -> None:
    answer = shop.get(path)
    assert answer.json()["request"] == answer.headers["x-request-id"]


def test_what_follows_a_colon_is_an_action(shop: TestClient) -> None:
    wrong = shop.get("/v1/experiments/shop:stop")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert shop.post("/v1/experiments/shop:bogus").status_code == 404


def test_no_client_is_sent_to_another_address(shop: TestClient) -> None:
    answer = shop.get("/v1/experiments/", headers={"host": "elsewhere.example"}, follow_redirects=False)
    assert answer.status_code == 404


@pytest.mark.parametrize(
    "path", ["/livez", "/metrics", "/v1/experiments", "/v1/experiments/shop/events", "/v1/experiments/shop/export.csv"]
)
def test_head_is_answered_as_get_without_a_body(shop: TestClient, path: str) -> None:
    answer = shop.head(path)
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"]
    assert shop.head("/v1/experiments/none").status_code == 404


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER "])
def test_the_scheme_of_a_key_is_written_in_any_case(embedded: TestClient, scheme: str) -> None:
    with served(embedded).store.engine.begin() as connection:
        key = access.create(connection, "someone", "read")
    served(embedded)._read_elsewhere()
    assert embedded.get("/v1/experiments").status_code == 401
    assert embedded.get("/v1/experiments", headers={"authorization": f"{scheme} {key}"}).status_code == 200


@pytest.mark.parametrize("other", ["gr\u00fcn", " gru\u0308n", "gru\u0308n", "gr\u00fcn "])
def test_arms_that_look_the_same_are_refused(shop: TestClient, other: str) -> None:
    asked = {"name": "alike", "policy": "ldp-ucb-b", "epsilon": "1", "arms": ["red", "gru\u0308n", other]}
    problem = shop.post("/v1/experiments", json=asked).json()
    assert (problem["status"], problem["parameter"]) == (422, "arms")
    problem = shop.patch("/v1/experiments/shop", json={"add_arm": " red"}).json()
    assert (problem["status"], problem["parameter"]) == (422, "add_arm")


def test_arms_that_look_different_are_taken(shop: TestClient) -> None:
    asked = {"name": "areas", "policy": "ldp-ucb-b", "epsilon": "1", "arms": ["m2", "m\u00b2", "M2"]}
    assert shop.post("/v1/experiments", json=asked).status_code == 201
