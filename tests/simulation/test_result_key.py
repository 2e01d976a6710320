"""What names stored results: it changes with all that decides the numbers of a run, and with nothing else."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import dpbandits
from dpbandits import numerics, policies
from dpbandits.agents import UCB
from dpbandits.curators import Plain
from dpbandits.errors import InputError
from dpbandits.experiments.cells import Cell
from dpbandits.policies.policy import Parts, published
from dpbandits.protocols import NO_LINE, Releases
from dpbandits.simulation import Simulation, runs
from dpbandits.simulation.runs import result_key
from dpbandits.types import Rng

GIVEN: dict[str, Any] = {
    "arms": "0.9,0.6",
    "horizon": 1000,
    "epsilon": 1,
    "options": {"alpha": 3.5},
    "seed": 3,
    "checkpoints": 10,
}
LEVELED: dict[str, Any] = {"arms": "0.9,0.6", "horizon": 1000, "options": {"epsilon_min": 1}, "levels": [0, 1, 2]}


def key(policy: Any = "adap-ucb", **changed: Any) -> str:
    return result_key(Simulation.of(policy, **{**GIVEN, **changed}))


def leveled(**changed: Any) -> str:
    return result_key(Simulation.of("heldp-ucb-b", **{**LEVELED, **changed}))


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 4},
        {"arms": "0.9,0.6000000000000001"},
        {"arms": "0.6,0.9"},
        {"arms": "0.9,0.6,0.6"},
        {"arms": "0.9,0.6", "reward_range": (0, 2)},
        {"arms": "beta(9,1)+bernoulli(0.6)"},
        {"horizon": 1001},
        {"epsilon": 1.0000000000000002},
        {"options": {"alpha": 3.6}},
        {"checkpoints": 11},
        {"arm_order": "given"},
        {"delay": "constant(0)"},
        {"delay": "exponential(5)"},
        {"delay": "constant(0)", "loss": 0.1},
        {"delay": "constant(0)", "window": 10},
    ],
    ids=str,
)
def test_the_key_changes_with_every_setting(changed: dict[str, Any]) -> None:
    assert key(**changed) != key()


def test_the_keys_of_changed_settings_differ_among_each_other() -> None:
    late = list(itertools.product(("constant(1)", "exponential(1)"), (0.0, 0.5), (None, 3.0)))
    assert len({key(delay=delay, loss=loss, window=window) for delay, loss, window in late}) == len(late)
    populations: list[dict[str, Any]] = [{}, {"levels": [0, 1, 3]}, {"levels": [0, 1, 1, 2]}, {"levels": "normal(1,1)"}]
    assert len({leveled(**changed) for changed in [*populations, {"options": {"epsilon_min": 2}}]}) == 5
    assert len({key(policy) for policy in ("adap-ucb", "adap-klucb", "adap-imed")}) == 3


@pytest.mark.parametrize(
    "same",
    [
        {"arms": [0.9, 0.6]},
        {"arms": np.array([0.9, 0.6])},
        {"arms": " 0.9, 0.6 "},
        {"arms": "bernoulli(0.9)+bernoulli(0.6)"},
        {"arms": {"red": 0.9, "green": 0.6}},
        {"horizon": "1e3"},
        {"epsilon": "1.0"},
        {"options": {"alpha": "3.5"}},
        {"seed": "3"},
        {"checkpoints": np.round(np.geomspace(1, 1000, 10)).astype(int)},
        {"policy": policies.adap_ucb},
        {"policy": "AdaP_UCB"},
    ],
    ids=lambda same: next(iter(same)),
)
def test_the_key_does_not_depend_on_how_settings_are_written(same: dict[str, Any]) -> None:
    assert key(**same) == key()


def test_a_default_that_is_spelled_out_is_the_same_setting() -> None:
    assert key(options={}) == key(options={"alpha": 3.1})
    assert leveled(levels="choice(2,1,0)") == leveled()


def test_the_key_does_not_depend_on_runs_and_label() -> None:
    def cell(runs: int, label: str) -> Cell:
        return Cell.of("adap-ucb", "0.9,0.6", 1000, runs, 1.0, label=label)

    assert cell(5, "").key == cell(50, "AdaP").key


def test_logs_with_the_same_rewards_have_the_same_key_whatever_they_are_called(tmp_path: Path) -> None:
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    one.write_text("arm,reward\na,1\nb,0\na,0.5\n")
    two.write_text("user,reward,arm\nu,1,x\nu,0.5,x\nu,0,y\n")
    keys = [key(arms=f"replay({path})") for path in (one, two)]
    assert keys[0] == keys[1]
    two.write_text("user,reward,arm\nu,1,x\nu,0.25,x\nu,0,y\n")
    assert key(arms=f"replay({two})") != keys[0]


# --- code -----------------------------------------------------------------------------------------------------------


def other_log(t: float) -> float:
    return math.log(t) if t > 1.5 else 0.0


def other_step(x: float, slope: float, bend: float, low: float, high: float) -> float:
    return 0.5 * (low + high) - x


def other_bonus(self: Any, releases: Any, arm: int, exponent: float, ahead: int) -> float:
    return math.sqrt(exponent / releases.samples(arm, ahead)) + releases.width(arm, exponent, ahead)


@pytest.fixture
def edit(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, Any], None]:
    """Give a function other instructions, as an edit of its file would do for the next process."""
    undo = monkeypatch

    def change(function: Any, other: Any) -> None:
        undo.setattr(function, "__code__", other.__code__.replace(co_name=function.__code__.co_name))

    return change


def test_the_key_changes_with_an_edited_helper(edit: Callable[[Any, Any], None]) -> None:
    before = key()
    edit(numerics.positive_log, other_log)
    assert key() != before


def test_the_key_changes_with_a_helper_of_a_helper_in_another_module(edit: Callable[[Any, Any], None]) -> None:
    before, untouched = key("dp-tt", options={}), key()
    edit(numerics.newton_step, other_step)  # the agent calls evidence_between, and that calls chernoff
    assert key("dp-tt", options={}) != before
    assert key() == untouched, "a policy that does not use the helper has another key"


def test_the_key_changes_with_an_edited_method_of_a_part_inside_a_part(edit: Callable[[Any, Any], None]) -> None:
    before, untouched = key(), key("adap-klucb")
    edit(UCB.bonus, other_bonus)
    assert key() != before
    assert key("adap-klucb") == untouched, "a policy that does not use the method has another key"


def test_the_key_changes_with_an_edited_loop_and_with_how_runs_are_seeded(edit: Callable[[Any, Any], None]) -> None:
    before = key()

    def streams(seed: int, run: int) -> Any:
        children = np.random.SeedSequence(seed + 1, spawn_key=(run,)).spawn(5)
        return runs.Streams(*(np.random.default_rng(child) for child in children))

    edit(runs.streams, streams)
    assert key() != before


def test_the_key_changes_with_a_constant_that_code_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key("ldp-ucb-b", options={})
    monkeypatch.setattr("dpbandits.draws.DEVIATIONS", 3.0)
    assert key("ldp-ucb-b", options={}) != before


def test_the_key_changes_with_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key()
    monkeypatch.setattr(runs, "__version__", dpbandits.__version__ + ".post1")
    assert key() != before


def test_another_process_finds_the_same_key() -> None:
    code = (
        "import json, sys\n"
        "from dpbandits.simulation import Simulation\n"
        "from dpbandits.simulation.runs import result_key\n"
        "print(result_key(Simulation.of('adap-ucb', **json.loads(sys.argv[1]))))"
    )
    done = subprocess.run([sys.executable, "-c", code, json.dumps(GIVEN)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == key()


class Odd:
    """Something of which nobody knows whether it has changed."""


ODD = Odd()


class Secretive(NamedTuple):
    arms: int

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        return 0 if ODD else 1, 1, NO_LINE


@published("a test")
def secretive(arms: int) -> Parts:
    return Parts(Secretive(arms), Plain.start(arms))


def test_results_of_code_that_cannot_be_described_are_not_stored() -> None:
    simulation = Simulation.of(secretive, arms="0.9,0.6", horizon=100)
    with pytest.raises(
        InputError, match=r"policy secretive uses things whose changes cannot be seen \(Odd\): nothing is stored"
    ):
        result_key(simulation)


class Counting(NamedTuple):
    seen: Any

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        self.seen[0] += 0.5
        return int(self.seen[0]) % 2, 1, NO_LINE


def counting(seen: Any) -> Any:
    @published("a test")
    def made(arms: int) -> Parts:
        return Parts(Counting(seen.copy()), Plain.start(arms))

    return made


def test_the_key_changes_with_the_type_and_the_shape_of_memory() -> None:
    """The bytes of zeros are the same for integers, floats and rows: the runs are not."""
    memories = (np.zeros(4, np.int64), np.zeros(4), np.zeros((2, 2)), np.zeros(8, np.float32))
    keys = [result_key(Simulation.of(counting(seen), arms="0.9,0.6", horizon=100)) for seen in memories]
    assert len(set(keys)) == len(memories)
