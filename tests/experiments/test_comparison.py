"""A user's own comparison: the examples run, and mistakes are told with file, line, key and what is allowed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpbandits as dp
from dpbandits.environments import Levels
from dpbandits.environments.delays import parse_delay
from dpbandits.errors import InputError
from dpbandits.experiments import results, work
from dpbandits.experiments.cells import Cell
from dpbandits.experiments.comparison import compare, read_comparison
from dpbandits.simulation import simulate
from dpbandits.simulation.settings import settings

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.toml"))
GOOD = """title = "t"
arms = "0.9,0.6"
horizon = 1000
runs = 3
epsilons = [0.5, 1]

[[policy]]
name = "ucb1"

[[policy]]
name = "adap-ucb"
options = { alpha = 3.1 }
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_can_be_read(path: Path) -> None:
    assert len(EXAMPLES) >= 3
    assert len(read_comparison(path).cells) >= 2


def test_an_example_runs(tmp_path: Path) -> None:
    path = Path(__file__).parents[2] / "examples/own-log.toml"
    assert compare(path, out=tmp_path / "o")["thompson"].runs == 20
    assert (tmp_path / "o/report.html").exists()


def test_same_numbers_as_simulate(tmp_path: Path, dpbandits: Callable[..., tuple[int, str, str]]) -> None:
    path, out = write(tmp_path, GOOD), tmp_path / "o"
    status, printed, err = dpbandits("compare", str(path), "--out", str(out), "--json", "--workers", "2")
    assert status == 0, err
    document = json.loads(printed)["policies"]
    assert list(document) == ["ucb1", "adap-ucb, ε = 0.5", "adap-ucb, ε = 1"]
    direct = simulate("adap-ucb", arms="0.9,0.6", horizon=1000, epsilon=0.5, runs=3)
    assert document["adap-ucb, ε = 0.5"]["final"]["regret_mean"] == direct.final_regret.mean()
    assert (out / "figures/comparison.svg").exists()
    assert (out / "data/comparison.parquet").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("runs = 3", "rums = 3", r"line 4: unknown key 'rums': did you mean runs"),
        ("runs = 3", "runs = 0", r"line 4: runs must be a whole number of at least 1, got 0"),
        ("runs = 3", 'runs = "many"', r"line 4: runs must be a whole number of at least 1, got 'many'"),
        ("horizon = 1000", "horizon = -5", r"line 3: horizon must be a whole number"),
        ("horizon = 1000\n", "", r"line 1: horizon is required"),
        ('"0.9,0.6"', '"0.9;0.6"', r"line 2: arms: cannot read"),
        ('"0.9,0.6"', '"@azize2022"', r"line 2: arms: problem 'azize2022' is unknown"),
        ('"0.9,0.6"', '"betta(1,2)"', r"line 2: arms: distribution 'betta' is unknown"),
        ("[0.5, 1]", "[0.5, -1]", r"line 5: epsilon must be positive and finite, got -1"),
        (
            'name = "adap-ucb"',
            'name = "adap-ucb"\nepsilons = [-2]',
            r"line 12: epsilon must be positive and finite, got -2",
        ),
        ('"adap-ucb"', '"adap-ubc"', r"line 11: policy 'adap-ubc' is unknown: did you mean adap-ucb"),
        ("alpha = 3.1", "alpha = -3", r"line 12: alpha must be positive"),
        ("alpha = 3.1", "beta = 3", r"line 12: beta is not an option of adap-ucb: known are alpha"),
        ("options =", "option =", r"line 12: unknown key 'option': did you mean options"),
        ('name = "ucb1"', 'label = "x"', r"line 7: name is required: one of"),
        ("[[policy]]", "[[policy]", r"not TOML: .*line 7"),
        ('name = "adap-ucb"', 'name = "ucb1"', r"line 12: alpha is not an option of ucb1: known are sigmoid"),
    ],
)
def test_mistakes(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = write(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(InputError, match=message) as error:
        read_comparison(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


EVERY = """
arms = "choice(0,2)+choice(1,2)"
horizon = "1e3"
runs = 2
seed = 3
reward_range = [0, 2]
arm_order = "given"
checkpoints = [10, 100]
delay = "exponential(5)"
loss = 0.1
window = 50
rewards_per_user = 3

[[policy]]
name = "heldp-ucb-b"
levels = [0, 1]
options = { epsilon_min = 1 }

[[policy]]
name = "ldp-ucb-l"
epsilon = 2
"""
COMPOSED = """
arms = "0.9,0.6"
horizon = 100
rewards_per_user = 3
user_delta = 1e-6

[[policy]]
name = "ldp-ucb-l"
epsilon = 2
"""


def test_every_setting_of_a_simulation_can_stand_in_the_file(tmp_path: Path) -> None:
    assert all(f"{name} = " in EVERY + COMPOSED for name in settings()), "a new setting must be added here"
    cells = read_comparison(write(tmp_path, EVERY)).cells
    one, two = (cell.simulation for cell in cells.values())
    common = {"horizon": 1000, "seed": 3, "reward_range": (0.0, 2.0), "arm_order": "given", "checkpoints": (10, 100)}
    late = {"delay": parse_delay("exponential(5)"), "loss": 0.1, "window": 50.0}
    for simulation in (one, two):
        assert simulation.arms.means == (1.0, 1.5)
        assert {name: getattr(simulation, name) for name in (*common, *late)} == {**common, **late}
    assert (one.levels, dict(one.options), two.epsilon) == (Levels.of([0, 1]), {"epsilon_min": 1}, 2.0)
    (three,) = (cell.simulation for cell in read_comparison(write(tmp_path, COMPOSED)).cells.values())
    assert [each.rewards_per_user for each in (one, two, three)] == [3, 3, 3]
    assert three.user_delta == 1e-6


def test_a_missing_file(tmp_path: Path) -> None:
    for missing, why in ((tmp_path / "none.toml", "which does not exist"), (tmp_path, "which is a folder")):
        with pytest.raises(InputError, match=why):
            read_comparison(missing)


# --- edited comparisons keep what was played ------------------------------------------------------------------------


def played(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[int]]]:
    """What is simulated from now on: the policy and the runs of every chunk."""
    seen: list[tuple[str, list[int]]] = []
    plain = work.play_chunk

    def noted(cell: Cell, key: str, runs: list[int]) -> Any:
        seen.append((cell.name, list(runs)))
        return plain(cell, key, runs)

    monkeypatch.setattr(work, "play_chunk", noted)
    return seen


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('title = "t"', 'title = "another"', {}),
        ("runs = 3", "runs = 5", {"ucb1": [3, 4], "adap-ucb, ε = 0.5": [3, 4], "adap-ucb, ε = 1": [3, 4]}),
        ("runs = 3", "runs = 2", {}),
        ("[0.5, 1]", "[0.5, 1, 2]", {"adap-ucb, ε = 2": [0, 1, 2]}),
        ("[0.5, 1]", "[1]", {}),
        ('[[policy]]\nname = "ucb1"\n\n', "", {}),
        ('name = "ucb1"\n', 'name = "ucb1"\nlabel = "UCB"\n\n[[policy]]\nname = "imed"\n', {"imed": [0, 1, 2]}),
        ("horizon = 1000", "horizon = 1000 # a comment", {}),
    ],
)
def test_an_edited_comparison_keeps_every_finished_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, expected: dict[str, list[int]]
) -> None:
    out = tmp_path / "o"
    before = compare(write(tmp_path, GOOD), out=out)
    seen = played(monkeypatch)
    after = compare(write(tmp_path, GOOD.replace(old, new, 1)), out=out)
    found: dict[str, list[int]] = {}
    for name, runs in seen:
        found.setdefault(name, []).extend(runs)
    assert {name: sorted(runs) for name, runs in found.items()} == expected
    for name in {*before} & {*after}:
        shared = min(before[name].runs, after[name].runs)
        assert np.array_equal(before[name].pulls[:shared], after[name].pulls[:shared])


