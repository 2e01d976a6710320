"""What hostile clients, careless operators and a second machine must not bring about."""

from __future__ import annotations

import asyncio
import json
import math
import os
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
import sqlalchemy as sa
from calls import create, decide, folded, read, respond, reward, served, wait_for
from postgres import Postgres
from starlette.testclient import TestClient

from dpbandits import policies
from dpbandits.errors import InputError
from dpbandits.service import access, app, folding, tokens
from dpbandits.service.app import App
from dpbandits.service.clock import Clock
from dpbandits.service.events import Watched, stream
from dpbandits.service.experiment import Experiment
from dpbandits.service.keyring import Keyring
from dpbandits.service.planner import Planner
from dpbandits.service.problems import Refusal
from dpbandits.service.remarks import Remark
from dpbandits.service.service import Service
from dpbandits.service.serving import check
from dpbandits.service.settings import ServerSettings
from dpbandits.service.state import PARTS, LiveState
from dpbandits.service.store import Database
from dpbandits.service.tables import answers, api_keys, experiments, states

Open = Callable[..., TestClient]
TOKEN = tokens.Token(tokens.Lease(7, 0, 0, 1_700_000_000_000, b"", "d1"), item=0, arm=2, stint=7)


def make_key(client: TestClient, role: str) -> str:
    with served(client).store.engine.begin() as connection:
        text = access.create(connection, "someone", role)
    served(client)._read_elsewhere()
    return text


def test_when_the_last_key_is_revoked_nobody_is_let_in(embedded: TestClient) -> None:
    key = make_key(embedded, "admin")
    with_key = {"authorization": f"Bearer {key}"}
    assert embedded.get("/v1/experiments").status_code == 401
    assert embedded.get("/v1/experiments", headers=with_key).status_code == 200
    with served(embedded).store.engine.begin() as connection:
        access.revoke(connection, key.split("_")[1])
    served(embedded)._read_elsewhere()
    assert embedded.get("/v1/experiments").status_code == 401
    assert embedded.get("/v1/experiments", headers=with_key).status_code == 401


def test_machines_with_copies_of_one_key_file_renew_the_token_key_alike(tmp_path: Path) -> None:
    Keyring.open(tmp_path / "a")
    shutil.copy(tmp_path / "a", tmp_path / "b")
    one, other = Keyring.open(tmp_path / "a"), Keyring.open(tmp_path / "b")
    now = one.age
    for _ in range(300):  # more than there are numbers of keys
        now += 10.0
        ahead = one.renewed(tmp_path / "a", 10.0, now)
        assert tokens.read([tokens.write(TOKEN, ahead)], other) == [TOKEN]
        assert tokens.read([tokens.write(TOKEN, other)], ahead) == [TOKEN]
        one, other = ahead, other.renewed(tmp_path / "b", 10.0, now + 3.0)
        assert tokens.read([tokens.write(TOKEN, one)], other) == [TOKEN]
    for off in (5.0, 25.0, 85.0, 1e9):  # a machine that was off catches up
        now += off
        one = one.renewed(tmp_path / "a", 10.0, now)
        assert tokens.read([tokens.write(TOKEN, one)], other.renewed(tmp_path / "b", 10.0, now)) == [TOKEN]


def test_a_token_ends_with_the_eighth_key_after_its_own(tmp_path: Path) -> None:
    keys = Keyring.open(tmp_path / "keys")
    token, began = tokens.write(TOKEN, keys), keys.age
    for renewals in range(1, 600):
        keys = keys.renewed(tmp_path / "keys", 1.0, began + renewals)
        assert tokens.read([token], keys) == [TOKEN if renewals < 8 else None]


def test_a_token_key_that_is_renewed_by_hand_does_not_follow_from_the_file_as_it_was(tmp_path: Path) -> None:
    stolen = Keyring.open(tmp_path / "keys")
    keys = Keyring.open(tmp_path / "keys").rotated(tmp_path / "keys")
    assert tokens.read([tokens.write(TOKEN, keys)], stolen) == [None]
    assert tokens.read([tokens.write(TOKEN, stolen)], keys) == [TOKEN]
    later, guess = keys.age + 1.5, stolen.age + 2.5
    next_one = keys.renewed(tmp_path / "keys", 1.0, later)
    assert tokens.read([tokens.write(TOKEN, next_one)], stolen.renewed(tmp_path / "other", 1.0, guess)) == [None]


def sealed_rewards(store: str) -> int:
    opened = Database(store)
    with opened.readers.connect() as connection:
        kept = sa.select(sa.func.count()).select_from(answers).where(answers.c.sealed.is_not(None))
        found = connection.execute(kept).scalar_one()
    opened.close()
    return int(found)


