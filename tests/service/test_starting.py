"""What prevents a start is said in one line, by ``serve --check`` as by ``serve``, and nothing is made meanwhile."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from calls import create
from postgres import Postgres
from starlette.testclient import TestClient

from dpbandits.errors import InputError
from dpbandits.service import access
from dpbandits.service.addresses import shown_address
from dpbandits.service.service import Service
from dpbandits.service.serving import check
from dpbandits.service.settings import ServerSettings
from dpbandits.service.store import Database

Open = Callable[..., TestClient]


@pytest.fixture
def used(serve: Open, tmp_path: Path) -> dict[str, Any]:
    """The settings of a server that has stopped, and left an experiment."""
    client = serve(f"sqlite:///{tmp_path}/test.db")
    create(client)
    client.__exit__(None, None, None)
    found = {
        "store": f"sqlite:///{tmp_path}/test.db",
        "keys": tmp_path / "keys",
        "tally": f"sqlite:///{tmp_path}/tally",
    }
    return {**found, "port": 0}


def refused(settings: dict[str, Any], said: str) -> None:
    """Both the check and the start say so."""
    read = ServerSettings.read(**settings)
    assert said in check(read)[0].text
    service, before = Service(read), len(os.listdir("/proc/self/fd"))
    with pytest.raises(InputError) as error:
        service.open()
    assert said in str(error.value)
    assert len(os.listdir("/proc/self/fd")) == before  # nothing is left open


def test_a_folder_that_is_not_there(used: dict[str, Any], tmp_path: Path) -> None:
    refused({**used, "store": f"sqlite:///{tmp_path}/none/test.db"}, "store cannot be ")
    refused({**used, "store": f"sqlite:///{tmp_path}/new.db", "keys": tmp_path / "none/keys"}, "keys cannot be written")


@pytest.mark.usefixtures("by_hand")  # a look of the other server would open files, too
def test_a_file_that_another_server_uses(used: dict[str, Any], serve: Open) -> None:
    serve(used["store"])
    refused(used, "store is used by another server")


@pytest.mark.parametrize(("file", "said"), [("test.db", "store cannot be used"), ("tally", "tally cannot be used")])
def test_a_file_that_another_program_has_locked(used: dict[str, Any], tmp_path: Path, file: str, said: str) -> None:
    other = sqlite3.connect(tmp_path / file, isolation_level=None)
    try:
        other.execute("begin immediate")
        assert said in check(ServerSettings.read(**used))[0].text
    finally:
        other.close()


def test_a_store_that_may_not_be_written(used: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("test.db") and allowed(path, mode))
    refused(used, "store cannot be written")


def test_no_password_of_an_address_is_shown(tmp_path: Path) -> None:
    """Neither before the host nor among the parameters."""
    for address in ("postgresql://ann:hunter2@127.0.0.1:1/db", "postgresql://127.0.0.1:1/db?user=ann&password=hunter2"):
        found = check(ServerSettings.read(store=address, keys=tmp_path / "keys", port=0))
        assert "store cannot be opened: postgresql" in found[0].text
        assert "hunter2" not in str(found)
        assert "hunter2" not in shown_address(address)
    assert shown_address("postgresql://ann@db/bandits?sslmode=require") == "postgresql://ann@db/bandits"


def test_lost_keys_are_not_made_anew(used: dict[str, Any]) -> None:
    used["keys"].unlink()
    refused(used, "keys must be the file that this database was written with")
    assert not used["keys"].exists()


def test_tables_of_a_later_version(used: dict[str, Any], tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "test.db") as database:
        database.execute("update alembic_version set version_num = '9999'")
    database.close()
    refused(used, "store was written by a later version of dpbandits: its tables are at 9999")


def test_a_clean_stop_is_remembered_after_a_check(used: dict[str, Any], tmp_path: Path) -> None:
    before = (tmp_path / "test.db.lock").read_bytes()
    assert before.startswith(b"clean")
    assert check(ServerSettings.read(**used)) == []
    assert (tmp_path / "test.db.lock").read_bytes() == before


@pytest.mark.parametrize("name", ["ALLOW_ORIGINS", "OWN_POLICIES"])
def test_a_variable_that_must_be_a_list(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"DPBANDITS_{name}", "https://a.b")
    with pytest.raises(InputError, match=f"DPBANDITS_{name} must be a list such as .* got 'https://a.b'"):
        ServerSettings.read()


def test_a_mistyped_variable_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPBANDITS_STOER", "sqlite:///shop.db")
    monkeypatch.setenv("DPBANDITS_CACHE", "elsewhere")  # somebody else's
    (note,) = check(ServerSettings.read(port=0))
    assert note.level == "note"
    assert note.text.startswith("DPBANDITS_STOER")
    assert note.text.endswith("did you mean DPBANDITS_STORE?")


@pytest.mark.parametrize("given", [{"tally": "sqlite://"}, {"synchronous": "off"}])
def test_a_running_central_experiment_whose_draws_might_be_lost(
    serve: Open, used: dict[str, Any], given: dict[str, Any]
) -> None:
    client = serve(used["store"])
    create(client, "central", policy="adap-ucb")
    client.__exit__(None, None, None)
    refused({**used, **given}, "store must keep what it is given, for central")


@pytest.mark.parametrize("name", ["test.db", "tally", "keys", "keys.recent"])
def test_a_folder_in_the_place_of_a_file(used: dict[str, Any], tmp_path: Path, name: str) -> None:
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    refused(used, "must be a file, got")


@pytest.mark.parametrize("name", ["keys", "keys.recent", "test.db.lock"])
def test_a_tally_that_is_another_file_of_a_new_server(tmp_path: Path, name: str) -> None:
    given = {"store": f"sqlite:///{tmp_path}/test.db", "keys": tmp_path / "keys", "port": 0}
    refused({**given, "tally": f"sqlite:///{tmp_path}/{name}"}, "tally must be a file of its own")


@pytest.mark.parametrize(
    "change",
    [
        "drop table dpbandits_draws; create table dpbandits_draws (x)",
        "drop table dpbandits_draws; create table dpbandits_draws (experiment, draws)",
        "drop table dpbandits_draws; create view dpbandits_draws as select 'a' as experiment, 1 as draws",
        "insert into dpbandits_draws values ('shop', 'many')",
    ],
)
def test_a_damaged_tally(used: dict[str, Any], tmp_path: Path, change: str) -> None:
    database = sqlite3.connect(tmp_path / "tally")
    database.executescript(change)
    database.close()
    refused(used, "tally ")


@pytest.mark.parametrize("created", ['"x"', "null", "NaN", "1e400", "9" * 400, None])
def test_damaged_keys(used: dict[str, Any], created: str | None) -> None:
    record = json.loads(used["keys"].read_text())
    if created is None:
        del record["tokens"][-1]["created"]
    else:
        record["tokens"][-1]["created"] = "here"
    used["keys"].write_text(json.dumps(record).replace('"here"', created or ""))
    refused(used, "keys must be a key file of dpbandits serve")
    used["keys"].write_text(json.dumps({**record, "tokens": []}))
    refused(used, "keys must be a key file of dpbandits serve")


@pytest.mark.parametrize("setting", ["store", "tally"])
@pytest.mark.parametrize("wrong", ["postgresql//u:sekret@h/db", "postgresql://u:sekret@h:port/db", "://u:sekret@h"])
def test_an_address_that_cannot_be_read_is_not_repeated(used: dict[str, Any], setting: str, wrong: str) -> None:
    (found,) = check(ServerSettings.read(**{**used, setting: wrong}))
    assert f"{setting} must be sqlite:///FILE" in found.text
    assert "sekret" not in found.text


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ann:x@hunter2@127.0.0.1:1/db",  # as if the host were hunter2@127.0.0.1
        "mysql://ann:x@hunter2@127.0.0.1/db",
        "postgresql://ann%3Ahunter2@127.0.0.1:1/db",
        "postgresql://127.0.0.1:1/db&password=hunter2",
        "postgresql://127.0.0.1:1/db;password=hunter2",
        "postgresql://ann:hunter2%00@127.0.0.1:1/db",
        "sqlite://ann:hunter2@/test.db",
        "sqlite+pysqlcipher://:hunter2@/test.db",
    ],
)
@pytest.mark.parametrize("name", ["store", "tally"])
def test_a_password_in_an_odd_place_is_not_shown(tmp_path: Path, name: str, address: str) -> None:
    given: dict[str, Any] = {"store": f"sqlite:///{tmp_path}/test.db", "keys": tmp_path / "keys", "port": 0}
    (found,) = check(ServerSettings.read(**{**given, name: address}))
    assert found.text.startswith(f"{name} ")
    assert "hunter2" not in found.text
    assert "\n" not in found.text


def test_a_password_that_a_database_repeats_is_not_shown(postgres: Postgres, tmp_path: Path) -> None:
    store = f"{postgres.url}&password=hunter2"
    (found,) = check(ServerSettings.read(store=store, keys=tmp_path / "keys", port=0))
    assert found.text.endswith('database "***" does not exist')


@pytest.mark.parametrize("written", ['store = ["{}"]', '[store]\nurl = "{}"', 'tally = ["{}"]'])
def test_an_address_that_is_no_text_is_not_shown(tmp_path: Path, written: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(written.format("postgresql://ann:hunter2@db/bandits"))
    with pytest.raises(InputError, match=r"^(store|tally|host|keys) must be a valid string, got a (list|dict)$"):
        ServerSettings.read(file)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('keys = ""', "keys must be the name of a file"),
        ('keys = "a\\u0000b"', "keys must be a text without null characters"),
        ('host = "a\\u0000b"', "host must be a text without null characters"),
        ('store = "sqlite:///a\\u0000b"', "store must be a text without null characters"),
        (f"port = {'[' * 5000}", "config must be a TOML file"),
    ],
)
def test_settings_that_are_no_names_or_too_deep(tmp_path: Path, written: str, said: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(written)
    with pytest.raises(InputError, match=said):
        ServerSettings.read(file)


@pytest.mark.parametrize("name", ["test.db", "tally", "keys", "keys.recent", "test.db.lock"])
def test_a_link_to_itself(used: dict[str, Any], tmp_path: Path, name: str) -> None:
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to(tmp_path / name)
    said = "is a link: delete the link" if name == "test.db.lock" else "nowhere"
    (found,) = check(ServerSettings.read(**used))
    assert said in found.text
    with pytest.raises(InputError, match=said):
        Service(ServerSettings.read(**used)).open()


def test_a_pipe_in_the_place_of_the_lock(used: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "test.db.lock").unlink()
    os.mkfifo(tmp_path / "test.db.lock")
    refused(used, "store must be a file, got")


def test_a_name_that_is_too_long(used: dict[str, Any], tmp_path: Path) -> None:
    (found,) = check(ServerSettings.read(**{**used, "keys": tmp_path / ("k" * 300)}))
    assert found.text.endswith("File name too long")


@pytest.mark.parametrize("name", ["keys", "keys.recent"])
@pytest.mark.parametrize("kind", ["pipe", "link", "closed"])
def test_a_draft_that_was_left_behind(used: dict[str, Any], tmp_path: Path, name: str, kind: str) -> None:
    """Neither a pipe, for which a start would wait, nor a link to another file, nor one that may not be written."""
    held = json.loads((tmp_path / name).read_text())
    if name == "keys":
        held["tokens"][-1]["created"] -= 40 * 86_400
    else:
        held["keys"][-1]["made"] -= 4000
    (tmp_path / name).write_text(json.dumps(held))
    draft = tmp_path / f"{name}.new"
    if kind == "pipe":
        os.mkfifo(draft)
    elif kind == "link":
        draft.symlink_to(tmp_path / "other")
    else:
        draft.write_text("")
        draft.chmod(0)
    service = Service(ServerSettings.read(**used))
    service.open()
    service.close()
    assert not draft.exists()
    assert not (tmp_path / "other").exists()
    assert (tmp_path / name).is_file()
    assert json.loads((tmp_path / name).read_text()) != held


def test_a_database_without_a_valid_key_where_one_is_needed(used: dict[str, Any], serve: Open) -> None:
    """All keys were revoked; or a copy from before the first one was restored, and the file of secrets remembers it."""
    assert check(ServerSettings.read(**used)) == []
    store = Database(used["store"])
    with store.engine.begin() as connection:
        text = access.create(connection, "ops", "admin")
    assert check(ServerSettings.read(**used)) == []
    client = serve(used["store"])
    client.__exit__(None, None, None)
    with store.engine.begin() as connection:
        access.revoke(connection, text.split("_")[1])
    (note,) = check(ServerSettings.read(**used))
    assert note.level == "note"
    assert "answered with 401" in note.text
    with store.engine.begin() as connection:
        connection.exec_driver_sql("delete from api_keys")
    store.close()
    assert check(ServerSettings.read(**used)) == [note]
    assert serve(used["store"]).get("/v1/experiments").status_code == 401
