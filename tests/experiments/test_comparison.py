"""A user's own comparison: the examples run, and mistakes are told with file, line, key and what is allowed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dpbandits.environments import Levels
from dpbandits.environments.delays import parse_delay
from dpbandits.errors import InputError
from dpbandits.experiments.comparison import compare, read
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
    assert len(read(path).cells) >= 2


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
        ("runs = 3", 'runs = "many"', r"line 4: runs must be a whole number of at least 1, got many"),
        ("horizon = 1000", "horizon = -5", r"line 3: horizon must be a whole number"),
        ("horizon = 1000\n", "", r"line 1: horizon is required"),
        ('"0.9,0.6"', '"0.9;0.6"', r"line 2: arms: cannot read"),
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
        read(path)
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

[[policy]]
name = "heldp-ucb-b"
levels = [0, 1]
options = { epsilon_min = 1 }

[[policy]]
name = "ldp-ucb-l"
epsilon = 2
"""


def test_every_setting_of_a_simulation_can_stand_in_the_file(tmp_path: Path) -> None:
    assert all(f"{name} = " in EVERY for name in settings()), "a new setting must be added here"
    cells = read(write(tmp_path, EVERY)).cells
    one, two = (cell.simulation for cell in cells.values())
    common = {"horizon": 1000, "seed": 3, "reward_range": (0.0, 2.0), "arm_order": "given", "checkpoints": (10, 100)}
    late = {"delay": parse_delay("exponential(5)"), "loss": 0.1, "window": 50.0}
    for simulation in (one, two):
        assert simulation.arms.means == (1.0, 1.5)
        assert {name: getattr(simulation, name) for name in (*common, *late)} == {**common, **late}
    assert (one.levels, dict(one.options), two.epsilon) == (Levels.of([0, 1]), {"epsilon_min": 1}, 2.0)


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
