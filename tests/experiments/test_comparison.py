"""A user's own comparison: the examples run, and mistakes are told with file, line, key and what is allowed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import dpbandits.cli.experiments  # noqa: F401 (adds the commands)
from dpbandits.cli.shared import app
from dpbandits.errors import InputError
from dpbandits.experiments.comparison import compare, read
from dpbandits.simulation import simulate

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
    assert len(read(path).cells) >= 2


def test_an_example_runs(tmp_path: Path) -> None:
    path = Path(__file__).parents[2] / "examples/own-log.toml"
    assert compare(path, out=tmp_path / "o")["thompson"].runs == 20
    assert (tmp_path / "o/report.html").exists()


def test_same_numbers_as_simulate(tmp_path: Path) -> None:
    path, out = write(tmp_path, GOOD), tmp_path / "o"
    done = CliRunner().invoke(app, ["compare", str(path), "--out", str(out), "--json", "--workers", "2"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)["policies"]
    assert list(document) == ["ucb1", "adap-ucb, ε = 0.5", "adap-ucb, ε = 1"]
    direct = simulate("adap-ucb", arms="0.9,0.6", horizon=1000, epsilon=0.5, runs=3)
    assert document["adap-ucb, ε = 0.5"]["final"]["regret_mean"] == direct.final_regret.mean()
    assert (out / "figures/comparison.svg").exists()
    assert (out / "data/comparison.parquet").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("runs = 3", "rums = 3", r"line 4: unknown key 'rums': allowed are title, arms, horizon"),
        ("runs = 3", "runs = 0", r"line 4: runs must be a whole number of at least 1, got 0"),
        ("runs = 3", 'runs = "many"', r"line 4: runs must be a whole number, got 'many'"),
        ("horizon = 1000", "horizon = -5", r"line 3: horizon must be a whole number"),
        ("horizon = 1000\n", "", r"line 1: horizon is required"),
        ('"0.9,0.6"', '"0.9;0.6"', r"line 2: arms: cannot read"),
        ("[0.5, 1]", "[0.5, -1]", r"line 5: epsilons must be positive and finite, got -1"),
        ('"adap-ucb"', '"adap-ubc"', r"line 11: unknown policy 'adap-ubc': did you mean adap-ucb"),
        ("alpha = 3.1", "alpha = -3", r"line 12: alpha must be positive"),
        ("alpha = 3.1", "beta = 3", r"line 1[012]: unknown option of adap-ucb 'beta'"),
        ("options =", "option =", r"line 12: unknown key 'option': allowed are name, label, epsilon"),
        ('name = "ucb1"', 'label = "x"', r"line 7: name is required: one of"),
        ("[[policy]]", "[[policy]", r"not TOML: .*line 7"),
        ('name = "adap-ucb"', 'name = "ucb1"', r"line 1[012]: unknown option of ucb1 'alpha'"),
    ],
)
def test_mistakes(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = write(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(InputError, match=message) as error:
        read(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "none.toml")


def test_a_changed_file_needs_another_folder_or_fresh(tmp_path: Path) -> None:
    out = tmp_path / "o"
    compare(write(tmp_path, GOOD), out=out)
    changed = write(tmp_path, GOOD.replace("runs = 3", "runs = 4"))
    with pytest.raises(InputError, match="holds other settings"):
        compare(changed, out=out)
    assert compare(changed, out=out, fresh=True)["ucb1"].runs == 4
