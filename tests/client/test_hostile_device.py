"""Attacks on a device: levels that refund, rewards that raise, files that were cut or changed, kills, a full disk."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpbandits.client import BernoulliCurator, Budget, Device, LaplaceCurator, SigmoidCurator, Store
from dpbandits.errors import InputError

posix = pytest.mark.skipif(os.name != "posix", reason="signals and limits are POSIX's")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "responses"


class Own:
    """A user's own curator, with a level that may be anything."""

    def __init__(self, epsilon: Any, answer: Any = 1) -> None:
        self.epsilon, self.answer = epsilon, answer

    def respond(self, reward: float) -> Any:
        return self.answer


NO_LEVELS = (-1, Fraction(-1, 10), -0.5, 0, math.nan, math.inf, -math.inf, Decimal("-0.1"), Decimal("NaN"), None, True)


@pytest.mark.parametrize("epsilon", NO_LEVELS, ids=str)
def test_a_level_that_is_none_is_refused_and_changes_nothing(path: Path, epsilon: Any) -> None:
    """A negative one would refund the budget, and NaN would make the file unreadable."""
    device = Device(Store(path, limit="1"))
    device.respond("d1", 1.0, BernoulliCurator("0.5"))
    before = path.read_bytes()
    for charge in (
        lambda: device.respond("d2", 1.0, Own(epsilon)),
        lambda: device.store.charge("d2", epsilon),
        lambda: device.store.budget().charge(epsilon),
        lambda: SigmoidCurator(Own(epsilon)),
    ):
        with pytest.raises(InputError, match="epsilon must be positive"):
            charge()
    assert path.read_bytes() == before
    assert Store(path, limit="1").budget() == Budget(Fraction(1), Fraction(1, 2))


def test_a_budget_cannot_begin_with_a_refund() -> None:
    for limit, spent in ((Fraction(1), Fraction(-1)), (Fraction(-1), Fraction(0)), (math.nan, 0), (1, math.nan)):
        with pytest.raises(InputError, match="must"):
            Budget(limit, spent)  # type: ignore[arg-type]


REWARDS = (None, Decimal("NaN"), Decimal("sNaN"), "text", object(), 10**400, -(10**400), [1.0], 1j, math.nan, True)


@pytest.mark.parametrize("reward", REWARDS, ids=lambda reward: f"{reward!s:.12}")
@pytest.mark.parametrize("make", [BernoulliCurator, LaplaceCurator])
def test_no_reward_leaves_a_decision_without_response(path: Path, reward: Any, make: Any) -> None:
    """Silence after the charge would tell what the reward was; so would a refusal before it."""
    device = Device(Store(path, limit="1"))
    for decision, curator in (("d1", make("0.1")), ("d2", SigmoidCurator(make("0.1")))):
        assert isinstance(json.loads(device.respond(decision, reward, curator))["response"], int)
    assert device.store.budget().spent == Fraction(2, 10)


class Shifting:
    """A curator that is cheap when it is charged, and dear when it is written down."""

    def __init__(self) -> None:
        self.levels = iter([Fraction(1, 10), *[Fraction(9, 10)] * 9])

    @property
    def epsilon(self) -> Fraction:
        return next(self.levels)

    def respond(self, reward: float) -> int:
        return 1


def test_the_level_is_read_once(path: Path) -> None:
    device = Device(Store(path, limit="1"))
    assert json.loads(device.respond("d1", 1.0, Shifting()))["epsilon"] == "1/10"


@pytest.mark.parametrize("answer", [0.7, True, None, "0.7"])
def test_what_is_no_integer_does_not_leave_the_device(path: Path, answer: Any) -> None:
    device = Device(Store(path, limit="1"))
    with pytest.raises(InputError, match="response must be a whole number") as caught:
        device.respond("d1", 1.0, Own("0.1", answer))
    assert "0.7" not in str(caught.value)
    assert device.store.budget().spent == Fraction(1, 10), "a charge is never taken back"