def test_another_file_needs_another_folder_or_fresh(tmp_path: Path) -> None:
    out = tmp_path / "o"
    compare(write(tmp_path, GOOD), out=out)
    other = tmp_path / "other.toml"
    other.write_text(GOOD)
    with pytest.raises(InputError, match=r"holds other settings \(file 'mine.toml' instead of 'other.toml'\)"):
        compare(other, out=out)
    assert compare(other, out=out, fresh=True)["ucb1"].runs == 3


def test_fresh_removes_what_we_wrote_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "o"
    compare(write(tmp_path, GOOD), out=out)
    for name in ("figures/mine.svg", "data/notes.txt", "notes.md", "figures/deep/own.png"):
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text("mine")
    seen = played(monkeypatch)
    compare(write(tmp_path, GOOD), out=out, fresh=True)
    assert len(seen) == 3, "fresh did not compute everything again"
    for name in ("figures/mine.svg", "data/notes.txt", "notes.md", "figures/deep/own.png"):
        assert (out / name).read_text() == "mine"


def test_data_and_report_hold_pulls_by_name(tmp_path: Path) -> None:
    import pandas

    path = write(tmp_path, GOOD.replace('"0.9,0.6"', "{ calm = 0.3, shout = 0.9 }"))
    found = compare(path, out=tmp_path / "o")
    table = pandas.read_parquet(tmp_path / "o/data/comparison.parquet")
    assert list(table.columns) == ["simulation", "run", "t", "regret", "pulls_calm", "pulls_shout"]
    last = table[(table.simulation == "ucb1") & (table.t == 1000)]
    assert (last.pulls_calm + last.pulls_shout == 1000).all()
    assert last.pulls_shout.tolist() == found["ucb1"].pulls[:, -1, 1].tolist()
    page = (tmp_path / "o/report.html").read_text()
    assert "the best arm is shout" in page
    assert "shout, played most in 3 of 3" in page
    assert "calm" in page


