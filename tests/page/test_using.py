"""Using the page: begin, pause, stop, export; keys, a lost server, the keyboard, and what the page may not do."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from looking import Visit, create, play
from playwright.sync_api import expect
from servers import Server

Open = Callable[..., Visit]


@pytest.fixture(scope="module")
def server(serving: Callable[..., Server]) -> Server:
    return serving()


def test_an_experiment_from_the_form_to_the_archive(server: Server, visit: Open, tmp_path: Path) -> None:
    one = visit(server)
    one.expected = ("Failed to load resource: the server responded with a status of 4",)  # what is refused
    page = one.open("/#/new")
    page.get_by_label("Arms, one on each line").fill("left\nright\nmiddle")
    page.get_by_role("button", name="Begin the experiment").click()
    expect(page.locator("#name-help")).to_have_class("wrong")
    page.get_by_label("Name").fill("buttons")
    page.get_by_label("Epsilon", exact=True).fill("-1")
    page.get_by_role("button", name="Begin the experiment").click()
    expect(page.locator("#epsilon-help")).to_contain_text("must be")
    expect(page.locator("#epsilon")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#epsilon")).to_be_focused()
    page.get_by_label("Epsilon", exact=True).fill("1/2")
    page.get_by_role("button", name="Begin the experiment").click()
    expect(page.get_by_role("heading", name="buttons")).to_be_visible()
    expect(page.get_by_text("epsilon 1/2").first).to_be_visible()

    page.get_by_role("button", name="Pause right").click()
    expect(page.get_by_role("button", name="Resume right")).to_be_visible()
    assert server.call("GET", "/v1/experiments/buttons")[1]["paused_arms"] == ["right"]
    page.get_by_role("button", name="Pause left").click()
    expect(page.get_by_role("alert")).to_contain_text("at least 2 must be left")
    page.get_by_role("button", name="Resume right").click()
    expect(page.get_by_role("button", name="Pause right")).to_be_visible()

    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.locator(".badge")).to_have_text("paused")
    page.get_by_role("button", name="Go on").click()
    expect(page.locator(".badge")).to_have_text("running")

    play(server, "buttons", 50, likes=(0.5, 0.5, 0.5))
    expect(page.locator(".numbers")).to_contain_text("50")  # by itself
    page.locator("summary", has_text="Export").click()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Decisions as CSV").click()
    saved.value.save_as(tmp_path / "export.csv")
    assert (tmp_path / "export.csv").read_text().count("\n") == 51

    page.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Cancel").click()
    assert server.call("GET", "/v1/experiments/buttons")[1]["status"] == "running"
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="End it").click()
    expect(page.locator(".badge")).to_have_text("stopped")
    page.get_by_role("button", name="Archive").click()
    expect(page.locator(".badge")).to_have_text("archived")


def test_users_may_have_levels_of_their_own(server: Server, visit: Open) -> None:
    one = visit(server)
    one.expected = ("Failed to load resource: the server responded with a status of 422",)
    page = one.open("/#/new")
    page.get_by_label("Name").fill("leveled")
    page.get_by_label("Policy, and whom users must trust").select_option("heldp-ucb-b")
    expect(page.get_by_label("Epsilon", exact=True)).to_have_count(0)
    page.get_by_label("Levels that users may have").fill("1, 1")
    page.get_by_role("button", name="Begin the experiment").click()
    expect(page.locator("#levels-help")).to_contain_text("must be different levels")
    page.get_by_label("Levels that users may have").fill("0 1/2, 2")
    page.get_by_role("button", name="Begin the experiment").click()
    expect(page.get_by_role("heading", name="leveled")).to_be_visible()
    made = server.call("GET", "/v1/experiments/leveled")[1]
    assert (made["levels"], made["options"]) == (["0", "1/2", "2"], {"epsilon_min": "auto"})


def test_an_impossible_plan_is_refused_in_words(server: Server, visit: Open) -> None:
    one = visit(server)
    one.expected = ("Failed to load resource: the server responded with a status of 422",)
    page = one.open("/#/new")
    page.get_by_label("The others pay less by, %").fill("30")
    expect(page.locator(".plan .wrong")).to_contain_text("gap must be at most best", timeout=60_000)
    page.get_by_label("Days").fill("1000000")
    expect(page.locator(".plan .wrong")).to_contain_text("days")


def test_the_page_waits_for_a_server_that_is_away(serving: Callable[..., Server], visit: Open) -> None:
    server = serving()
    create(server, "shop")
    play(server, "shop", 100)
    one = visit(server)
    one.expected = ("Failed to load resource: net::ERR_", "net::ERR_")
    page = one.open("/#/e/shop")
    expect(page.locator(".numbers")).to_contain_text("100")
    expect(page.locator(".live")).to_have_text("live")
    server.kill()
    expect(page.locator(".bar")).to_contain_text("The server does not answer")
    expect(page.locator(".live")).to_have_text("not live")
    expect(page.locator(".numbers")).to_contain_text("100")  # what is shown stays
    one.looks("away")
    server.start()
    play(server, "shop", 100)
    expect(page.locator(".bar")).to_have_count(0)
    expect(page.locator(".numbers")).to_contain_text("200")


def test_a_server_with_keys_asks_for_one(serving: Callable[..., Server], visit: Open) -> None:
    server = serving()
    create(server, "shop")
    words = [sys.executable, "-m", "dpbandits", "key", "create", "--role", "read", "--store", server.settings["store"]]
    key = subprocess.run([*words, "ann"], capture_output=True, text=True, check=True).stdout.strip()
    one = visit(server)
    one.expected = ("Failed to load resource: the server responded with a status of 40",)
    page = one.open("/")
    expect(page.get_by_text("This server needs an API key")).to_be_visible()
    one.looks("key")
    page.get_by_label("This server needs an API key").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_text("This server needs an API key")).to_be_visible()
    page.get_by_label("This server needs an API key").fill(key)
    page.keyboard.press("Enter")
    page.locator(".glance").click()
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("a key with the role admin is needed")
    assert not any(key in request.url for request in one.requests)


def test_the_keyboard_is_enough(server: Server, visit: Open) -> None:
    create(server, "keys")
    one = visit(server)
    page = one.open("/")
    expect(page.locator(".glance", has_text="keys")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="New experiment")).to_be_focused()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.classList.contains('glance')")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    page.get_by_role("button", name="Stop").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_theme_can_be_chosen_and_stays(server: Server, visit: Open) -> None:
    one = visit(server, color_scheme="light")
    page = one.open("/")
    button = page.get_by_role("button", name=re.compile("Colours"))
    button.click()
    button.click()
    expect(button).to_have_accessible_name("Colours: dark. Change to auto")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page = one.open("/")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark == "rgb(18, 21, 28)"


def test_nothing_foreign_is_allowed(server: Server, visit: Open) -> None:
    """The policy of the page forbids it, whatever gets into the page."""
    one = visit(server)
    one.expected = (
        "Connecting to",
        "Loading the",
        "Executing inline",
        "Refused",
        "Applying inline",
        "Framing",
        "Fetch API",
        "This",
    )
    page = one.open("/")
    expect(page.locator("h1")).to_be_visible()
    blocked = page.evaluate(
        """async () => {
          const seen = [];
          document.addEventListener("securitypolicyviolation", (event) => seen.push(event.effectiveDirective));
          await fetch("http://127.0.0.1:9/").catch(() => {});
          for (const [tag, field] of [["img", "src"], ["iframe", "src"], ["link", "href"]]) {
            const node = document.createElement(tag);
            if (tag === "link") node.rel = "stylesheet";
            node[field] = "http://127.0.0.1:9/x";
            document.body.append(node);
          }
          const inline = document.createElement("script");
          try { inline.textContent = "window.ran = true"; document.body.append(inline); } catch { seen.push("script"); }
          let html = true;
          try { document.body.insertAdjacentHTML("beforeend", "<b></b>"); } catch (error) { html = false; }
          for (let n = 0; n < 300 && new Set(seen).size < 4; n++) await new Promise((done) => setTimeout(done, 100));
          return {seen, ran: window.ran === true, html};
        }"""
    )
    assert {"connect-src", "img-src", "frame-src", "style-src-elem"} <= set(blocked["seen"])
    assert not blocked["ran"]
    assert not blocked["html"]
    one.requests.clear()  # those that were blocked
