"""The JavaScript client in a real browser, with its real database and two tabs, and a real server of another origin."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from browsing import chromium
from javascript import PACKAGE
from playwright.sync_api import Browser, BrowserContext, Page, Request, Route
from servers import Server, Zygote

ROOT = Path(__file__).parents[2]
PAGE = "<!doctype html><meta charset=utf-8><title>shop</title><h1>shop</h1>"
START = """
async (settings) => {
  const { Client } = await import("/client.js");
  window.errors = [];
  window.events = [];
  addEventListener("error", (event) => errors.push(`${event.message}`));
  addEventListener("unhandledrejection", (event) => errors.push(`${event.reason}`));
  window.client = new Client({ observer: (event) => events.push(event), ...settings });
}
"""


@pytest.fixture(scope="module")
def code(built: Path) -> str:
    """The built client."""
    return (built / "client.js").read_text()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def flags(built: Path) -> str:
    """The example of the page on OpenFeature for browsers, bundled. The server's address is in the page's hash."""
    text = (ROOT / "docs" / "howto" / "openfeature.md").read_text()
    example = re.search(r"## Browsers\n.*?```js\n(.*?)```", text, flags=re.DOTALL)
    assert example is not None
    script = example[1].replace('"http://localhost:8000"', "location.hash.slice(1)") + "globalThis.banner = banner;\n"
    words = [str(PACKAGE / "node_modules" / ".bin" / "esbuild"), "--bundle", "--format=esm", "--log-level=error"]
    return subprocess.run(words, input=script, capture_output=True, text=True, check=True, cwd=PACKAGE).stdout


@pytest.fixture(scope="module")
def origin(code: str, flags: str) -> Iterator[str]:
    """The shop's own web server, which knows nothing of dpbandits."""
    scripts = {"/client.js": code, "/flags.js": flags}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = scripts.get(self.path, PAGE).encode()
            self.send_response(200)
            self.send_header("content-type", "text/javascript" if self.path in scripts else "text/html")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: Any) -> None:
            return

    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{web.server_address[1]}"
    web.shutdown()
    thread.join()
    web.server_close()


@pytest.fixture
def server(zygote: Zygote, tmp_path: Path, origin: str) -> Iterator[Server]:
    made = Server(zygote, tmp_path, f"sqlite:///{tmp_path}/test.db", allow_origins=[origin])
    made.start()
    yield made
    made.stop()


class Shop:
    """A browser with the shop's pages, whose requests to the server are recorded and may be disturbed."""

    def __init__(self, context: BrowserContext, server: Server, origin: str) -> None:
        self.context, self.server, self.origin = context, server, origin
        self.url = f"http://127.0.0.1:{server.port}"
        self.requests: list[tuple[str, str]] = []
        self.disturb: Callable[[Route], bool] = lambda route: False
        context.route(f"{self.url}/**", self._pass)

    def _pass(self, route: Route, request: Request) -> None:
        if not self.disturb(route):
            self.requests.append((request.url.removeprefix(self.url), request.post_data or ""))
            route.continue_()

    @property
    def sent(self) -> list[str]:
        return [body for path, body in self.requests if path == "/v1/responses"]

    def tab(self, **settings: Any) -> Page:
        page = self.context.new_page()
        page.goto(self.origin)
        page.evaluate("() => { const now = Date.now; window.offset = 0; Date.now = () => now() + offset; }")
        self.start(page, **settings)
        return page

    def later(self, page: Page, seconds: float) -> None:
        """So much time has passed for a tab, and what is due is sent: a busy machine makes nothing due too early."""
        page.evaluate("(passed) => { offset += 1000 * passed; }", seconds)
        page.evaluate("client.flush()")

    def start(self, page: Page, **settings: Any) -> None:
        page.evaluate(START, {"url": self.url, "key": "dpb_any", **settings})

    def create(self, **settings: Any) -> None:
        asked = {"name": "shop", "arms": ["red", "green"], "policy": "ldp-ucb-b", "epsilon": "1/2", **settings}
        status, answer = self.server.call("POST", "/v1/experiments", asked)
        assert status == 201, answer

    def responses(self) -> dict[str, int]:
        return self.server.call("GET", "/v1/experiments/shop/summary")[1]["responses"]

    def until(self, page: Page, true: Callable[[], bool], seconds: float = 30.0) -> None:
        deadline = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < deadline, f"it did not happen: {self.requests} {page.evaluate('errors')}"
            page.wait_for_timeout(20)


