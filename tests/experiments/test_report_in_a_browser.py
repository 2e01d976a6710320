"""The report's interactive charts in a real browser: headless Chromium (Debian's package ``chromium``)."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpbandits.experiments.claims import Claim
from dpbandits.experiments.panels import Line, Panel, Picture, Table
from dpbandits.experiments.report import Section, page

X = np.array([1.0, 10.0, 100.0, 1000.0])

#: What a reader does, and what the page then shows; the answer is written into the page.
READER = """
<script>
const charts = [...document.querySelectorAll("figure.chart")];
const seen = charts.map((chart) => {
  const svg = chart.querySelector("svg"), buttons = [...chart.querySelectorAll(".legend button")];
  const curves = () => svg.querySelectorAll("path[stroke-width], circle").length;
  const box = svg.getBoundingClientRect();
  const result = {caption: chart.querySelector("figcaption").textContent, before: curves(), width: box.width};
  result.labels = buttons.map((button) => button.textContent);
  result.ticks = [...svg.querySelectorAll("text")].map((text) => text.textContent);
  const paths = [...svg.querySelectorAll("path")].map((path) => path.getAttribute("d"));
  result.broken = paths.filter((path) => /NaN|Infinity/.test(path)).length;
  const at = {clientX: box.left + box.width * 0.97, clientY: box.top + box.height / 2, bubbles: true};
  svg.dispatchEvent(new PointerEvent("pointermove", at));
  result.readout = chart.querySelector(".readout").textContent;
  buttons[0].click();
  result.pressed = buttons[0].getAttribute("aria-pressed");
  result.after = curves();
  buttons[0].click();
  result.again = curves();
  const drawn = [...svg.querySelectorAll("path[stroke-width]")];
  result.looks = drawn.map((path) => path.getAttribute("style") + path.getAttribute("stroke-dasharray"));
  svg.focus();
  const press = (key) => svg.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
  press("ArrowRight");
  result.first = chart.querySelector(".readout").textContent;
  press("ArrowRight");
  result.second = chart.querySelector(".readout").textContent;
  press("Escape");
  result.closed = chart.querySelector(".readout").textContent;
  const linear = chart.querySelector(".tools button");
  if (linear) linear.click();
  result.linear = [...svg.querySelectorAll("text")].map((text) => text.textContent);
  const rows = chart.parentElement.querySelectorAll("details tbody tr");
  result.table = [...rows].map((row) => [...row.cells].map((cell) => cell.textContent));
  return result;
});
const place = (selector) => [...document.querySelectorAll(selector)].map((node) => node.getBoundingClientRect());
const seeing = {
  charts: seen,
  width: document.documentElement.scrollWidth,
  window: window.innerWidth,
  links: [...document.querySelectorAll(".files a")].map((link) => link.getAttribute("href")),
  top: place("figure.chart").concat(place("#claims")).map((box) => box.top),
  verdicts: place(".verdict").map((box) => box.right),
  pictures: place(".picture img").map((box) => box.width),
  names: place(".wide .wide td:first-child").map((box) => box.width),
};
parent.postMessage(JSON.stringify(seeing), "*");
</script>
"""

#: A window of the width of a phone: a browser's own window cannot be that narrow.
FRAME = """<!doctype html><body style="margin: 0">
<iframe src="page.html" width="{width}" height="900" style="border: 0"></iframe><script>
addEventListener("message", (event) => {{
  const note = document.createElement("pre");
  note.id = "seen";
  note.textContent = event.data;
  document.body.append(note);
}});
</script></body>"""


def browse(html: str, folder: Path, width: int) -> dict[str, Any]:
    """What a reader sees in a window of this width."""
    browser = shutil.which("chromium")
    assert browser is not None, "chromium is not installed: make test installs it (apt-get install chromium)"
    (folder / "page.html").write_text(html.replace("</body>", f"{READER}</body>"), encoding="utf-8")
    file = folder / "frame.html"
    file.write_text(FRAME.format(width=width), encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    flags += [f"--user-data-dir={folder / 'profile'}", "--window-size=1400,1000", "--virtual-time-budget=5000"]
    done = subprocess.run(
        [browser, *flags, "--dump-dom", file.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    found = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, flags=re.DOTALL)
    assert found is not None, "a script of the page failed"
    return dict(json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")))


@pytest.fixture(scope="module")
def report() -> str:
    """A page with curves, bands, dashed lines, points, values that are missing, and a name that must be escaped."""
    lines = [
        Line("AdaP-UCB <b>", X, 3 * X, 2 * X, 4 * X),
        Line("bound", X, np.array([np.nan, 20.0, 30.0, 40.0]), style="dashed"),
    ]
    points = [Line("measured", X, X**0.5, 0.5 * X**0.5, 2 * X**0.5, style="points")]
    panels = [
        Panel("one", "Regret over time", lines, band="two standard errors"),
        Panel("two", "Points", points, log_y=False, names={"measured": ["a", "b", "c", "d"]}),
    ]
    many = [Line(f"policy {number}", X, (number + 1) * X) for number in range(12)]
    panels.append(Panel("three", "Many lines", [*many, Line("bound", X, 20 * X, style="dashed")]))
    names = ["ucb1 <script>", "dp-ucb-int (cover_noise=true, v=1.1)"]
    columns = ["policy", *(f"column {number}" for number in range(12))]
    table = Table("table", "A table", columns, [[name, *["1,234"] * 12] for name in names])
    picture = Picture("wins", "who wins where")
    claim = Claim("c", "A statement. " * 12, "p. 1", "how it was measured, in many words", "within 10 %")
    findings = [claim.single("reproduced", "1,234,567 ± 12,345; " * 6), claim.single("cannot be decided", "2")]
    section = Section("a/fig1", "A figure", "A paper", "", {}, [*panels, picture, table], findings)
    return page("A report", [section], {"seed": 0, "a fact with a long name": "x" * 80})


@pytest.fixture(scope="module")
def desktop(report: str, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The three charts as a reader at a desk sees them."""
    return list(browse(report, tmp_path_factory.mktemp("desktop"), 1200)["charts"])