@pytest.mark.parametrize("status", ["stopped", "halted"])
def test_what_came_before_the_end_is_folded_and_erased(serve: Open, postgres: Postgres, status: str) -> None:
    """A reward that waits is stored sealed. It must not stay when its experiment ends before the next fold."""
    store = postgres.database()
    client = serve(store)
    create(client, policy="adap-ucb")
    leased = decide(client, count=3)["decisions"]
    assert folded(client)["decisions"] == 3
    served(client)._folder.stop()  # type: ignore[union-attr]
    assert [reward(client, one["token"], 1) for one in leased] == ["accepted"] * 3
    assert sealed_rewards(store) == 3
    if status == "stopped":
        assert client.post("/v1/experiments/shop:stop").status_code == 200
    else:
        with served(client).store.engine.begin() as connection:
            connection.execute(sa.update(experiments).values(status=status, revision=experiments.c.revision + 1))
    client.__exit__(None, None, None)
    found = folded(serve(store))
    assert sealed_rewards(store) == 0
    assert found["responses"]["used"] + found["responses"]["late"] == 3
    opened = Database(store)
    with opened.readers.connect() as connection:
        drawn = connection.execute(sa.select(states.c.draws)).scalar_one()
    opened.close()
    assert drawn == (status == "stopped") == found["version"]  # a halted experiment must not draw


def test_names_of_decisions_cannot_be_guessed(client: TestClient) -> None:
    """Names begin with the time and a number. In the rest, two of 50 begin alike with probability below 1e-6."""
    create(client)
    names = [decide(client)["decision"] for _ in range(50)]
    assert all(len(name) == 32 for name in names)
    assert len({name[16:24] for name in names}) == 50


def test_a_stored_decision_is_shown_to_its_user_alone(client: TestClient) -> None:
    create(client)
    first = decide(client, decision="order-77", user="ann")
    assert decide(client, decision="order-77", user="ann") == first
    for other in ({"user": "bob"}, {}):
        answer = client.post("/v1/experiments/shop/decisions", json={"decision": "order-77", **other})
        assert (answer.status_code, "token" in answer.json()) == (409, False)
    nobody = decide(client, decision="order-78")
    assert decide(client, decision="order-78") == nobody
    assert (
        client.post("/v1/experiments/shop/decisions", json={"decision": "order-78", "user": "bob"}).status_code == 409
    )


def test_a_token_is_good_for_its_own_database_alone(serve: Open, tmp_path: Path) -> None:
    """Two databases with the same keys: the first is deleted, and experiments are begun anew."""
    old = serve(f"sqlite:///{tmp_path}/old.db")
    create(old)
    token = decide(old)["token"]
    old.__exit__(None, None, None)
    new = serve(f"sqlite:///{tmp_path}/new.db", tally=f"sqlite:///{tmp_path}/tally2")
    create(new, arms=["a", "b"])
    assert respond(new, token, 1) == "unknown"
    assert read(new, "summary")["responses"]["used"] == 0


UNREADABLE = [
    b'{"token": 1,',
    b'{"token":"\xff","response":1,"reward":1}',
    b"[" * 100_000,
    b'{"token":"x","response":' + b"[" * 100_000,
    b'{"token":"x","reward":' + b"9" * 5000 + b"}",
    b'{"token":"x","reward":1e999}',
    b'{"token":"\\ud800","reward":1}',
    b"3",
    b"",
]


@pytest.mark.parametrize("body", UNREADABLE, ids=lambda body: repr(body[:30]))
@pytest.mark.parametrize("path", ["responses", "rewards", "experiments/nothing/decisions"])
def test_bodies_that_cannot_be_read_are_refused(refusing: TestClient, path: str, body: bytes) -> None:
    answer = refusing.post(f"/v1/{path}", content=body)
    assert 400 <= answer.status_code < 500
    assert len(answer.content) < 1000


def test_an_item_that_cannot_be_read_leaves_the_others(client: TestClient) -> None:
    create(client, policy="adap-ucb")
    first, second = (one["token"] for one in decide(client, count=2)["decisions"])
    body = f'[{{"token":"{first}","reward":1}},{{"token":"x","reward":1e999}},{{"token":"{second}","reward":0.5}}]'
    told = [one["status"] for one in client.post("/v1/rewards", content=body).json()]
    assert told[1] == "invalid"
    assert {told[0], told[2]} <= {"accepted", "late"}
    assert told[0] == "accepted"


@pytest.mark.parametrize("path", ["responses", "rewards", "experiments/shop/decisions"])
def test_an_answer_does_not_repeat_a_long_name(embedded: TestClient, path: str) -> None:
    create(embedded)
    sent = {"token": "x", "response": 1, "reward": 1, "n" * 500_000: 1}
    answer = embedded.post(f"/v1/{path}", json=sent)
    assert (answer.status_code, len(answer.content) < 1000) == (422, True)


@pytest.mark.parametrize(
    "settings",
    [
        {"epsilon": 1e-300},
        {"epsilon": "1/" + "9" * 400},
        {"response_window": 5e-324},
        {"baseline": "\ud800"},
        {"options": {"\ud800": 1}},
        {"reward": {"low": -1e308, "high": 1e308}},
        {"epsilon": True},
        {"floor": True},
        {"policy": "heldp-weighted-b", "epsilon": None, "levels": ["0"]},
        {"policy": "heldp-weighted-b", "epsilon": None, "levels": [True]},
    ],
)
def test_settings_with_which_nothing_works_are_refused(refusing: TestClient, settings: dict[str, Any]) -> None:
    asked = {"name": "odd", "arms": ["a", "b"], "policy": "ldp-ucb-b", "epsilon": "1", **settings}
    answer = refusing.post("/v1/experiments", content=json.dumps(asked), headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422), answer.text
    assert answer.headers["content-type"] == "application/problem+json"


