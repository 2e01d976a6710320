"""What the game is played with: a policy or a curator, on one of two neighbouring inputs, seen in one of four ways."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpbandits.audit.game import hashed
from dpbandits.errors import known
from dpbandits.policies.policy import Policy
from dpbandits.protocols import Floats, Integers
from dpbandits.simulation import trials

__all__ = ["CENTRAL_VIEWS", "LOCAL_VIEWS", "Device", "DeviceTarget", "Neighbours", "PolicyTarget", "Target"]

CENTRAL_VIEWS = ("actions", "released")
LOCAL_VIEWS = ("response", "bytes")

CHUNK = 1 << 16  # trials that one worker plays at a time; each chunk has its own seeds
BINS = 64
ENDS = (-50.0, 50.0)  # rewards whose logistic function is 0 and 1

Rows = NDArray[Any]


class Neighbours(NamedTuple):
    """Two inputs that differ in one reward, and in words."""

    inputs: Floats  # (2, rounds, arms), or (2,) for one reward
    text: tuple[str, str]


class Target(Protocol):
    """Something that can be played on neighbouring inputs many times."""

    view: str
    compiled: bool

    def neighbours(self) -> list[Neighbours]:
        """The pairs among which the worst is sought."""

    def play(self, pair: Neighbours, sides: Integers, seed: tuple[int, ...]) -> Rows:
        """What is seen in one run for each of ``sides``, as rows."""

    def codes(self, rows: Rows, first: int) -> list[tuple[str, Integers]]:
        """Ways to read what is seen: a name, and codes in columns; bins are made on the ``first`` rows."""

    def describe(self, row: Rows, reading: str) -> str:
        """What was seen, in words."""


class PolicyTarget:
    """A policy, seen by its actions or by its released means."""

    def __init__(self, policy: Policy, horizon: int, view: str) -> None:
        self.view = known("view", view, CENTRAL_VIEWS)
        self.policy, self.horizon = policy, horizon
        self._play, self.compiled = _compiled_or_plain(policy)

    def neighbours(self) -> list[Neighbours]:
        """Constant rewards of 0 or 1 for each arm, and one round in which every arm pays 0 or 1."""
        pairs = []
        for changed in sorted({t for t in (0, 1, 2, 3, 4, 6, 10, 14) if t < self.horizon}):
            for means in ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)):
                tables = np.zeros((2, self.horizon, self.policy.arms))
                tables[:, :, 0], tables[:, :, 1:] = means
                tables[0, changed], tables[1, changed] = 0.0, 1.0
                others = f"arm 0 pays {means[0]:g} and other arms {means[1]:g}"
                pairs.append(
                    Neighbours(
                        tables,
                        (f"{others}, in round {changed + 1} all pay 0", f"{others}, in round {changed + 1} all pay 1"),
                    )
                )
        return pairs

    def play(self, pair: Neighbours, sides: Integers, seed: tuple[int, ...]) -> Rows:
        """Actions, or released means, of each run; the same for any number of workers."""
        seen: Rows = np.zeros((sides.size, self.horizon), np.int8 if self.view == "actions" else np.float64)
        nothing: Rows = np.zeros((0, self.horizon), np.float64 if self.view == "actions" else np.int8)

        def chunk(start: int) -> None:
            part = slice(start, start + CHUNK)
            streams = np.random.SeedSequence(seed, spawn_key=(start,)).spawn(2)
            noise, choices = (np.random.default_rng(stream) for stream in streams)
            views = (seen[part], nothing) if self.view == "actions" else (nothing, seen[part])
            self._play(*_parts(self.policy), pair.inputs, sides[part], 0.0, *views, noise, choices)

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            list(pool.map(chunk, range(0, sides.size, CHUNK)))
        return seen

    def codes(self, rows: Rows, first: int) -> list[tuple[str, Integers]]:
        """Actions: the sequence up to some rounds. Released means: all of them, in bins."""
        if self.view == "released":
            return [("released means", _binned(rows, first))]
        lengths = sorted({min(length, self.horizon) for length in (4, 8, 16, 30, self.horizon)})
        return [(f"{length}", hashed(rows[:, :length])[:, None]) for length in lengths]

    def describe(self, row: Rows, reading: str) -> str:
        """The actions that were seen, or the means."""
        if self.view == "actions":
            return "actions begin with " + "".join(str(arm) for arm in row[: int(reading)])
        return "released means " + " ".join(f"{mean:.3g}" for mean in row if mean)


def _parts(policy: Policy) -> tuple[Any, Any, Floats, Integers]:
    parts = trials.buffered(policy.agent, policy.curator)
    return parts.curator, parts.agent, parts.floats, parts.integers


def _compiled_or_plain(policy: Policy) -> tuple[Callable[..., None], bool]:
    """The loop of trials, compiled where Numba can; a user's own parts may be plain Python."""
    from dpbandits.simulation import compiled

    curator, agent, floats, integers = _parts(policy)
    table, views = np.zeros((2, 1, policy.arms)), (np.zeros((1, 1), np.int8), np.zeros((0, 1)))
    streams = (np.random.default_rng(0), np.random.default_rng(1))
    try:
        play = compiled.trials_for(curator, agent)
        with compiled.uninterrupted():
            play(curator, agent, floats, integers, table, np.zeros(1, np.int64), 0.0, *views, *streams)
    except compiled.NOT_COMPILABLE:
        return trials.play_trials, False
    return play, True