def test_charts_are_drawn_and_answer_to_the_reader(desktop: list[dict[str, Any]]) -> None:
    one, two, _ = desktop
    assert one["caption"] == "Regret over time"
    assert one["labels"] == ["AdaP-UCB <b>", "bound"]
    assert (one["before"], one["after"], one["again"], one["pressed"]) == (2, 1, 2, "false")
    assert one["broken"] == two["broken"] == 0
    assert {"round t", "regret", "10", "100"} <= set(one["ticks"])
    assert "AdaP-UCB <b>: 3,000" in one["readout"], "the value under the pointer is not shown"
    assert "bound: 40" in one["readout"]
    assert (two["before"], two["after"], two["again"]) == (4, 0, 4)
    assert "d, measured" in two["readout"], "a point's name is not shown"


def test_every_line_is_drawn_and_looks_different(desktop: list[dict[str, Any]]) -> None:
    one, _, three = desktop
    assert len(three["looks"]) == 13
    assert len(set(three["looks"])) == 13, "two lines look the same"
    assert one["looks"][1] in three["looks"], "the same label looks different in two panels"


def test_charts_can_be_read_without_a_pointer(desktop: list[dict[str, Any]]) -> None:
    one, two, _ = desktop
    assert "AdaP-UCB <b>: 3" in one["first"]
    assert "round t 10" in one["second"]
    assert "AdaP-UCB <b>: 30" in one["second"]
    assert "bound: 20" in one["second"]
    assert one["closed"] == "bands: two standard errors"
    assert "b, measured" in two["second"]
    assert one["table"][-1] == ["1,000", "3,000", "40"], "the numbers behind a chart"
    assert one["table"][0] == ["1", "3", ""]


def test_axes_can_be_linear(desktop: list[dict[str, Any]]) -> None:
    one, _, _ = desktop
    assert "10" in one["ticks"]
    assert "10" not in one["linear"]
    assert {"0", "500", "1000"} <= set(one["linear"])


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits_its_window(report: str, tmp_path: Path, width: int) -> None:
    seen = browse(report, tmp_path, width)
    assert seen["window"] == width
    assert seen["width"] <= width, "the page is wider than the window"
    assert all(0 < chart["width"] <= width for chart in seen["charts"])
    assert min(seen["pictures"]) >= 480, "a picture is too small to be read: it scrolls in its box"
    assert width > 390 or max(seen["names"]) <= width / 3, "a policy's name takes the room of its numbers"
    assert len(seen["verdicts"]) == 2
    assert max(seen["verdicts"]) <= width, "a verdict is out of sight"
    assert seen["top"] == sorted(seen["top"]), "claims come after figures"
    assert seen["links"] == [*(f"figures/a/fig1.{kind}" for kind in ("svg", "png", "pdf")), "data/a/fig1.parquet"]


def test_without_javascript_there_is_an_image(report: str) -> None:
    found = re.search(r"<noscript><img src=\"([^\"]+)\" alt=\"([^\"]+)\"></noscript>", report)
    assert found is not None
    assert found[1] == "figures/a/fig1.svg"
    assert "Regret over time" in found[2]


def luminance(colour: str) -> float:
    """Of a colour #rrggbb, as WCAG defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_text_has_contrast_and_lines_can_be_seen_in_light_and_dark(report: str) -> None:
    css = report[report.index("<style>") : report.index("</style>")]
    schemes = [dict(re.findall(r"(--\w+): (#[0-9a-fA-F]{6})", part)) for part in css.split("@media")[:2]]
    assert len(schemes) == 2
    for scheme in schemes:
        paper = luminance(scheme["--paper"])
        for name, colour in scheme.items():
            light, dark = sorted([luminance(colour), paper], reverse=True)
            contrast = (light + 0.05) / (dark + 0.05)
            if name in ("--ink", "--soft", "--yes", "--no", "--open"):
                assert contrast >= 4.5, f"{name} {colour}: {contrast:.1f}"
            elif name.startswith("--c"):
                assert contrast >= 2.0, f"{name} {colour}: {contrast:.1f}"


def test_what_people_write_is_shown_as_text(report: str) -> None:
    assert "ucb1 <script>" not in report
    assert "ucb1 &lt;script&gt;" in report
