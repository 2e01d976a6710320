"""What is computed from a user's log says that it promises nothing: in JSON, tables, figures, files and reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import dpbandits as dp
from dpbandits.experiments.comparison import compare
from dpbandits.planning import document, plan
from dpbandits.privacy.guarantee import Guarantee

Command = Callable[..., tuple[int, str, str]]

SAYS = "no promise: computed from the log itself"
LOG = "arm,reward\nred,0\nred,1\ngreen,1\ngreen,1\ngreen,0\n"
TOML = """
arms = "replay(log.csv)"
horizon = 200
runs = 2
[[policy]]
name = "adap-ucb"
epsilon = 1
[[policy]]
name = "ldp-ucb-b"
epsilon = 2
[[policy]]
name = "ucb1"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "log.csv").write_text(LOG)
    (tmp_path / "own.toml").write_text(TOML)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_trace_says_so_wherever_it_is_shown(folder: Path) -> None:
    trace = dp.simulate("adap-ucb", arms="replay(log.csv)", epsilon=1, horizon=200, runs=2, seed=0)
    record = json.loads(json.dumps(trace.to_json()))["guarantee"]
    assert record["promise"] == "none: computed from the log itself"
    assert SAYS in record["conditions"]
    assert (record["epsilon"], record["trust"]) == (1.0, "central"), "what the policy promises where it runs"
    assert SAYS in repr(trace)
    assert "epsilon 1" not in repr(trace)
    assert str(trace.guarantee) == "No promise: computed from the log itself."
    assert SAYS in trace._repr_html_()
    assert SAYS in trace.plot().get_title()
    trace.save("trace.parquet")
    assert dp.Trace.load("trace.parquet").guarantee == trace.guarantee


def test_a_data_frame_is_a_log_too() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"arm": ["a", "a", "b", "b"], "reward": [0.0, 1.0, 1.0, 1.0]})
    trace = dp.simulate("ldp-ucb-b", arms=frame, epsilon=1, horizon=200, runs=2, seed=0)
    assert trace.guarantee.to_json()["promise"] == "none: computed from the log itself"


def test_other_arms_keep_their_guarantee() -> None:
    trace = dp.simulate("adap-ucb", arms="0.9,0.8", epsilon=1, horizon=200, runs=2, seed=0)
    assert "promise" not in trace.to_json()["guarantee"]
    assert trace.guarantee == trace.simulation.policy.guarantee
    assert "no promise" not in repr(trace)
    assert Guarantee.none().from_log().in_short == SAYS


def test_the_command_says_so(folder: Path, dpbandits: Command) -> None:
    words = ("simulate", "adap-ucb", "--arms", "replay(log.csv)", "--epsilon", "1", "--horizon", "200", "--runs", "2")
    status, out, _ = dpbandits(*words)
    assert status == 0
    assert SAYS in out
    assert "delta 0" not in out
    assert json.loads(dpbandits(*words, "--json")[1])["guarantee"]["promise"] == "none: computed from the log itself"


def test_a_comparison_says_so_in_table_figure_and_report(folder: Path, dpbandits: Command) -> None:
    status, out, _ = dpbandits("compare", "own.toml", "--out", "out")
    assert status == 0
    assert SAYS in out
    record = json.loads(dpbandits("compare", "own.toml", "--out", "out", "--json")[1])
    assert {one["guarantee"]["promise"] for one in record["policies"].values()} == {
        "none: computed from the log itself"
    }
    report = (folder / "out" / "report.html").read_text()
    assert report.count(SAYS) >= 4, "the settings, and the three rows of the table"
    assert "central, one reward" not in report
    assert json.loads((folder / "out" / "claims.json").read_text())["privacy"] == SAYS
    drawn = (folder / "out" / "figures" / "comparison.svg").read_text()
    assert SAYS in drawn
    played = compare(Path("own.toml"), out="out")
    assert repr(played).count(SAYS) == 3
    assert SAYS in played.plot().get_title()
    assert all(trace.guarantee.void for trace in played.values())


def test_bounds_say_so(folder: Path, dpbandits: Command) -> None:
    words = ("bounds", "--arms", "replay(log.csv)", "--horizon", "1000", "--epsilon", "1")
    assert SAYS in dpbandits(*words)[1]
    assert json.loads(dpbandits(*words, "--json")[1])["promise"] == "none: computed from the log itself"
    assert "promise" not in json.loads(dpbandits("bounds", "--arms", "0.9,0.8", *words[3:], "--json")[1])


def test_a_plan_says_so(folder: Path) -> None:
    record = document(plan("replay(log.csv)", horizon=500, epsilon=1, runs=4, policies=["adap-ucb"]))
    assert record["promise"] == "none: computed from the log itself"
    assert any(SAYS in line for line in record["answers"])
