"""How large and how fast the page is, in Chromium on this machine. ``--write`` puts the table into docs/tour.md.

python benchmarks/page.py [--write]
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import statistics
import sys
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "service"))
from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402
from servers import Server, Zygote  # noqa: E402

from dpbandits.service.page import BUILT  # noqa: E402

TRIES = 5
SECONDS = 5
PAINT = """() => performance.getEntriesByName("first-contentful-paint")[0].startTime"""
DRAWN = """() => performance.getEntriesByName("chart").map((one) => one.duration)"""
FRAMES = """(ms) => new Promise((done) => {
  const times = [];
  const frame = (time) => (times.push(time), time - times[0] < ms ? requestAnimationFrame(frame) : done(times));
  requestAnimationFrame(frame);
})"""


def size() -> int:
    """Bytes of the page without the demo, compressed."""
    page = (BUILT / "index.html").read_text()
    files = [BUILT / "index.html", *(BUILT / name for name in re.findall(r'(?:src|href)="\./([^"]+)"', page))]
    return sum(len(gzip.compress(file.read_bytes(), 9)) for file in files)


def first_paint(browser: Browser, url: str) -> float:
    """Milliseconds until something is seen, with an empty cache: the median."""
    found = []
    for _ in range(TRIES):
        context = browser.new_context()
        page = context.new_page()
        page.goto(url)
        page.wait_for_selector("h1")
        found.append(float(page.evaluate(PAINT)))
        context.close()
    return statistics.median(found)


def drawing(page: Page, url: str) -> tuple[float, float]:
    """Milliseconds to draw 5 arms x 5000 points: the first time, from the data to the picture, and again; medians."""
    times = list(range(1_700_000_000, 1_700_000_000 + 5000))
    rows = [[50 + (i * (arm + 3)) % 40 for i in range(5000)] for arm in range(5)]
    shares = {"arms": list("abcde"), "step_seconds": 1, "time": times, "decisions": rows}
    page.route("**/shares?*", lambda route: route.fulfill(json=shares))
    first: list[float] = []
    again: list[float] = []
    for _ in range(TRIES):
        page.goto("about:blank")
        page.goto(url)
        page.wait_for_selector(".uplot canvas")
        page.wait_for_timeout(500)
        first.append(page.evaluate(DRAWN)[0])
        for width in range(1000, 1100, 10):
            page.evaluate("performance.clearMeasures()")
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_timeout(100)
            again += page.evaluate(DRAWN)
    page.unroute("**/shares?*")
    return statistics.median(first), statistics.median(again)


def frames(page: Page, server: Server) -> tuple[float, float, float, float]:
    """Events a second, frames a second, the share of frames over 25 ms, and frames a second when nothing happens."""
    page.goto(f"http://127.0.0.1:{server.port}/#/e/live")
    page.wait_for_selector(".numbers")
    page.wait_for_timeout(2000)
    idle = page.evaluate(FRAMES, 1000 * SECONDS)
    stop, sent = threading.Event(), [0]

    def traffic() -> None:
        while not stop.is_set():
            began = time.perf_counter()
            decided = server.call("POST", "/v1/experiments/live/decisions", {"count": 50})[1]["decisions"]
            server.call("POST", "/v1/responses", [{"token": one["token"], "response": 1} for one in decided])
            sent[0] += 100
            time.sleep(max(0.0, 0.1 - (time.perf_counter() - began)))

    thread = threading.Thread(target=traffic)
    thread.start()
    before, began = sent[0], time.perf_counter()
    found = page.evaluate(FRAMES, 1000 * SECONDS)
    rate = (sent[0] - before) / (time.perf_counter() - began)
    stop.set()
    thread.join()
    gaps = [b - a for a, b in pairwise(found)]
    slow = sum(gap > 25 for gap in gaps) / len(gaps)
    return rate, 1000 * len(gaps) / sum(gaps), slow, 1000 * (len(idle) - 1) / (idle[-1] - idle[0])


def main() -> None:
    folder, zygote = Path(tempfile.mkdtemp()), Zygote()
    server = Server(zygote, folder, f"sqlite:///{folder}/test.db")
    server.start()
    asked: dict[str, Any] = {"name": "live", "arms": list("abcde"), "policy": "ldp-ucb-b", "epsilon": "1"}
    server.call("POST", "/v1/experiments", asked)
    server.call("POST", "/v1/experiments/live/decisions", {"count": 100})
    url = f"http://127.0.0.1:{server.port}/"
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            paint = first_paint(browser, url)
            page = browser.new_page()
            first, draw = drawing(page, url + "#/e/live")
            rate, shown, slow, idle = frames(page, server)
            browser.close()
    finally:
        server.stop()
        zygote.stop()
        shutil.rmtree(folder)
    load = Path("/proc/loadavg").read_text().split()[3].split("/")[0]
    rows = [
        ("the page, compressed, without the demo", f"{size() / 1000:.1f} kB", "60 kB", size() <= 60_000),
        ("first paint on loopback, empty cache", f"{paint:.0f} ms", "1000 ms", paint < 1000),
        ("5 arms x 5000 points drawn the first time", f"{first:.1f} ms", "20 ms", first < 20),
        ("the same, drawn again", f"{draw:.1f} ms", "20 ms", draw < 20),
        (f"frames a second at {rate:.0f} events/s", f"{shown:.0f} ({idle:.0f} when idle)", "60", shown > 58),
        ("frames that took more than 25 ms meanwhile", f"{100 * slow:.1f} %", "", True),
    ]
    lines = [
        f"Medians of {TRIES}; 2 cores; processes that wanted to run at the end: {load}.\n",
        "| | measured | target | |\n|---|---|---|---|",
        *(f"| {a} | {b} | {c} | {('holds' if ok else '**missed**') if c else ''} |" for a, b, c, ok in rows),
    ]
    text = "\n".join(lines)
    print(text)
    print(json.dumps({"paint_ms": paint, "draw_ms": draw, "frames": shown, "events": rate}))
    if "--write" in sys.argv:
        tour = ROOT / "docs" / "tour.md"
        marks = re.compile(r"(<!-- page: written by benchmarks/page.py -->\n).*?(<!-- end of page -->)", re.DOTALL)
        tour.write_text(marks.sub(lambda found: f"{found[1]}{text}\n{found[2]}", tour.read_text()))


if __name__ == "__main__":
    main()