def test_one_visitor_does_not_use_up_the_rate_of_all_who_share_a_key(serve: Open, tmp_path: Path) -> None:
    client = serve(f"sqlite:///{tmp_path}/test.db", rate_limit=0.5)
    create(client)
    with_key = {"authorization": f"Bearer {make_key(client, 'decide')}"}
    path = "/v1/experiments/shop/decisions"
    asked = TestClient(client.app, base_url="http://test", client=("198.51.100.1", 1))
    codes = {asked.post(path, headers=with_key).status_code for _ in range(5)}
    assert codes == {200, 429}
    other = TestClient(client.app, base_url="http://test", client=("203.0.113.9", 1))
    assert other.post(path, headers=with_key).status_code == 200


def test_looking_whether_it_is_ready_takes_no_idempotency_key(client: TestClient) -> None:
    assert client.get("/readyz").status_code == 200
    asked = {"name": "shop", "arms": ["a", "b"], "policy": "ldp-ucb-b", "epsilon": "1"}
    assert client.post("/v1/experiments", json=asked, headers={"idempotency-key": "probe"}).status_code == 201


HERE = ("127.0.0.1", 50_000)  # the address of a client on this machine


@pytest.mark.parametrize("client", [("192.0.2.7", 50_000), ("2001:db8::7", 50_000), ("", 0), None])
def test_without_a_key_a_client_of_another_machine_is_refused_whatever_host_it_names(
    tmp_path: Path, client: Any
) -> None:
    """Through a proxy that is believed, the address is that of the proxy's client."""
    given: dict[str, Any] = {"keys": tmp_path / "keys", "tally": f"sqlite:///{tmp_path}/tally"}
    service = Service(ServerSettings.read(store=f"sqlite:///{tmp_path}/db", **given))
    with TestClient(App(service, served=True), base_url="http://localhost:8000", client=client) as there:
        assert there.get("/v1/experiments").status_code == 403
        assert there.get("/livez").status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "bandits.example.org"])
def test_a_server_that_others_can_reach_lets_nobody_in_without_a_key(tmp_path: Path, host: str) -> None:
    """Also where there is none, as after the restore of a copy: a worker that is replaced makes no check of its own."""
    given: dict[str, Any] = {"keys": tmp_path / "keys", "tally": f"sqlite:///{tmp_path}/tally", "host": host}
    service = Service(ServerSettings.read(store=f"sqlite:///{tmp_path}/db", **given))
    with TestClient(App(service, served=True), base_url="http://localhost:8000", client=HERE) as here:
        refused = here.get("/v1/experiments")
        assert refused.status_code == 401
        assert "the database has none" in refused.json()["detail"]
        key = make_key(here, "read")
        assert here.get("/v1/experiments", headers={"authorization": f"Bearer {key}"}).status_code == 200


def test_a_copy_without_keys_does_not_open_a_server_that_had_one(serve: Open, store: str) -> None:
    """Not even a process that starts after the restore, and has never seen a key."""
    first = serve(store)
    make_key(first, "admin")
    with served(first).store.engine.begin() as connection:
        connection.execute(sa.delete(api_keys))
    first.__exit__(None, None, None)
    again = serve(store)
    assert again.get("/v1/experiments").status_code == 401
    key = make_key(again, "read")
    assert again.get("/v1/experiments", headers={"authorization": f"Bearer {key}"}).status_code == 200


def test_without_a_key_only_this_machine_and_its_own_pages_are_served(tmp_path: Path) -> None:
    service = Service(
        ServerSettings.read(
            store=f"sqlite:///{tmp_path}/db", keys=tmp_path / "keys", tally=f"sqlite:///{tmp_path}/tally",
            allow_origins=["https://shop.example.org"],
        )
    )  # fmt: skip
    path = "/v1/experiments/shop/decisions"
    with TestClient(App(service, served=True), base_url="http://localhost:8000", client=HERE) as here:
        create(here)
        assert here.post(path).status_code == 200
        assert here.post(path, headers={"origin": "http://localhost:8000"}).status_code == 200
        assert here.post(path, headers={"origin": "https://shop.example.org"}).status_code == 200
        for headers in ({"origin": "https://evil.example"}, {"origin": "null"}, {"host": "evil.example"}):
            assert here.post(path, headers=headers).status_code == 403
            assert here.post("/v1/experiments/shop:stop", headers=headers).status_code == 403
        assert here.get("/livez", headers={"host": "evil.example"}).status_code == 200
        key = make_key(here, "admin")
        behind_a_proxy = {"host": "bandits.example.org", "authorization": f"Bearer {key}"}
        assert here.post(path, headers=behind_a_proxy).status_code == 200