class Device(NamedTuple):
    """Something that makes one response of one reward."""

    name: str
    respond: Callable[[float, np.random.Generator], float | int | bytes | str]
    rewards: tuple[float, float] = (0.0, 1.0)

    @classmethod
    def of(cls, policy: Policy, level: float) -> Device:
        """The device of a policy of the local model, for a user at this level."""
        curator = policy.curator
        ends = ENDS if policy.any_reward else (0.0, 1.0)
        return cls(policy.name, lambda reward, rng: curator.respond(reward, level, rng), ends)


class DeviceTarget:
    """One response, seen as a number or by its bytes."""

    def __init__(self, device: Device, view: str) -> None:
        self.view = known("view", view, LOCAL_VIEWS)
        self.device = device
        self.compiled = False

    def neighbours(self) -> list[Neighbours]:
        """The two ends of the range, where the loss of every response of ours is largest."""
        low, high = self.device.rewards
        return [Neighbours(np.array([low, high]), (f"reward {low:g}", f"reward {high:g}"))]

    def play(self, pair: Neighbours, sides: Integers, seed: tuple[int, ...]) -> Rows:
        """One response for each of ``sides``."""
        rng, respond = np.random.default_rng(seed), self.device.respond
        low, high = (float(reward) for reward in pair.inputs)
        answers = [respond(high if side else low, rng) for side in sides.tolist()]
        if any(isinstance(answer, bytes | str) for answer in answers):
            return np.array([answer if isinstance(answer, bytes) else str(answer).encode() for answer in answers])[
                :, None
            ]
        return np.array(answers, np.float64)[:, None]

    def codes(self, rows: Rows, first: int) -> list[tuple[str, Integers]]:
        """The number, in bins; of its eight bytes, the exponent and how many low bits are zero."""
        if rows.dtype.kind == "S":
            return [("bytes", np.unique(rows, return_inverse=True)[1].reshape(-1, 1))]
        readings = [("response", _binned(rows, first))]
        if self.view == "bytes":
            bits = rows[:, 0].astype(np.float64).view(np.int64)
            mantissa = (bits & (1 << 52) - 1) | 1 << 52
            low_zeros = np.round(np.log2(mantissa & -mantissa)).astype(np.int64)
            readings.append(("low bits", ((bits >> 52 & 0x7FF) * 64 + low_zeros)[:, None]))
        return readings

    def describe(self, row: Rows, reading: str) -> str:
        """The response that was seen."""
        if reading == "low bits":
            return f"a response with exponent and low bits as in {float(row[0]).hex()}"
        return f"a response near {row[0]!r}" if row.dtype.kind == "S" else f"a response near {float(row[0]):.6g}"


def _binned(rows: Rows, first: int) -> Integers:
    """Each column in bins of about as many of the ``first`` rows; a few different values have bins of their own."""
    codes = np.zeros(rows.shape, np.int64)
    for j, column in enumerate(rows.T):
        values = np.unique(column[:first])
        if len(values) > 4 * BINS:
            values = np.unique(np.quantile(column[:first], np.linspace(0.0, 1.0, BINS + 1)[1:-1]))
        codes[:, j] = np.searchsorted(values, column)
    return codes
