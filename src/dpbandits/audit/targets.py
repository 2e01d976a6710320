"""The targets of the guessing game: a policy or a curator on one of two neighbouring inputs, in one of four views."""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpbandits.audit.game import hashed
from dpbandits.checks import known
from dpbandits.curators.rounds import OneByOne
from dpbandits.environments import Scripted
from dpbandits.errors import InputError
from dpbandits.policies.policy import Policy
from dpbandits.simulation import trials
from dpbandits.types import Floats, Integers

__all__ = ["CENTRAL_VIEWS", "LOCAL_VIEWS", "Neighbours", "PolicyTarget", "Responder", "ResponseTarget", "Target"]

CENTRAL_VIEWS = ("actions", "released")
LOCAL_VIEWS = ("response", "bytes")

CHUNK = 1 << 16  # trials that one worker plays at a time; each chunk has its own seeds
BINS = 64
ENDS = (-50.0, 50.0)  # rewards whose logistic function is practically 0 and 1
OTHER_REWARDS = (0.5, 0.3, 7.0, -1.0, math.nan, math.inf, -math.inf)  # with which a response is attacked
MAX_BYTES = 32  # this many bytes of a response are looked at one by one
UNUSUAL = ((0.0, math.nan), (0.0, math.inf), (1.0, -math.inf), (0.0, 7.0), (1.0, -1.0), (0.5, math.nan))
TRIED = 6  # rounds that show whether a policy can be played

SeenRows = NDArray[Any]


class Neighbours(NamedTuple):
    """Two inputs that differ in one reward, or in those of one user, and their descriptions."""

    inputs: Floats  # (2, rounds, arms), or (2,) for one reward
    text: tuple[str, str]


class Target(Protocol):
    """A mechanism that can be run on neighbouring inputs many times."""

    view: str
    compiled: bool

    def neighbours(self) -> list[Neighbours]:
        """The pairs among which the worst one is sought."""

    def play(self, pair: Neighbours, sides: Integers, seed: tuple[int, ...]) -> SeenRows:
        """The observations: one run, and one row, for each of ``sides``."""

    def codes(self, rows: SeenRows, first: int) -> list[tuple[str, Integers]]:
        """Ways to read the observations: a name, and columns of codes. Bins are made from the ``first`` rows."""

    def describe(self, row: SeenRows, reading: str) -> str:
        """An observation in words."""