def test_an_allowed_page_may_decide_and_no_more(tmp_path: Path) -> None:
    given: dict[str, Any] = {"keys": tmp_path / "keys", "tally": f"sqlite:///{tmp_path}/tally"}
    shop = "https://shop.example.org"
    service = Service(ServerSettings.read(store=f"sqlite:///{tmp_path}/db", allow_origins=[shop], **given))
    with TestClient(App(service, served=True), base_url="http://localhost:8000", client=HERE) as here:
        create(here)
        assert here.post("/v1/experiments/shop/decisions", headers={"origin": shop}).status_code == 200
        assert here.post("/v1/experiments/shop:stop", headers={"origin": shop}).status_code == 403
        assert read(here, "summary")["decisions"] == 1


@pytest.mark.parametrize("policy", ["dp-ucb-int", "private-ucb", "dp-se"])
def test_no_more_rewards_are_used_than_the_rounds_that_a_policy_is_made_for(client: TestClient, policy: str) -> None:
    """The guarantee of some policies holds for their horizon alone, and their memory is as large."""
    create(client, policy=policy, horizon=10, options={"schedule": "exact"} if policy == "dp-ucb-int" else {})
    create(client, "other")
    leased = decide(client, count=40)["decisions"] + decide(client, count=1000)["decisions"]
    told = client.post("/v1/rewards", json=[{"token": one["token"], "reward": 1} for one in leased if one.get("token")])
    assert told.status_code == 200
    assert {one["status"] for one in told.json()} <= {"accepted", "late"}
    assert folded(client)["responses"]["used"] <= 10
    assert respond(client, decide(client, "other")["token"], 1) == "accepted"
    assert folded(client, "other")["responses"]["used"] == 1  # the others go on


