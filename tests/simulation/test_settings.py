"""A simulation as one value: read from what people write, written as JSON, read back, refused by name."""

from __future__ import annotations

import inspect
import json
import os
import pickle
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import audit_mutants
import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings as trying
from hypothesis import strategies as st

from dpbandits import policies
from dpbandits.environments import Arms, Levels, NormalLevels
from dpbandits.environments.delays import parse_delay
from dpbandits.environments.distributions import Beta, Coin
from dpbandits.errors import InputError
from dpbandits.simulation import Simulation, Trace, driver, simulate
from dpbandits.simulation.files import FORMAT
from dpbandits.simulation.runs import result_key
from dpbandits.simulation.settings import settings

COMMON: dict[str, Any] = {"arms": "0.9,0.6", "horizon": 1000}

#: For each setting: a policy, what may be given, and what is read. A new setting must be added here.
READ: dict[str, list[tuple[str, dict[str, Any], Any]]] = {
    "arms": [
        ("ucb1", {"arms": [0.9, 0.6]}, Arms.of("0.9,0.6")),
        ("ucb1", {"arms": {"red": 0.9, "green": Beta(4, 1)}}, Arms.of({"red": Coin(0.9), "green": Beta(4, 1)})),
        ("ucb1", {"arms": "beta(4,1)+2*choice(0.4,1)"}, Arms.of("beta(4,1)+choice(0.4,1)+choice(0.4,1)")),
        ("ucb1", {"arms": "@azize2022-c2"}, Arms.of([0.75, 0.625, 0.5, 0.375, 0.25])),
    ],
    "horizon": [("ucb1", {"horizon": "1e4"}, 10_000), ("ucb1", {"horizon": np.int64(50)}, 50)],
    "epsilon": [("adap-ucb", {"epsilon": "0.5"}, 0.5), ("adap-ucb", {"epsilon": np.float32(2)}, 2.0)],
    "options": [
        ("adap-ucb", {"epsilon": 1, "options": {"alpha": 4}}, {"alpha": 4}),
        ("adap-ucb", {"epsilon": 1, "options": {"alpha": np.float32(4)}}, {"alpha": 4.0}),
        ("ucb1", {"options": {"sigmoid": "true"}}, {"sigmoid": "true"}),
        ("ucb1", {"options": None}, {}),
    ],
    "levels": [
        ("heldp-ucb-b", {"options": {"epsilon_min": 1}, "levels": [2, 0, 1]}, Levels.of([0, 1, 2])),
        ("heldp-ucb-b", {"options": {"epsilon_min": 1}, "levels": "constant(1)"}, Levels.of([1])),
        ("heldp-ucb-l", {"options": {"epsilon_min": 1}, "levels": "normal(1,0.5)"}, NormalLevels(1.0, 0.5)),
        ("heldp-ucb-l", {"options": {"epsilon_min": 1}, "levels": np.array([1.0, 0.1])}, Levels.of([0.1, 1.0])),
    ],
    "seed": [("ucb1", {"seed": "7"}, 7), ("ucb1", {"seed": np.int32(3)}, 3)],
    "reward_range": [
        ("ucb1", {"arms": "uniform(0,4)+uniform(0,1)", "reward_range": "0,4"}, (0.0, 4.0)),
        ("ucb1", {"reward_range": [-1, np.int64(2)]}, (-1.0, 2.0)),
    ],
    "arm_order": [("ucb1", {"arm_order": "given"}, "given")],
    "checkpoints": [
        ("ucb1", {"checkpoints": "10"}, 10),
        ("ucb1", {"checkpoints": [1, 500, 20]}, (1, 500, 20)),
        ("ucb1", {"checkpoints": np.array([5, 6])}, (5, 6)),
    ],
    "delay": [("ucb1", {"delay": text}, parse_delay(text)) for text in ("lognormal(10,0.5)", "constant(0)")],
    "loss": [("ucb1", {"loss": "0.25"}, 0.25), ("ucb1", {"loss": 0.1}, 0.1)],
    "rewards_per_user": [
        ("adap-ucb", {"epsilon": 1, "rewards_per_user": "10"}, 10),
        ("ldp-ucb-b", {"epsilon": 1, "rewards_per_user": np.int64(3)}, 3),
        ("heldp-ucb-b", {"options": {"epsilon_min": 1}, "levels": [2, 0, 1], "rewards_per_user": 2}, 2),
    ],
    "user_delta": [("ldp-ucb-b", {"epsilon": 1, "rewards_per_user": 9, "user_delta": "1e-6"}, 1e-6)],
    "window": [("ucb1", {"window": "50"}, 50.0), ("ucb1", {"window": 0.5}, 0.5)],
}
CASES = [(name, *case) for name, cases in READ.items() for case in cases]