# --- results that cannot be used ------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["truncated", "garbled", "text", "folder", "blobs"])
def test_damaged_results_are_named_with_what_to_do(tmp_path: Path, damage: str) -> None:
    out = tmp_path / "o"
    compare(write(tmp_path, GOOD), out=out)
    file = out / "results.sqlite"
    content = file.read_bytes()
    if damage == "folder":
        file.unlink()
        file.mkdir()
    elif damage == "blobs":
        with sqlite3.connect(file) as base:
            base.execute("UPDATE runs SET pulls = x'00'")
        base.close()
    else:
        file.write_bytes({"truncated": content[:1000], "garbled": b"x" * len(content), "text": b"hello"}[damage])
    with pytest.raises(InputError) as caught:
        compare(write(tmp_path, GOOD), out=out)
    assert str(file) in str(caught.value)
    assert "--fresh" in str(caught.value)
    assert compare(write(tmp_path, GOOD), out=out, fresh=True)["ucb1"].runs == 3


def test_locked_results_are_named_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "o"
    compare(write(tmp_path, GOOD), out=out)
    monkeypatch.setattr(results, "WAIT_SECONDS", 0.1)
    other = sqlite3.connect(out / "results.sqlite")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(InputError, match=r"results.sqlite' is locked by another process: wait until it has ended"):
        compare(write(tmp_path, GOOD.replace("runs = 3", "runs = 4")), out=out)
    other.close()


# --- in Python ------------------------------------------------------------------------------------------------------

SHARED: dict[str, Any] = {"arms": {"calm": 0.3, "shout": 0.9}, "horizon": 1000, "runs": 3, "workers": 1}