def test_an_experiment_that_cannot_be_folded_does_not_hold_up_the_others(
    serve: Open, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    fold = folding._Fold.do

    def failing(self: Any, *given: Any) -> Any:
        if self.run.experiment.name == "poison":
            raise IndexError("an error of ours")
        return fold(self, *given)

    monkeypatch.setattr(folding._Fold, "do", failing)
    store = postgres.database()
    client = serve(store)
    create(client, "poison", policy="adap-ucb")
    create(client, policy="adap-ucb")
    assert reward(client, decide(client, "poison")["token"], 1) == "accepted"
    assert reward(client, decide(client)["token"], 1) == "accepted"
    assert folded(client)["responses"]["used"] == 1
    assert sealed_rewards(store) == 1


@pytest.mark.parametrize("fixed", [True, False])
def test_what_cannot_be_folded_because_of_an_error_of_ours_waits_until_the_experiment_is_put_away(
    serve: Open, postgres: Postgres, monkeypatch: pytest.MonkeyPatch, fixed: bool
) -> None:
    failed: list[int] = []

    def failing(self: Any, *given: Any) -> Any:
        failed.append(self.run.experiment.id)
        raise IndexError("an error of ours")

    monkeypatch.setattr(folding, "RETRY", 0.05)
    monkeypatch.setattr(folding, "PATIENCE", 0.5)
    store = postgres.database()
    client = serve(store)
    create(client, policy="adap-ucb")
    token = decide(client)["token"]
    folded(client)
    with monkeypatch.context() as patch:
        patch.setattr(folding._Fold, "do", failing)
        assert reward(client, token, 1) == "accepted"
        assert client.post("/v1/experiments/shop:stop").status_code == 200
        time.sleep(1)  # longer than its patience
        wait_for(lambda: len(failed) > 2)
        assert sealed_rewards(store) == 1
        if not fixed:
            assert client.post("/v1/experiments/shop:archive").status_code == 200
            wait_for(lambda: sealed_rewards(store) == 0)
    wait_for(lambda: sealed_rewards(store) == 0)
    found = folded(client)["responses"]
    assert (found["used"], found["late"]) == (1, 0) if fixed else found["used"] == 0


def test_revoked_keys_end_though_the_file_of_secrets_is_away(embedded: TestClient, tmp_path: Path) -> None:
    key = make_key(embedded, "admin")
    with served(embedded).store.engine.begin() as connection:
        access.revoke(connection, key.split("_")[1])
    (tmp_path / "keys").rename(tmp_path / "away")
    with pytest.raises((InputError, FileNotFoundError)):
        served(embedded)._read_elsewhere()
    assert embedded.get("/v1/experiments", headers={"authorization": f"Bearer {key}"}).status_code == 401
    assert not (tmp_path / "keys").exists()


@pytest.mark.usefixtures("by_hand")
def test_a_running_server_does_not_take_over_the_secrets_of_another(embedded: TestClient, tmp_path: Path) -> None:
    create(embedded)
    before = served(embedded).keys
    (tmp_path / "keys").unlink()
    Keyring.open(tmp_path / "keys")
    with pytest.raises(InputError, match="replaced by another"):
        served(embedded)._reread_secrets()
    assert served(embedded).keys is before is served(embedded).books.keys


def test_renewed_keys_are_taken_over_where_the_recent_ones_cannot_be_read(embedded: TestClient, tmp_path: Path) -> None:
    """Token keys are renewed after a leak: nothing else may keep a server from taking them."""
    create(embedded)
    recent = tmp_path / "keys.recent"
    recent.unlink(missing_ok=True)
    recent.mkdir()
    renewed = Keyring.open(tmp_path / "keys").rotated(tmp_path / "keys")
    with pytest.raises(InputError, match=r"keys\.recent must be a file"):
        served(embedded)._read_elsewhere()
    assert served(embedded).keys.age == renewed.age


def test_processes_that_start_at_once_make_one_file_of_secrets(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    for _ in range(20):
        with ThreadPoolExecutor(8) as threads:
            made = list(threads.map(lambda _: Keyring.open(path), range(8)))
        assert all(keys.goes_on(made[0]) for keys in made)
        path.unlink()
    assert list(tmp_path.iterdir()) == []


def test_a_server_starts_with_experiments_that_would_be_refused_today(
    serve: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Experiment, "check_new", lambda self: None)
    store = f"sqlite:///{tmp_path}/test.db"
    client = serve(store)
    create(client, response_window=0.0005)
    create(client, "tiny", epsilon="1/1000000000000")
    client.__exit__(None, None, None)
    monkeypatch.undo()
    assert len(serve(store).get("/v1/experiments").json()["experiments"]) == 2


def test_a_stream_of_events_ends_with_its_key(embedded: TestClient) -> None:
    create(embedded)
    key = make_key(embedded, "read").split("_")[1]
    service = served(embedded)

    async def followed() -> int:
        async def summary(_: str) -> bytes:
            return b"{}"

        pieces = 0
        async for _ in stream(service, Watched(summary), "shop", key):
            pieces += 1
            with service.store.engine.begin() as connection:
                access.revoke(connection, key)
            service._reread_keys()  # as it does every two seconds, also while the stream sleeps
        return pieces

    assert asyncio.run(followed()) == 1


def test_a_damaged_database_is_refused(serve: Open, tmp_path: Path) -> None:
    client = serve(f"sqlite:///{tmp_path}/test.db")
    create(client)
    for _ in range(5):
        decide(client, count=1000)
    client.__exit__(None, None, None)
    file = tmp_path / "test.db"
    content = bytearray(file.read_bytes())
    content[8192:16384] = bytes(8192)
    file.write_bytes(content)
    given: dict[str, Any] = {"keys": tmp_path / "keys", "tally": f"sqlite:///{tmp_path}/tally", "port": 0}
    settings = ServerSettings.read(store=f"sqlite:///{file}", **given)
    for _ in range(2):  # that it was refused does not make it sound
        check(settings)  # as dpbandits serve does first
        again = Service(settings)
        with pytest.raises(InputError, match="store is damaged"):
            again.open()
        again.store.close()


def test_nobody_else_reads_the_files_of_a_server(embedded: TestClient, tmp_path: Path) -> None:
    create(embedded)
    for file in ("test.db", "test.db-wal", "tally", "keys"):
        assert (tmp_path / file).stat().st_mode & 0o077 == 0, file


def test_opening_a_connection_keeps_the_locks_of_the_others(embedded: TestClient, tmp_path: Path) -> None:
    """To close any descriptor of a file ends all locks that the process has on it; SQLite's must not end so."""
    create(embedded)
    store, inode = served(embedded).store, (tmp_path / "test.db").stat().st_ino

    def locked() -> bool:
        """Linux may leave a line out of a long list while others lock and unlock; not so often."""
        locks = [line for _ in range(5) for line in Path("/proc/locks").read_text().splitlines()]
        return any(f":{inode} " in line and f" {os.getpid()} " in line for line in locks)

    with store.engine.connect() as connection:
        connection.exec_driver_sql("select 1 from experiments")
        assert locked()
        with store.opened():
            assert locked()
        assert locked()


def test_check_reads_the_keys(serve: Open, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/test.db"
    client = serve(store)
    create(client)
    client.__exit__(None, None, None)

    def wrong(keys: Path) -> list[str]:
        return [one.text for one in check(ServerSettings.read(store=store, keys=keys, port=0))]

    assert wrong(tmp_path / "keys") == []
    (tmp_path / "garbage").write_text("garbage")
    (tmp_path / "garbage").chmod(0o600)
    assert "must be a key file" in wrong(tmp_path / "garbage")[0]
    Keyring.open(tmp_path / "other")
    assert "the file that this database was written with" in wrong(tmp_path / "other")[0]
    assert "which does not exist: put it back" in wrong(tmp_path / "none")[0]
    assert not (tmp_path / "none").exists()


def test_ready_is_looked_at_once_a_second(embedded: TestClient) -> None:
    before = time.monotonic()
    assert embedded.get("/readyz").status_code == 200
    stored = served(embedded).probe._succeeded
    assert embedded.get("/readyz").status_code == 200
    if time.monotonic() - before < 0.9:
        assert served(embedded).probe._succeeded == stored


def test_one_file_has_one_server_by_whatever_name(embedded: TestClient, tmp_path: Path) -> None:
    create(embedded)
    (tmp_path / "link.db").symlink_to(tmp_path / "test.db")
    other = Service(ServerSettings.read(store=f"sqlite:///{tmp_path}/link.db", keys=tmp_path / "keys", port=0))
    with pytest.raises(InputError, match="is used by another server"):
        other.open()


def test_a_file_with_two_names_is_refused(embedded: TestClient, tmp_path: Path) -> None:
    create(embedded)
    (tmp_path / "link.db").hardlink_to(tmp_path / "test.db")
    given: dict[str, Any] = {"keys": tmp_path / "keys", "tally": f"sqlite:///{tmp_path}/tally", "port": 0}
    other = ServerSettings.read(store=f"sqlite:///{tmp_path}/link.db", **given)
    assert "store must be a file of one name" in check(other)[0].text
    with pytest.raises(InputError, match="hard links"):
        Service(other).open()
    assert decide(embedded)["token"]


@pytest.mark.parametrize(
    "path", ["file:t.db?uri=true", "file:m?mode=memory&cache=shared&uri=true", "t.db?mode=memory&uri=true", "file:t.db"]
)
@pytest.mark.parametrize("setting", ["store", "tally"])
def test_a_database_by_a_uri_of_sqlite_is_refused(tmp_path: Path, setting: str, path: str) -> None:
    given = {"store": f"sqlite:///{tmp_path}/db", "tally": f"sqlite:///{tmp_path}/tally", setting: f"sqlite:///{path}"}
    wrong = check(ServerSettings.read(**given, keys=tmp_path / "keys", port=0))
    assert f"{setting} must be sqlite:///FILE with a plain path" in wrong[0].text


def test_a_state_that_somebody_else_wrote_is_not_overwritten(embedded: TestClient) -> None:
    create(embedded)
    with served(embedded).store.engine.begin() as connection:
        connection.execute(sa.update(states).values(changed=states.c.changed + 1))
    assert embedded.post("/v1/experiments/shop/decisions").status_code == 503


def test_old_keys_of_digests_are_erased_while_the_key_file_is_away(embedded: TestClient, tmp_path: Path) -> None:
    recent = tmp_path / "keys.recent"
    before = recent.read_text()
    (tmp_path / "keys").rename(tmp_path / "away")
    served(embedded).recent._clock = lambda: time.time() + 3 * 3600
    with pytest.raises(FileNotFoundError):
        served(embedded)._read_elsewhere()
    assert json.loads(before)["keys"][0] not in json.loads(recent.read_text())["keys"]


def test_while_the_database_is_away_all_are_asked_to_try_again(serve: Open, postgres: Postgres) -> None:
    store = postgres.database()
    client, name = serve(store), store.rpartition("/")[2]
    create(client)
    token = decide(client)["token"]
    folded(client)
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"alter database {name} allow_connections false")
        connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", (name,))
        asked = [
            client.post("/v1/experiments/shop/decisions"),
            client.post("/v1/experiments/nothing/decisions"),
            client.post("/v1/responses", json={"token": token, "response": 1}),
            client.post("/v1/responses", json={"token": "x", "response": 1}),
            client.get("/v1/experiments"),
            client.get("/v1/overview"),
            client.get("/v1/experiments/shop/summary"),
            client.get("/v1/experiments/shop/export.parquet"),
            client.patch("/v1/experiments/shop", json={"status": "paused"}),
            client.get("/readyz"),
        ]
        connection.execute(f"alter database {name} allow_connections true")
    for answer in asked:
        assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json"), answer.url
        assert "retry-after" in answer.headers
        assert "the database cannot be" in answer.json()["detail"]
    assert respond(client, token, 1) == "accepted"


def test_a_mounted_app_that_could_not_start_starts_later(tmp_path: Path) -> None:
    (tmp_path / "tally").mkdir()  # where a file must be
    made = app(store=f"sqlite:///{tmp_path}/db", keys=tmp_path / "keys", tally=f"sqlite:///{tmp_path}/tally")
    client = TestClient(made, base_url="http://test")  # it sends no lifespan
    for _ in range(2):
        assert client.get("/livez").status_code == 503
    (tmp_path / "tally").rmdir()
    with client:
        create(client)
        assert decide(client)["token"]


def test_an_infinite_index_is_stored_and_read(serve: Open, tmp_path: Path) -> None:
    """With much evidence against an arm, the index of dp-imed is infinite, which JSON does not have."""
    store = f"sqlite:///{tmp_path}/test.db"
    client = serve(store)
    create(client, policy="dp-imed", epsilon="1000", arms=["a", "b"])
    decide(client)
    served(client).find("shop").state.parts["agent"].inner.indices[1] = math.inf
    token = decide(client)["token"]  # the stint is open, so the agent is not asked
    assert read(client, "summary")["decisions"] == 2
    assert len(client.get("/v1/overview").json()["experiments"]) == 1
    client.__exit__(None, None, None)
    again = serve(store)
    assert served(again).find("shop").state.parts["agent"].inner.indices.tolist() == [0.0, math.inf]
    assert reward(again, token, 1) == "accepted"


def test_a_state_in_which_infinity_was_stored_as_null_is_read() -> None:
    state = LiveState(policies.dp_imed(2, epsilon=1.0), 60.0)
    state.parts["agent"].inner.indices[:] = 1.0, math.inf
    record = msgspec.json.decode(msgspec.json.encode(state.freeze()))
    for stored in ([1.0, None], [1.0, "inf"]):
        record["agent"]["inner"]["indices"] = stored
        other = LiveState(policies.dp_imed(2, epsilon=1.0), 60.0)
        other.thaw(record)
        assert other.parts["agent"].inner.indices.tolist() == [1.0, math.inf]


def test_responses_that_come_at_once_are_in_time(client: TestClient) -> None:
    """The time of a decision is cut to milliseconds. The parts of this window begin between them."""
    create(client, response_window=10.0003)
    service = served(client)
    service.books.clock = service.clock = Clock(wall=lambda: 1000 * 10.0003 / PARTS + 1e-6, steady=lambda: 0.0)
    assert [respond(client, decide(client)["token"], 1) for _ in range(3)] == ["accepted"] * 3


@pytest.mark.parametrize("began", [[], [b""], [b'{"count": 2}']])
@pytest.mark.parametrize("path", ["/v1/experiments/shop/decisions", "/v1/responses"])
def test_nothing_is_done_for_a_client_who_leaves_before_the_request_has_come(
    embedded: TestClient, path: str, began: list[bytes]
) -> None:
    create(embedded)
    came = [{"type": "http.request", "body": body, "more_body": True} for body in began]
    messages = iter([*came, {"type": "http.disconnect"}])
    sent: list[Any] = []

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": path, "headers": [(b"host", b"test")], "client": ("test", 1)}
    asyncio.run(App(served(embedded))(scope, receive, send))
    assert sent == []
    assert read(embedded, "summary")["decisions"] == 0


@pytest.mark.parametrize("path", ["/v1/experiments/shop/decisions", "/v1/responses", "/v1/experiments"])
@pytest.mark.parametrize(
    ("length", "large"),
    [(b"0" * 5000 + b"2", False), (b"0" * 5000, False), (b"9" * 5000, True), (b"9" * 19, True), (b"0002000000", True)],
)
def test_a_length_of_many_digits(embedded: TestClient, path: str, length: bytes, large: bool) -> None:
    create(embedded)
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"{}"}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"test"), (b"content-length", length), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b""}
    asyncio.run(App(served(embedded))({**scope, "client": ("test", 1)}, receive, send))
    usual = 200 if path.endswith("decisions") else 422
    assert sent[0]["status"] == (413 if large else usual)