def written(simulation: Simulation) -> Any:
    """The JSON of a simulation, as another process reads it."""
    return json.loads(json.dumps(simulation.to_json(), allow_nan=False))


def test_every_setting_has_cases_here() -> None:
    assert set(READ) == set(settings())


@pytest.mark.parametrize(("name", "policy", "given", "read"), CASES)
def test_a_setting_is_read_and_survives_json(name: str, policy: str, given: dict[str, Any], read: Any) -> None:
    simulation = Simulation.of(policy, **{**COMMON, **given})
    assert getattr(simulation, name) == read
    again = Simulation.from_json(written(simulation))
    assert again == simulation
    assert written(again) == written(simulation)
    assert again.policy.settings == simulation.policy.settings
    assert again.marks.tolist() == simulation.marks.tolist()
    assert again.arms.names == simulation.arms.names
    assert pickle.loads(pickle.dumps(simulation)) == simulation


@pytest.mark.parametrize("policy", ["audit_mutants:halved", audit_mutants.halved, "AdaP_UCB", policies.adap_ucb])
def test_a_policy_is_written_so_that_it_is_found_again(policy: Any) -> None:
    simulation = Simulation.of(policy, **COMMON, epsilon=1)
    assert written(simulation)["policy"] in ("audit_mutants:halved", "adap-ucb")
    assert Simulation.from_json(written(simulation)) == simulation


def test_what_follows_from_other_settings_is_written_too() -> None:
    auto = Simulation.of("heldp-ucb-b", **COMMON, levels="choice(0,0.2,1,2,100)", options={"epsilon_min": "auto"})
    assert auto.options == {"epsilon_min": 2.0}
    assert written(auto)["options"] == {"epsilon_min": 2.0}
    for late in ({"loss": 0.1}, {"window": 5}):
        assert Simulation.of("ucb1", **COMMON, **late).delay == parse_delay("constant(0)")


# --- logs -----------------------------------------------------------------------------------------------------------


