"""Every figure found in the package: its cells can be made, its claims are records, and one of each kind is played."""

from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from dpbandits.errors import InputError
from dpbandits.experiments.azize2022 import table1
from dpbandits.experiments.figures import SCALES, Figure, figures, papers, select
from dpbandits.experiments.heldp import fig2
from dpbandits.experiments.output import DATA_FORMAT
from dpbandits.experiments.reproduce import reproduce
from dpbandits.simulation import Trace

Command = Callable[..., tuple[int, str, str]]
DOCS = Path(__file__).parents[2] / "docs"


def test_all_papers_are_there() -> None:
    assert set(papers()) == {"ren2020", "heldp", "azize2022", "tossou2016"}
    paths = {figure.path for figure in figures()}
    assert {"ren2020/fig1", "ren2020/fig2", "heldp/fig1", "heldp/fig2", "tossou2016/fig2"} <= paths
    assert {f"azize2022/{name}" for name in ("table1", "table2", *(f"fig{i}" for i in range(2, 9)))} <= paths


@pytest.mark.parametrize("figure", figures(), ids=lambda figure: figure.path)
def test_cells_can_be_made(figure: Figure) -> None:
    for scale in SCALES:
        for cell in figure.cells(scale).values():
            assert cell.simulation.marks[-1] == cell.simulation.horizon
            assert cell.simulation.policy.arms == len(cell.simulation.arms)
            assert len(cell.key) == 32


def test_scales_differ_only_in_rounds_and_runs() -> None:
    for figure in figures():
        quick, paper = figure.cells("quick"), figure.cells("paper")
        assert list(quick) == list(paper)
        for name, cell in quick.items():
            assert cell.simulation.horizon <= paper[name].simulation.horizon
            assert cell.runs <= paper[name].runs
            same = {"horizon": 0, "runs": 0}
            assert {**cell.to_json(), **same} == {**paper[name].to_json(), **same}


def test_unknown_names_are_answered_with_the_list() -> None:
    with pytest.raises(
        InputError, match=r"paper 'ren2021' is unknown: known are azize2022, heldp, ren2020, tossou2016"
    ):
        select("ren2021")
    with pytest.raises(InputError, match=r"figure 'ren2020/fig9' is unknown: known are ren2020/fig1, ren2020/fig2"):
        select("ren2020/fig9")


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.outside: list[str] = []
        self.charts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.charts += "data-panel" in given
        self.outside += [v for k, v in attrs if k in ("src", "href") and v and not v.startswith("#")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "fig3"
    reproduce("azize2022/fig3", out=out)
    return out


def test_outputs_are_complete_and_need_no_network(folder: Path) -> None:
    import pyarrow.parquet as parquet

    page = _Page()
    page.feed((folder / "report.html").read_text())
    assert page.charts == 1
    assert {link.rsplit(".", 1)[1] for link in page.outside} == {"svg", "png", "pdf", "parquet"}
    assert all((folder / link).is_file() for link in page.outside), (
        "the page links to what is beside it, and that is there"
    )
    assert "http" not in (folder / "report.html").read_text().replace("http://www.w3.org/2000/svg", "")
    assert (folder / "figures/azize2022/fig3.svg").read_text().startswith("<?xml")
    assert (folder / "figures/azize2022/fig3.png").read_bytes()[:4] == b"\x89PNG"
    table = parquet.read_table(folder / "data/azize2022/fig3.parquet")
    assert table.num_rows == 9 * 20 * len(set(table.column("t").to_pylist()))
    note = json.loads(table.schema.metadata[b"dpbandits"])
    assert note["format"] == DATA_FORMAT
    assert note["simulations"]["0.3"]["seed"] == 0
    with pytest.raises(InputError, match=r"^path must be a file that Trace.save wrote, got the data of a figure"):
        Trace.load(folder / "data/azize2022/fig3.parquet")


def test_a_second_time_plays_nothing_and_says_the_same(folder: Path) -> None:
    before = json.loads((folder / "claims.json").read_text())["claims"]
    played: list[object] = []
    reproduce("azize2022/fig3", out=folder, watch=played.append)
    assert played == []
    assert json.loads((folder / "claims.json").read_text())["claims"] == before


def test_a_folder_with_other_settings_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds other settings \(scale 'quick' instead of 'paper'\).*--fresh"):
        reproduce("azize2022/fig3", scale="paper", out=folder)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/mine.txt").write_text("keep me")
    for fresh in (False, True):
        with pytest.raises(InputError, match="is not empty"):
            reproduce("azize2022/fig3", out=tmp_path, fresh=fresh)
    assert (tmp_path / "data/mine.txt").read_text() == "keep me"


def test_the_lower_bound_and_the_flatness_are_judged(folder: Path) -> None:
    verdicts = {c["name"]: c for c in json.loads((folder / "claims.json").read_text())["claims"]}
    assert verdicts["flat"]["verdict"] == "not reproduced"
    assert not verdicts["flat"]["expected"]
    assert verdicts["bound"]["verdict"] == "reproduced"


def test_command_line(tmp_path: Path, dpbandits: Command) -> None:
    status, out, err = dpbandits("reproduce", "azize2022/table2", "--out", str(tmp_path / "o"), "--json")
    assert status == 0, err
    document = json.loads(out)
    assert document["figures"][0]["figure"] == "azize2022/table2"
    assert document["claims"][0]["verdict"] == "reproduced"
    assert (tmp_path / "o/data/azize2022/table2.parquet").exists()


def test_a_failing_claim_is_exit_status_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dpbandits: Command) -> None:
    from dpbandits.experiments.azize2022 import table2

    monkeypatch.setattr(table2, "_minimax", lambda epsilon: 1.0 / epsilon)
    assert dpbandits("reproduce", "azize2022/table2", "--out", str(tmp_path / "o"))[0] == 1