def test_a_revoked_key_ends_while_all_threads_are_busy(embedded: TestClient) -> None:
    with_key = {"authorization": f"Bearer {make_key(embedded, 'read')}"}
    done, portal = threading.Event(), embedded.portal
    assert portal is not None
    busy = [portal.start_task_soon(asyncio.to_thread, done.wait, 300) for _ in range(100)]
    try:
        assert embedded.get("/v1/experiments", headers=with_key).status_code == 200
        with served(embedded).store.engine.begin() as connection:
            access.revoke(connection, with_key["authorization"].split("_")[1])
        wait_for(lambda: embedded.get("/v1/experiments", headers=with_key).status_code != 200)
    finally:
        done.set()
        for one in busy:
            one.result()


def stored_state(store: str, name: str, put: bytes | None = None) -> bytes:
    """The state of an experiment as it is stored; ``put`` takes its place."""
    opened = Database(store)
    with opened.engine.begin() as connection:
        number = connection.execute(sa.select(experiments.c.id).where(experiments.c.name == name)).scalar_one()
        found = connection.execute(sa.select(states.c.state).where(states.c.experiment == number)).scalar_one()
        if put is not None:
            connection.execute(sa.update(states).where(states.c.experiment == number).values(state=put))
    opened.close()
    return bytes(found)