@pytest.fixture
def shop(browser: Browser, server: Server, origin: str) -> Iterator[Shop]:
    context = browser.new_context()
    yield Shop(context, server, origin)
    context.close()


#: What would wait for 300 to 600 seconds waits until it is told to go on.
HELD_BACK = """
const [now, wait] = [Date.now, setTimeout];
window.offset = 0;
window.waits = [];
Date.now = () => now() + offset;
window.setTimeout = (act, time, ...more) =>
  time > 300_000 && time < 600_000 ? waits.push(act) : wait(act, time, ...more);
"""


def test_the_page_on_openfeature_works_as_written(shop: Shop) -> None:
    """An answer is due when 5 to 15 % of the window are left. The clock of the page is set there when it waits."""
    shop.create(name="banner", response_window=600)
    page = shop.context.new_page()
    page.add_init_script(HELD_BACK)
    page.goto(f"{shop.origin}/#{shop.url}")
    assert page.evaluate('import("/flags.js").then(() => banner)') in ("red", "green")
    page.wait_for_function("waits.length === 1")
    assert shop.sent == []
    page.evaluate("() => { offset = 570_000; waits[0](); }")

    def accepted() -> int:
        found: int = shop.server.call("GET", "/v1/experiments/banner/summary")[1]["responses"]["accepted"]
        return found

    deadline = time.monotonic() + 30
    while accepted() < 1:
        assert time.monotonic() < deadline, shop.requests
        page.wait_for_timeout(20)
    assert len(shop.sent) == 1
    assert set(json.loads(shop.sent[0])["response"]) == {"decision", "epsilon", "response"}


DECIDE = 'async (options) => client.decide("shop", { otherwise: 0, fallback: "red", ...options })'


def test_from_the_decision_to_the_server(shop: Shop) -> None:
    shop.create()
    page = shop.tab()
    clicked, ignored = (page.evaluate(DECIDE, {"after": 6}) for _ in range(2))
    assert clicked["silent"] is None
    assert page.evaluate("(decision) => client.report(decision, 1)", clicked) is True
    assert shop.sent == [], "a report sends nothing"
    shop.until(page, lambda: shop.responses()["accepted"] == 2)
    assert {json.loads(body)["response"]["decision"] for body in shop.sent} == {clicked["id"], ignored["id"]}
    assert {len(body) for body in shop.sent} == {len(shop.sent[0])}
    assert page.evaluate("client.budget()") == {"limit": "10", "spent": "1"}
    events = page.evaluate("events")
    assert [event["type"] for event in events].count("drawn") == 2
    assert sorted(event["body"] for event in events if event["type"] == "sent") == sorted(shop.sent)
    assert page.evaluate("errors") == []


def test_a_reload_keeps_the_budget_and_resends_the_same_bytes(shop: Shop) -> None:
    shop.create()
    lost: list[str] = []

    def lose(route: Route) -> bool:
        if not route.request.url.endswith("/responses"):
            return False
        lost.append(route.request.post_data or "")
        route.abort()
        return True

    shop.disturb = lose
    page = shop.tab()
    decision = page.evaluate(DECIDE, {"after": 0.1})
    page.evaluate("(decision) => client.report(decision, 0.3)", decision)
    shop.until(page, lambda: len(lost) == 1)
    page.close()
    shop.disturb = lambda route: False
    page = shop.tab()
    assert page.evaluate("(id) => client.report(id, 1)", decision["id"]) is False, "the first answer stands"
    page.evaluate("client.flush(true)")
    page.evaluate("client.flush(true)")
    shop.until(page, lambda: shop.responses()["accepted"] == 1)
    assert set(shop.sent) == set(lost)
    assert page.evaluate("client.budget()") == {"limit": "10", "spent": "1/2"}
    assert "drawn" not in [event["type"] for event in page.evaluate("events")]


