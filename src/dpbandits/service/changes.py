"""Experiments are begun and changed: each change is one transaction, and memory follows once it is on disk."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from dpbandits.draws import WatchedGenerator
from dpbandits.errors import InputError
from dpbandits.exact import SystemNoise
from dpbandits.service.books import LiveRun
from dpbandits.service.commits import Control
from dpbandits.service.experiment import Experiment, Settings
from dpbandits.service.problems import Refusal
from dpbandits.service.rows import released_rows
from dpbandits.service.sealing import seal
from dpbandits.service.state import LiveState, extended
from dpbandits.service.tables import audit, experiments, releases, requests, states
from dpbandits.service.writer import Unavailable

if TYPE_CHECKING:
    from dpbandits.service.service import Service

__all__ = ["change", "create", "locked", "write"]


async def create(service: Service, asked: Settings, who: str, key: str | None) -> dict[str, Any]:
    """A new experiment. With an idempotency key, the same request again gets the same answer."""
    digest = hashlib.sha256(asked.model_dump_json().encode()).hexdigest()
    made: list[LiveRun] = []

    def act(connection: Connection) -> dict[str, Any]:
        made.clear()
        if key is not None:
            before = connection.execute(sa.select(requests).where(requests.c.key == key)).first()
            if before is not None:
                if before.digest != digest:
                    raise Refusal(
                        422, "Idempotency-Key was used before, with another request", parameter="Idempotency-Key"
                    )
                return json.loads(before.answer)
        answer = _insert(service, connection, asked, who, made)
        if key is not None:
            at = int(service.clock() * 1000)
            connection.execute(sa.insert(requests).values(key=key, digest=digest, answer=json.dumps(answer), at=at))
        return answer

    def then() -> None:
        for run in made:
            service.hold(run)

    try:
        return await service.writer.submit(Control(act, then))
    except IntegrityError:  # another worker has stored the name or the key meanwhile, and this time it is seen
        return await service.writer.submit(Control(act, then))


def _insert(service: Service, connection: Connection, asked: Settings, who: str, made: list[LiveRun]) -> dict[str, Any]:
    at = int(service.clock() * 1000)
    if connection.execute(sa.select(experiments.c.id).where(experiments.c.name == asked.name)).first():
        raise Refusal(409, f"name is taken: there is an experiment '{asked.name}'", parameter="name")
    draft = Experiment(0, asked, own=service.settings.own_policies, keys=service.keys)
    draft.check_new()
    if draft.server_draws and service.lasting:
        raise InputError("policy", f"{draft.policy.name} needs a store that keeps what it is given: {service.lasting}")
    if not service.store.embedded and not draft.decided_anywhere:
        raise InputError("policy", f"{draft.policy.name} cannot be decided by several workers: use SQLite")
    row = {"name": asked.name, "settings": asked.model_dump_json(), "status": "running", "created": at}
    number = _unused(connection)
    connection.execute(sa.insert(experiments).values(**row, id=number, added="[]", paused="[]", revision=1))
    experiment = Experiment(
        number, asked, revision=1, created=at / 1000, own=service.settings.own_policies, keys=service.keys
    )
    state = LiveState(experiment.policy, experiment.window)
    if not service.store.embedded:
        state.open(at / 1000, SystemNoise(), WatchedGenerator())
    run = LiveRun(experiment, state)
    first = {"experiment": number, "epoch": 0, "version": 0, "draws": 0, "changed": 0, "at": at}
    connection.execute(sa.insert(states).values(**first, state=seal(service.keys, experiment, state)))
    _log(service, connection, number, who, "create", asked.model_dump(mode="json"))
    made.append(run)
    return experiment.to_json()


def _unused(connection: Connection) -> int:
    """A number for an experiment. It is random: a token of another database must not fit by chance."""
    while True:
        number = 1 + secrets.randbelow(2**31 - 1)
        if connection.execute(sa.select(experiments.c.id).where(experiments.c.id == number)).first() is None:
            return number


async def change(
    service: Service, name: str, who: str, action: str, how: Callable[[LiveRun], dict[str, Any]]
) -> dict[str, Any]:
    """Change an experiment: ``how`` says which fields of its row, or refuses."""
    run = await service.look_up(name)
    later: list[Callable[[], None]] = []

    def act(connection: Connection) -> dict[str, Any]:
        current = locked(service, connection, run.experiment.id)
        fields = how(current)
        later.append(write(service, connection, current, who, action, fields.pop("detail", {}), **fields))
        return _renewed(service, current, fields)[0].to_json()

    return await service.writer.submit(Control(act, lambda: later[0]()))


def locked(service: Service, connection: Connection, number: int) -> LiveRun:
    """An experiment as it is stored; nobody else changes it until the transaction ends.

    With several workers, the copy in memory has decisions that are not folded yet. They must not be stored with it: the
    fold would count them again.
    """
    if service.store.embedded:
        return service.runs[number]
    connection.execute(sa.select(states.c.experiment).where(states.c.experiment == number).with_for_update())
    return service.stored(connection, number)


def _renewed(service: Service, run: LiveRun, fields: dict[str, Any]) -> tuple[Experiment, LiveState]:
    before = run.experiment
    experiment = Experiment(
        before.id,
        fields.get("settings", before.settings),
        status=fields.get("status", before.status),
        revision=before.revision + 1,
        created=before.created,
        added=fields.get("added", before.added),
        paused=fields.get("paused", before.paused),
        own=service.settings.own_policies,
        keys=service.keys,
    )
    state = run.state.copy()
    if len(experiment.arms) > len(before.arms):
        state = extended(state)
    return experiment, state


def write(
    service: Service, connection: Connection, run: LiveRun, who: str, action: str, detail: dict[str, Any], **fields: Any
) -> Callable[[], None]:
    """Write a change; what is to be done in memory once it is on disk."""
    experiment, state = _renewed(service, run, fields)
    newly = experiment.paused - run.experiment.paused
    at = int(service.clock() * 1000)
    state.pause(experiment.paused)
    for arm in newly:
        state.close_on(arm, SystemNoise())
    drawn = int(experiment.server_draws and bool(state.released))
    if drawn and service.tally.ahead_of(run):
        raise Unavailable("an old copy of the database was restored")  # the experiment is about to be halted
    writes = bool(newly) or len(experiment.arms) > len(run.experiment.arms)
    made = LiveRun(experiment, state, run.epoch, run.draws + drawn, run.changed + writes)
    connection.execute(
        sa.update(experiments)
        .where(experiments.c.id == experiment.id)
        .values(
            settings=experiment.settings.model_dump_json(),
            status=experiment.status,
            added=json.dumps(experiment.added),
            paused=json.dumps(sorted(experiment.paused)),
            revision=experiment.revision,
        )
    )
    if writes:
        _write_state(service, connection, run, made, at)
    _log(service, connection, experiment.id, who, action, detail)

    return lambda: service.hold(made)


def _write_state(service: Service, connection: Connection, before: LiveRun, made: LiveRun, at: int) -> None:
    columns = [column.name for column in releases.columns]
    for row in released_rows(made, made.state, {}, at) if made.draws > before.draws else []:
        connection.execute(sa.insert(releases).values(dict(zip(columns, row, strict=True))))
    numbers = {"version": made.state.version, "draws": made.draws, "changed": made.changed, "at": at}
    written = connection.execute(
        sa.update(states)
        .where((states.c.experiment == made.experiment.id) & (states.c.changed == before.changed))
        .values(**numbers, state=seal(service.keys, made.experiment, made.state))
    )
    if written.rowcount == 0:
        raise Unavailable("another worker changed the experiment at the same time")


def _log(service: Service, connection: Connection, number: int, who: str, action: str, detail: dict[str, Any]) -> None:
    at = int(service.clock() * 1000)
    row = {"experiment": number, "at": at, "who": who, "action": action, "detail": json.dumps(detail)}
    connection.execute(sa.insert(audit).values(**row))
