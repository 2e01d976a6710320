"""A user's own policy everywhere: in simulate, compare, plan, and as one more line in a paper's figure."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dpbandits as dp
from dpbandits.errors import InputError
from dpbandits.experiments import figures as found
from dpbandits.experiments.added import cells_for, drawn
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.figures import Figure
from dpbandits.experiments.panels import Panel, against, regrets
from dpbandits.experiments.reproduce import reproduce
from dpbandits.simulation import Simulation, Trace, simulate_all

OWN = '''
from dpbandits.agents import UCB
from dpbandits.curators import LocalBernoulli
from dpbandits.policies.policy import Parts, published

@published("mine")
def timid(arms: int, *, epsilon: float, alpha: float = 1.0) -> Parts:
    """Timid: UCB on private bits."""
    return Parts(UCB.start(arms, alpha=alpha), LocalBernoulli.start(arms, epsilon=epsilon))
'''
COMPARISON = """
arms = {calm = 0.3, shout = 0.9}
horizon = 500
runs = 2
epsilons = [1]

[[policy]]
name = "own_policy:timid"
options = {alpha = 2}

[[policy]]
name = "ucb1"
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_policy.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return "own_policy:timid"


def test_an_own_policy_is_simulated_compared_and_planned(
    own: str, tmp_path: Path, dpbandits: Callable[..., tuple[int, str, str]]
) -> None:
    common = ("--arms", "0.9,0.5", "--horizon", "1000", "--epsilon", "1", "--runs", "2", "--json")
    status, out, err = dpbandits("simulate", own, *common)
    assert status == 0, err
    assert json.loads(out)["policy"] == "timid"
    (tmp_path / "mine.toml").write_text(COMPARISON)
    status, out, err = dpbandits("compare", "mine.toml", "--out", "o", "--json")
    assert status == 0, err
    assert json.loads(out)["policies"]["timid, ε = 1"]["options"]["alpha"] == 2
    status, out, err = dpbandits("plan", *common, "--policy", own)
    assert status == 0, err
    assert own in {row["policy"] for row in json.loads(out)["outcomes"]}


def panel_of(kind: str) -> tuple[Panel, dict[str, Trace]]:
    arms, epsilons = "0.9,0.6", (0.5, 2.0)
    cells = {"ucb1": Cell.of("ucb1", arms, 500, 3)}
    cells |= {f"b:{e}": Cell.of("ldp-ucb-b", arms, 500, 3, e) for e in epsilons}
    traces = {name: simulate_all(cell.simulation, runs=cell.runs, workers=1) for name, cell in cells.items()}
    if kind == "time":
        return regrets("a", "one epsilon", {"UCB1": traces["ucb1"], "B": traces["b:2.0"]}), traces
    if kind == "sweep":
        return regrets("c", "two epsilons", {str(e): traces[f"b:{e}"] for e in epsilons}), traces
    return against("d", "against epsilon", "ε", {"B": {e: traces[f"b:{e}"] for e in epsilons}}), traces


@pytest.mark.parametrize(
    ("kind", "labels"), [("time", ["Timid"]), ("sweep", ["Timid, ε = 0.5", "Timid, ε = 2"]), ("against", ["Timid"])]
)
def test_an_added_policy_is_played_on_the_problems_of_each_panel(own: str, kind: str, labels: list[str]) -> None:
    panel, traces = panel_of(kind)
    lines, cells = cells_for(own, "x/fig1", [panel], traces, runs=3)
    more = {name: simulate_all(cell.simulation, runs=cell.runs, workers=1) for name, cell in cells.items()}
    assert {cell.simulation.epsilon for cell in cells.values()} == ({2.0} if kind == "time" else {0.5, 2.0})
    (after,) = drawn([panel], lines, traces | more)
    assert isinstance(after, Panel)
    assert [line.label for line in after.lines] == [*(line.label for line in panel.lines), *labels]
    last = after.lines[-1]
    if kind == "against":
        assert last.x.tolist() == [0.5, 2.0]
        assert last.y.tolist() == [more[name].final_regret.mean() for name in lines[0].cells]
    else:
        assert np.array_equal(last.y[-1], more[lines[-1].cells[0]].final_regret.mean())


