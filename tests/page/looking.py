"""A visitor of the page: a tab, what it asked for, what it complained about, and how it looks."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, Page, Request
from servers import Server

ROOT = Path(__file__).parents[2]
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
SCREENSHOTS = ROOT / "out" / "screenshots"
LOOKS = [(theme, size) for theme in ("light", "dark") for size in ("desktop", "phone")]
DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}


class Visit:
    """One tab."""

    def __init__(self, context: BrowserContext, server: Server) -> None:
        self.context, self.base = context, f"http://127.0.0.1:{server.port}"
        self.page: Page = context.new_page()
        self.page.set_default_timeout(30_000)
        self.requests: list[Request] = []
        self.complaints: list[str] = []
        self.expected: tuple[str, ...] = ()  # beginnings of complaints that a test provokes
        self.page.on("request", lambda one: self.requests.append(one))
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def open(self, path: str = "/") -> Page:
        self.page.goto("about:blank")
        self.page.goto(self.base + path)
        return self.page

    def looks(self, view: str) -> None:
        """Look at it in both themes, on a desktop and on a phone: nothing is cut off, and axe finds nothing."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.evaluate(AXE.read_text())
        for theme, size in LOOKS:
            width, height = SIZES[size]
            self.page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
            self.page.set_viewport_size({"width": width, "height": height})
            self.page.evaluate(DRAWN)
            self.page.screenshot(path=SCREENSHOTS / f"{view}-{theme}-{size}.png", full_page=True)
            wide = self.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{view} is {wide} pixels wide on a {size}"
            found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
            wrong = [f"{one['id']}: {one['nodes'][0]['html']:.200}" for one in found["violations"]]
            assert not wrong, f"{view}, {theme}, {size}: {wrong}"

    def close(self) -> None:
        self.context.close()
        foreign = [one.url for one in self.requests if not one.url.startswith((self.base, "about:", "blob:"))]
        assert not foreign
        unexpected = [text for text in self.complaints if not text.startswith(self.expected or "\0")]
        assert not unexpected, unexpected


def create(server: Server, name: str, **settings: Any) -> None:
    """An experiment with two banners; local with one bit by default."""
    asked = {"name": name, "arms": ["red", "green", "blue"], "policy": "ldp-ucb-b", "epsilon": "2", **settings}
    code, answer = server.call("POST", "/v1/experiments", asked)
    assert code == 201, answer


def play(
    server: Server,
    name: str,
    rounds: int,
    likes: tuple[float, ...] = (0.3, 0.7, 0.2),
    answering: float = 1.0,
    pause: float = 0.0,
) -> None:
    """Visitors whose answers are as private as bits with these means: the numbers are the same every time."""
    chance = random.Random(name)
    arms = server.call("GET", f"/v1/experiments/{name}")[1]["arms"]
    for first in range(0, rounds, 50):
        time.sleep(pause)
        count = min(50, rounds - first)
        asked = {"count": count, "user": f"user {first % 1000}"}
        decided = server.call("POST", f"/v1/experiments/{name}/decisions", asked)[1]["decisions"]
        come = [one for one in decided if one["token"] and chance.random() < answering]
        central = bool(come) and come[0]["curator"]["mechanism"] == "none"
        field, path = ("reward", "/v1/rewards") if central else ("response", "/v1/responses")
        told = [{"token": d["token"], field: int(chance.random() < likes[arms.index(d["arm"])])} for d in come]
        if told:
            assert server.call("POST", path, told)[0] == 200
