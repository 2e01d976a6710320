"""What prevents a start, and is refused by ``serve --check`` as by ``serve``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dpbandits.errors import InputError
from dpbandits.service.experiment import Experiment, Settings
from dpbandits.service.files import refuse_no_file, resolved
from dpbandits.service.keyring import Keyring
from dpbandits.service.settings import ServerSettings
from dpbandits.service.store import Database
from dpbandits.service.tables import experiments
from dpbandits.session.inputs import renamed

__all__ = ["read_experiment", "read_experiments", "refuse_shared_files", "refuse_unkept"]


def refuse_shared_files(settings: ServerSettings, store: Database) -> None:
    """Refuse one file for two purposes: the later one would be written over the earlier."""
    tally = Database(settings.tally, name="tally").path
    keys, recent = resolved("keys", settings.keys), resolved("keys.recent", settings.recent)
    files = {"keys": keys, "the keys' .recent file": recent}
    if store.path is not None:
        files |= {"store": store.path, "the store's lock": store.path.with_name(f"{store.path.name}.lock")}
    for name, path in (("keys", settings.keys), ("keys.recent", settings.recent)):
        refuse_no_file(name, path)
    used = {path: name for name, path in files.items()}
    if len(used) < len(files):
        raise InputError("keys", f"must be a file of its own, got {settings.keys}, which the store uses")
    if tally is not None and tally in used and tally != store.path:  # its own words are for that
        raise InputError("tally", f"must be a file of its own, got {tally}, which is {used[tally]}")


def read_experiment(row: Any, settings: ServerSettings, keys: Keyring) -> Experiment:
    """An experiment as its row says."""
    asked = Settings.model_validate_json(row["settings"])
    if ":" not in asked.policy or asked.policy in settings.own_policies:  # nothing else may be imported
        asked.options = renamed(asked.policy, asked.options)
    return Experiment(
        row["id"],
        asked,
        status=row["status"],
        revision=row["revision"],
        created=row["created"] / 1000,
        added=json.loads(row["added"]),
        paused=frozenset(json.loads(row["paused"])),
        own=settings.own_policies,
        keys=keys,
    )


def read_experiments(connection: Connection, settings: ServerSettings, keys: Keyring) -> list[Experiment]:
    """Those that can be read: the others are set aside when a server starts."""
    found = []
    for row in connection.execute(sa.select(experiments)).mappings():
        with suppress(Exception):
            found.append(read_experiment(row, settings, keys))
    return found


def refuse_unkept(experiments: Iterable[Experiment], why: str) -> None:
    """Refuse to go on with an experiment whose draws might be lost; ``why`` is empty where they are not."""
    drawn = [one.name for one in experiments if one.server_draws and one.active] if why else []
    if drawn:
        raise InputError("store", f"must keep what it is given, for {drawn[0]}: {why}")