def test_reproduce_draws_it_into_the_paper_s_figure(
    own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dpbandits: Callable[..., tuple[int, str, str]]
) -> None:
    cells = {"ucb1": Cell.of("ucb1", "0.9,0.6", 500, 3), "b": Cell.of("ldp-ucb-b", "0.9,0.6", 500, 3, 2.0)}
    module = SimpleNamespace(
        TITLE="A figure",
        SETTINGS="",
        cells=lambda scale: cells,
        score=lambda traces, scale: [],
        plot=lambda traces, scale: [regrets("a", "t", {"UCB1": traces["ucb1"], "B": traces["b"]})],
    )
    figure = Figure("ren2020", "fig1", module)  # type: ignore[arg-type]
    monkeypatch.setattr(found, "figures", lambda: (figure,))
    (section,) = reproduce("ren2020/fig1", add=[own, "imed"], out=tmp_path / "o", workers=1)
    (drawn_panel,) = section.shown
    assert isinstance(drawn_panel, Panel)
    assert [line.label for line in drawn_panel.lines] == ["UCB1", "B", "Timid", "IMED"]
    assert "Timid" in (tmp_path / "o/report.html").read_text()
    status, _, err = dpbandits("reproduce", "ren2020/fig1", "--add", "no_such:policy", "--out", str(tmp_path / "p"))
    assert status == 2
    assert "policy must be a name or module:function" in err
    assert not (tmp_path / "p").exists()


def test_a_problem_that_two_policies_share_is_played_once_and_levels_are_in_the_label() -> None:
    given = {"arms": "0.9,0.6", "horizon": 300, "options": {"epsilon_min": 0.5}}
    made = {
        f"{name}:{level}": Simulation.of(name, levels=[level], checkpoints=points, **given)
        for name, points in (("heldp-ucb-b", 20), ("heldp-ucb-l", 30))
        for level in (1, 2)
    }
    traces = {name: simulate_all(simulation, runs=2, workers=1) for name, simulation in made.items()}
    lines, cells = cells_for("heldp-weighted-b", "x/fig1", [regrets("a", "t", traces)], traces, runs=2)
    assert [line.label for line in lines] == ["HeLDP-Weighted-B, ε = 1", "HeLDP-Weighted-B, ε = 2"]
    assert len(cells) == 2


def test_a_policy_that_no_panel_can_show_is_refused() -> None:
    panel, traces = panel_of("time")
    with pytest.raises(InputError, match="add: HeLDP-UCB-B cannot be drawn into x/fig1"):
        cells_for("heldp-ucb-b", "x/fig1", [panel], traces, 3)


PLAIN = """
from typing import NamedTuple
from dpbandits.curators import Plain
from dpbandits.policies.policy import Parts, published

class Sorting(NamedTuple):
    arms: int

    def act(self, releases, t, rng):
        return sorted(range(self.arms), key=str)[0], 1, float("-inf")

@published("mine")
def sorting(arms: int) -> Parts:
    return Parts(Sorting(arms), Plain.start(arms))
"""


def test_a_policy_that_the_compiler_refuses_is_compared_in_plain_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dpbandits: Callable[..., tuple[int, str, str]]
) -> None:
    (tmp_path / "plain_policy.py").write_text(PLAIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    text = 'arms = "0.9,0.6"\nhorizon = 50\nruns = 2\n[[policy]]\nname = "plain_policy:sorting"\n'
    (tmp_path / "mine.toml").write_text(text)
    status, _, err = dpbandits("compare", "mine.toml", "--out", "o")
    assert status == 2
    assert "policy sorting cannot be compiled" in err
    (tmp_path / "mine.toml").write_text('engine = "python"\n' + text)
    status, _, err = dpbandits("compare", "mine.toml", "--out", "o")
    assert status == 0, err
    found = dp.compare(["plain_policy:sorting"], arms=[0.9, 0.6], horizon=50, runs=2, engine="python")
    assert found["sorting"].runs == 2
    words = ("--arms", "0.9,0.6", "--horizon", "50", "--runs", "2")
    assert dpbandits("simulate", "plain_policy:sorting", *words)[0] == 2
    assert dpbandits("simulate", "plain_policy:sorting", *words, "--engine", "python")[0] == 0
