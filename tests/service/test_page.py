"""What the server sends at /, what the planner answers, and what is said where the page is not built."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from dpbandits.errors import InputError
from dpbandits.planning.question import ask
from dpbandits.service import app
from dpbandits.service.forecast import OfLevels, answer
from dpbandits.service.page import BUILT, Files
from dpbandits.service.planner import Planner
from dpbandits.service.problems import Refusal
from dpbandits.service.reference import reference

MOST = 60_000  # bytes of the page, compressed, without the demo
needs_page = pytest.mark.skipif(not (BUILT / "index.html").exists(), reason="the page is not built: make web")
ASKED: dict[str, Any] = {
    "policy": "ldp-ucb-b",
    "arms": 2,
    "best": 0.5,
    "gap": 0.3,
    "traffic": 100,
    "days": 5,
    "epsilon": 1,
}


@needs_page
def test_the_page_is_small_and_asks_no_other_server(embedded: TestClient) -> None:
    page = embedded.get("/")
    files = re.findall(r'(?:src|href)="\./([^"]+)"', page.text)
    assert len(files) >= 3
    sizes = [len(gzip.compress(page.content, 9))]
    for name in files:
        answer = embedded.get(f"/{name}", headers={"accept-encoding": "gzip"})
        assert answer.headers["content-encoding"] == "gzip"
        assert ("immutable" in answer.headers["cache-control"]) is name.startswith("assets/")
        sizes.append(int(answer.headers["content-length"]))
        for address in re.findall(r"https?://[\w./]+", answer.text):
            assert address.startswith("http://www.w3.org/"), address  # the names of SVG and MathML
    assert sum(sizes) <= MOST


@needs_page
def test_the_policy_of_the_page_allows_only_this_server(embedded: TestClient) -> None:
    answer = embedded.get("/")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert embedded.head("/").content == b""
    assert embedded.get("/", headers={"accept-encoding": "identity"}).text == answer.text
    assert embedded.get("/../pyproject.toml").status_code == 404


def test_without_a_built_page_a_paragraph_says_how_to_build_it(tmp_path: Path) -> None:
    files = Files(tmp_path, demo=True)
    for path in ("/", "/demo"):
        found = files.find(path)
        assert found is not None
        assert b"make web" in found.content
        assert found.code == 200
    assert files.find("/assets/x.js") is None


def test_every_text_of_the_description_of_the_api_is_escaped() -> None:
    mark = "<i>"
    schema = {"type": "object", "properties": {mark: {"type": mark, "default": mark, "description": mark}}}
    operation = {
        "summary": mark,
        "tags": ["results"],
        "parameters": [{"name": mark, "schema": {"enum": [mark]}, "description": mark}],
        "requestBody": {"content": {"application/json": {"schema": schema}}},
        "responses": {"200": {"description": mark}},
    }
    page = reference({"info": {"title": mark, "version": mark}, "paths": {f"/{mark}": {"get": operation}}})
    assert mark not in page
    assert page.count("&lt;i&gt;") == 13


def test_the_description_of_the_api_fetches_nothing(embedded: TestClient) -> None:
    answer = embedded.get("/docs")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert not re.search(r"https?://|//[a-z]|<script|<link|<img|url\(", answer.text)
    policy = answer.headers["content-security-policy"]
    style = re.search(r"<style>(.*?)</style>", answer.text, flags=re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}';")
    document = embedded.get("/openapi.json").json()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert f"<b>{method.upper()}</b> <code>{path}</code>" in answer.text
            for parameter in operation.get("parameters", []):
                assert f"<code>{parameter['name']}</code>" in answer.text
    for field in document["components"]["schemas"]["Settings"]["properties"]:
        assert re.search(rf"<code>{field}[.<]", answer.text)
    assert embedded.get("/docs", headers={"accept-encoding": "identity"}).text == answer.text
    assert answer.headers["content-encoding"] == "gzip"
    assert embedded.get("/redoc").status_code == 404


def test_the_page_can_be_read_without_a_key_and_nothing_else(embedded: TestClient, tmp_path: Path) -> None:
    from dpbandits.service import access
    from dpbandits.service.store import Database

    with Database(f"sqlite:///{tmp_path}/test.db").engine.begin() as connection:
        access.create(connection, "ann", "read")
    made = app(store=f"sqlite:///{tmp_path}/test.db", keys=tmp_path / "keys", tally=f"sqlite:///{tmp_path}/tally")
    embedded.__exit__(None, None, None)
    with TestClient(made, base_url="http://test") as locked:
        assert locked.get("/").status_code == 200
        assert locked.get("/v1/overview").status_code == 401
    embedded.__enter__()


def test_the_demo_makes_its_experiment_once(serve: object, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/test.db"
    for _ in range(2):
        made = app(store=store, keys=tmp_path / "keys", tally=f"sqlite:///{tmp_path}/tally", demo=True)
        with TestClient(made, base_url="http://test") as client:
            (one,) = client.get("/v1/overview").json()["experiments"]
            assert (one["name"], one["trust"], one["arms"]) == ("demo-shop", "local", 3)


def test_the_planner_answers_from_a_process_of_its_own(embedded: TestClient) -> None:
    answer = embedded.get("/v1/plan", params=ASKED)
    assert answer.status_code == 200, answer.text
    plan = answer.json()
    assert 0 < plan["free"]["lost"] < plan["lost"] <= plan["at_random"]["lost"] * 1.2
    assert plan["other"]["trust"] == "central"
    assert [point["epsilon"] for point in plan["curve"]] == [0.25, 0.5, 1, 2, 4]
    wrong: dict[str, Any] = {"policy": "nonsense", "gap": 0.6, "days": 1_000_000, "arms": 1, "epsilon": 0}
    for name, value in wrong.items():
        refused = embedded.get("/v1/plan", params={**ASKED, name: value})
        assert refused.status_code == 422, refused.text
        assert refused.json()["parameter"] == name


def test_a_plan_that_takes_too_long_is_ended() -> None:
    planner = Planner(limit=0.01)
    try:
        with pytest.raises(Refusal, match=r"took longer than 0\.01 s"):
            planner.ask(dict(ASKED))
        planner.limit = 120.0
        with pytest.raises(InputError, match="policy"):
            planner.ask({**ASKED, "policy": "nonsense"})
    finally:
        planner.close()


def test_a_plan_for_users_with_levels_of_their_own() -> None:
    plain = ask("2", best=0.5, gap=0.3, traffic=100, days=5, epsilon=2.0)
    question = OfLevels(**vars(plain), given=(0.0, 0.5, 2.0))
    assert question.levels(2.0, question.refuse).sample == (0.0, 0.5, 2.0)
    assert question.levels(4.0, question.refuse).sample == (0.0, 1.0, 4.0)
    assert question.levels(1000.0, question.refuse).sample == (0.0, 100.0, 100.0)
    for levels in ([], ["0"], ["-1"], ["much"]):
        with pytest.raises(InputError, match="levels"):
            answer({**ASKED, "policy": "heldp-ucb-b", "epsilon": None, "levels": levels})


def test_policies_say_what_a_form_needs(embedded: TestClient) -> None:
    found = {one["name"]: one for one in embedded.get("/v1/policies").json()["policies"]}
    assert found["ldp-imed-b"]["trust"] == "local"
    assert found["dp-se"]["horizon"]
    assert found["heldp-ucb-b"]["levels"]
    assert found["heldp-ucb-b"]["least_level"]
    assert not found["heldp-glr-b"]["least_level"]
    assert not found["ucb1"]["epsilon"]
    assert {one["trust"] for one in found.values() if one["strong"]} == {"local", "central"}
