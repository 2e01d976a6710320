"""What is computed from a user's log says that it promises nothing: in JSON, tables, figures, files and reports."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dpbandits as dp
from dpbandits.environments import Arms
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


def texts_of(ax: Any) -> str:
    return " ".join(part.get_text() for part in ax.figure.findobj(lambda part: hasattr(part, "get_text")))


def test_axes_of_ones_own_and_data_frames_say_so(folder: Path) -> None:
    from matplotlib.figure import Figure

    trace = dp.simulate("adap-ucb", arms="replay(log.csv)", epsilon=1, horizon=60, runs=2, seed=0, engine="python")
    other = dp.simulate("adap-ucb", arms="0.9,0.8", epsilon=1, horizon=60, runs=2, seed=0, engine="python")
    for drawn in (trace, dp.Traces({"one": other, "two": trace})):
        ax = Figure().add_subplot()
        drawn.plot(ax)
        drawn.plot(ax)
        assert texts_of(ax).count(SAYS) == 1, "it is said once, however many lines are drawn"
    ax = Figure().add_subplot()
    other.plot(ax)
    assert SAYS not in texts_of(ax)
    assert set(trace.to_pandas()["promise"]) == {"none: computed from the log itself"}
    assert "promise" not in other.to_pandas()
    both = dp.Traces({"one": other, "two": trace}).to_pandas()
    assert both["promise"].notna().tolist() == (both["label"] == "two").tolist()


PARTS: dict[str, Callable[[Arms], Any]] = {
    "list": list,
    "mapping": lambda log: dict(zip("ab", log, strict=True)),
    "beside others": lambda log: [0.5, *log],
    "one of two": lambda log: {"new": 0.1, "old": log.distributions[0]},
    "again": lambda log: replace(log, log=None),
}


@pytest.mark.parametrize("part", PARTS)
def test_arms_that_are_taken_out_of_a_log_stay_those_of_a_log(folder: Path, part: str) -> None:
    arms = PARTS[part](dp.arms.replay("log.csv"))
    trace = dp.simulate("adap-ucb", arms=arms, epsilon=1, horizon=60, runs=2, seed=0, engine="python")
    assert SAYS in repr(trace)
    assert trace.to_json()["guarantee"]["promise"] == "none: computed from the log itself"
    assert SAYS in repr(dp.bounds(arms, horizon=1000, epsilon=1))
    assert "choice(" not in repr(trace.simulation), "rewards of the log are not shown"
    trace.save("trace.parquet")
    if part != "again":
        with pytest.raises(
            dp.InputError, match=r"the rewards of a log of \d rewards were not saved: give the arms again"
        ):
            dp.Trace.load("trace.parquet")
        with pytest.raises(dp.InputError, match="the arms have changed since this was written"):
            dp.Trace.load("trace.parquet", arms=[0.5] * len(trace.names))
    assert SAYS in repr(dp.Trace.load("trace.parquet", arms=arms))


@pytest.mark.parametrize("part", PARTS)
def test_no_error_shows_a_reward_of_a_log(folder: Path, part: str) -> None:
    (folder / "log.csv").write_text("arm,reward\nred,0.8414\nred,7.25\ngreen,1\ngreen,0.5\n")
    arms = PARTS[part](dp.arms.replay("log.csv"))
    for refused in (
        lambda: dp.simulate("adap-ucb", arms=arms, epsilon=1, horizon=60),
        lambda: dp.bounds(list(arms.values() if isinstance(arms, dict) else arms)[::-1], horizon=60, epsilon=1),
    ):
        if part == "one of two":
            continue  # it is the arm whose rewards are in the range
        with pytest.raises(dp.InputError) as caught:
            refused()
        assert not re.search("8414|7.25", str(caught.value))


def test_names_of_ones_own_do_not_hide_a_log(folder: Path) -> None:
    arms = Arms.from_json({"text": "replay(log.csv)", "names": ["u", "v"]})
    assert arms.names == ("u", "v")
    assert arms.from_log


def test_one_log_among_several_problems_is_said_in_every_file(folder: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    asked = [
        {"policy": "adap-ucb", "arms": "0.9,0.1,0.2", "label": "guess"},
        {"policy": "adap-ucb", "arms": "replay(log.csv)", "label": "log"},
    ]
    dp.compare(asked, epsilon=1, horizon=60, runs=2, engine="python", out="mixed")
    assert json.loads(Path("mixed/claims.json").read_text())["privacy"] == SAYS
    assert SAYS in Path("mixed/figures/comparison.svg").read_text()
    report = Path("mixed/report.html").read_text()
    assert report.count(SAYS) >= 3, "the settings, the facts, and the row of the table"
    data = parquet.read_table("mixed/data/comparison.parquet").to_pandas()
    assert data["promise"].notna().tolist() == (data["simulation"] == "log").tolist()


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
    linear = ("bounds", "--arms", "replay(log.csv)", "--horizon", "1000", "--epsilon", "1", "--linear")
    assert SAYS in dpbandits(*linear)[1]
    found = dp.bounds("replay(log.csv)", horizon=1000, epsilon=1)
    assert found.to_json()["promise"] == "none: computed from the log itself"
    assert SAYS in repr(found)
    assert SAYS in found._repr_html_()
    words = ("bounds", "--arms", "replay(log.csv)", "--horizon", "1000", "--epsilon", "1")
    assert SAYS in dpbandits(*words)[1]
    assert json.loads(dpbandits(*words, "--json")[1])["promise"] == "none: computed from the log itself"
    assert "promise" not in json.loads(dpbandits("bounds", "--arms", "0.9,0.8", *words[3:], "--json")[1])


def test_a_plan_says_so(folder: Path) -> None:
    found = plan("replay(log.csv)", horizon=500, epsilon=1, runs=4, policies=["adap-ucb"])
    assert SAYS in repr(found)
    assert SAYS in found._repr_html_()
    record = document(found)
    assert record["promise"] == "none: computed from the log itself"
    assert any(SAYS in line for line in record["answers"])