@pytest.mark.parametrize("damage", ["bytes", "memory"])
def test_an_experiment_that_cannot_be_loaded_is_set_aside(
    serve: Open, store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    client = serve(store)
    create(client)
    create(client, "poison")
    tokens = [decide(client, name)["token"] for name in ("shop", "poison", "shop")]
    folded(client, "poison")
    client.__exit__(None, None, None)
    sound = stored_state(store, "poison")
    other = Keyring.open(tmp_path / "keys").seal(b'{"desk":{"out":0.8414}}', b"poison")
    stored_state(store, "poison", put=b"damaged" if damage == "bytes" else other)
    assert not check(ServerSettings.read(store=store, keys=tmp_path / "keys", port=0))
    capsys.readouterr()

    client = serve(store)
    logged = [line for line in capsys.readouterr().out.splitlines() if "cannot load" in line]
    assert len(logged) == 1
    assert "poison" in logged[0]
    assert "8414" not in logged[0]
    assert [one["name"] for one in client.get("/v1/overview").json()["experiments"]] == ["shop"]
    sent = [{"token": token, "response": 1} for token in tokens]
    for answer in (
        client.get("/v1/experiments/poison/summary"),
        client.post("/v1/experiments/poison/decisions"),
        client.post("/v1/experiments/poison:stop"),
        client.post("/v1/responses", json=sent[1]),
        client.post("/v1/responses", json=sent),
    ):
        assert answer.status_code == 503
        assert "poison cannot be loaded" in answer.json()["detail"]
        assert int(answer.headers["retry-after"]) > 0
    again = {"name": "poison", "arms": ["a", "b"], "policy": "ucb1"}
    assert client.post("/v1/experiments", json=again).status_code == 409
    assert respond(client, tokens[0], 1) == "accepted"  # it was not stored with the list
    assert decide(client)["arm"]
    assert folded(client)["responses"]["used"] == 1
    client.__exit__(None, None, None)

    stored_state(store, "poison", put=sound)
    client = serve(store)
    assert respond(client, tokens[1], 1) == "accepted"
    assert folded(client, "poison")["responses"]["used"] == 1


def test_a_policy_that_is_no_longer_allowed_keeps_its_experiment_alone_from_being_served(
    serve: Open, store: str
) -> None:
    own = "dpbandits.policies:ldp_ucb_b"
    client = serve(store, own_policies=[own])
    create(client, "mine", policy=own)
    create(client)
    client.__exit__(None, None, None)
    client = serve(store)
    assert client.post("/v1/experiments/mine/decisions").status_code == 503
    assert respond(client, decide(client)["token"], 1) == "accepted"
    client.__exit__(None, None, None)
    client = serve(store, own_policies=[own])
    assert respond(client, decide(client, "mine")["token"], 1) == "accepted"


def test_an_experiment_that_was_stored_before_an_option_was_renamed_goes_on(serve: Open, store: str) -> None:
    client = serve(store)
    asked: dict[str, Any] = {"policy": "dp-se", "horizon": 5000, "options": {"epoch_factor": 0.01}}
    create(client, **asked)
    token = decide(client)["token"]
    before = client.get("/v1/experiments/shop").json()
    client.__exit__(None, None, None)
    opened = Database(store)
    with opened.engine.begin() as connection:
        settings = connection.execute(sa.select(experiments.c.settings)).scalar_one()
        connection.execute(sa.update(experiments).values(settings=settings.replace("epoch_factor", "scale")))
    opened.close()
    client = serve(store)
    assert client.get("/v1/experiments/shop").json() == before
    assert reward(client, token, 1) == "accepted"
    assert folded(client)["responses"]["used"] == 1
    new = {**asked, "name": "new", "arms": ["a", "b"], "epsilon": "1", "options": {"scale": 0.01}}
    refused = client.post("/v1/experiments", json=new)
    assert (refused.status_code, "scale is not an option of dp-se" in refused.text) == (422, True)


def test_a_state_that_is_damaged_while_the_server_runs_does_not_hide_the_others(embedded: TestClient) -> None:
    create(embedded)
    create(embedded, "poison")
    stored_state(str(served(embedded).store.url), "poison", put=b"damaged")
    assert [one["name"] for one in embedded.get("/v1/overview").json()["experiments"]] == ["shop"]


def test_a_token_of_an_arm_that_a_restored_copy_does_not_have_is_unknown(serve: Open, tmp_path: Path) -> None:
    file = tmp_path / "test.db"
    client = serve(f"sqlite:///{file}")
    create(client, response_window=None)
    decide(client)
    client.__exit__(None, None, None)
    shutil.copy(file, tmp_path / "copy.db")
    client = serve(f"sqlite:///{file}")
    assert client.patch("/v1/experiments/shop", json={"add_arm": "new"}).status_code == 200
    found = [decide(client) for _ in range(50)]
    client.__exit__(None, None, None)
    shutil.copy(tmp_path / "copy.db", file)
    client = serve(f"sqlite:///{file}")
    arms = {one["arm"]: one["token"] for one in found}
    assert respond(client, arms.pop("new"), 1) == "unknown"
    assert respond(client, decide(client)["token"], 1) == "accepted"


def test_an_app_that_is_started_again_notices_revoked_keys(tmp_path: Path) -> None:
    made = app(store=f"sqlite:///{tmp_path}/db", keys=tmp_path / "keys", tally=f"sqlite:///{tmp_path}/tally")
    for _ in range(2):
        with TestClient(made, base_url="http://test") as client:
            assert client.portal is not None
            client.portal.call(served(client)._reread)


def test_a_planner_that_was_closed_starts_nothing() -> None:
    planner = Planner()
    planner.close()
    with pytest.raises(Refusal, match="was ended"):
        planner.ask({})
    assert planner._process is None


def test_an_experiment_that_vanished_does_not_hide_the_others(embedded: TestClient) -> None:
    create(embedded)
    create(embedded, "gone")
    with served(embedded).store.engine.begin() as connection:
        connection.execute(sa.delete(states).where(states.c.experiment == served(embedded).find("gone").experiment.id))
    assert [one["name"] for one in embedded.get("/v1/overview").json()["experiments"]] == ["shop"]


def test_what_prevents_a_start_is_found_before(tmp_path: Path) -> None:
    given: dict[str, Any] = {"store": f"sqlite:///{tmp_path}/db", "keys": tmp_path / "keys", "port": 0}
    assert check(ServerSettings.read(**given, tally=f"sqlite:///{tmp_path}/tally")) == []
    wrong = check(ServerSettings.read(**given, tally=f"sqlite:///{tmp_path}/nowhere/tally"))
    assert wrong == [Remark("problem", f"tally cannot be written: {tmp_path}/nowhere/tally")]
    for store in ("sqlite://", "sqlite:///:memory:"):
        with pytest.raises(InputError, match="store must be a file"):
            ServerSettings.read(store=store)
