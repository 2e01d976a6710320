"""The device: one response a decision, the same bytes for ever, never more than the budget, whatever crashes when."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import stat
import struct
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path

import pytest

from dpbandits.client import (
    BernoulliCurator,
    Budget,
    BudgetError,
    Device,
    LaplaceCurator,
    LocalCurator,
    RandomisedResponse,
    SigmoidCurator,
    Store,
)
from dpbandits.errors import InputError

CURATORS: tuple[LocalCurator, ...] = (
    RandomisedResponse("0.1"),
    BernoulliCurator("0.1"),
    LaplaceCurator("0.1"),
    SigmoidCurator(BernoulliCurator("0.1")),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "responses"


@pytest.mark.parametrize("curator", CURATORS, ids=lambda curator: type(curator).__name__)
def test_a_response_is_made_once_and_resent(path: Path, curator: LocalCurator) -> None:
    """Fresh bits would agree with the first ten times, for all five decisions, with probability below 2^-45."""
    for decision in map(str, range(5)):
        first = Device(Store(path, limit="1")).respond(decision, 0.3, curator)
        again = {Device(Store(path, limit="1")).respond(decision, reward, curator) for reward in (0.3, 0.9) * 5}
        assert again == {first}
        body = json.loads(first)
        assert body == {"decision": decision, "epsilon": "1/10", "response": body["response"]}
        assert isinstance(body["response"], int)
    assert Store(path, limit="1").budget() == Budget(Fraction(1), Fraction(1, 2))


def test_the_budget_is_exact_and_never_exceeded(path: Path) -> None:
    """Ten tenths are one; as floats they are less, and a further 1e-17 would go unnoticed."""
    device = Device(Store(path, limit="1"))
    for n in range(10):
        device.respond(f"d{n}", 1.0, BernoulliCurator(0.1))
    for epsilon in ("0.1", "1/100000000000000000"):
        with pytest.raises(BudgetError, match=r"epsilon must be at most 0, what is left of .* 1, got 1/10+$"):
            device.respond("more", 1.0, BernoulliCurator(epsilon))
    assert device.store.budget().spent == 1
    assert device.respond("d3", 1.0, BernoulliCurator(0.1)) == device.respond("d3", 0.0, BernoulliCurator(0.1))


def test_a_refused_response_costs_nothing(path: Path) -> None:
    device = Device(Store(path, limit="0.5"))
    with pytest.raises(BudgetError):
        device.respond("d1", 1.0, BernoulliCurator("1"))
    assert device.store.budget().spent == 0
    assert json.loads(device.respond("d1", 1.0, BernoulliCurator("0.5")))["epsilon"] == "1/2"


def test_a_promise_can_be_lowered_only(path: Path) -> None:
    Device(Store(path, limit="1")).respond("d1", 1.0, BernoulliCurator("0.5"))
    with pytest.raises(InputError, match="limit must be at most 1, which was promised before, got 2"):
        Store(path, limit="2")
    assert Store(path, limit="1/4").budget() == Budget(Fraction(1, 4), Fraction(1, 2))
    assert Store(path, limit="1/4").budget().left == 0
    with pytest.raises(InputError, match="limit must be at most 1/4"):
        Store(path, limit="1")


class Watching:
    """A curator that looks, while it draws, at what another process would find on disk."""

    epsilon = Fraction(1, 10)

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: list[tuple[Fraction, object]] = []

    def respond(self, reward: float) -> int:
        spent = Store(self.path, limit="1").budget().spent
        with sqlite3.connect(self.path) as database:
            self.found.append((spent, database.execute("SELECT response FROM decisions").fetchall()))
        database.close()
        return 1


def test_the_order_is_charge_draw_keep(path: Path) -> None:
    curator = Watching(path)
    body = Device(Store(path, limit="1")).respond("d1", 1.0, curator)
    assert Device(Store(path, limit="1")).respond("d1", 1.0, curator) == body
    assert curator.found == [(Fraction(1, 10), [(None,)])], "one draw, after the charge and before the response"
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT response FROM decisions").fetchall() == [(body,)]
    database.close()


CRASH = """
import os, signal, sys
from dpbandits.client import Device, LaplaceCurator, Store

def die():
    os.kill(os.getpid(), signal.SIGKILL)

class DiesAfterDrawing(LaplaceCurator):
    def respond(self, reward):
        super().respond(reward)
        die()

class DiesAfterKeeping(Store):
    def keep(self, decision, response):
        super().keep(decision, response)
        die()

