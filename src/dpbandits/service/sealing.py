"""States are stored sealed: with the server's secrets, and bound to the name of their experiment."""

from __future__ import annotations

from pathlib import Path

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dpbandits.errors import InputError
from dpbandits.service.experiment import Experiment
from dpbandits.service.keyring import Keyring
from dpbandits.service.state import LiveState
from dpbandits.service.tables import experiments, states

__all__ = ["fit", "not_lost", "opened", "seal", "unseal"]


def seal(keys: Keyring, experiment: Experiment, state: LiveState) -> bytes:
    """A state, as it is stored."""
    return keys.seal(msgspec.json.encode(state.freeze()), experiment.name.encode())


def unseal(keys: Keyring, experiment: Experiment, state: LiveState, sealed: bytes) -> None:
    """Make ``state`` the one that is stored."""
    state.thaw(msgspec.json.decode(keys.unseal(bytes(sealed), experiment.name.encode())))


def opened(keys: Keyring, experiment: Experiment, sealed: bytes) -> LiveState:
    """The state that is stored, which nobody else holds."""
    state = LiveState(experiment.policy, experiment.window)
    unseal(keys, experiment, state, sealed)
    state.pause(experiment.paused)
    return state


def not_lost(keys: Path, connection: Connection) -> None:
    """Raise that there is no file of keys, where the database has experiments."""
    if not keys.exists() and connection.execute(sa.select(states.c.experiment).limit(1)).first() is not None:
        raise InputError(
            "keys",
            f"must be the file that this database was written with, got {keys}, which does not exist: put it back",
        )


def fit(keys: Keyring, connection: Connection) -> None:
    """Raise that the keys are others, where they open no state at all. One state may be damaged."""
    wrong: InputError | None = None
    sealed = sa.select(experiments.c.name, states.c.state).where(states.c.experiment == experiments.c.id)
    for name, state in connection.execute(sealed).all():
        try:
            keys.unseal(bytes(state), name.encode())
        except InputError as error:
            wrong = error
        else:
            return
    if wrong is not None:
        raise wrong
