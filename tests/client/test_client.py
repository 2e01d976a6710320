"""The client: an answer for every decision, at a time that does not depend on what happened, drawn once."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from moody import BLOCK, Hand, Moody, Still, moody, until

from dpbandits.client import Budget, Client, ClientDecision
from dpbandits.client.database import transaction
from dpbandits.errors import InputError


class World:
    """A server, a clock, a file, and clients of them."""

    def __init__(self, server: Moody, folder: Path) -> None:
        self.server, self.store, self.clock = server, folder / "answers", Hand()
        self.events: list[dict[str, Any]] = []
        self.clients: list[Client] = []

    def client(self, **settings: Any) -> Client:
        given = {"store": self.store, "clock": self.clock, "observer": self.events.append, "timeout": 5.0, **settings}
        made = Still(given.pop("url", self.server.url), "dpb_key", **given)
        self.clients.append(made)
        return made

    def wait(self, client: Client, seconds: float) -> None:
        self.clock.now += seconds
        client.flush()

    @property
    def drawn(self) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == "drawn"]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with moody() as server:
        yield World(server, tmp_path)


def test_an_answer_is_sent_when_it_is_due_with_the_bytes_that_were_kept(world: World) -> None:
    client = world.client()
    decision = client.decide("shop", otherwise=0, user="ann")
    assert decision == ClientDecision(decision.id, "shop", "green")
    assert world.server.paths == ["/v1/experiments/shop/decisions"]
    assert world.server.asked == [{"decision": decision.id, "user": "ann"}]
    assert world.server.headers[0]["authorization"] == "Bearer dpb_key"
    assert client.report(decision, 1)
    world.wait(client, 80)
    assert world.server.sent == [], "a report sends nothing: its time would tell"
    world.wait(client, 16)
    (body,) = world.server.sent
    wanted = (
        rf'{{"token":"token-{decision.id}","response":{{"decision":"{decision.id}","epsilon":"1/2","response":[01]}}}}'
    )
    assert re.fullmatch(wanted, body.decode())
    world.wait(client, 1000)
    assert len(world.server.sent) == 1
    assert client.budget("ann") == Budget(Fraction(10), Fraction(1, 2))
    assert client.budget("bob") == Budget(Fraction(10))


@pytest.mark.parametrize("reported", [True, False])
def test_what_happened_changes_neither_number_nor_time_nor_size(world: World, reported: bool) -> None:
    client = world.client()
    decision = client.decide("shop", otherwise=0)
    due = world.events[0]["due"]
    assert 85 <= due - world.clock.now <= 95
    if reported:
        client.report(decision, 1)
    world.clock.now = due - 0.001
    client.flush()
    assert world.server.sent == []
    world.clock.now = due
    client.flush()
    assert [len(body) for body in world.server.sent] == [138]
    assert [event["reported"] for event in world.drawn] == [reported]


def test_answers_go_out_at_different_times_and_after_brings_them_forward(world: World) -> None:
    client = world.client(limit=1000)
    for _ in range(20):
        client.decide("shop", otherwise=0)
    assert len({event["due"] for event in world.events}) == 20
    client.decide("shop", otherwise=0, after=5)
    assert 5 <= world.events[-1]["due"] - world.clock.now <= 5.5
    world.server.curator = {**BLOCK, "respond_within": None}
    client.decide("shop", otherwise=0)
    assert 60 <= world.events[-1]["due"] - world.clock.now <= 66


def test_what_stands_for_nothing_must_be_said(world: World) -> None:
    client = world.client()
    with pytest.raises(TypeError, match="otherwise"):
        client.decide("shop")  # type: ignore[call-arg]
    for wrong in (float("nan"), "many", float("inf")):
        with pytest.raises(InputError, match="otherwise must be the reward for 'nothing happened', or None"):
            client.decide("shop", otherwise=wrong)  # type: ignore[arg-type]
    client.decide("shop", otherwise=None)
    world.wait(client, 100)
    assert world.server.sent == [], "missing, and never a zero"
    told = client.decide("shop", otherwise=None)
    client.report(told, 1)
    world.wait(client, 100)
    assert len(world.server.sent) == 1


def test_the_same_bytes_on_every_retry_and_one_draw(world: World) -> None:
    client = world.client()
    decision = client.decide("shop", otherwise=0)
    client.report(decision, 0.7)
    moods = ("503", "garbled", "cut", "500", "401", "403", "429", "404")
    for mood in moods:
        world.server.mood = mood
        world.wait(client, 100_000)
    world.server.mood = "well"
    world.wait(client, 100_000)
    assert len(world.server.sent) == len(moods)  # "cut" did not read it, and the last one was well
    assert len(set(world.server.sent)) == len(world.drawn) == 1
    world.wait(client, 100_000)
    assert len(world.server.sent) == len(moods)


def test_failed_answers_are_tried_again_at_once_when_asked_for(world: World) -> None:
    client = world.client()
    client.decide("shop", otherwise=0)
    world.server.mood = "503"
    world.wait(client, 100)
    world.server.mood = "well"
    client.flush()
    assert len(world.server.sent) == 1
    client.flush(again=True)
    assert len(world.server.sent) == 2


@pytest.mark.parametrize("status", ["late", "unknown", "invalid", "conflict"])
def test_tokens_that_expired_end_the_matter(world: World, status: str) -> None:
    client = world.client()
    decision = client.decide("shop", otherwise=0)
    world.server.mood = status
    world.wait(client, 100)
    world.server.mood = "well"
    world.wait(client, 100_000)
    assert len(world.server.sent) == 1
    assert not client.report(decision, 1)
    assert len(world.drawn) == 1
    budget = client.budget()
    assert budget is not None
    assert budget.spent == Fraction(1, 2), "what was spent stays spent"


def test_the_next_client_answers_what_the_last_one_left(world: World) -> None:
    client = world.client()
    first, second = client.decide("shop", otherwise=0), client.decide("shop", otherwise=0)
    client.report(first, 1)
    world.clock.now += 1e6
    world.client().flush()
    assert {json.loads(body)["response"]["decision"] for body in world.server.sent} == {first.id, second.id}
    assert len(world.drawn) == 2


KILLED = """
import os, signal, sys, threading
from dpbandits.client import Client
url, path, when = sys.argv[1:]
clock = lambda: 0.0 if when != "send" else 1e6
def die(event):
    if event["type"] == when:
        print(event.get("response", ""), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
client = Client(url, store=path, observer=die, clock=lambda: now)
now = 1.7e9
client.close()
decision = client.decide("shop", otherwise=0)
if when == "drawn":
    client.report(decision, 0.3)
now += 100
client.flush()
"""


@pytest.mark.parametrize("when", ["drawn", "sent"])
def test_a_killed_client_resends_and_never_draws_again(world: World, when: str) -> None:
    """Killed after the draw is kept and before it is sent; or after it is sent, before the answer is read."""
    script = [sys.executable, "-c", KILLED, world.server.url, str(world.store), when]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with sqlite3.connect(world.store) as database:
        ((kept,),) = database.execute("SELECT answer FROM waiting").fetchall()
    database.close()
    client = world.client()
    world.wait(client, 1000)
    assert len(set(world.server.sent)) == 1
    assert json.loads(world.server.sent[-1])["response"] == json.loads(kept)
    assert world.drawn == []


def test_the_budget_is_charged_with_the_decision(world: World) -> None:
    client = world.client(limit="1")
    decisions = [client.decide("shop", otherwise=0, user="ann") for _ in range(4)]
    assert [one.silent for one in decisions] == [None, None, "budget", "budget"]
    assert {one.arm for one in decisions} == {"green"}, "over budget there are decisions still"
    assert not client.report(decisions[3], 1)
    assert client.decide("shop", otherwise=0, user="bob").silent is None, "another user has another budget"
    world.wait(client, 1000)
    assert len(world.server.sent) == 3
    assert world.client(limit="100").budget("ann") == Budget(Fraction(1), Fraction(1)), "an earlier promise stands"
    assert world.client(limit="1/2").budget("ann") == Budget(Fraction(1, 2), Fraction(1))


def test_without_a_place_to_keep_answers_nothing_is_asked_drawn_or_sent(world: World, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("my diary, and long enough to be taken for something else " * 40)
    (tmp_path / "empty").write_bytes(b"")
    for path in (tmp_path / "text", tmp_path / "text" / "below", tmp_path / "empty", Path("/proc/none/answers")):
        client = world.client(store=path)
        decision = client.decide("shop", otherwise=0, fallback="red")
        assert (decision.arm, decision.silent) == ("red", "storage")
        assert not client.report(decision, 1)
        assert not client.report("another", 1)
        assert client.budget() is None
        assert client.current("shop") is None
        world.wait(client, 1000)
    assert world.server.paths == []
    assert world.drawn == []
    assert (tmp_path / "text").read_text().startswith("my diary")


def test_a_damaged_budget_fails_closed(world: World) -> None:
    client = world.client()
    client.decide("shop", otherwise=0)
    for spent in ("garbled", "-1", "1/0", "", "nan"):
        with sqlite3.connect(world.store) as database:
            database.execute("UPDATE people SET spent = ?", (spent,))
        database.close()
        assert client.decide("shop", otherwise=0, fallback="red").silent == "storage"
        assert client.budget() is None


def test_a_file_that_is_locked_when_the_click_comes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpbandits.client.outbox.LOCK_TIMEOUT", 0.05)
    client = world.client()
    decision = client.decide("shop", otherwise=0)
    other = sqlite3.connect(world.store, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    assert not client.report(decision, 1)
    world.wait(client, 100)
    assert (world.server.sent, world.drawn) == ([], []), "no draw without a store"
    other.execute("ROLLBACK")
    other.close()
    client.flush()
    assert len(world.server.sent) == 1
    assert [(event["reward"], event["reported"]) for event in world.drawn] == [(1.0, True)]


@pytest.mark.parametrize(
    ("mood", "word"),
    [
        ("hang", "unreachable"),
        ("drip", "unreachable"),
        ("cut", "unreachable"),
        ("500", "unreachable"),
        ("503", "unreachable"),
        ("429", "unreachable"),
        ("garbled", "unreadable"),
        ("404", "unknown"),
        ("401", "refused"),
        ("403", "refused"),
        ("409", "refused"),
        ("422", "refused"),
        ("302", "refused"),
    ],
)
def test_a_server_on_a_bad_day_is_the_fallback(world: World, mood: str, word: str) -> None:
    client = world.client(timeout=0.5 if mood in ("hang", "drip") else 30.0)  # others answer, if the machine lets them
    world.server.mood = mood
    began = time.monotonic()
    decision = client.decide("shop", otherwise=0, fallback="red")
    assert time.monotonic() - began < 20.0, "one that hangs does so for 30 seconds"
    assert (decision.arm, decision.silent) == ("red", word)
    answered = {"garbled": None, "hang": 0, "drip": 0, "cut": 0}
    assert decision.status == (answered[mood] if mood in answered else int(mood))
    assert not client.report(decision, 1)
    world.server.mood = "well"
    world.wait(client, 1000)
    assert world.server.sent == [], "what was not shown is not answered"
    assert client.budget() == Budget(Fraction(10))


def test_no_server_at_all(world: World) -> None:
    for url in ("http://127.0.0.1:9", "http://nowhere.invalid", "https://127.0.0.1:9/base/"):
        assert world.client(url=url).decide("shop", otherwise=0, fallback="red").silent == "unreachable"


@pytest.mark.parametrize(
    ("change", "word", "arm"),
    [
        ({"decision": "another"}, "unreadable", "red"),
        ({"arm": 7}, "unreadable", "red"),
        ({"curator": None, "token": None}, "cap", "green"),
        ({"curator": {**BLOCK, "mechanism": "none"}}, "trust", "green"),
        ({"curator": {**BLOCK, "mechanism": "shout"}}, "curator", "green"),
        ({"curator": {**BLOCK, "epsilon": "0"}}, "curator", "green"),
        ({"curator": {**BLOCK, "epsilon": 1}}, "curator", "green"),
        ({"curator": {**BLOCK, "range": [1, 0]}}, "curator", "green"),
        ({"curator": {**BLOCK, "range": "ab"}}, "curator", "green"),
        ({"curator": {**BLOCK, "range": {}}}, "curator", "green"),
        ({"curator": {**BLOCK, "range": [0, 10**400]}}, "curator", "green"),
        ({"curator": {**BLOCK, "respond_within": 10**400}}, "curator", "green"),
        ({"curator": {**BLOCK, "epsilon": "1000"}}, "budget", "green"),
        ({"curator": {**BLOCK, "respond_within": -1.0}}, "late", "green"),
    ],
)
def test_answers_that_a_client_does_not_follow(world: World, change: dict[str, Any], word: str, arm: str) -> None:
    world.server.change = change
    client = world.client()
    decision = client.decide("shop", otherwise=0, fallback="red")
    assert (decision.silent, decision.arm) == (word, arm)
    world.wait(client, 1e6)
    assert world.server.sent == []


def test_a_wrong_clock(world: World) -> None:
    """An offset changes nothing; a clock that is set back makes nobody wait for ever."""
    client = world.client()
    for offset in (-1e9, 3e9):
        world.clock.now += offset
        client.decide("shop", otherwise=0)
        sent = len(world.server.sent)
        world.wait(client, 84)
        assert len(world.server.sent) == sent
        world.wait(client, 12)
        assert len(world.server.sent) == sent + 1
    client.decide("shop", otherwise=0)
    world.wait(client, -1e8)
    assert len(world.server.sent) == 2
    world.wait(client, 96)
    assert len(world.server.sent) == 3
    client.decide("shop", otherwise=0)
    world.wait(client, 1e8)
    assert len(world.server.sent) == 4, "set forward: sent at once, and the server says whether it is late"


def test_rewards_themselves_leave_only_with_leave(world: World) -> None:
    world.server.curator = {**BLOCK, "mechanism": "none"}
    client = world.client(trust="central")
    for reward in (0.25, float("nan"), float("inf"), -float("inf"), "x", 3):
        client.report(client.decide("shop", otherwise=0), reward)
    world.wait(client, 100)
    assert sorted(json.loads(body)["reward"] for body in world.server.sent) == [-1e308, 0.0, 0.0, 0.25, 3.0, 1e308]
    assert set(world.server.paths[6:]) == {"/v1/rewards"}
    budget = client.budget()
    assert budget is not None
    assert budget.spent == 3
    assert b"0.25" not in world.store.read_bytes(), "what the server has is not kept"


@pytest.mark.parametrize("drawn", [True, False])
def test_a_client_without_trust_gives_no_reward_also_where_an_earlier_one_did(world: World, drawn: bool) -> None:
    world.server.curator = {**BLOCK, "mechanism": "none"}
    earlier = world.client(trust="central")
    decision = earlier.decide("shop", otherwise=0)
    assert earlier.report(decision, 0.8414) if drawn else True
    local = world.client()
    assert not local.report(decision, 0.8414)
    world.wait(local, 1e6)
    assert world.server.sent == []
    world.wait(earlier, 1e6)
    assert world.server.sent == [], "it is forgotten"


def test_what_is_deleted_is_overwritten(world: World) -> None:
    """SQLite leaves deleted rows in the file unless it is told otherwise; how it was built decides what is usual."""
    client = world.client()
    client.decide("shop", otherwise=0)
    with transaction(world.store) as database:
        assert database.execute("PRAGMA secure_delete").fetchone() == (1,)
        database.execute("CREATE TABLE more (text TEXT)")
        database.executemany("INSERT INTO more VALUES (?)", [("a reward of 0.8414",)] * 1000)
        database.execute("DELETE FROM more")
    assert b"0.8414" not in world.store.read_bytes()


def test_a_range_that_is_none_is_no_error_where_rewards_are_sent(world: World) -> None:
    world.server.curator = {**BLOCK, "mechanism": "none", "range": 5}
    assert world.client(trust="central").decide("shop", otherwise=0).silent == "curator"


def test_the_noise_has_the_level_that_was_charged(world: World) -> None:
    world.server.curator = {**BLOCK, "mechanism": "laplace", "epsilon": "1/1000"}
    client = world.client()
    decision = client.decide("shop", otherwise=0)
    database = sqlite3.connect(world.store)
    with database:
        database.execute("UPDATE waiting SET curator = replace(curator, '1/1000', '1000000')")
    database.close()
    client.report(decision, 0)
    answer = json.loads(world.drawn[0]["response"])
    assert answer["epsilon"] == "1/1000"
    assert answer["response"] != 0, "at the charged level it is 0 with probability 8e-9"


def test_a_file_that_vanishes_is_no_fresh_budget(world: World) -> None:
    client = world.client(limit="1/2")
    client.decide("shop", otherwise=0)
    world.store.unlink()
    assert client.decide("shop", otherwise=0).silent == "storage"
    assert client.budget() is None
    assert not world.store.exists()


def test_no_reward_is_in_anything_that_is_sent_or_kept(world: World) -> None:
    world.server.curator = {**BLOCK, "mechanism": "laplace"}
    client = world.client()
    client.report(client.decide("shop", otherwise=0), 0.8414709848)
    files = [path.read_bytes() for path in world.store.parent.iterdir()]
    world.wait(client, 100)
    assert len(world.server.sent) == 1
    for content in (*files, *world.server.sent, json.dumps(world.server.asked).encode()):
        assert b"0.841" not in content


def test_threads_and_processes_never_draw_twice(world: World) -> None:
    clients = [world.client(limit=100) for _ in range(4)]
    for _ in range(5):
        decision = clients[0].decide("shop", otherwise=0)
        with ThreadPoolExecutor(4) as pool:
            stood = list(pool.map(Client.report, clients, [decision.id] * 4, [1] * 4))
        assert sorted(stood) == [False, False, False, True]
    world.clock.now += 100
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(Client.flush, clients))
    assert len(world.server.sent) == len(set(world.server.sent)) == 5, "one of them sends"
    assert len(world.drawn) == 5


def test_the_thread_sends_by_itself_and_after_a_fork(world: World) -> None:
    with Client(world.server.url, store=world.store) as client:
        client.decide("shop", otherwise=0, after=0.05)
        until(lambda: len(world.server.sent) == 1)
        child = os.fork()
        if child == 0:
            try:
                client.decide("shop", otherwise=0, after=0.05)
                until(lambda: client._outbox.next() is None)  # the server has it
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        until(lambda: len(world.server.sent) == 2)
    assert len(set(world.server.sent)) == 2


def test_the_thread_does_not_spin_while_nothing_can_be_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full still lets us read that something is due."""
    looks: list[float] = []

    def full(*_: Any) -> Any:
        looks.append(time.monotonic())
        raise sqlite3.OperationalError("database or disk is full")

    with Client(world.server.url, store=world.store) as client:
        monkeypatch.setattr("dpbandits.client.outbox.Outbox.claim", full)
        client.decide("shop", otherwise=0, after=0.01)
        until(lambda: looks)
        time.sleep(0.5)
        assert sum(look < looks[0] + 0.5 for look in looks) <= 5
    assert world.server.sent == []


def test_a_rude_observer_changes_nothing(world: World) -> None:
    def rude(event: dict[str, Any]) -> None:
        raise RuntimeError("rude")

    client = world.client(observer=rude)
    assert client.report(client.decide("shop", otherwise=0), 1)
    world.wait(client, 100)
    assert len(world.server.sent) == 1


def test_what_is_due_is_the_current_decision_no_longer(world: World) -> None:
    client = world.client()
    assert client.current("shop", "ann") is None
    decision = client.decide("shop", otherwise=0, user="ann")
    assert client.current("shop", "ann") == world.client().current("shop", "ann") == decision
    assert client.current("shop", "bob") is None
    assert client.current("other", "ann") is None
    client.report(decision, 1)
    assert client.current("shop", "ann") == decision
    world.clock.now += 100
    assert client.current("shop", "ann") is None


def test_wrong_arguments_are_refused_by_name(tmp_path: Path) -> None:
    for url in ("bandits.test", "ftp://x", "http://", "http://x:port", None, 7):
        with pytest.raises(InputError, match="url must be like http://host:port"):
            Client(url, store=tmp_path / "x")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="limit must be positive"):
        Client("http://x", limit=0)
    with pytest.raises(InputError, match="trust 'none' is unknown"):
        Client("http://x", trust="none")
    with pytest.raises(InputError, match="timeout must be positive"):
        Client("http://x", timeout=0)
    with pytest.raises(InputError, match="key must be a key"):
        Client("http://x", "two\nlines")
    with pytest.raises(InputError, match="after must be positive"):
        Client("http://x", store=tmp_path / "x").decide("shop", otherwise=0, after=-1)
    with pytest.raises(InputError, match="after must be positive seconds, got 'soon'"):
        Client("http://x", store=tmp_path / "x").decide("shop", otherwise=0, after="soon")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="experiment must be a text, got None"):
        Client("http://x", store=tmp_path / "x").decide(None, otherwise=0)  # type: ignore[arg-type]
    for swapped in (0.8414, [0.8414], None):
        with pytest.raises(InputError, match=r"decision must be one that decide returned, or its id, got a \w+$"):
            Client("http://x", store=tmp_path / "x").report(swapped, "d1")  # type: ignore[arg-type]
