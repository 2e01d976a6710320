"""The demo shop: from the first click to a known winner; and no reward in anything that leaves the browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from looking import Visit
from playwright.sync_api import Page, expect
from servers import Server

Open = Callable[..., Visit]

#: What the demo reads: its own files, and what everybody may know about the experiment.
READ = re.compile(r"/demo|/icon\.svg|/assets/[\w.-]+|/v1/experiments/demo-shop/(summary|shares\?points=60)")


@pytest.fixture(scope="module")
def server(serving: Callable[..., Server]) -> Server:
    return serving(demo=True)


def crowd(page: Page) -> None:
    page.get_by_role("button", name="A thousand visitors").click()
    expect(page.get_by_role("button", name=re.compile("of 1,000"))).to_be_visible()
    expect(page.get_by_role("button", name="A thousand visitors")).to_be_visible(timeout=120_000)


@pytest.mark.slow
def test_from_the_first_click_to_a_winner(server: Server, visit: Open) -> None:
    one = visit(server)
    page = one.open("/demo")
    banner = page.locator("button.banner")
    expect(banner).to_be_enabled()
    banner.click()
    xray = page.locator(".xray")
    expect(xray).to_contain_text(re.compile("You clicked: the reward is 1|You did nothing"))
    expect(xray).to_contain_text("88")
    expect(xray).to_contain_text("answered “accepted”")
    expect(xray).to_contain_text("Epsilon 2 of 12 is spent")
    expect(page.get_by_text("Your device has answered")).to_be_visible()
    one.looks("demo-answered")
    page.set_viewport_size({"width": 1280, "height": 900})
    for _ in range(6):  # two are enough as a rule
        crowd(page)
        page.wait_for_timeout(1500)
        if "Stop now" in page.locator(".crowd .verdict").inner_text():
            break
    expect(page.locator(".crowd .verdict")).to_have_text("Stop now: Summer sale is best, with error at most 5 %.")
    arms = {arm["arm"]: arm["share"] for arm in server.call("GET", "/v1/experiments/demo-shop/summary")[1]["arms"]}
    assert max(arms, key=lambda arm: arms[arm]) == "Summer sale"
    assert arms["Summer sale"] > 0.5
    one.looks("demo-converged")
    keeps_its_secrets(one)
    page.get_by_role("link", name="Open the experiment").click()
    expect(page.locator(".verdict")).to_contain_text("Stop now: Summer sale is best")


def keeps_its_secrets(one: Visit) -> None:
    """Everything that left: fixed fields, random names, tokens as the server wrote them, and one bit each."""
    sent = [request for request in one.requests if request.method == "POST"]
    assert len(sent) > 2000
    bits = []
    for request in sent:
        body: dict[str, Any] = json.loads(request.post_data or "")
        if request.url.endswith("/v1/experiments/demo-shop/decisions"):
            assert set(body) <= {"decision", "user"}
            assert re.fullmatch("[0-9a-f]{32}", body["decision"])
            assert re.fullmatch("visitor-[0-9a-f-]{36}", body["user"])
        else:
            assert request.url == one.base + "/v1/responses"
            assert set(body) == {"token", "response"}
            assert set(body["response"]) == {"decision", "epsilon", "response"}
            assert body["response"]["epsilon"] == "2"
            bits.append(body["response"]["response"])
    assert set(bits) == {0, 1}
    for request in one.requests:
        headers = {name: value for name, value in request.headers.items() if name != "user-agent"}
        # The server wrote the token and takes no other; its random letters may spell anything.
        told = re.sub('"token":"[^"]*"', "", request.post_data or "")
        everything = f"{request.url} {told} {headers}".lower()
        assert not re.search("reward|click|like", everything), everything
        if request.method != "POST":
            assert request.post_data is None
            assert READ.fullmatch(request.url.removeprefix(one.base)), request.url


def test_what_leaves_is_the_coin_and_not_the_click(server: Server, visit: Open) -> None:
    """With a coin that always says the opposite, a click leaves as 0: what leaves is made from the coin."""
    one = visit(server)
    one.page.add_init_script(
        """crypto.getRandomValues = (words) => words.fill(words instanceof BigUint64Array ? 0n : 7);"""
    )
    page = one.open("/demo")
    page.locator("button.banner").click()
    expect(page.locator(".xray")).to_contain_text("You clicked: the reward is 1.")
    expect(page.locator(".xray")).to_contain_text("This time: the opposite.")
    expect(page.locator(".xray .bit")).to_have_text("0")
    expect(page.get_by_text("Your device has answered")).to_be_visible()
    (told,) = [request for request in one.requests if request.url.endswith("/v1/responses")]
    assert json.loads(told.post_data or "")["response"]["response"] == 0


def test_the_budget_ends_and_banners_go_on(server: Server, visit: Open) -> None:
    one = visit(server)
    page = one.open("/demo")
    page.clock.install()
    page.reload()
    for spent in (2, 4, 6, 8, 10, 12):
        expect(page.locator(".xray")).to_contain_text(f"Epsilon {spent} of 12 is spent")
        page.clock.fast_forward(8000)  # nobody clicks: the device answers all the same
        expect(page.locator(".xray")).to_contain_text("You did nothing: the reward is 0.")
        expect(page.get_by_text("Your device has answered")).to_be_visible()
        page.get_by_role("button", name="Come back later").click()
    expect(page.get_by_text("Your budget is spent. You still get banners")).to_be_visible()
    expect(page.locator("button.banner b")).to_be_visible()
    one.looks("demo-spent")
    assert len([request for request in one.requests if request.url.endswith("/v1/responses")]) == 6


def test_the_shop_is_closed_unless_it_was_opened(serving: Callable[..., Server]) -> None:
    code, text = serving().call("GET", "/demo")
    assert code == 404
    assert "dpbandits serve --demo" in text
