"""The commands of the service: serve, and key."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any

import click

from dpbandits.cli.shared import app, as_json, print_table
from dpbandits.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from dpbandits.service.settings import ServerSettings

NEEDED = (
    "fastapi", "uvicorn", "sqlalchemy", "alembic", "msgspec", "structlog", "prometheus_client",
    "cryptography", "jinja2",
)  # fmt: skip

store_option = click.option(
    "--store", help="sqlite:///FILE, or postgresql://USER@HOST/NAME.  [default: sqlite:///dpbandits.db]"
)
config_option = click.option("--config", help="A TOML file with settings.")


@app.command()
@click.option("--host", help="[default: 127.0.0.1]")
@click.option("--port", help="[default: 8000]")
@store_option
@click.option("--keys", help="File with the server's secrets, outside the store.  [default: dpbandits.keys]")
@click.option("--tally", help="Where draws are counted, outside the store.  [default: sqlite:///dpbandits.tally]")
@click.option("--workers", help="Processes; more than one needs PostgreSQL.  [default: 1]")
@click.option("--log-format", metavar="json|console", help="[default: console]")
@click.option("--access-log", is_flag=True, default=None, help="Log every request, and not only those that fail.")
@click.option("--telemetry", is_flag=True, default=None, help="Trace requests with OpenTelemetry.")
@click.option("--rate-limit", help="Requests a second, for each key or address.  [default: no limit]")
@click.option("--demo", is_flag=True, default=None, help="Open the demo shop, at /demo.")
@click.option(
    "--allow-origin",
    "allow_origins",
    multiple=True,
    help="An origin whose pages may ask for decisions and send answers.",
)
@config_option
@click.option("--check", is_flag=True, help="Say what is wrong with the settings, and do not serve.")
@as_json
def serve(config: str | None, check: bool, as_json: bool, **flags: Any) -> None:
    """Run the service: experiments over HTTP, nothing lost, no noise drawn twice.

    Every setting can also be given as DPBANDITS_NAME in the environment, or in a TOML file.
    """
    flags["allow_origins"] = list(flags["allow_origins"]) or None
    if check:
        _check(config, flags, as_json=as_json)
        return
    if as_json:
        raise InputError("json", "must be given together with --check: a server answers over HTTP")
    settings = _settings(config, **flags)
    from dpbandits.service import serving

    serving.serve(settings)


def _check(config: str | None, flags: dict[str, Any], *, as_json: bool) -> None:
    """Print what is found. With --json, a setting that cannot be read is one of the problems listed."""
    try:
        settings = _settings(config, **flags)
    except InputError as error:
        if not as_json:
            raise
        click.echo(json.dumps({"ok": False, "problems": [str(error)], "notes": []}))
        sys.exit(2)
    from dpbandits.service import serving
    from dpbandits.service.addresses import shown_address

    found = serving.check(settings)
    problems = [one.text for one in found if one.level == "problem"]
    notes = [one.text for one in found if one.level == "note"]
    if as_json:
        click.echo(json.dumps({"ok": not problems, "problems": problems, "notes": notes}))
    else:
        for line in (*problems, *(f"note: {text}" for text in notes)):
            click.echo(line)
        if not problems:
            click.echo(f"ready to serve on http://{settings.host}:{settings.port} with {shown_address(settings.store)}")
    if problems:
        sys.exit(2)


@app.group()
def key() -> None:
    """Make, list and revoke API keys."""


@key.command("create")
@click.argument("name")
@click.option("--role", default="decide", show_default=True, metavar="admin|decide|read")
@store_option
@config_option
@as_json
def create(name: str, role: str, store: str | None, config: str | None, as_json: bool) -> None:
    """Make a key. It is shown once, and stored as a hash."""
    with _opened(store, config) as connection:
        from dpbandits.service import access

        text = access.create(connection, name, role)
    if as_json:
        click.echo(json.dumps({"key": text, "id": text.split("_")[1], "name": name, "role": role}))
        return
    click.echo(text)
    click.echo("This is the only time that the key is shown. Send it as: Authorization: Bearer KEY", err=True)


@key.command("list")
@store_option
@config_option
@as_json
def list_(store: str | None, config: str | None, as_json: bool) -> None:
    """Show all keys, without their secrets."""
    from datetime import UTC, datetime

    def shown(at: int | None) -> str | None:
        return None if at is None else datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="seconds")

    with _opened(store, config, new=False) as connection:
        from dpbandits.service import access

        rows = [
            {
                "id": one.id,
                "name": one.name,
                "role": one.role,
                "created": shown(one.created),
                "revoked": shown(one.revoked),
            }
            for one in access.keys(connection)
        ]
    if as_json:
        click.echo(json.dumps(rows))
        return
    print_table(["id", "name", "role", "created", "revoked"], [[str(x or "") for x in row.values()] for row in rows])


@key.command("revoke")
@click.argument("id")
@store_option
@config_option
@as_json
def revoke(id: str, store: str | None, config: str | None, as_json: bool) -> None:
    """End the validity of a key; a running server notices within seconds."""
    with _opened(store, config, new=False) as connection:
        from dpbandits.service import access

        access.revoke(connection, id)
    click.echo(json.dumps({"revoked": id}) if as_json else f"revoked {id}")


@key.command("rotate")
@click.option("--keys", help="File with the server's secrets.  [default: dpbandits.keys]")
@config_option
@as_json
def rotate(keys: str | None, config: str | None, as_json: bool) -> None:
    """Renew the secret that signs tokens. Tokens that are out stay valid; a running server notices within seconds.

    On several machines, do it on one of them and copy the file to the others.
    """
    settings = _settings(config, keys=keys)
    from dpbandits.service.keyring import Keyring, alone

    if not settings.keys.exists():
        raise InputError("keys", f"must be the file of a server, got {settings.keys}, which does not exist")
    with alone(settings.keys):
        Keyring.open(settings.keys).rotated(settings.keys)
    done = f"renewed the token key in {settings.keys}"
    click.echo(json.dumps({"keys": str(settings.keys)}) if as_json else done)


def _settings(config: str | None, **flags: Any) -> ServerSettings:
    for module in NEEDED:
        if importlib.util.find_spec(module) is None:
            raise MissingExtraError(module, "service")
    from dpbandits.service.settings import ServerSettings

    return ServerSettings.read(config, **{name: value for name, value in flags.items() if value is not None})


@contextmanager
def _opened(store: str | None, config: str | None, *, new: bool = True) -> Iterator[Connection]:
    """A transaction on the store, whose tables are up to date. A file that is not there is made only if it is new.

    All is closed before anything is printed.
    """
    settings = _settings(config, store=store)
    from dpbandits.service.files import refuse_unwritable
    from dpbandits.service.keyring import alone
    from dpbandits.service.store import Database

    opened = Database(settings.store)
    with ExitStack() as held:
        if opened.path is not None:
            if not new and not opened.path.exists():
                raise InputError("store", f"must be the database of a server, got {opened.path}, which does not exist")
            refuse_unwritable("store", opened.path)
            held.enter_context(alone(opened.path))  # another such command may have the lock
        held.enter_context(closing(opened))
        opened.file.lock(or_join=True)
        opened.migrate()
        with opened.engine.begin() as connection:
            yield connection
