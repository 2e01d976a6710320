"""The targets of the guessing game: a policy or a curator on one of two neighbouring inputs, in one of four views."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpbandits.audit.game import hashed
from dpbandits.checks import known
from dpbandits.curators.rounds import OneByOne
from dpbandits.environments import Scripted
from dpbandits.policies.policy import Policy
from dpbandits.simulation import trials
from dpbandits.types import Floats, Integers

__all__ = ["CENTRAL_VIEWS", "LOCAL_VIEWS", "Neighbours", "PolicyTarget", "Responder", "ResponseTarget", "Target"]

CENTRAL_VIEWS = ("actions", "released")
LOCAL_VIEWS = ("response", "bytes")

CHUNK = 1 << 16  # trials that one worker plays at a time; each chunk has its own seeds
BINS = 64
ENDS = (-50.0, 50.0)  # rewards whose logistic function is practically 0 and 1

Rows = NDArray[Any]


class Neighbours(NamedTuple):
    """Two inputs that differ in one reward, and their descriptions."""

    inputs: Floats  # (2, rounds, arms), or (2,) for one reward
    text: tuple[str, str]


class Target(Protocol):
    """A mechanism that can be run on neighbouring inputs many times."""

    view: str
    compiled: bool

    def neighbours(self) -> list[Neighbours]:
        """The pairs among which the worst one is sought."""

    def play(self, pair: Neighbours, sides: Integers, seed: tuple[int, ...]) -> Rows:
        """The observations: one run, and one row, for each of ``sides``."""

    def codes(self, rows: Rows, first: int) -> list[tuple[str, Integers]]:
        """Ways to read the observations: a name, and columns of codes. Bins are made from the ``first`` rows."""

    def describe(self, row: Rows, reading: str) -> str:
        """An observation in words."""


class PolicyTarget:
    """A policy, observed through its actions or its released means."""

    def __init__(self, policy: Policy, horizon: int, view: str) -> None:
        self.view = known("view", view, CENTRAL_VIEWS)
        self.policy, self.horizon = policy, horizon
        self._play, self.compiled = _compiled_or_plain(policy)

    def neighbours(self) -> list[Neighbours]:
        """Constant rewards of 0 or 1 for each arm, except for one round in which all arms pay 0 or all pay 1."""
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
        """The actions or released means of each run; they do not depend on the number of workers."""
        seen: Rows = np.zeros((sides.size, self.horizon), np.int8 if self.view == "actions" else np.float64)
        nothing: Rows = np.zeros((0, self.horizon), np.float64 if self.view == "actions" else np.int8)

        def chunk(start: int) -> None:
            part = slice(start, start + CHUNK)
            streams = np.random.SeedSequence(seed, spawn_key=(start,)).spawn(2)
            noise, choices = (np.random.default_rng(stream) for stream in streams)
            views = (seen[part], nothing) if self.view == "actions" else (nothing, seen[part])
            self._play(Scripted.start(pair.inputs), *_parts(self.policy), sides[part], *views, noise, choices)

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            list(pool.map(chunk, range(0, sides.size, CHUNK)))
        return seen

    def codes(self, rows: Rows, first: int) -> list[tuple[str, Integers]]:
        """For actions, the sequence up to several lengths; for released means, all of them, in bins."""
        if self.view == "released":
            return [("released means", _binned(rows, first))]
        lengths = sorted({min(length, self.horizon) for length in (4, 8, 16, 30, self.horizon)})
        return [(f"{length}", hashed(rows[:, :length])[:, None]) for length in lengths]

    def describe(self, row: Rows, reading: str) -> str:
        """The observed actions or means."""
        if self.view == "actions":
            return "actions begin with " + "".join(str(arm) for arm in row[: int(reading)])
        return "released means " + " ".join(f"{mean:.3g}" for mean in row if mean)


def _parts(policy: Policy) -> tuple[Any, ...]:
    """The parts, their memory, and a copy of that memory as it is at the start."""
    parts = trials.buffered(policy.agent, policy.curator)
    memory = (parts.floats, parts.integers, parts.floats.copy(), parts.integers.copy())
    return OneByOne(parts.curator), parts.agent, *memory


def _compiled_or_plain(policy: Policy) -> tuple[Callable[..., None], bool]:
    """The loop of trials, and whether it is compiled. Numba may be unable to compile a user's own parts."""
    from dpbandits.simulation import compiled

    environment, parts = Scripted.start(np.zeros((2, 1, policy.arms))), _parts(policy)
    views = (np.zeros((1, 1), np.int8), np.zeros((0, 1)))
    streams = (np.random.default_rng(0), np.random.default_rng(1))
    try:
        play = compiled.compiled(trials.play_trials, environment, *parts[:2])
        with compiled.uninterrupted():
            play(environment, *parts, np.zeros(1, np.int64), *views, *streams)
    except compiled.NOT_COMPILABLE:
        return trials.play_trials, False
    return play, True


class Responder(NamedTuple):
    """A function that turns one reward into one response, and the two rewards to tell apart."""

    name: str
    respond: Callable[[float, np.random.Generator], float | int | bytes | str]
    rewards: tuple[float, float] = (0.0, 1.0)

    @classmethod
    def of(cls, policy: Policy, level: float) -> Responder:
        """The responder of a policy in the local model, for a user at this level."""
        curator = policy.curator
        ends = ENDS if policy.any_reward else (0.0, 1.0)
        return cls(policy.name, lambda reward, rng: curator.respond(reward, level, rng), ends)


class ResponseTarget:
    """One response, observed as a number or by its bytes."""

    def __init__(self, responder: Responder, view: str) -> None:
        self.view = known("view", view, LOCAL_VIEWS)
        self.responder = responder
        self.compiled = False

    def neighbours(self) -> list[Neighbours]:
        """The two ends of the range, between which the loss of all responses of this package is largest."""
        low, high = self.responder.rewards
        return [Neighbours(np.array([low, high]), (f"reward {low:g}", f"reward {high:g}"))]

    def play(self, pair: Neighbours, sides: Integers, seed: tuple[int, ...]) -> Rows:
        """One response for each of ``sides``."""
        rng, respond = np.random.default_rng(seed), self.responder.respond
        low, high = (float(reward) for reward in pair.inputs)
        answers = [respond(high if side else low, rng) for side in sides.tolist()]
        if any(isinstance(answer, bytes | str) for answer in answers):
            return np.array([answer if isinstance(answer, bytes) else str(answer).encode() for answer in answers])[
                :, None
            ]
        return np.array(answers, np.float64)[:, None]

    def codes(self, rows: Rows, first: int) -> list[tuple[str, Integers]]:
        """The number, in bins. In the view of bytes, also its exponent with its number of trailing zero bits."""
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
        """The observed response."""
        if reading == "low bits":
            return f"a response with exponent and low bits as in {float(row[0]).hex()}"
        return f"a response near {row[0]!r}" if row.dtype.kind == "S" else f"a response near {float(row[0]):.6g}"


def _binned(rows: Rows, first: int) -> Integers:
    """Bin each column, with about equally many of the ``first`` rows per bin; few distinct values get a bin each."""
    codes = np.zeros(rows.shape, np.int64)
    for j, column in enumerate(rows.T):
        values = np.unique(column[:first])
        if len(values) > 4 * BINS:
            values = np.unique(np.quantile(column[:first], np.linspace(0.0, 1.0, BINS + 1)[1:-1]))
        codes[:, j] = np.searchsorted(values, column)
    return codes