def test_policies_are_compared_in_one_call() -> None:
    found = dp.compare(["ucb1", "AdaP_UCB", dp.policies.ldp_ucb_b(arms=2, epsilon=2)], epsilon=1, **SHARED)
    assert list(found) == ["ucb1", "adap-ucb, ε = 1", "ldp-ucb-b, ε = 2"]
    direct = simulate("adap-ucb", arms=[0.3, 0.9], horizon=1000, runs=3, epsilon=1)
    assert np.array_equal(found["adap-ucb, ε = 1"].pulls, direct.pulls)
    text = repr(found)
    assert len(text.splitlines()) == 4
    assert "shout, played most in 3 of 3" in text
    assert "<svg" in found._repr_html_()
    assert found.best() == "ucb1"


def test_labels_options_epsilons_and_traces() -> None:
    trace = simulate("imed", arms=[0.3, 0.9], horizon=1000, runs=2)
    found = dp.compare(
        {"printed": "adap-ucb", "bold": {"policy": "adap-ucb", "alpha": 1}, "old": trace, "base": "ucb1"},
        epsilon=[0.5, 1],
        **SHARED,
    )
    assert set(found) == {"printed, ε = 0.5", "printed, ε = 1", "bold, ε = 0.5", "bold, ε = 1", "old", "base"}
    assert found["bold, ε = 1"].options["alpha"] == 1
    assert found["old"] is trace
    several = dp.compare(["adap-ucb", {"policy": "adap-ucb", "alpha": 1}, "ucb1"], epsilon=1, alpha=2, **SHARED)
    assert list(several) == ["adap-ucb, ε = 1", "adap-ucb, ε = 1, alpha = 1", "ucb1"]
    assert several["adap-ucb, ε = 1"].options["alpha"] == 2
    assert list(dp.compare([trace])) == [trace.label]


def test_one_plot_and_one_table_of_everything() -> None:
    import matplotlib

    matplotlib.use("Agg")
    found = dp.compare(["ucb1", "adap-ucb"], epsilon=1, **SHARED)
    ax = found.plot()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(found)  # type: ignore[union-attr]
    assert ax.get_xlabel() == "round t"
    table = found.to_pandas()
    assert set(table.label) == set(found)
    assert {"policy", "epsilon", "pulls_calm", "pulls_shout"} <= set(table.columns)


def test_a_comparison_in_python_can_be_kept_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = dp.compare(["ucb1"], out=tmp_path / "o", **SHARED)
    seen = played(monkeypatch)
    second = dp.compare(["ucb1", "imed"], out=tmp_path / "o", title="More", **SHARED)
    assert {name for name, _ in seen} == {"imed"}
    assert np.array_equal(first["ucb1"].pulls, second["ucb1"].pulls)
    assert "More" in (tmp_path / "o/report.html").read_text()


@pytest.mark.parametrize(
    ("what", "given", "message"),
    [
        (["ucb1", "ucb1"], {}, "policies must have different labels, got 'ucb1' twice"),
        ([], {}, "policies must be at least one, got none"),
        (3, {}, "policies must be a list of policies, or the path of a file, got 3"),
        (
            ["ucb1"],
            {"rnus": 3},
            "rnus is neither a setting of a simulation nor an option of these policies: did you mean runs",
        ),
        ([{"alpha": 1}], {}, "policies must have the key 'policy'"),
        ([{"policy": "adap-ucb", "beta": 1}], {"epsilon": 1}, "beta is no setting and no option of adap-ucb"),
        (["adap-ucb"], {}, "epsilon is required by adap-ucb, got none"),
        ([None], {}, "policy must be a name or a function"),
    ],
)
def test_mistakes_in_python(what: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        dp.compare(what, **{**SHARED, **given})
    assert str(caught.value).startswith(message)


def test_beside_a_file_no_settings_are_taken(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="horizon is not needed beside a file"):
        dp.compare(write(tmp_path, GOOD), horizon=3)


def test_a_log_beside_the_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("arm,reward\ncalm,0\nshout,1\ncalm,1\nshout,1\n")
    for arms in ("log.csv", "replay(log.csv)"):
        path = write(tmp_path, GOOD.replace("0.9,0.6", arms))
        assert next(iter(read_comparison(path).cells.values())).simulation.arms.names == ("calm", "shout")