@pytest.mark.parametrize(
    "decision", [None, 7, b"d1", ["d1"], ("d1",), 0.8414, Fraction(8414, 10000), Decimal("0.8414")]
)
def test_a_decision_that_is_no_text_is_refused_and_not_shown(path: Path, decision: Any) -> None:
    """It may be the reward, by a swap of arguments."""
    device = Device(Store(path, limit="1"))
    with pytest.raises(InputError, match=r"decision must be 1 to 200 letters, .* got a \w+$"):
        device.respond(decision, 1.0, BernoulliCurator("0.1"))
    assert device.store.budget().spent == 0


def test_a_level_that_could_not_be_read_by_a_server_is_refused_before_the_charge(path: Path) -> None:
    device = Device(Store(path, limit="1"))
    with pytest.raises(InputError, match="epsilon must have at most 200 characters"):
        device.respond("d1", 1.0, BernoulliCurator(1e-250))
    assert device.store.budget().spent == 0


def test_a_sum_with_ever_more_digits_is_refused_before_python_cannot_write_it(path: Path) -> None:
    store = Store(path, limit="1")

    def charge_many() -> None:
        for n in range(60):
            store.charge(f"d{n}", Fraction(1, 10**190 + 2 * n + 1))

    with pytest.raises(InputError, match="epsilon must not make the sum longer than 4000 digits"):
        charge_many()
    assert 0 < store.budget().spent < Fraction(1, 10**180)
    assert store.charge("another", "1/2") is None


# --- files ------------------------------------------------------------------------------------------------------------


def spoil(path: Path, statement: str) -> None:
    database = sqlite3.connect(path)
    with database:
        database.execute(statement)
    database.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE budget SET spent = 'nan'",
        "UPDATE budget SET spent = '-1'",
        "UPDATE budget SET spent = ''",
        "UPDATE budget SET spent = '1/0'",
        "UPDATE budget SET spent = x'00'",
        "UPDATE budget SET spent = '0'",
        "UPDATE budget SET most = 'inf'",
        "UPDATE budget SET most = '0'",
        "UPDATE decisions SET epsilon = '1/1000'",
        "UPDATE decisions SET epsilon = 'nan'",
        "DELETE FROM budget",
        "DELETE FROM decisions",
        "DROP TABLE budget",
        "DROP TABLE decisions",
    ],
)
def test_a_store_that_was_changed_fails_closed(path: Path, statement: str) -> None:
    Device(Store(path, limit="1")).respond("d1", 1.0, BernoulliCurator("0.5"))
    spoil(path, statement)
    with pytest.raises(InputError, match=r"^(path|limit) must be "):
        Device(Store(path, limit="1")).respond("d2", 1.0, BernoulliCurator("0.5"))


OPEN = ("spent = 'nan'", "spent = '0'", "spent = '1/4'")


@pytest.mark.parametrize(
    "statement", [*(f"UPDATE budget SET {change}" for change in OPEN), "DELETE FROM budget", "DROP TABLE budget"]
)
def test_a_store_that_is_changed_while_it_is_open_fails_closed(path: Path, statement: str) -> None:
    device = Device(Store(path, limit="1"))
    device.respond("d1", 1.0, BernoulliCurator("0.5"))
    spoil(path, statement)
    with pytest.raises((InputError, sqlite3.OperationalError)):
        device.respond("d2", 1.0, BernoulliCurator("0.5"))


@pytest.mark.parametrize("size", [0, 1, 100, 4096, 6000])
def test_a_file_that_was_cut_is_no_fresh_budget(path: Path, size: int) -> None:
    Device(Store(path, limit="1")).respond("d1", 1.0, BernoulliCurator("1"))
    os.truncate(path, size)
    with pytest.raises((InputError, sqlite3.DatabaseError)):
        Device(Store(path, limit="1")).respond("d2", 1.0, BernoulliCurator("1"))