def test_two_tabs_never_draw_twice(shop: Shop) -> None:
    shop.create(epsilon="1/10")
    first, second = shop.tab(), shop.tab()
    decisions = [first.evaluate(DECIDE, {"after": 600}) for _ in range(15)]
    racing = "(ids) => { window.stood = Promise.all(ids.map((id) => client.report(id, 1))); }"
    ids = [decision["id"] for decision in decisions]
    first.evaluate(racing, ids)
    second.evaluate(racing, ids)
    stood = zip(first.evaluate("stood"), second.evaluate("stood"), strict=True)
    assert all(sorted(pair) == [False, True] for pair in stood), "one of the tabs drew each"
    drawn = [event for page in (first, second) for event in page.evaluate("events") if event["type"] == "drawn"]
    assert sorted(event["id"] for event in drawn) == sorted(ids)
    for page in (first, second):
        shop.later(page, 700)
    shop.until(first, lambda: shop.responses()["accepted"] == 15)
    assert len(set(shop.sent)) == 15
    answers = {json.dumps(json.loads(body)["response"], separators=(",", ":")) for body in shop.sent}
    assert answers == {event["response"] for event in drawn}, "what was drawn is what was sent"
    assert first.evaluate("client.budget()") == second.evaluate("client.budget()") == {"limit": "10", "spent": "3/2"}


def test_two_tabs_share_one_budget(shop: Shop) -> None:
    shop.create()
    tabs = [shop.tab(limit="2"), shop.tab(limit="2")]
    ask = f"() => {{ window.made = Promise.all(Array.from({{ length: 6 }}, () => ({DECIDE})({{}}))); }}"
    for page in tabs:
        page.evaluate(ask)
    silent = [decision["silent"] for page in tabs for decision in page.evaluate("made")]
    assert sorted(map(str, silent)) == ["None"] * 4 + ["budget"] * 8
    assert tabs[0].evaluate("client.budget()") == {"limit": "2", "spent": "2"}


HELD: list[Route] = []

BAD_DAYS: dict[str, tuple[Callable[[Route], None], str]] = {
    "away": (lambda route: route.abort("connectionrefused"), "unreachable"),
    "slow": (lambda route: HELD.append(route), "unreachable"),
    "503": (lambda route: route.fulfill(status=503, body='{"detail": "full"}'), "unreachable"),
    "500": (lambda route: route.fulfill(status=500, body="<html>"), "unreachable"),
    "garbled": (lambda route: route.fulfill(status=200, body="<html>"), "unreadable"),
    "401": (lambda route: route.fulfill(status=401, body="{}"), "refused"),
}


@pytest.mark.parametrize("day", BAD_DAYS)
def test_a_server_on_a_bad_day(shop: Shop, day: str) -> None:
    act, word = BAD_DAYS[day]
    shop.create()

    def disturb(route: Route) -> bool:
        act(route)
        return True

    shop.disturb = disturb
    page = shop.tab(timeout=8000 if day == "slow" else 30_000)
    decision = page.evaluate(DECIDE, {"after": 0.1})
    assert (decision["arm"], decision["silent"]) == ("red", word)
    shop.disturb = lambda route: False
    while HELD:
        HELD.pop().abort()
    good = page.evaluate(DECIDE, {"after": 0.05})
    assert good["silent"] is None
    shop.disturb = disturb
    page.wait_for_timeout(400)
    shop.disturb = lambda route: False
    while HELD:
        HELD.pop().abort()
    shop.until(page, lambda: page.evaluate("client.flush(true)") is None and shop.responses()["accepted"] == 1, 60)
    assert len([event for event in page.evaluate("events") if event["type"] == "drawn"]) == 1
    assert page.evaluate("errors") == []


def test_a_token_that_expired(shop: Shop) -> None:
    shop.create(response_window=2)
    page = shop.tab()

    def lose(route: Route) -> bool:
        answering = route.request.url.endswith("/responses")
        if answering:
            route.abort()
        return answering

    shop.disturb = lose
    decision = page.evaluate(DECIDE, {})
    page.evaluate("(decision) => client.report(decision, 1)", decision)
    page.wait_for_timeout(2500)
    shop.disturb = lambda route: False
    shop.until(page, lambda: page.evaluate("client.flush(true)") is None and shop.responses()["late"] == 1)
    page.evaluate("client.flush(true)")
    page.wait_for_timeout(100)
    assert len(shop.sent) == 1
    assert [event["status"] for event in page.evaluate("events") if event["type"] == "sent"][-1] == "late"


