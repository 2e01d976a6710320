"""Starting, stopping, keys, limits, lost and full databases, restored backups, clocks, and what must not be written."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from calls import create, decide, folded, read, respond, reward, served, wait_for
from fastapi import FastAPI
from postgres import Postgres
from servers import STARTING, Server, Workers, Zygote
from starlette.testclient import TestClient

from dpbandits.errors import InputError
from dpbandits.numerics import on_grid
from dpbandits.service import app
from dpbandits.service.books import Ask
from dpbandits.service.clock import Clock
from dpbandits.service.recent import Recent
from dpbandits.service.service import Service
from dpbandits.service.serving import traced
from dpbandits.service.settings import ServerSettings
from dpbandits.service.store import Database
from dpbandits.service.tables import METADATA, states

Command = Callable[..., tuple[int, str, str]]
Open = Callable[..., TestClient]


def test_flags_go_before_the_environment_and_that_before_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "serve.toml"
    file.write_text('port = 1\nhost = "::1"\nlog_format = "json"\n')
    monkeypatch.setenv("DPBANDITS_PORT", "2")
    monkeypatch.setenv("DPBANDITS_HOST", "127.0.0.2")
    found = ServerSettings.read(file, port=3)
    assert (found.port, found.host, found.log_format) == (3, "127.0.0.2", "json")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--port", "x"], "port"),
        (["--store", "mysql://x"], "store must be sqlite:///FILE or postgresql://"),
        (["--store", "postgresql://test@127.0.0.1:1/x"], "store cannot be opened"),
        (["--workers", "2"], "workers must be 1 with SQLite"),
        (["--host", "0.0.0.0"], "dpbandits key create"),
        (["--config", "none.toml"], "config cannot be read"),
    ],
)
def test_check_says_what_is_wrong(
    dpbandits: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = dpbandits("serve", "--check", "--port", "0", *words)
    assert code == 2
    assert said in out + err
    assert list(tmp_path.iterdir()) == []  # nothing is made

    code, out, _ = dpbandits("serve", "--check", "--json", "--port", "0", *words)
    shown = json.loads(out)
    assert (code, shown["ok"], shown["notes"]) == (2, False, [])
    assert said in shown["problems"][0]


def test_check_as_json(dpbandits: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPBANDITS_STOER", "sqlite:///shop.db")
    code, out, _ = dpbandits("serve", "--check", "--json", "--port", "0")
    shown = json.loads(out)
    assert (code, shown["ok"], shown["problems"]) == (0, True, [])
    assert "did you mean DPBANDITS_STORE?" in shown["notes"][0]
    assert dpbandits("serve", "--check", "--port", "0")[1].startswith(f"note: {shown['notes'][0]}\nready to serve")
    code, out, err = dpbandits("serve", "--json")
    assert (code, out, "together with --check" in err) == (2, "", True)


def test_keys_open_the_door_to_others(dpbandits: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = dpbandits("key", "create", "ops", "--role", "admin", "--json")
    made = json.loads(out)
    assert code == 0
    assert made["key"].startswith(f"dpb_{made['id']}_")
    assert made["key"].split("_", 2)[2] not in Path("dpbandits.db").read_bytes().decode("latin-1")
    code, out, _ = dpbandits("serve", "--check", "--host", "0.0.0.0", "--port", "0")
    assert code == 0
    assert "ready to serve" in out
    assert json.loads(dpbandits("key", "revoke", made["id"], "--json")[1]) == {"revoked": made["id"]}
    assert dpbandits("key", "revoke", made["id"])[0] == 2
    assert json.loads(dpbandits("key", "list", "--json")[1])[0]["revoked"]
    assert dpbandits("serve", "--check", "--host", "0.0.0.0", "--port", "0")[0] == 2
    assert "did you mean admin" in dpbandits("key", "create", "x", "--role", "admn")[2]


def test_roles(dpbandits: Command, serve: Open, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/test.db"
    keys = {}
    for role in ("admin", "decide", "read"):
        keys[role] = json.loads(dpbandits("key", "create", role, "--role", role, "--store", store, "--json")[1])
    client = serve(store)

    def code(role: str | None, method: str, path: str, body: Any = None) -> int:
        headers = {"authorization": f"Bearer {keys[role]['key']}"} if role else {}
        return int(client.request(method, path, json=body, headers=headers).status_code)

    asked = {"name": "shop", "arms": ["a", "b"], "policy": "ucb1"}
    assert code(None, "POST", "/v1/experiments", asked) == 401
    assert client.get("/v1/experiments", headers={"authorization": "Bearer dpb_x"}).status_code == 401
    assert code("decide", "POST", "/v1/experiments", asked) == 403
    assert code("read", "POST", "/v1/experiments", asked) == 403
    assert code("admin", "POST", "/v1/experiments", asked) == 201
    assert code("decide", "POST", "/v1/experiments/shop/decisions") == 200
    assert code("read", "POST", "/v1/experiments/shop/decisions") == 403
    assert code("decide", "GET", "/v1/experiments/shop/summary") == 403
    assert code("read", "GET", "/v1/experiments/shop/summary") == 200
    assert code(None, "GET", "/metrics") == 401
    assert code(None, "GET", "/livez") == 200
    entries = client.get(
        "/v1/experiments/shop/audit-log", headers={"authorization": f"Bearer {keys['read']['key']}"}
    ).json()["entries"]
    assert entries[0]["who"] == f"admin ({keys['admin']['id']})"
    dpbandits("key", "revoke", keys["read"]["id"], "--store", store)
    wait_for(lambda: code("read", "GET", "/v1/experiments/shop/summary") == 401)


def test_limits_and_headers(serve: Open, tmp_path: Path) -> None:
    client = serve(f"sqlite:///{tmp_path}/test.db", max_body=2000, rate_limit=5)
    create(client)
    for path in ("/v1/experiments/shop/decisions", "/v1/responses", "/v1/experiments"):
        answer = client.post(path, content=b'{"user": "' + b"x" * 3000 + b'"}')
        assert answer.status_code == 413
        assert answer.json()["detail"] == "a request may have at most 2000 bytes"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert client.get("/v1/experiments", headers={"x-request-id": "mine-7"}).headers["x-request-id"] == "mine-7"
    codes = {client.post("/v1/experiments/shop/decisions").status_code for _ in range(200)}
    assert codes == {200, 429}
    assert client.get("/livez").status_code == 200


def test_a_second_server_is_refused(embedded: TestClient, tmp_path: Path) -> None:
    given: dict[str, Any] = {"keys": tmp_path / "keys", "tally": f"sqlite:///{tmp_path}/tally"}
    second = Service(ServerSettings.read(store=f"sqlite:///{tmp_path}/test.db", **given))
    with pytest.raises(InputError, match="is used by another server"):
        second.open()
    second.store.close()
    assert embedded.get("/readyz").status_code == 200


def test_central_experiments_need_a_store_that_keeps_what_it_is_given(
    serve: Open, tmp_path: Path, postgres: Postgres
) -> None:
    database = postgres.database()
    name = database.rpartition("/")[2]
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"alter database {name} set synchronous_commit = off")
    lax = serve(f"sqlite:///{tmp_path}/lax.db", synchronous="normal")
    for client, said in ((lax, "synchronous is normal"), (serve(database), "synchronous_commit is off")):
        create(client)
        asked = {"name": "central", "arms": ["a", "b"], "policy": "adap-ucb", "epsilon": "1"}
        refused = client.post("/v1/experiments", json=asked)
        assert refused.status_code == 422
        assert said in refused.json()["detail"]


def test_a_store_with_a_central_experiment_is_not_opened_carelessly(serve: Open, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/test.db"
    client = serve(store)
    create(client, policy="adap-ucb")
    client.__exit__(None, None, None)
    given: dict[str, Any] = {"keys": tmp_path / "keys", "tally": f"sqlite:///{tmp_path}/tally"}
    careless = Service(ServerSettings.read(store=store, synchronous="off", **given))
    with pytest.raises(InputError, match="must keep what it is given, for shop"):
        careless.open()
    careless.store.close()


def test_an_experiment_that_fails_does_not_stop_others(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    create(client, "bad")
    create(client, "good")
    service = served(client)
    bad, good = (service.names[name] for name in ("bad", "good"))
    monkeypatch.setattr(bad.state, "copy", lambda: 1 / 0)
    monkeypatch.setattr(bad.state, "decide", lambda *_: 1 / 0)
    asked = [Ask(run.experiment.id, None, b"", 0, 0) for run in (bad, good, bad)]
    answers = service.books.commit(asked)  # type: ignore[arg-type]
    assert [type(answer) for answer in answers] == [ZeroDivisionError, bytes, ZeroDivisionError]
    assert json.loads(answers[1])["arm"] == "red"


def test_tables_are_what_the_migrations_make(store: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    opened = Database(store)
    opened.file.lock()
    opened.migrate()
    opened.migrate()
    with opened.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
    opened.close()


def test_a_restart_reads_releases_back(serve: Open, store: str) -> None:
    client = serve(store)
    create(client, policy="adap-ucb")
    for _ in range(12):
        assert reward(client, decide(client)["token"], 1) == "accepted"
        folded(client)
    before = read(client, "ledger")["entries"]
    summary = folded(client)
    open_token = decide(client)["token"]
    client.__exit__(None, None, None)
    again = serve(store)
    assert read(again, "ledger")["entries"] == before
    assert folded(again)["arms"][0]["estimate"] == summary["arms"][0]["estimate"]
    assert reward(again, open_token, 1) == "accepted"


@pytest.mark.parametrize("policy", ["adap-ucb", "dp-ucb-bound", "ucb1"])
def test_a_contradiction_is_recognised_after_a_restart(serve: Open, store: str, policy: str) -> None:
    """Also when the stint of the reward was released long ago."""
    first = serve(store)
    create(first, policy=policy)
    token = decide(first)["token"]
    assert reward(first, token, 1) == "accepted"
    folded(first)
    first.__exit__(None, None, None)
    second = serve(store)
    assert reward(second, token, 1) == "duplicate"
    refused = second.post("/v1/rewards", json={"token": token, "reward": 0})
    assert (refused.status_code, refused.json()["status"]) == (409, "conflict")
    found = folded(second)["responses"]
    assert (found["used"], found["duplicate"], found["refused"]) == (1, 1, 1)


@pytest.mark.parametrize("back", [0.0, 600.0, 86_400.0])
def test_the_key_of_a_digest_is_erased_also_where_the_clock_is_set_back(tmp_path: Path, back: float) -> None:
    """A machine that sleeps is the other case: then only the clock on the wall goes on."""
    wall, steady = [1e9], [0.0]
    recent = Recent(tmp_path / "recent", lambda: wall[0], lambda: steady[0])
    (first,) = json.loads((tmp_path / "recent").read_text())["keys"]
    for hours in (0.5, 0.9, 1.1, 1.9, 2.1):
        if hours == 0.9:
            wall[0] -= back
        wall[0] += 3600 * hours - steady[0]
        steady[0] = 3600 * hours
        recent.refresh()
        kept = json.loads((tmp_path / "recent").read_text())["keys"]
        assert hours < 1 or kept[-1] != first  # no digest is made with it after an hour
        assert hours < 2 or first not in kept


@pytest.mark.parametrize("made", ['"x"', "null", "NaN", "1e400", "[]", "9" * 400, "1e300"])
@pytest.mark.parametrize("secret", ["zz", "00", "00" * 32, 5])
def test_damaged_keys_of_digests_are_replaced(tmp_path: Path, made: str, secret: object) -> None:
    key = f'{{"number": "00000000", "secret": {json.dumps(secret)}, "made": {made}}}'
    for text in (f'{{"keys": [{key}]}}', f'{{"keys": {key}}}', '{"keys": [1]}', "[" * 100_000, "\xff"):
        (tmp_path / "recent").write_bytes(text.encode("latin-1"))
        recent = Recent(tmp_path / "recent")
        assert recent.contradicts(recent.digest(b"one", 1.0), b"one", 0.0)
        (stored,) = json.loads((tmp_path / "recent").read_text())["keys"]
        assert stored["number"] != "00000000"


def test_the_key_of_a_digest_is_erased(tmp_path: Path) -> None:
    """Two hours later nobody can compare a reward with what is stored, whatever they have."""
    now = [1000.0]
    recent = Recent(tmp_path / "recent", lambda: now[0], lambda: 0.0)
    digest = recent.digest(b"one", 1.0)
    now[0] += 3599
    assert Recent(tmp_path / "recent", lambda: now[0]).contradicts(digest, b"one", 0.0)
    now[0] += 3590
    recent.refresh()
    assert recent.contradicts(digest, b"one", 0.0)
    assert recent.digest(b"one", 1.0) != digest
    secret = json.loads((tmp_path / "recent").read_text())["keys"][0]["secret"]
    now[0] += 20
    recent.refresh()
    assert not recent.contradicts(digest, b"one", 0.0)
    assert secret not in (tmp_path / "recent").read_text()
    assert (tmp_path / "recent").stat().st_mode & 0o077 == 0


def test_a_stream_of_events_does_not_delay_the_end_of_workers(tmp_path: Path, postgres: Postgres) -> None:
    grace = 120  # seconds: less would be over on a busy machine before two workers have ended
    with Workers(tmp_path, postgres.database(), GRACE=grace) as workers:
        asked = {"name": "shop", "arms": ["a", "b"], "policy": "ldp-ucb-b", "epsilon": "1"}
        assert workers.call("POST", "/v1/experiments", asked)[0] == 201
        stream = http.client.HTTPConnection("127.0.0.1", workers.port, timeout=60)
        with contextlib.closing(stream):
            stream.request("GET", "/v1/experiments/shop/events")
            events = stream.getresponse()
            assert events.readline() == b"event: summary\n"
            workers.process.terminate()
            while events.readline():
                pass
            workers.process.wait(grace + 60)
        log = (tmp_path / "workers.log").read_text()
        assert log.count("Finished server process") == 2, log
        assert "graceful shutdown exceeded" not in log, f"uvicorn waited for the stream until its {grace} s were over"


def test_a_worker_that_dies_while_it_is_asked_whether_it_lives_is_replaced_at_once(
    tmp_path: Path, postgres: Postgres
) -> None:
    with Workers(tmp_path, postgres.database(), PATIENCE=STARTING + 60) as workers:
        victim = workers.started[0]
        os.kill(victim, signal.SIGSTOP)
        time.sleep(2)  # it is asked every half second, and does not answer
        os.kill(victim, signal.SIGKILL)
        wait_for(lambda: len(workers.started) == 3, STARTING)  # if it were missed, so much would not be enough


def test_a_restored_backup_is_detected(serve: Open, tmp_path: Path) -> None:
    store, file = f"sqlite:///{tmp_path}/test.db", tmp_path / "test.db"
    client = serve(store)
    create(client, policy="adap-ucb")
    create(client, "local")
    assert reward(client, decide(client)["token"], 1) == "accepted"
    client.__exit__(None, None, None)
    shutil.copy(file, tmp_path / "backup")
    client = serve(store)
    assert read(client, "ledger")["releases"] == 1
    assert decide(client)["arm"]  # a restart alone changes nothing
    assert reward(client, decide(client)["token"], 1) == "accepted"
    assert read(client, "ledger")["releases"] == 2
    client.__exit__(None, None, None)
    shutil.copy(tmp_path / "backup", file)
    client = serve(store)
    refused = client.post("/v1/experiments/shop/decisions")
    assert (refused.status_code, refused.json()["state"]) == (409, "halted")
    last = read(client, "audit-log")["entries"][-1]
    assert last["action"] == "halt"
    assert "old copy" in last["detail"]["reason"]
    assert decide(client, "local")["arm"]  # there the server draws no noise
    assert client.post("/v1/experiments/shop:archive").status_code == 200


def test_a_restored_database_of_postgresql_is_detected(serve: Open, postgres: Postgres) -> None:
    store = postgres.database()
    name = store.rpartition("/")[2]
    client = serve(store)
    create(client, policy="adap-ucb")
    client.__exit__(None, None, None)
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"create database {name}_backup template {name}")
    client = serve(store)
    assert reward(client, decide(client)["token"], 1) == "accepted"
    assert folded(client)["version"] == 1
    client.__exit__(None, None, None)
    client = serve(f"{store}_backup")
    assert client.post("/v1/experiments/shop/decisions").json()["state"] == "halted"


def test_a_lost_key_file_is_noticed(serve: Open, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/test.db"
    client = serve(store)
    create(client)
    client.__exit__(None, None, None)
    other = Service(ServerSettings.read(store=store, keys=tmp_path / "other", tally=f"sqlite:///{tmp_path}/tally"))
    with pytest.raises(InputError, match="keys must be the file that this database was written with"):
        other.open()
    other.store.close()


def test_the_token_key_rotates_and_old_tokens_stay_valid(dpbandits: Command, serve: Open, tmp_path: Path) -> None:
    client = serve(f"sqlite:///{tmp_path}/test.db")
    create(client)
    before = decide(client)["token"]
    said = dpbandits("key", "rotate", "--keys", str(tmp_path / "keys"), "--json")[1]
    assert json.loads(said.splitlines()[-1]) == {"keys": str(tmp_path / "keys")}  # before it is what the server logs
    wait_for(lambda: served(client).keys.newest == 2)
    assert respond(client, before, 1) == respond(client, decide(client)["token"], 1) == "accepted"
    assert (tmp_path / "keys").stat().st_mode & 0o077 == 0


def test_time_goes_on_when_the_clock_is_set_back(serve: Open, tmp_path: Path) -> None:
    """While a server runs it does not look at the wall clock; after a restart it does not go back."""
    wall, steady = [1000.0], [0.0]
    clock = Clock(wall=lambda: wall[0], steady=lambda: steady[0])
    for jump in (1e9, -1e9):
        wall[0] += jump
        steady[0] += 1.0
    assert clock() == 1002.0
    assert Clock(clock(), wall=lambda: wall[0] - 500.0, steady=lambda: steady[0])() == 1002.0
    store = f"sqlite:///{tmp_path}/test.db"
    client = serve(store)
    create(client, response_window=60)
    token = decide(client)["token"]
    client.__exit__(None, None, None)
    future = int((time.time() + 10**7) * 1000)
    opened = Database(store)
    with opened.engine.begin() as connection:
        connection.execute(sa.update(states).values(at=future))
    opened.close()
    client = serve(store)
    assert served(client).clock() * 1000 >= future
    assert respond(client, token, 1) == "late"
    assert respond(client, decide(client)["token"], 1) == "accepted"


def test_a_full_disk(server: Server) -> None:
    """Nothing is acknowledged that is not stored, and it goes on by itself when there is room again."""
    asked = {"name": "shop", "arms": ["a", "b"], "policy": "ldp-ucb-b", "epsilon": "1"}
    assert server.call("POST", "/v1/experiments", asked)[0] == 201
    token = server.call("POST", "/v1/experiments/shop/decisions", {})[1]["token"]
    unlimited = resource.RLIM_INFINITY
    resource.prlimit(server.process, resource.RLIMIT_FSIZE, (100, unlimited))
    assert server.call("POST", "/v1/responses", {"token": token, "response": 1})[0] == 503
    assert server.call("POST", "/v1/experiments/shop/decisions", {})[0] == 503
    assert server.call("GET", "/readyz")[0] == 503
    assert server.call("GET", "/livez")[0] == 200
    resource.prlimit(server.process, resource.RLIMIT_FSIZE, (unlimited, unlimited))
    assert server.call("POST", "/v1/responses", {"token": token, "response": 1})[1] == {"status": "accepted"}
    assert server.call("GET", "/readyz")[0] == 200
    summary = server.call("GET", "/v1/experiments/shop/summary")[1]
    assert summary["decisions"] == summary["responses"]["used"] == 1


def test_a_lost_sqlite_file(server: Server, tmp_path: Path) -> None:
    asked = {"name": "shop", "arms": ["a", "b"], "policy": "adap-ucb", "epsilon": "1"}
    assert server.call("POST", "/v1/experiments", asked)[0] == 201
    os.rename(tmp_path / "test.db", tmp_path / "away")
    assert server.call("POST", "/v1/experiments/shop/decisions", {})[0] == 503
    assert not (tmp_path / "test.db").exists()
    os.rename(tmp_path / "away", tmp_path / "test.db")
    assert server.call("POST", "/v1/experiments/shop/decisions", {})[0] == 200
    shutil.copy(tmp_path / "test.db", tmp_path / "copy")
    os.rename(tmp_path / "copy", tmp_path / "test.db")  # another file in its place: it may be an old copy
    assert server.call("POST", "/v1/experiments/shop/decisions", {})[0] == 503


@pytest.mark.slow
def test_a_lost_postgresql(zygote: Zygote, tmp_path: Path) -> None:
    own = Postgres()
    server = Server(zygote, tmp_path, own.database())
    server.start()
    try:
        asked = {"name": "shop", "arms": ["a", "b"], "policy": "adap-ucb", "epsilon": "1"}
        assert server.call("POST", "/v1/experiments", asked)[0] == 201
        token = server.call("POST", "/v1/experiments/shop/decisions", {})[1]["token"]
        own.stop()
        assert server.call("POST", "/v1/rewards", {"token": token, "reward": 1})[0] == 503
        own.start()
        said: list[str] = []

        def taken() -> bool:
            code, answer = server.call("POST", "/v1/rewards", {"token": token, "reward": 1})
            said.append(answer.get("status"))
            return code == 200

        wait_for(taken)
        assert said[-1] in ("accepted", "duplicate")
        shown: list[Any] = []

        def counted() -> bool:
            shown.append(server.call("GET", "/v1/experiments/shop/summary")[1])
            return shown[-1].get("version") == 1

        wait_for(counted)
        assert shown[-1]["responses"]["used"] == 1
    finally:
        server.stop()
        own.close()


CANARY = 0.7391246057


def waiting(server: Server, name: str) -> int | None:
    """How many answers are not folded yet; None while the server cannot tell."""
    code, shown = server.call("GET", f"/v1/experiments/{name}/summary")
    assert code in (200, 503), shown
    return int(shown["responses"]["waiting"]) if code == 200 else None


def traces(value: float) -> list[bytes]:
    """How a reward might look in a file: as text, as a number, and as what it is on the grid; regular expressions.

    Some hundred numbers are shown, and one of them begins with the first of these by chance with a probability below
    1e-4. A release of one reward is the reward itself if its noise is 0. Noise of scale 1/epsilon is 0 with probability
    epsilon/131072, so the experiments below have an epsilon of 0.001: their six releases make the test fail by chance
    with a probability below 1e-7. The other traces are longer. The number of grid steps is shorter; it is looked for
    apart.
    """
    grid = on_grid(value)
    numbers = [struct.pack(form, number) for form in ("<d", ">d") for number in (value, grid)]
    return [re.escape(trace) for trace in (b"0.7391246", b"739124605", repr(grid).encode(), *numbers)]


def steps(value: float) -> bytes:
    """A reward as its number of grid steps, alone and not as some digits of another number or name."""
    return rb"(?<![\w.-])%d(?![\w-])" % round(on_grid(value) * 65536)


def test_a_reward_that_was_written_would_be_found() -> None:
    grid = on_grid(CANARY)
    written = (f"reward {CANARY}", f"{grid!r}", f'"sum": {round(grid * 65536)}', f"sum={grid * 65536}")
    for text in (*(text.encode() for text in written), struct.pack("<d", CANARY), struct.pack(">d", grid)):
        assert any(re.search(trace, text) for trace in [*traces(CANARY), steps(CANARY)]), text
    assert re.search(steps(CANARY), b"request 9f48439ab, at 1794848439123, mean 0.3484391") is None


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_reward_is_written_nowhere(kind: str, zygote: Zygote, tmp_path: Path) -> None:
    """Not in a log, a metric, an error or a file of the database, of an open stint or of a closed one."""
    own = Postgres() if kind == "postgresql" else None
    store = own.database() if own else f"sqlite:///{tmp_path}/test.db"
    server = Server(zygote, tmp_path, store, access_log=True)
    server.start()
    shown = ""
    try:
        for name, policy in (("stints", "dp-se"), ("counter", "dp-ucb-bound"), ("doubling", "adap-ucb")):
            asked: dict[str, Any] = {"name": name, "arms": ["a", "b"], "policy": policy, "epsilon": "0.001"}
            asked |= {"horizon": 1000} if policy == "dp-se" else {}
            assert server.call("POST", "/v1/experiments", asked)[0] == 201
            for n in range(3):
                token = server.call("POST", f"/v1/experiments/{name}/decisions", {})[1]["token"]
                shown += str(server.call("POST", "/v1/rewards", {"token": token, "reward": CANARY}))
                shown += str(server.call("POST", "/v1/rewards", {"token": token, "reward": CANARY / 2}))
                shown += str(server.call("POST", "/v1/rewards", {"token": token[:-3], "reward": CANARY}))
                shown += str(server.call("POST", "/v1/rewards", {"token": token, "reward": str(CANARY)}))
                shown += str(server.call("POST", "/v1/rewards", [CANARY, n]))
            for what in ("summary", "series", "ledger", "audit-log", "export.csv"):
                shown += str(server.call("GET", f"/v1/experiments/{name}/{what}"))
        shown += str(server.call("GET", "/metrics"))
        if own:
            for name in ("stints", "counter", "doubling"):
                wait_for(lambda name=name: waiting(server, name) == 0)  # type: ignore[misc]
            with psycopg.connect(store, autocommit=True) as connection:
                assert connection.execute("select count(*) from answers where sealed is not null").fetchone() == (0,)
                connection.execute("checkpoint")
    finally:
        server.stop()
        if own:
            own.stop()
    folders = [tmp_path, own.root] if own else [tmp_path]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert server.log in files
    content = {"what was shown": shown.encode()} | {str(path): path.read_bytes() for path in files}
    if own:
        own.close()
    for where, text in content.items():
        readable = [steps(CANARY)] if where in ("what was shown", str(server.log)) else []
        for trace in [*traces(CANARY), *readable]:
            assert re.search(trace, text) is None, f"{trace!r} is in {where}"


def test_requests_are_traced_where_that_is_wanted(tmp_path: Path) -> None:
    """A span tells the route and the status, and nothing of what was sent."""
    pytest.importorskip("opentelemetry.instrumentation.asgi", reason="the extra telemetry is not installed")
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    trace.set_tracer_provider(provider)
    served_app = app(store=f"sqlite:///{tmp_path}/test.db", keys=tmp_path / "keys", tally=f"sqlite:///{tmp_path}/tally")
    with TestClient(traced(served_app), base_url="http://test") as client:
        create(client, policy="adap-ucb")
        assert reward(client, decide(client)["token"], 0.123456789) == "accepted"
    spans = kept.get_finished_spans()
    codes = [span.attributes.get("http.status_code") for span in spans if span.attributes]
    assert {200, 201} <= set(codes), [span.to_json() for span in spans]
    assert "0.123456789" not in "".join(span.to_json() for span in spans)


def test_without_it_nothing_of_it_is_loaded() -> None:
    code = "import sys, dpbandits.service.serving; print('opentelemetry.instrumentation' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "False"


def test_it_can_be_mounted_in_another_app(tmp_path: Path) -> None:
    outer = FastAPI()
    inner = app(store=f"sqlite:///{tmp_path}/test.db", keys=tmp_path / "keys", tally=f"sqlite:///{tmp_path}/tally")
    outer.mount("/bandits", inner)
    with TestClient(outer, base_url="http://test") as client:
        asked = {"name": "shop", "arms": ["a", "b"], "policy": "ldp-ucb-b", "epsilon": "1"}
        assert client.post("/bandits/v1/experiments", json=asked).status_code == 201
        made = client.post("/bandits/v1/experiments/shop/decisions").json()
        sent = {"token": made["token"], "response": 1}
        assert client.post("/bandits/v1/responses", json=sent).json() == {"status": "accepted"}
        assert client.get("/bandits/v1/experiments/shop/summary").json()["decisions"] == 1
        assert client.portal is not None
        client.portal.call(inner.service.stop)


def test_without_the_extra_the_command_says_what_to_install(
    dpbandits: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, _, err = dpbandits("serve")
    assert code == 2
    assert re.search(r"pip install .*\[service\]'", err)
