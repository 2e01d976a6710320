"""Many short plays of one policy on given rewards, for statistical audits; also compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dpbandits.environments.scripted import Scripted
from dpbandits.errors import InputError
from dpbandits.parts import arrays, rebuilt
from dpbandits.protocols import Agent, Curator
from dpbandits.simulation.loop import play_stint
from dpbandits.types import Floats, Integers, Rng

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
    found = [array for part in (agent, curator) for _, array in arrays(part)]
    if any(array.dtype not in (np.float64, np.int64) for array in found):
        kinds = ", ".join(sorted({str(array.dtype) for array in found}))
        raise InputError("memory", f"must be of float64 and int64 to be played many times, got {kinds}")
    floats = np.zeros(sum(array.size for array in found if array.dtype == np.float64))
    integers = np.zeros(sum(array.size for array in found if array.dtype == np.int64), np.int64)
    used = {np.dtype(np.float64): 0, np.dtype(np.int64): 0}

    def place(array: Any) -> Any:
        buffer, start = floats if array.dtype == np.float64 else integers, used[array.dtype]
        used[array.dtype] = start + array.size
        view = buffer[start : start + array.size].reshape(array.shape)
        view[...] = array
        return view

    return Buffered(rebuilt(agent, place), rebuilt(curator, place), floats, integers)


def play_trials(
    environment: Scripted,
    curator: Curator,
    agent: Agent,
    floats: Floats,
    integers: Integers,
    fresh_floats: Floats,
    fresh_integers: Integers,
    sides: Integers,
    actions: Integers,
    released: Floats,
    noise: Rng,
    choices: Rng,
) -> None:
    """Play once for each of ``sides``, on the table of that number; write what an adversary sees.

    ``actions`` and ``released`` are (trials, rounds): the arm of each round, and its released mean at the end of each
    stint; 0 within stints, and where nothing is released. Either may have no rows: then it is not written. ``floats``
    and ``integers`` are the memory of the parts, which is made fresh before each trial.
    """
    rounds = environment.tables.shape[1]
    for trial in range(len(sides)):
        for i in range(len(floats)):  # not a slice: Numba would make an array for it
            floats[i] = fresh_floats[i]
        for i in range(len(integers)):
            integers[i] = fresh_integers[i]
        environment.rewind(sides[trial])
        t = 0
        while t < rounds:
            arm, played, _ = play_stint(environment, curator, agent, t + 1, rounds - t, noise, noise, choices)
            if trial < actions.shape[0]:
                for s in range(t, t + played):
                    actions[trial, s] = arm
            t += played
            if trial < released.shape[0] and curator.ready(arm, 0.0):
                released[trial, t - 1] = curator.mean(arm)