@pytest.mark.parametrize(
    "spoil",
    [
        'Object.defineProperty(window, "indexedDB", { get: () => { throw new DOMException("no", "SecurityError"); } })',
        'IDBFactory.prototype.open = () => { throw new DOMException("no", "SecurityError"); }',
        'IDBObjectStore.prototype.put = () => { throw new DOMException("full", "QuotaExceededError"); }',
        "delete Object.getPrototypeOf(window).indexedDB; delete window.indexedDB",
    ],
)
def test_storage_that_is_full_or_forbidden(shop: Shop, spoil: str) -> None:
    shop.create()
    page = shop.context.new_page()
    page.goto(shop.origin)
    page.evaluate(f"() => {{ {spoil}; }}")
    shop.start(page)
    decision = page.evaluate(DECIDE, {})
    assert (decision["arm"], decision["silent"]) == ("red", "storage")
    assert page.evaluate("(decision) => client.report(decision, 1)", decision) is False
    assert page.evaluate("client.budget()") is None
    page.evaluate("client.flush()")
    assert shop.requests == [], "nothing is asked, drawn or sent"
    assert page.evaluate("events.filter(({ type }) => type !== 'decided')") == []
    assert page.evaluate("errors") == []


FULL = {
    "at once": 'throw new DOMException("full", "QuotaExceededError")',
    "at the end": "const request = put.apply(this, given); this.transaction.abort(); return request",
}


@pytest.mark.parametrize("when", FULL)
def test_a_disk_that_is_full_when_the_click_comes(shop: Shop, when: str) -> None:
    """A write that fails at once, and one that the browser undoes at the end of its transaction."""
    shop.create()
    page = shop.tab()
    good = page.evaluate(DECIDE, {"after": 600})
    assert good["silent"] is None
    spoil = f"""() => {{
      const {{ put }} = IDBObjectStore.prototype;
      window.full = true;
      IDBObjectStore.prototype.put = function (...given) {{
        if (full) {{ {FULL[when]}; }}
        return put.apply(this, given);
      }};
    }}"""
    page.evaluate(spoil)
    decision = page.evaluate(DECIDE, {"after": 0.1})
    assert (decision["arm"], decision["silent"]) == ("red", "storage")
    assert page.evaluate("(decision) => client.report(decision, 1)", good) is False
    shop.later(page, 700)
    page.wait_for_timeout(500)
    assert shop.sent == [], "no draw without a store"
    page.evaluate("() => { full = false; }")
    page.evaluate("client.flush()")
    shop.until(page, lambda: shop.responses()["accepted"] == 1)
    drawn = [event for event in page.evaluate("events") if event["type"] == "drawn"]
    assert [(event["reward"], event["reported"]) for event in drawn] == [(1, True)], "the click was not forgotten"
    assert page.evaluate("errors") == []


def test_a_wrong_clock(shop: Shop) -> None:
    """Three years behind, and set right while a decision waits."""
    shop.create()
    page = shop.context.new_page()
    page.goto(shop.origin)
    page.evaluate("() => { const now = Date.now; window.offset = -1e11; Date.now = () => now() + offset; }")
    shop.start(page)
    decision = page.evaluate(DECIDE, {"after": 0.3})
    assert decision["silent"] is None
    shop.until(page, lambda: shop.responses()["accepted"] == 1)
    page.evaluate(DECIDE, {"after": 60})
    page.evaluate("() => { offset = 0; }")
    page.evaluate("client.flush()")
    shop.until(page, lambda: shop.responses()["accepted"] == 2)
    assert page.evaluate("errors") == []


def test_no_reward_leaves_the_browser(shop: Shop) -> None:
    shop.create(policy="ldp-ucb-l")
    page = shop.tab()
    page.evaluate(f"async () => client.report(await ({DECIDE})({{ after: 1 }}), 0.8414709848)")
    shop.until(page, lambda: shop.responses()["accepted"] == 1)
    assert not any("0.841" in body for _, body in shop.requests)
    assert page.evaluate("events").count(None) == 0
    assert any(event.get("reward") == 0.8414709848 for event in page.evaluate("events")), "it is for the owner's eyes"