def test_a_file_that_vanishes_is_not_made_again_by_an_open_store(path: Path) -> None:
    device = Device(Store(path, limit="1"))
    device.respond("d1", 1.0, BernoulliCurator("1"))
    path.unlink()
    with pytest.raises(sqlite3.OperationalError):
        device.respond("d2", 1.0, BernoulliCurator("1"))
    assert not path.exists()


def test_another_programs_database_is_left_alone(path: Path) -> None:
    spoil(path, "CREATE TABLE diary (entry TEXT)")
    before = path.read_bytes()
    with pytest.raises(InputError, match="path must be a file of this store or a new one"):
        Store(path, limit="1")
    assert path.read_bytes() == before


def test_a_new_store_leaves_nothing_else_behind(path: Path) -> None:
    Device(Store(path, limit="1")).respond("d1", 1.0, BernoulliCurator("0.5"))
    assert [file.name for file in path.parent.iterdir()] == ["responses"]


OPENING = """
import sys
from dpbandits.client import Store
print(Store(sys.argv[1], limit="1").charge(sys.argv[2], "1/10"))
"""


def test_processes_that_open_a_new_store_at_once_share_one(path: Path) -> None:
    names = [f"d{n}" for n in range(6)]
    started = [subprocess.Popen([sys.executable, "-c", OPENING, str(path), name], stdout=-1) for name in names]
    assert [process.communicate()[0] for process in started] == [b"None\n"] * 6
    assert Store(path, limit="1").budget().spent == Fraction(6, 10)


# --- kills and full disks ---------------------------------------------------------------------------------------------

KILLED = """
import sys
from dpbandits.client import Device, LaplaceCurator, Store
device, curator = Device(Store(sys.argv[1], limit="1")), LaplaceCurator("1/1000")
for n in range(int(sys.argv[2])):
    print(device.respond(f"d{n}", 0.5, curator).decode(), flush=True)
"""
KILLS, DECISIONS = 8, 60


@posix
def test_no_kill_shows_two_responses_or_charges_twice(path: Path) -> None:
    """Two processes at a time answer the same decisions, and are killed at random moments; the seed is fixed."""
    rng, shown = random.Random(7), dict[str, set[str]]()
    for kill in range(KILLS):
        command = [sys.executable, "-c", KILLED, str(path), str(DECISIONS)]
        started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        if kill < KILLS - 1:
            time.sleep(rng.uniform(0.15, 0.6))
            for process in started:
                process.kill()
        for process in started:
            for line in process.communicate()[0].split("\n")[:-1]:
                shown.setdefault(json.loads(line)["decision"], set()).add(line)
    assert len(shown) == DECISIONS
    assert all(len(lines) == 1 for lines in shown.values()), "one decision was answered in two ways"
    assert Store(path, limit="1").budget().spent == Fraction(DECISIONS, 1000)


FULL = """
import resource, sqlite3, sys
from dpbandits.client import BernoulliCurator, Device, Store
device = Device(Store(sys.argv[1], limit="1"))
size = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
made = {}
try:
    for n in range(400):
        made[n] = device.respond(f"d{n}" + "x" * 190, 0.5, BernoulliCurator("1/1000"))
except sqlite3.OperationalError:
    print(len(made))
"""


@posix
@pytest.mark.parametrize("size", [12_288, 20_480, 40_960])
def test_on_a_full_disk_nothing_is_returned_that_was_not_kept(path: Path, size: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path), str(size)], capture_output=True, text=True, check=True
    )
    made = int(done.stdout)
    store = Store(path, limit="1")
    assert store.budget().spent in (Fraction(made, 1000), Fraction(made + 1, 1000))
    for n in range(made):
        assert store.charge(f"d{n}" + "x" * 190, "1/1000") is not None


@posix
def test_a_killed_process_does_not_lock_the_store(path: Path) -> None:
    Store(path, limit="1")
    holding = (
        "import sqlite3, sys, time\n"
        "database = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "database.execute('BEGIN IMMEDIATE'); database.execute(\"UPDATE budget SET spent = '9'\")\n"
        "print(1, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", holding, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert Store(path, limit="1").budget().spent == 0