path, when = sys.argv[1:]
store, curator = (Store, DiesAfterDrawing) if when == "draw" else (DiesAfterKeeping, LaplaceCurator)
Device(store(path, limit="1")).respond("d1", 0.5, curator("0.1"))
"""


def crash(path: Path, when: str) -> None:
    """A device that is killed, as by the loss of power, after it drew or after it kept the response to d1."""
    done = subprocess.run([sys.executable, "-c", CRASH, str(path), when], check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
def test_a_crash_after_the_draw_is_charged_once_and_shows_one_response(path: Path) -> None:
    crash(path, "draw")
    store = Store(path, limit="1")
    assert store.budget().spent == Fraction(1, 10)
    with pytest.raises(InputError, match="epsilon must be 1/10, which d1 was charged, got 1/2"):
        Device(store).respond("d1", 0.5, LaplaceCurator("0.5"))
    first = Device(store).respond("d1", 0.5, LaplaceCurator("0.1"))
    assert Device(store).respond("d1", 0.5, LaplaceCurator("0.1")) == first
    assert store.budget().spent == Fraction(1, 10)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
def test_a_crash_after_keeping_resends_what_was_kept(path: Path) -> None:
    crash(path, "keep")
    store = Store(path, limit="1")
    kept = store.charge("d1", Fraction(1, 10))
    assert kept is not None
    assert Device(store).respond("d1", 0.5, LaplaceCurator("0.1")) == kept
    assert store.budget().spent == Fraction(1, 10)


def test_threads_that_ask_at_once_get_one_response(path: Path) -> None:
    store = Store(path, limit="1")
    start = threading.Barrier(6)
    bodies: list[bytes] = []

    def ask() -> None:
        start.wait()
        bodies.append(Device(store).respond("d1", 0.5, LaplaceCurator("0.1")))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(bodies) == 6
    assert len(set(bodies)) == 1
    assert store.budget().spent == Fraction(1, 10)


def test_threads_with_decisions_of_their_own_lose_no_charge(path: Path) -> None:
    store = Store(path, limit="1")
    start = threading.Barrier(6)
    bodies: list[bytes] = []

    def ask(name: int) -> None:
        start.wait()
        bodies.extend(Device(store).respond(f"{name}-{n}", 0.5, BernoulliCurator("0.01")) for n in range(5))

    threads = [threading.Thread(target=ask, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(bodies)) == 30
    assert store.budget().spent == Fraction(30, 100)


@pytest.mark.parametrize("decision", ["", "a b", 'a"', "a\\", "é", "a\n", "x" * 201])
def test_a_decision_that_is_no_name_is_refused(path: Path, decision: str) -> None:
    device = Device(Store(path, limit="1"))
    with pytest.raises(InputError, match=r"decision must be 1 to 200 letters, .* got '"):
        device.respond(decision, 1.0, BernoulliCurator("0.1"))
    assert device.store.budget().spent == 0


def test_the_first_kept_response_stays(path: Path) -> None:
    """As when two processes have both charged, and both drawn."""
    store = Store(path, limit="1")
    assert store.charge("d1", Fraction(1, 10)) is None
    assert store.charge("d1", Fraction(1, 10)) is None
    assert [store.keep("d1", b"first"), store.keep("d1", b"second")] == [b"first", b"first"]
    assert store.charge("d1", Fraction(1, 10)) == b"first"
    assert store.budget().spent == Fraction(1, 10)


def test_a_response_must_be_charged_before_it_is_kept(path: Path) -> None:
    with pytest.raises(InputError, match="decision must be charged before its response is kept, got d1"):
        Store(path, limit="1").keep("d1", b"1")


def test_a_file_of_another_kind_is_refused_and_left_alone(path: Path) -> None:
    path.write_bytes(b"my diary, and long enough to be taken for a header of something" * 20)
    with pytest.raises(InputError, match="path must be a file of this store or a new one, got "):
        Store(path, limit="1")
    assert path.read_bytes().startswith(b"my diary")


def test_the_reward_is_nowhere_on_disk(path: Path) -> None:
    reward = 0.8414709848078965
    for n, curator in enumerate(CURATORS):
        Device(Store(path, limit="1")).respond(f"d{n}", reward, curator)
    for file in path.parent.iterdir():
        content = file.read_bytes()
        assert b"0.841" not in content
        assert struct.pack("<d", reward) not in content
        assert struct.pack(">d", reward) not in content


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_only_the_user_may_read_the_file(path: Path) -> None:
    Store(path, limit="1")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_client_needs_the_standard_library_only() -> None:
    script = """
import sys
before = set(sys.modules)
import dpbandits.client, dpbandits.exact
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(loaded - sys.stdlib_module_names))
"""
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert answer.strip() == "['dpbandits']"