def test_releases_are_counted() -> None:
    # each of five arms once; then one arm once more, and it twice or another once: the horizon cuts what is open
    assert table1.releases("adap-ucb", 5) == 5
    assert table1.releases("adap-ucb", 6) == 6
    assert table1.releases("adap-ucb", 10**6) - table1.releases("adap-ucb", 10**5) < 20
    assert [table1.anytime(name) for name in ("adap-ucb", "dp-se", "private-ucb")] == [True, False, False]


def test_another_seed_is_another_reproduction(tmp_path: Path) -> None:
    (section,) = reproduce("azize2022/fig8", seed=3, out=tmp_path / "b", workers=1)
    assert {cell.simulation.seed for cell in section.cells.values()} == {3}
    assert section.cells["adap-ucb:1"].key != select("azize2022/fig8")[0].cells("quick")["adap-ucb:1"].key
    assert json.loads((tmp_path / "b" / "claims.json").read_text())["seed"] == 3
    with pytest.raises(InputError, match="holds other settings"):
        reproduce("azize2022/fig8", seed=4, out=tmp_path / "b")
    with pytest.raises(InputError, match="seed must be"):
        reproduce("azize2022/fig8", seed=-1, out=tmp_path / "c")


def test_fit_is_least_squares() -> None:
    x, y = np.array([1.0, 2.0, 4.0, 7.0]), np.array([2.0, 3.0, 9.0, 11.0])
    line = fig2.fit(x, y)
    assert line.r2 == pytest.approx(np.corrcoef(x, y)[0, 1] ** 2)
    assert fig2.values()["choice(0,0.2,1,2,100):l:100"] == pytest.approx((1 + 4 / 100) ** 2 / 0.2)


@pytest.mark.parametrize("paper", sorted(papers()))
def test_every_claim_has_its_row_in_the_docs(paper: str) -> None:
    text = (DOCS / "papers" / f"{paper}.md").read_text()
    assert "<!-- claims: written by tools/papers_pages.py -->" in text
    for figure in select(paper):
        constants = [value for value in vars(figure.module).values() if type(value).__name__ == "Claim"]
        for claim in constants:
            assert claim.statement in text, claim.statement


def test_figures_in_the_docs_exist_and_are_small() -> None:
    for page in (DOCS / "papers").glob("*.md"):
        for name in [part.split(")")[0] for part in page.read_text().split("](../figures/")[1:]]:
            assert (DOCS / "figures" / name).stat().st_size < 150_000
