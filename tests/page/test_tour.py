"""The pictures of the tour: made from the page as it is, and compared with those in the docs.

``make tour`` writes them. Sizes, colours and most of the contents must be the same; times and the course of the demo
may differ.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from looking import ROOT, Visit, create, play
from PIL import Image
from playwright.sync_api import Page, expect
from servers import Server

Open = Callable[..., Visit]
PICTURES = ROOT / "docs" / "figures" / "tour"
MADE = ROOT / "out" / "tour"
WRITE = os.environ.get("TOUR") == "write"
BLOCK = 16  # pixels: pictures are compared by the means of blocks of this size
DIFFERENT = 20  # of 255: a block that differs by more is another one
MOST = 0.1  # of the blocks may be others: times, the course of lines, fonts that are set a little differently


@pytest.fixture(scope="module")
def server(serving: Callable[..., Server]) -> Server:
    started = serving(demo=True)
    create(started, "banners", max_responses_per_user=200)
    play(started, "banners", 2500, pause=0.15)  # over some seconds, for the chart
    create(started, "prices", policy="adap-ucb", epsilon="1", arms=["low", "high"])
    return started


def compared(page: Page, name: str, height: int) -> None:
    """Take a picture; write it into the docs, or compare it with the one there."""
    MADE.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=MADE / f"{name}.png", clip={"x": 0, "y": 0, "width": 1100, "height": height})
    small = Image.open(MADE / f"{name}.png").convert("P", palette=Image.Palette.ADAPTIVE, colors=192)
    small.save(MADE / f"{name}.png", optimize=True)
    if WRITE:
        PICTURES.mkdir(parents=True, exist_ok=True)
        small.save(PICTURES / f"{name}.png", optimize=True)
    new, old = blocks(MADE / f"{name}.png"), blocks(PICTURES / f"{name}.png")
    assert new.shape == old.shape, f"{name} has another size: make tour"
    others = float((np.abs(new - old) > DIFFERENT).any(axis=2).mean())
    assert others <= MOST, (
        f"{name} looks different in {100 * others:.0f} % of its blocks: look at out/tour, then make tour"
    )


def blocks(path: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    picture = np.asarray(Image.open(path).convert("RGB"), dtype=float)
    rows, columns = (size // BLOCK for size in picture.shape[:2])
    return picture[: rows * BLOCK, : columns * BLOCK].reshape(rows, BLOCK, columns, BLOCK, 3).mean(axis=(1, 3))


def test_the_pictures_are_those_of_the_page(server: Server, visit: Open) -> None:
    one = visit(server, viewport={"width": 1100, "height": 1600}, color_scheme="light", reduced_motion="reduce")
    one.expected = ("Failed to load resource: the server responded with a status of 503",)  # while it is compiled
    page = one.open("/")
    expect(page.locator(".glance")).to_have_count(3)
    compared(page, "experiments", 460)
    page = one.open("/#/e/banners")
    expect(page.locator(".uplot")).to_be_visible()
    expect(page.locator(".verdict")).to_contain_text("Stop now")
    compared(page, "experiment", 1600)
    page = one.open("/#/new")
    page.get_by_label("Name").fill("landing-page")
    expect(page.locator(".plan .big")).to_be_visible(timeout=180_000)
    compared(page, "new", 1120)
    page = one.open("/demo")
    page.locator("button.banner").click()
    expect(page.get_by_text("Your device has answered")).to_be_visible()
    page.get_by_role("button", name="A thousand visitors").click()
    expect(page.get_by_role("button", name="A thousand visitors")).to_be_enabled(timeout=120_000)
    expect(page.locator(".crowd")).to_contain_text(re.compile("1,00[01] private bits"))
    compared(page, "demo", 1140)


def test_the_tour_shows_every_picture_and_says_what_the_page_says() -> None:
    text, _, _ = (ROOT / "docs" / "tour.md").read_text().partition("## Where it comes from")
    shown = re.findall(r"!\[[^\]]{20,}\]\(figures/tour/([a-z]+)\.png\)", text)
    assert sorted(shown) == sorted(path.stem for path in PICTURES.glob("*.png"))
    sources = "".join(path.read_text() for path in (ROOT / "web" / "src").glob("*.ts*"))
    for words in re.findall(r"\*\*([^*]+)\*\*", text):
        assert words in sources, f"the page does not say '{words}'"
    assert sum(path.stat().st_size for path in PICTURES.glob("*.png")) < 400_000
