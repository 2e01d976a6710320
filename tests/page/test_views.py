"""Every view in both themes, on a desktop and on a phone: complete, within the window, and clean for axe."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from looking import Visit, create, play
from playwright.sync_api import Route, expect
from servers import Server

Open = Callable[..., Visit]


@pytest.fixture(scope="module")
def server(serving: Callable[..., Server]) -> Server:
    """A server with experiments in all states."""
    started = serving()
    create(started, "banners", max_responses_per_user=100)
    play(started, "banners", 3000)
    create(started, "prices", policy="adap-ucb", epsilon="1", arms=["low", "high"])
    play(started, "prices", 600, likes=(0.7, 0.3))
    create(started, "newsletter", response_window=0.001)
    play(started, "newsletter", 400)
    create(started, "old")
    started.call("POST", "/v1/experiments/old:stop")
    create(started, "halfway", policy="ucb1", epsilon=None)
    play(started, "halfway", 200, answering=0.5)
    started.call("PATCH", "/v1/experiments/halfway", {"status": "paused", "paused_arms": ["blue"]})
    return started


def test_the_list(server: Server, visit: Open) -> None:
    one = visit(server)
    page = one.open()
    expect(page.locator(".glance")).to_have_count(5)
    row = page.locator(".glance", has_text="banners")
    expect(row).to_contain_text("best arm, error at most 5 %")
    expect(row).to_contain_text("green")
    expect(page.locator(".glance", has_text="newsletter")).to_contain_text("warning")
    expect(page.locator(".glance", has_text="halfway")).to_contain_text("paused")
    one.looks("list")


def test_an_experiment_with_a_winner(server: Server, visit: Open) -> None:
    one = visit(server)
    page = one.open("/#/e/banners")
    expect(page.locator(".verdict")).to_contain_text("Stop now: green is best, with error at most 5 %")
    for words in ("Share of traffic", "Estimates", "Responses against", "Health", "What is promised", "have spent",
                  "Ledger", "What this page cannot tell you"):  # fmt: skip
        expect(page.locator("h2", has_text=words)).to_be_visible()
    expect(page.locator(".uplot")).to_be_visible()
    expect(page.get_by_text("the server never sees a reward")).to_be_visible()
    expect(page.get_by_text("The cap is 200")).to_be_visible()
    one.looks("experiment")


def test_a_trusted_server_shows_its_releases(server: Server, visit: Open) -> None:
    one = visit(server)
    page = one.open("/#/e/prices")
    expect(page.get_by_role("region", name="Releases").locator("tbody tr").first).to_be_visible()
    expect(page.get_by_text("The server sees rewards; its choices and releases are private")).to_be_visible()
    one.looks("central")


def test_what_is_wrong_is_said_with_its_cause(server: Server, visit: Open) -> None:
    one = visit(server)
    page = one.open("/#/e/newsletter")
    expect(page.locator(".findings .warning", has_text="too late")).to_be_visible()
    one.looks("unhealthy")


def test_an_experiment_that_has_ended(server: Server, visit: Open) -> None:
    one = visit(server)
    page = one.open("/#/e/old")
    expect(page.locator(".badge")).to_have_text("stopped")
    expect(page.get_by_text("Nobody has asked for a decision yet").first).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    expect(page.get_by_role("button", name="Archive")).to_be_visible()
    one.looks("stopped")


def test_no_privacy_is_said_plainly(server: Server, visit: Open) -> None:
    one = visit(server)
    page = one.open("/#/e/halfway")
    expect(page.get_by_text("No privacy is promised: the server sees rewards")).to_be_visible()
    expect(page.get_by_role("button", name="Resume blue")).to_be_visible()
    one.looks("paused")


def test_an_experiment_that_is_not_there(server: Server, visit: Open) -> None:
    one = visit(server)
    one.expected = ("Failed to load resource: the server responded with a status of 404",)
    page = one.open("/#/e/nothing")
    expect(page.get_by_role("heading", name="There is no such experiment")).to_be_visible()
    one.looks("unknown")


def test_the_form_with_a_plan(server: Server, visit: Open) -> None:
    one = visit(server)
    one.expected = ("Failed to load resource: the server responded with a status of 503",)  # while it is compiled
    page = one.open("/#/new")
    expect(page.locator(".plan .big")).to_be_visible(timeout=180_000)
    expect(page.locator(".plan")).to_contain_text("If users trusted the server, dp-glr-imed would lose")
    expect(page.locator(".plan")).to_contain_text("it tells the truth with probability 73")
    held: list[Route] = []
    page.route("**/v1/plan?*", lambda route: held.append(route))  # a plan may take less time than a look at the page
    page.get_by_label("Epsilon", exact=True).fill("0.1")
    expect(page.locator(".plan")).to_contain_text("truth with probability 52")
    expect(page.locator(".plan .busy")).to_be_visible()
    held.pop().continue_()
    page.unroute("**/v1/plan?*")
    expect(page.locator(".plan .busy")).to_have_count(0, timeout=180_000)
    expect(page.locator(".plan svg")).to_have_attribute("aria-label", re.compile(r"at 0\.1,"))
    one.looks("new")


def test_the_description_of_the_api(server: Server, visit: Open) -> None:
    one = visit(server)
    page = one.open("/docs")
    expect(page.get_by_role("heading", name="POST /v1/experiments/{name}/decisions")).to_be_visible()
    one.looks("docs")
    page.get_by_role("link", name="The page with all experiments").click()
    expect(page.locator(".glance").first).to_be_visible()


def test_an_empty_server(serving: Callable[..., Server], visit: Open) -> None:
    one = visit(serving())
    page = one.open()
    expect(page.get_by_role("heading", name="No experiment yet")).to_be_visible()
    one.looks("empty")
