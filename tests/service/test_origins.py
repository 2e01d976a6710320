"""Pages of other origins: those that are named may decide and answer from a browser, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from calls import create, served
from starlette.testclient import TestClient

from dpbandits.errors import InputError
from dpbandits.service import access
from dpbandits.service.settings import ServerSettings

Open = Callable[..., TestClient]

SHOP = "https://shop.example.org"
PREFLIGHT = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}


def test_a_named_page_may_decide_and_answer(serve: Open, tmp_path: Path) -> None:
    client = serve(f"sqlite:///{tmp_path}/test.db", allow_origins=[SHOP])
    create(client)
    for path in ("/v1/experiments/shop/decisions", "/v1/responses", "/v1/rewards"):
        asked = client.options(path, headers={"origin": SHOP, **PREFLIGHT})
        assert asked.status_code == 204
        assert asked.headers["access-control-allow-origin"] == SHOP
        assert asked.headers["access-control-allow-methods"] == "POST"
        assert asked.headers["access-control-allow-headers"] == "authorization, content-type"
    answer = client.post("/v1/experiments/shop/decisions", headers={"origin": SHOP}, json={})
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == SHOP
    refused = client.post("/v1/responses", headers={"origin": SHOP}, json={"token": "x", "response": 1})
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (404, SHOP)


def test_others_may_not_and_nothing_may_be_read(serve: Open, tmp_path: Path) -> None:
    client = serve(f"sqlite:///{tmp_path}/test.db", allow_origins=[SHOP])
    create(client)
    for origin in ("https://other.example.org", f"{SHOP}.evil.test", "null", "http://shop.example.org"):
        asked = client.options("/v1/responses", headers={"origin": origin, **PREFLIGHT})
        assert "access-control-allow-origin" not in asked.headers
        answer = client.post("/v1/experiments/shop/decisions", headers={"origin": origin}, json={})
        assert "access-control-allow-origin" not in answer.headers
    for path in ("/v1/experiments", "/v1/experiments/shop", "/v1/experiments/shop/summary"):
        asked = client.options(path, headers={"origin": SHOP, **PREFLIGHT})
        assert "access-control-allow-origin" not in asked.headers
        assert "access-control-allow-origin" not in client.get(path, headers={"origin": SHOP}).headers


def test_without_the_setting_no_page_may(serve: Open, tmp_path: Path) -> None:
    client = serve(f"sqlite:///{tmp_path}/test.db")
    create(client)
    answer = client.post("/v1/experiments/shop/decisions", headers={"origin": SHOP}, json={})
    assert "access-control-allow-origin" not in answer.headers


def test_without_a_key_a_page_of_another_origin_reads_nothing(serve: Open, tmp_path: Path) -> None:
    """With an image, a script or a link of a page, a browser sends no origin; it does say that they are not ours."""
    client = serve(f"sqlite:///{tmp_path}/test.db", allow_origins=[SHOP])
    create(client)
    paths = ("/v1/experiments", "/v1/experiments/shop/summary", "/v1/experiments/shop/export.csv", "/metrics")
    for path in paths:
        for site in ("cross-site", "same-site"):
            for mode in ("no-cors", "navigate"):
                answer = client.get(path, headers={"sec-fetch-site": site, "sec-fetch-mode": mode})
                assert answer.status_code == 403
                assert "pages of another origin" in answer.json()["detail"]
        for site in ("same-origin", "none"):  # our page, and an address that somebody typed
            assert client.get(path, headers={"sec-fetch-site": site}).status_code == 200
        assert client.get(path).status_code == 200
    for path in ("/", "/docs", "/livez", "/openapi.json"):  # a link to the page works
        followed = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
        assert client.get(path, headers=followed).status_code == 200
    from_shop = {"origin": SHOP, "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}
    assert client.post("/v1/experiments/shop/decisions", headers=from_shop, json={}).status_code == 200
    ours = {"origin": "http://test", "sec-fetch-site": "same-origin"}
    assert client.post("/v1/experiments/shop/decisions", headers=ours, json={}).status_code == 200


def test_with_a_key_it_does_not_matter_where_a_request_comes_from(serve: Open, tmp_path: Path) -> None:
    client = serve(f"sqlite:///{tmp_path}/test.db")
    with served(client).store.engine.begin() as connection:
        key = access.create(connection, "someone", "read")
    served(client)._read_elsewhere()
    headers = {"sec-fetch-site": "cross-site", "authorization": f"Bearer {key}"}
    assert client.get("/v1/experiments", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "origin", ["*", "shop.example.org", "https://shop.example.org/path", "https://a, https://b", ""]
)
def test_what_is_no_origin_is_refused(origin: str) -> None:
    with pytest.raises(InputError, match="allow_origins must be origins such as"):
        ServerSettings.read(allow_origins=[origin])
