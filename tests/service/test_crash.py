"""Servers are killed with SIGKILL at random moments under load. Nothing that was acknowledged is lost or counted twice.

``DPBANDITS_KILLS`` is the number of kills; 50 if it is not set.
"""

from __future__ import annotations

import contextlib
import csv
import http.client
import io
import os
import random
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from calls import wait_for
from postgres import Postgres
from servers import Server, Zygote

from dpbandits.service.service import Service
from dpbandits.service.settings import ServerSettings

KILLS = int(os.environ.get("DPBANDITS_KILLS", "50"))
EXPERIMENTS = {"local": "ldp-ucb-b", "stints": "adap-ucb", "counter": "dp-ucb-bound"}
CLIENTS = 6


@dataclass
class Load:
    """Clients that ask and answer without end, and repeat what was not acknowledged."""

    servers: list[Server]
    seed: int
    stopping: threading.Event = field(default_factory=threading.Event)
    arms: dict[tuple[str, str], str] = field(default_factory=dict)  # of acknowledged decisions
    answered: dict[tuple[str, str], Any] = field(default_factory=dict)  # acknowledged as accepted
    late: set[tuple[str, str]] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)

    def run(self) -> list[threading.Thread]:
        threads = [threading.Thread(target=self.client, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        return threads

    def client(self, number: int) -> None:
        chance = random.Random(f"{self.seed} {number}")
        for count in range(1_000_000):
            if self.stopping.is_set():
                return
            name = chance.choice(list(EXPERIMENTS))
            key = (name, f"c{number}-{count}")
            made = self.insist(
                chance, f"/v1/experiments/{name}/decisions", {"decision": key[1], "user": f"u{count % 50}"}
            )
            if made is None:
                return
            if made[0] != 200:
                self.wrong.append(f"{key}: {made}")
                continue
            before = self.arms.setdefault(key, made[1]["arm"])
            if before != made[1]["arm"]:
                self.wrong.append(f"{key} was {before} and is {made[1]['arm']}")
            value = chance.randrange(2)
            field_, path = ("response", "/v1/responses") if name == "local" else ("reward", "/v1/rewards")
            told = self.insist(chance, path, {"token": made[1]["token"], field_: value})
            if told is None:
                return
            if told[1]["status"] in ("accepted", "duplicate"):
                self.answered[key] = value
            elif told[1]["status"] == "late":
                self.late.add(key)
            else:
                self.wrong.append(f"{key}: {told}")

    def insist(self, chance: random.Random, path: str, body: Any) -> tuple[int, Any] | None:
        """Send a request until it is answered; None when the test is over."""
        while not self.stopping.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException):
                code, answer = chance.choice(self.servers).call("POST", path, body)
                if code < 500:
                    return code, answer
            time.sleep(0.01)
        return None


def create_all(server: Server) -> None:
    for name, policy in EXPERIMENTS.items():
        asked = {"name": name, "arms": ["a", "b", "c"], "policy": policy, "epsilon": "1", "response_window": 3600}
        code, answer = server.call("POST", "/v1/experiments", asked)
        assert code == 201, answer


def releases(server: Server) -> dict[tuple[str, int, str], float]:
    """Every release of the stints so far."""
    found: list[tuple[int, Any]] = []

    def shown() -> bool:
        found.append(server.call("GET", "/v1/experiments/stints/ledger?limit=10000"))
        return found[-1][0] != 503  # on a busy machine the tally may be locked for longer than it is waited for

    wait_for(shown)
    code, book = found[-1]
    assert code == 200, book
    return {("stints", one["release"], one["arm"]): one["mean"] for one in book["entries"]}


def check(folder: Path, store: str, load: Load, seen: dict[tuple[str, int, str], float]) -> None:
    """Nothing acknowledged is lost, nothing counted twice, no release drawn twice, and all counts add up."""
    assert load.wrong == []
    assert len(load.answered) > KILLS
    given = ServerSettings.read(store=store, keys=folder / "keys", tally=f"sqlite:///{folder}/tally")
    service = Service(given)
    service.open()
    try:
        with service.store.readers.connect() as connection:
            for name in EXPERIMENTS:
                _check_one(service, connection, name, load)
        from dpbandits.service import reports

        with service.store.readers.connect() as connection:
            book = reports.ledger(connection, service.find("stints"), 0, 10_000)
        final = {("stints", one["release"], one["arm"]): one["mean"] for one in book["entries"]}
        assert seen.items() <= final.items()
    finally:
        service.close()


def _check_one(service: Service, connection: Any, name: str, load: Load) -> None:
    from dpbandits.service import export, reports

    run = service.stored(connection, service.find(name).experiment.id)
    text = b"".join(export.as_csv(export.pages(lambda: contextlib.nullcontext((connection, run))))).decode()
    rows = {row["decision"]: row for row in csv.DictReader(io.StringIO(text))}
    for (experiment, decision), arm in load.arms.items():
        if experiment == name:
            assert rows[decision]["arm"] == arm  # no acknowledged decision is lost
    for (experiment, decision), value in load.answered.items():
        if experiment == name:
            assert rows[decision]["outcome"] in ("used", "late")  # no acknowledged response is lost
            if name == "local":
                assert rows[decision]["response"] == str(value)
    used = [row for row in rows.values() if row["outcome"] == "used"]
    shown = reports.summary(connection, run)
    assert shown["responses"]["used"] == len(used)
    assert shown["responses"]["waiting"] == 0
    assert shown["decisions"] == len(rows) == run.state.decisions
    assert run.state.desk.folded[0] == len(used)  # each was folded once
    assert shown["responses"]["late"] == sum(row["outcome"] == "late" for row in rows.values())
    curator = run.state.curator
    if name == "local":
        for number, arm in enumerate(run.experiment.arms):
            mine = [int(row["response"]) for row in used if row["arm"] == arm]
            assert curator.counts[number] == len(mine)
            assert curator.sums[number] == sum(mine)
    if name == "stints":
        book = reports.ledger(connection, run, 0, 10_000)
        assert sum(one["responses"] for one in book["entries"]) + sum(curator.raw_counts) == len(used)
        numbers = [one["release"] for one in book["entries"]]
        assert len(set(numbers)) == len(numbers) == run.state.version


def killed_under_load(servers: list[Server], seed: int) -> tuple[Load, dict[tuple[str, int, str], float]]:
    """Kill servers at random moments, KILLS times in all; what was acknowledged, and every release that was seen."""
    chance = random.Random(seed)
    with contextlib.ExitStack() as ending:
        for server in servers:
            ending.callback(server.stop)
            server.start()
        create_all(servers[0])
        load = Load(servers, seed)
        threads = load.run()
        seen: dict[tuple[str, int, str], float] = {}
        spent = 0
        try:
            for _ in range(KILLS):
                server = chance.choice(servers)
                time.sleep(chance.uniform(0.02, 0.25))
                server.kill()
                server.start()
                now = releases(server)
                for key, mean in seen.items():
                    assert now.get(key) == mean  # a release stays what it was, and the ledger never decreases
                assert len(now) >= spent
                seen, spent = now, len(now)
            wait_for(lambda: len(load.answered) > KILLS)
        finally:
            load.stopping.set()
            for thread in threads:
                thread.join()
        wait_for(lambda: _all_folded(servers[0]), 120)
    return load, seen


def _all_folded(server: Server) -> bool:
    """Whether nothing waits, and the counts over time, which folds make, have every decision."""
    for name in EXPERIMENTS:
        found = [server.call("GET", f"/v1/experiments/{name}/{what}") for what in ("summary", "series", "export.csv")]
        if any(code == 503 for code, _ in found):  # on a busy machine the tally may be locked for too long
            return False
        (_, shown), (_, series), (_, stored) = found
        counted = sum(one["decisions"] for point in series["points"] for one in point["arms"].values())
        if shown["responses"]["waiting"] or counted != stored.count("\n") - 1:
            return False
    return True


@pytest.mark.slow
def test_a_killed_server_on_sqlite_loses_nothing(zygote: Zygote, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/test.db"
    load, seen = killed_under_load([Server(zygote, tmp_path, store)], seed=1)
    check(tmp_path, store, load, seen)


@pytest.mark.slow
def test_killed_workers_on_postgresql_lose_nothing(zygote: Zygote, tmp_path: Path, postgres: Postgres) -> None:
    """Two workers on one database: each is killed at random, the one that folds among them."""
    store = postgres.database()
    servers = [Server(zygote, tmp_path, store, name) for name in ("one", "two")]
    load, seen = killed_under_load(servers, seed=2)
    check(tmp_path, store, load, seen)
    logs = "".join(server.log.read_text() for server in servers)
    assert logs.count('"leading"') > len(EXPERIMENTS)  # the right to fold went from one to the other
