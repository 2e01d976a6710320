"""Tables of measured regrets that have markers come from a tool, and a cell of each is computed again."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from dpbandits.simulation import simulate_all

ROOT = Path(__file__).parents[2]


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec
    assert spec.loader
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MEASURED, PAPERS, SEEDS = tool("measured"), tool("papers_pages"), tool("seeds")
#: A cell of each table that takes about a second.
AGAIN = {
    "users": ("1", "`adap-klucb`"),
    "logistic": ("normal, means 0.9, 0.4, 0.4, sd 1", "logistic, `ldp-imed-bs`, epsilon 1"),
    "ranges": ("normal, means 22, 20, 20, sd 3, 16 to 32", "`ldp-imed-b`, epsilon 4"),
    "wide": ("`dp-glr-imed`, 10", "range 0 to 10"),
    "local-rivals": ("0.9 and 0.6, 1", "`ldp-imed-b`"),
    "clicks": ("2", "`ldp-imed-b`, k = 0"),
    "local": ("0.9 and 0.6, 1", "k = 1"),  # a single disaster would move the mean of k = 0
    "piecewise": ("8", "narrow: `ldp-imed-b`"),
    "piecewise-tails": ("4", "k = 0"),
    "central": ("0.9 and 0.6, 1", "`dp-klucb`"),
    "covered": ("100,000", "`cover_noise`"),  # disasters decide the mean of the printed index
    "levels": ("C2", "`heldp-weighted-b`, k = 0"),
    "thresholds-choice": ("C2", "`heldp-weighted-b`"),
    "thresholds-normal": ("C2", "`heldp-weighted-l`"),
    "best-arm-many": ("0.55 and 19 x 0.5; 1", "`dp-se`"),
    "best-arm": ("1, 0; 1", "`dp-tt`"),
    "constant-lazy": ("C2, 1", "c 1"),
    "constant-adac": ("C2, 1", "alpha 1"),
    "constant-cover": ("C2, 0.1", "cover_factor 1.5 (default)"),
    "constant-dp-klucb": ("C2, 1", "10/epsilon, ratio 2 (default)"),
    "constant-dp-imed": ("C2, 1", "20/epsilon, ratio 2"),
    "constant-dp-tt": ("C2, 1", "first 30/e"),
    "constant-adap-tt": ("C2, 1", "ratio 3"),
    "constant-ctb-tt": ("C2, 1", "ratio 1.5"),
}


def shown(name: str) -> dict[tuple[str, str], str]:
    """The cells of a table, as the page shows them."""
    table = MEASURED.TABLES[name]
    text = (ROOT / "docs" / table.page).read_text()
    assert text.count(MEASURED.begin(name)) == 1
    block = text[text.index(MEASURED.begin(name)) :].split(MEASURED.END)[0]
    assert f"{table.runs:,} runs of each cell, seed {table.seed}." in block
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in block.splitlines() if line[:2] == "| "]
    assert rows[0] == [table.first, *table.columns]
    return {(row[0], column): cell for row in rows[1:] for column, cell in zip(rows[0][1:], row[1:], strict=True)}


def on_pages() -> list[str]:
    """The tables that pages have markers for."""
    texts = [page.read_text() for page in sorted((ROOT / "docs").rglob("*.md"))]
    return [name for text in texts for name in re.findall("<!-- measured (.+?):", text)]


@pytest.mark.parametrize("name", on_pages())
def test_a_table_has_every_cell(name: str) -> None:
    assert list(shown(name)) == list(MEASURED.TABLES[name].cells())


def test_every_marker_belongs_to_a_table() -> None:
    assert len(on_pages()) == len(set(on_pages())) >= 2
    assert set(on_pages()) <= set(MEASURED.TABLES)


def mean_of(cell: str) -> float:
    """The mean that a cell begins with.

    >>> mean_of("884 k (3.22 M; 3.22 M; 3.22 M), 0"), mean_of("1,515 ± 14")
    (884000.0, 1515.0)
    """
    found = re.match(r"([\d,.]+)( [kM](?= ))?", cell)
    assert found
    return float(found[1].replace(",", "")) * {None: 1.0, " k": 1e3, " M": 1e6}[found[2]]


@pytest.mark.parametrize("name", on_pages())
def test_a_cell_is_computed_again(name: str) -> None:
    """Exactly, or from the first of very many runs: then the mean may be off by six standard errors and its rounding.

    The seed is fixed, so the outcome does not depend on chance.
    """
    table, place = MEASURED.TABLES[name], AGAIN[name]
    runs = min(table.runs, 400)
    again = MEASURED.numbers(simulate_all(table.simulation(*place), runs=runs))
    if runs == table.runs:
        assert table.shown(again) == shown(name)[place]
    else:
        mean = mean_of(shown(name)[place])
        assert abs(again["mean"] - mean) <= 6 * again["error"] + max(0.5, 0.005 * mean)


@pytest.mark.parametrize("paper", PAPERS.papers())
def test_settings_and_theorems_of_a_paper_are_those_of_the_package(paper: str) -> None:
    text = (ROOT / "docs" / "papers" / f"{paper}.md").read_text()
    assert PAPERS.without_runs(text, paper) == text


def test_the_page_says_that_no_verdict_depends_on_the_seed() -> None:
    text = (ROOT / "docs" / "papers" / "README.md").read_text()
    block = text[text.index(SEEDS.BEGIN) :].split(SEEDS.END)[0]
    rows = [line.split(" | ") for line in block.splitlines() if line.startswith(("| quick", "| paper"))]
    assert "| quick" in {row[0] for row in rows}
    assert all(row[5] == "0" for row in rows)
    assert "depends on the seed" not in block
