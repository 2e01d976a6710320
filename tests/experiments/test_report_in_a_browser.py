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

from dpbandits.experiments.panels import Line, Panel, Table
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
  return result;
});
const note = document.createElement("pre");
note.id = "seen";
note.textContent = JSON.stringify({charts: seen, width: document.documentElement.scrollWidth});
document.body.append(note);
</script>
"""


def browse(html: str, folder: Path, width: int) -> dict[str, Any]:
    """What a reader sees in a window of this width."""
    browser = shutil.which("chromium")
    assert browser is not None, "chromium is not installed: make test installs it (apt-get install chromium)"
    file = folder / "page.html"
    file.write_text(html.replace("</body>", f"{READER}</body>"), encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    flags += [f"--user-data-dir={folder / 'profile'}", f"--window-size={width},900", "--virtual-time-budget=5000"]
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
    table = Table("table", "A table", ["policy", "regret"], [["ucb1 <script>", "7"]])
    return page("A report", [Section("a/fig1", "A figure", "A paper", "", {}, [*panels, table])], {"seed": 0})


def test_charts_are_drawn_and_answer_to_the_reader(report: str, tmp_path: Path) -> None:
    one, two = browse(report, tmp_path, 1200)["charts"]
    assert one["caption"] == "Regret over time"
    assert one["labels"] == ["AdaP-UCB <b>", "bound"]
    assert (one["before"], one["after"], one["again"], one["pressed"]) == (2, 1, 2, "false")
    assert one["broken"] == two["broken"] == 0
    assert {"round t", "regret", "10", "100"} <= set(one["ticks"])
    assert "AdaP-UCB <b>: 3,000" in one["readout"], "the value under the pointer is not shown"
    assert "bound: 40" in one["readout"]
    assert (two["before"], two["after"], two["again"]) == (4, 0, 4)
    assert "d, measured" in two["readout"], "a point's name is not shown"


def test_charts_fit_a_phone(report: str, tmp_path: Path) -> None:
    seen = browse(report, tmp_path, 390)
    assert all(0 < chart["width"] <= seen["width"] for chart in seen["charts"])


def test_what_people_write_is_shown_as_text(report: str) -> None:
    assert "ucb1 <script>" not in report
    assert "ucb1 &lt;script&gt;" in report
