"""Many short plays of one policy on given rewards: what a statistical audit needs. Plain Python; also compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dpbandits.errors import InputError
from dpbandits.protocols import NO_LINE, Agent, Curator, Floats, Integers, Rng

__all__ = ["Buffered", "buffered", "play_trials"]


class Buffered(NamedTuple):
    """A policy's parts with all their memory in two arrays, so that one assignment makes them fresh again."""

    agent: Any
    curator: Any
    floats: Floats
    integers: Integers


def buffered(agent: Any, curator: Any) -> Buffered:
    """The same parts, as they are now, with their memory in two arrays.

    >>> from dpbandits.curators import Batch
    >>> parts = buffered(Batch.start(2, epsilon=1.0), Batch.start(2, epsilon=1.0))
    >>> parts.floats[:] = 7.0
    >>> parts.curator.means.tolist(), parts.agent.raw_sums.tolist()
    ([7.0, 7.0], [7.0, 7.0])
    """
    arrays = [*_arrays(agent), *_arrays(curator)]
    if any(array.dtype not in (np.float64, np.int64) for array in arrays):
        kinds = ", ".join(sorted({str(array.dtype) for array in arrays}))
        raise InputError(f"memory must be of float64 and int64 to be played many times, got {kinds}")
    floats = np.zeros(sum(array.size for array in arrays if array.dtype == np.float64))
    integers = np.zeros(sum(array.size for array in arrays if array.dtype == np.int64), np.int64)
    used = {np.dtype(np.float64): 0, np.dtype(np.int64): 0}

    def place(array: Any) -> Any:
        buffer, start = floats if array.dtype == np.float64 else integers, used[array.dtype]
        used[array.dtype] = start + array.size
        view = buffer[start : start + array.size].reshape(array.shape)
        view[...] = array
        return view

    def rebuild(part: Any) -> Any:
        return type(part)(
            *(place(v) if isinstance(v, np.ndarray) else rebuild(v) if isinstance(v, tuple) else v for v in part)
        )

    return Buffered(rebuild(agent), rebuild(curator), floats, integers)


def _arrays(part: Any) -> list[Any]:
    found = []
    for value in part:
        if isinstance(value, np.ndarray):
            found.append(value)
        elif isinstance(value, tuple):
            found += _arrays(value)
    return found


def play_trials(
    curator: Curator,
    agent: Agent,
    floats: Floats,
    integers: Integers,
    tables: Floats,
    sides: Integers,
    level: float,
    actions: Integers,
    released: Floats,
    noise: Rng,
    choices: Rng,
) -> None:
    """Play once for each of ``sides``, on that side's ``tables[side, round, arm]``; write what an adversary sees.

    ``actions`` and ``released`` are (trials, rounds): the arm of each round, and its released mean at the end of each
    stint; 0 within stints, and where nothing is released. Either may have no rows: then it is not written.
    """
    fresh_floats, fresh_integers = floats.copy(), integers.copy()
    rounds = tables.shape[1]
    for trial in range(sides.size):
        floats[:] = fresh_floats
        integers[:] = fresh_integers
        side = sides[trial]
        t = 0
        while t < rounds:
            arm, stint, line = agent.act(curator, t + 1, choices)
            last = min(t + stint, rounds)
            played = 0
            while t < last:
                response = curator.respond(tables[side, t, arm], level, noise)
                curator.add(arm, response, level, noise)
                if trial < actions.shape[0]:
                    actions[trial, t] = arm
                t += 1
                played += 1
                if line > NO_LINE and curator.mean(arm) <= line:
                    break
            if played == stint:
                curator.close(arm, noise)
            if trial < released.shape[0] and curator.ready(arm, 0.0):
                released[trial, t - 1] = curator.mean(arm)
    floats[:] = fresh_floats
    integers[:] = fresh_integers