def test_a_log_is_read_again_and_must_not_have_changed(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("arm,reward\nred,1\ngreen,0\nred,0.5\n")
    simulation = Simulation.of("ucb1", arms=f"replay({log})", horizon=100)
    record = written(simulation)
    again = Simulation.from_json(record)
    assert again == simulation
    assert again.arms.names == ("green", "red")
    trace = simulate("ucb1", arms=f"replay({log})", horizon=100, runs=2)
    trace.save(tmp_path / "trace.parquet")
    for changed in ("red,1\ngreen,0\nred,0.25\n", "red,1\ngreen,0\nblue,0.5\n", "red,1\nblue,0\nred,0.5\n"):
        log.write_text(f"arm,reward\n{changed}")
        for read in (lambda: Simulation.from_json(record), lambda: Trace.load(tmp_path / "trace.parquet")):
            with pytest.raises(InputError, match=r"arms: the log '.*log\.csv' has changed since this was written"):
                read()
    log.write_text("user,arm,reward\nu,red,1\nu,red,0.5\nu,green,0\n")
    assert Simulation.from_json(record) == simulation, "other columns, and the order between arms, say nothing"
    log.unlink()
    with pytest.raises(InputError, match=r"arms: no file '.*log\.csv'"):
        Simulation.from_json(record)


def test_a_trace_of_another_format_is_refused(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet as parquet

    path = tmp_path / "trace.parquet"
    simulate("ucb1", **COMMON, runs=2).save(path)
    table = parquet.read_table(path)
    record = json.loads(table.schema.metadata[b"dpbandits"])
    assert record["format"] == FORMAT
    for wrong in ({**record, "format": FORMAT + 1}, {k: v for k, v in record.items() if k != "format"}):
        parquet.write_table(table.replace_schema_metadata({b"dpbandits": json.dumps(wrong)}), path)
        with pytest.raises(InputError, match=f"path must be a trace of format {FORMAT}, got format"):
            Trace.load(path)
    parquet.write_table(pyarrow.table({"a": [1]}), path)
    with pytest.raises(InputError, match=r"path must be a file that Trace\.save wrote, got"):
        Trace.load(path)
    path.write_text("no table")
    with pytest.raises(InputError, match=r"path must be a file that Trace\.save wrote, got"):
        Trace.load(path)


# --- names ----------------------------------------------------------------------------------------------------------


def test_simulate_has_exactly_the_settings_and_how_they_are_played() -> None:
    parameters = inspect.signature(simulate).parameters
    assert list(parameters) == ["policy", *settings(), "runs", "workers", "engine", "progress", "more"]
    assert [one.name for one in fields(Simulation)] == ["factory", *settings()]
    plain = Simulation.of("ucb1", **COMMON)
    for name, setting in settings().items():
        if not setting.required:
            default = parameters[name].default
            assert setting.read(default) == getattr(plain, name), f"{name} has another default in simulate"


@pytest.mark.parametrize(("name", "policy", "given", "read"), CASES)
def test_simulate_passes_every_setting_on(
    name: str, policy: str, given: dict[str, Any], read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[Simulation] = []
    monkeypatch.setattr(driver, "simulate_all", lambda simulation, **how: played.append(simulation))
    simulate(policy, **{**COMMON, **given})
    assert getattr(played[0], name) == read


NEW_FIELD = """
    patience: Annotated[int, Setting(lambda value: int(value), "How long a user waits.", form="MINUTES")] = 5

    @classmethod
    def of(cls, policy"""
USED = """
import json, pathlib, sys
import dpbandits as dp
from dpbandits.experiments.comparison import read_comparison
from dpbandits.simulation import Simulation
from dpbandits.simulation.runs import result_key
common = dict(arms="0.9,0.6", horizon=100)
trace = dp.simulate("ucb1", **common, runs=1, engine="python", patience="7")
assert trace.simulation.patience == 7 == Simulation.from_json(trace.simulation.to_json()).patience
trace.save("trace.parquet")
assert dp.Trace.load("trace.parquet").simulation.patience == 7
one, two = (Simulation.of("ucb1", **common, patience=patience) for patience in (7, 8))
assert len({result_key(one), result_key(two), result_key(Simulation.of("ucb1", **common))}) == 3
pathlib.Path("some.toml").write_text('arms = "0.9,0.6"\\nhorizon = 100\\npatience = 7\\n[[policy]]\\nname = "ucb1"\\n')
assert [cell.simulation.patience for cell in read_comparison(pathlib.Path("some.toml")).cells.values()] == [7]
"""


def test_a_new_setting_is_a_field_and_a_parameter(tmp_path: Path) -> None:
    """In a copy of the package, these two lines are enough for JSON, traces, keys, TOML files and the command line."""
    package = Path(driver.__file__).parents[1]
    shutil.copytree(package, tmp_path / "dpbandits", ignore=shutil.ignore_patterns("__pycache__", "web"))
    last = "    user_delta: float | str | None = None,\n"
    for module, old, new in (
        ("settings", "\n    @classmethod\n    def of(cls, policy", NEW_FIELD),
        ("driver", last, last + "    patience: int | str = 5,\n"),
    ):
        path = tmp_path / "dpbandits" / "simulation" / f"{module}.py"
        assert path.read_text().count(old) == 1
        path.write_text(path.read_text().replace(old, new))
    play = ["-m", "dpbandits", "simulate", "ucb1", "--arms", "0.9,0.6", "--horizon", "100", "--runs", "1"]
    for words in (["-c", USED], [*play[:3], "--help"], [*play, "--engine", "python", "--patience", "7", "--json"]):
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert words[-1] != "--help" or "--patience MINUTES" in done.stdout


def test_unknown_settings_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="horizn is not a setting of a simulation: did you mean horizon") as caught:
        Simulation.of("ucb1", arms="0.9,0.6", horizn=100)
    assert caught.value.parameter == "horizn"
    record = {**written(Simulation.of("ucb1", **COMMON)), "temperature": 3}
    with pytest.raises(InputError, match="temperature is not a setting of a simulation"):
        Simulation.from_json(record)


@pytest.mark.parametrize("missing", ["arms", "horizon"])
def test_what_is_required_is_asked_for_by_name(missing: str) -> None:
    with pytest.raises(InputError, match=f"{missing} is required, got none"):
        Simulation.of("ucb1", **{name: value for name, value in COMMON.items() if name != missing})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"horizon": 1}, "horizon must be a whole number of at least 2, got 1"),
        ({"arms": [0.1] * 5, "horizon": 3}, "horizon must be at least 5 rounds, one for each of the 5 arms, got 3"),
        ({"horizon": 10.5}, "horizon must be a whole number of at least 2, got 10.5"),
        ({"horizon": True}, "horizon must be a whole number of at least 2, got True"),
        ({"epsilon": 1}, "epsilon is not a parameter of ucb1 (it is not private), got 1"),
        ({"options": [("sigmoid", True)]}, "options must be a mapping such as {'alpha': 2}, got"),
        ({"options": {"sigmiod": True}}, "sigmiod is not an option of ucb1: did you mean sigmoid?"),
        ({"levels": [1]}, "levels is not a parameter of ucb1 (one epsilon holds for all users), got constant(1)"),
        ({"levels": 3}, "levels must be a list of levels or a text such as"),
        ({"levels": []}, "levels must be at least one, got none"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"reward_range": (1, 1)}, "reward_range must be low < high, both finite, got 1,1"),
        ({"reward_range": (0, np.inf)}, "reward_range must be low < high, both finite, got 0,inf"),
        ({"reward_range": (0, 1, 2)}, "reward_range must be two numbers, low and high, got (0, 1, 2)"),
        ({"arm_order": "givn"}, "arm_order 'givn' is unknown: did you mean given?"),
        ({"checkpoints": [5000]}, "checkpoints must be at most the horizon 1000, got 5000"),
        ({"checkpoints": [0]}, "checkpoints must be a whole number of at least 1, got 0"),
        ({"delay": 3}, "delay must be a text such as 'exponential(100)', got 3"),
        ({"loss": 1.0}, "loss must be in [0, 1), got 1.0"),
        ({"window": 0}, "window must be positive and finite, got 0"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_name(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Simulation.of("ucb1", **{**COMMON, **given})
    assert str(caught.value).startswith(message)
    assert caught.value.parameter == message.split()[0]
    assert "\n" not in str(caught.value)


NUMBERS = st.floats(1e-6, 1e6)
ARMS = st.one_of(
    st.lists(st.floats(0, 1), min_size=2, max_size=4),
    st.lists(
        st.one_of(
            st.floats(0, 1).map(lambda p: f"bernoulli({p!r})"),
            st.tuples(st.floats(0.1, 50), st.floats(0.1, 50)).map(lambda ab: f"beta({ab[0]!r},{ab[1]!r})"),
            st.lists(st.floats(0, 1), min_size=1, max_size=3).map(lambda of: f"choice({','.join(map(repr, of))})"),
        ),
        min_size=2,
        max_size=4,
    ).map("+".join),
    st.dictionaries(st.text(min_size=1, max_size=5), st.floats(0, 1), min_size=2, max_size=3),
)
DELAYS = st.one_of(
    st.none(),
    NUMBERS.map(lambda mean: f"exponential({mean!r})"),
    st.tuples(NUMBERS, st.floats(0.01, 3)).map(lambda both: f"lognormal({both[0]!r},{both[1]!r})"),
)
LEVELS = st.one_of(
    st.lists(st.floats(0.5, 1e6), min_size=1, max_size=4),
    st.tuples(st.floats(0, 5), st.floats(0.1, 5)).map(lambda both: f"normal({both[0]!r},{both[1]!r})"),
)


@drawn(st.data())
@trying(max_examples=60, deadline=None)
def test_whatever_is_set_survives_json_to_the_last_digit(data: st.DataObject) -> None:
    policy = data.draw(st.sampled_from(["ucb1", "adap-ucb", "heldp-ucb-l"]))
    chosen: dict[str, Any] = {
        "arms": data.draw(ARMS),
        "horizon": data.draw(st.integers(10, 10**6)),
        "seed": data.draw(st.integers(0, 2**50)),
        "arm_order": data.draw(st.sampled_from(["given", "shuffled"])),
        "checkpoints": data.draw(st.one_of(st.integers(1, 50), st.lists(st.integers(1, 10), min_size=1, max_size=4))),
        "delay": data.draw(DELAYS),
        "loss": data.draw(st.floats(0, 0.99)),
        "window": data.draw(st.none() | NUMBERS),
        "reward_range": data.draw(st.none() | st.tuples(st.floats(-10, 0), st.floats(1, 10))),
    }
    if policy == "adap-ucb":
        chosen["epsilon"] = data.draw(NUMBERS)
    if policy == "heldp-ucb-l":
        chosen |= {"levels": data.draw(LEVELS), "options": {"epsilon_min": data.draw(st.sampled_from([0.5, "auto"]))}}
    simulation = Simulation.of(policy, **chosen)
    again = Simulation.from_json(json.loads(json.dumps(simulation.to_json(), allow_nan=False)))
    assert again == simulation
    assert result_key(again) == result_key(simulation)