class PolicyTarget:
    """A policy, observed through its actions or its released means."""

    def __init__(self, policy: Policy, horizon: int, view: str, *, few: bool = False) -> None:
        self.view = known("view", view, CENTRAL_VIEWS)
        self.policy, self.horizon, self.few = policy, horizon, few
        self._play, self.compiled, self._wrap = _compiled_or_plain(policy)

    def neighbours(self) -> list[Neighbours]:
        """Pairs of inputs that differ in one round. In the other rounds each arm pays a constant, or mixed rewards.

        In the round that differs, all arms pay one reward in the first input, and another in the second: 0 and 1, or
        rewards that must be clamped. If the promise is one for users, as many rounds in a row differ as a user has
        rewards. With ``few``, which is for more arms, fewer pairs are tried.
        """
        last, ends = self.horizon - 1, ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0))
        if self.few:
            return [self._pair(t, means, (0.0, 1.0)) for t in (0, min(4, last)) for means in ends[1:3]]
        rounds = {t for t in (0, 1, 2, 3, 4, 6, 10, 14, last // 2, last - 1) if 0 <= t <= last}
        pairs = [self._pair(t, means, (0.0, 1.0)) for t in sorted(rounds) for means in ends]
        pairs += [self._pair(t, None, (0.0, 1.0)) for t in sorted({0, min(3, last), last // 2})]
        return pairs + [self._pair(t, ends[0], pair) for t in sorted({0, min(2, last)}) for pair in UNUSUAL]

    def _pair(self, changed: int, means: tuple[float, float] | None, pair: tuple[float, float]) -> Neighbours:
        tables = np.zeros((2, self.horizon, self.policy.arms))
        if means is None:
            tables[:] = np.random.default_rng(changed).integers(0, 2, (1, self.horizon, 1))
            others = f"rewards {''.join(f'{reward:g}' for reward in tables[0, :, 0])} whatever the arm"
        else:
            tables[:, :, 0], tables[:, :, 1:] = means
            others = f"arm 0 pays {means[0]:g} and other arms {means[1]:g}"
        end = min(changed + (self.policy.rewards_per_user or 1), self.horizon)
        tables[0, changed:end], tables[1, changed:end] = pair
        when = f"in round {changed + 1}" if end == changed + 1 else f"in rounds {changed + 1} to {end}"
        text = tuple(f"{others}, {when} all pay {reward:g}" for reward in pair)
        return Neighbours(tables, (text[0], text[1]))

    def play(self, pair: Neighbours, sides: Integers, seed: tuple[int, ...]) -> SeenRows:
        """The actions or released means of each run; they do not depend on the number of workers."""
        seen: SeenRows = np.zeros((sides.size, self.horizon), np.int8 if self.view == "actions" else np.float64)
        nothing: SeenRows = np.zeros((0, self.horizon), np.float64 if self.view == "actions" else np.int8)

        def chunk(start: int) -> None:
            part = slice(start, start + CHUNK)
            streams = np.random.SeedSequence(seed, spawn_key=(start,)).spawn(2)
            noise, choices = (np.random.default_rng(stream) for stream in streams)
            views = (seen[part], nothing) if self.view == "actions" else (nothing, seen[part])
            parts = _parts(self.policy, self._wrap)
            self._play(Scripted.start(pair.inputs), *parts, sides[part], *views, noise, choices)

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            list(pool.map(chunk, range(0, sides.size, CHUNK)))
        return seen

    def codes(self, rows: SeenRows, first: int) -> list[tuple[str, Integers]]:
        """For actions, the sequence up to several lengths; for released means, all of them, in bins."""
        if self.view == "released":
            return [("released means", _binned(rows, first))]
        lengths = sorted({min(length, self.horizon) for length in (4, 8, 16, 30, self.horizon)})
        return [(f"{length}", hashed(rows[:, :length])[:, None]) for length in lengths]

    def describe(self, row: SeenRows, reading: str) -> str:
        """The observed actions or means."""
        if self.view == "actions":
            return "actions begin with " + "".join(str(arm) for arm in row[: int(reading)])
        return "released means " + " ".join(f"{mean:.3g}" for mean in row if mean)


Wrap = Callable[[Any], Any]


def _parts(policy: Policy, wrap: Wrap) -> tuple[Any, ...]:
    """The parts, their memory, and a copy of that memory as it is at the start."""
    parts = trials.buffered(policy.agent, policy.curator)
    memory = (parts.floats, parts.integers, parts.floats.copy(), parts.integers.copy())
    return wrap(parts.curator), parts.agent, *memory


def _compiled_or_plain(policy: Policy) -> tuple[Callable[..., None], bool, Wrap]:
    """The loop of trials, whether it is compiled, and what the agent sees.

    Numba may be unable to compile a user's own parts. The curator plays one reward at a time, in ``OneByOne``. An agent
    that reads more of a curator than its releases would not find it in ``OneByOne``, so it is given the curator itself.
    """
    from dpbandits.simulation import compiled

    def tried(play: Callable[..., None], wrap: Wrap) -> None:
        environment, parts = Scripted.start(np.zeros((2, TRIED, policy.arms))), _parts(policy, wrap)
        views = (np.zeros((1, TRIED), np.int8), np.zeros((0, TRIED)))
        play(environment, *parts, np.zeros(1, np.int64), *views, np.random.default_rng(0), np.random.default_rng(1))

    environment = Scripted.start(np.zeros((2, 1, policy.arms)))
    try:
        play = compiled.compiled(trials.play_trials, environment, *_parts(policy, OneByOne)[:2])
        with compiled.uninterrupted():
            tried(play, OneByOne)
    except compiled.NOT_COMPILABLE:
        try:
            tried(trials.play_trials, OneByOne)
        except (AttributeError, IndexError):
            return trials.play_trials, False, lambda curator: curator
        return trials.play_trials, False, OneByOne
    return play, True, OneByOne


class Responder(NamedTuple):
    """A function that turns one reward into one response, and the two ends of the range of rewards."""

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
    """One response, observed as a number or by its bytes. Rows hold the responses as they are, of whatever type."""

    def __init__(self, responder: Responder, view: str) -> None:
        self.view = known("view", view, LOCAL_VIEWS)
        self.responder = responder
        self.compiled = False

    def neighbours(self) -> list[Neighbours]:
        """The two ends of the range, and each of them with every other reward that is tried."""
        ends = self.responder.rewards
        pairs = [ends, *((end, other) for other in OTHER_REWARDS for end in ends)]
        return [Neighbours(np.array(pair), (f"reward {pair[0]:g}", f"reward {pair[1]:g}")) for pair in pairs]

    def play(self, pair: Neighbours, sides: Integers, seed: tuple[int, ...]) -> SeenRows:
        """One response for each of ``sides``."""
        rng, respond = np.random.default_rng(seed), self.responder.respond
        rewards = [float(reward) for reward in pair.inputs]
        rows = np.empty((sides.size, 1), object)
        for number, side in enumerate(sides.tolist()):
            try:
                rows[number, 0] = respond(rewards[side], rng)
            except Exception as error:
                raise InputError(
                    self.responder.name,
                    f"must respond to every reward, because silence tells; to {rewards[side]:g} it "
                    f"raises {type(error).__name__}",
                ) from error
        return rows

    def codes(self, rows: SeenRows, first: int) -> list[tuple[str, Integers]]:
        """The number in bins, and the response as it is; in the view of bytes also its bytes, bits and low bits."""
        answers = rows[:, 0].tolist()
        readings = []
        if all(isinstance(answer, int | float | np.number | np.bool_) for answer in answers):
            numbers = np.array([_as_float(answer) for answer in answers])[:, None]
            readings.append(("response", _binned(numbers, first)))
        floats = any(isinstance(answer, float | np.floating) for answer in answers)
        if not floats or self.view == "bytes":
            known_answers: dict[Any, int] = {}
            exact = [known_answers.setdefault(_bytes_of(answer), len(known_answers)) for answer in answers]
            readings.append(("exact response", np.array(exact, np.int64)[:, None]))
        if self.view == "bytes":
            if floats:
                readings.append(("low bits", _low_bits(np.array(answers, np.float64))))
            readings += _byte_codes([_bytes_of(answer) for answer in answers])
        return readings

    def describe(self, row: SeenRows, reading: str) -> str:
        """The observed response."""
        answer = row[0]
        if reading in ("low bits", "bits", "bytes") and isinstance(answer, float | np.floating):
            return f"a response with exponent and low bits as in {float(answer).hex()}"
        if isinstance(answer, float | np.floating):
            return f"a response near {float(answer):.6g}"
        return f"a response {'near' if reading == 'response' else 'as'} {answer!r:.80}"


def _as_float(answer: Any) -> float:
    try:
        return float(answer)
    except OverflowError:
        return math.inf if answer > 0 else -math.inf


def _bytes_of(answer: Any) -> bytes:
    """The response as bytes, so that no two different ones are the same: floats, integers of any size, texts."""
    if isinstance(answer, bytes):
        return answer
    if isinstance(answer, float | np.floating):
        return struct.pack("<d", float(answer))
    if isinstance(answer, int | np.integer | np.bool_):
        number = int(answer)
        return number.to_bytes(max(16, number.bit_length() // 8 + 1), "little", signed=True)
    return (answer if isinstance(answer, str) else repr(answer)).encode(errors="surrogatepass")


def _low_bits(values: Floats) -> Integers:
    """The exponent of each number, with its number of trailing zero bits."""
    bits = values.view(np.int64)
    mantissa = (bits & (1 << 52) - 1) | 1 << 52
    zeros = np.round(np.log2(mantissa & -mantissa)).astype(np.int64)
    return ((bits >> 52 & 0x7FF) * 64 + zeros)[:, None]


def _byte_codes(answers: list[bytes]) -> list[tuple[str, Integers]]:
    """The first bytes and the length, and each bit of the first eight bytes. A byte that is not there is a 256."""
    width = min(max(map(len, answers)), MAX_BYTES)
    padded = np.frombuffer(b"".join(answer[:width].ljust(width, b"\0") for answer in answers), np.uint8)
    lengths = np.array([len(answer) for answer in answers], np.int64)[:, None]
    table = padded.reshape(len(answers), width).astype(np.int64)
    table = np.where(np.arange(width) < lengths, table, 256)
    bits = (table[:, :8, None] >> np.arange(9)) & 1
    return [("bytes", np.hstack([table, lengths])), ("bits", bits.reshape(len(answers), -1))]


def _binned(rows: SeenRows, first: int) -> Integers:
    """Bin each column, with about equally many of the ``first`` rows per bin; few distinct values get a bin each."""
    codes = np.zeros(rows.shape, np.int64)
    for j, column in enumerate(rows.T):
        finite = np.isfinite(column)
        values = np.unique(column[:first][finite[:first]])
        if len(values) > 4 * BINS:
            values = np.unique(np.quantile(column[:first][finite[:first]], np.linspace(0.0, 1.0, BINS + 1)[1:-1]))
        codes[finite, j] = np.searchsorted(values, column[finite])
        for code, odd in ((-1, np.isnan(column)), (-2, column == -np.inf), (-3, column == np.inf)):
            codes[odd, j] = code
    return codes
