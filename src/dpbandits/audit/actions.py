"""The exact privacy loss of a policy's actions, at a small horizon: every reward vector, every single change.

Rewards are 0 or 1, and the noise that the code asks for is put on the grid of the values that it hides: discrete
Laplace noise at the rate grid / scale. Then what is released is one of finitely many numbers, and the probability of an
action sequence is found by following the joint law of the released numbers, round by round:

* the agent is asked once for each state of the released numbers, with the curator's ``raw_`` fields poisoned;
* the curator is fed once for each reward vector, with the released numbers sealed against reading;

so neither can depend on what it must not, and nothing is assumed about how either works. Released values are clamped a
little beyond where the noise is negligible, which is post-processing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dpbandits.audit.instruments import RAW, Draw, NotVerifiableError, Sealed, Silent, Tape, copy_part, memory
from dpbandits.policies.policy import Policy
from dpbandits.protocols import NO_LINE, Floats, Integers

__all__ = ["Worst", "largest_horizon", "worst_actions"]

NEGLIGIBLE = 28.0  # noise beyond this many scales: probability 1e-12
MOST_STEPS = 64  # .. but no more than so many steps of the grid
CELLS = 1 << 24  # numbers that the law of the released values may take
CLOSE = 1e-9  # of the grid: how far off it a value may be for rounding

Rewards = tuple[int, ...]
Actions = tuple[int, ...]


class Worst(NamedTuple):
    """The largest loss, and where it is: two reward vectors that differ in one round, and an action sequence."""

    epsilon: float
    actions: Actions
    rewards: Rewards
    changed: int  # 0-based round
    probabilities: tuple[float, float]
    sequences: int


class Column(NamedTuple):
    """One released number: the values that it can take, and their law for each reward vector."""

    place: int
    support: Floats
    laws: dict[Rewards, Floats]


class Fed(NamedTuple):
    """What feeding one reward vector did to the curator."""

    raw: Any
    writes: list[tuple[int, Draw | float]]


class State(NamedTuple):
    """All that can have happened up to a round, for one sequence of actions."""

    t: int
    actions: Actions
    agent: Any
    curator: Any
    released: Floats  # (states, released numbers)
    laws: dict[Rewards, tuple[Any, Floats]]  # rewards so far: the curator's memory, and the law over the states


def worst_actions(policy: Policy, horizon: int) -> Worst:
    """The largest loss of ``policy``'s first ``horizon`` actions, for two arms and rewards of 0 and 1."""
    if policy.arms != 2:
        raise NotVerifiableError(f"arms must be 2 to verify actions exactly, got {policy.arms}")
    if any(isinstance(field, tuple) for field in policy.curator):  # type: ignore[attr-defined]
        raise NotVerifiableError("curator must be made of one part to verify actions exactly, got several")
    columns = sum(array.size for _, array in _released(policy.curator))
    start = State(0, (), policy.agent, policy.curator, np.zeros((1, columns)), {(): (policy.curator, np.ones(1))})
    found: dict[Actions, Floats] = {}
    _follow(start, horizon, found)
    _check_total(found, horizon)
    return _worst(found, horizon)


def largest_horizon(epsilon: float) -> int:
    """The most rounds that fit: the law over two released numbers, for every reward vector.

    >>> largest_horizon(1.0), largest_horizon(0.1)
    (11, 9)
    """
    values = 2 * min(math.ceil(NEGLIGIBLE / epsilon), MOST_STEPS) + 1
    horizon = 1
    while (values + horizon + 1) ** 2 << horizon + 1 <= CELLS:
        horizon += 1
    return horizon


def _released(curator: Any) -> Iterator[tuple[str, Any]]:
    return ((name, a) for name, a in memory(curator) if not name.startswith(RAW) and a.dtype == np.float64)


def _follow(state: State, horizon: int, found: dict[Actions, Floats]) -> None:
    """Add the probabilities of all action sequences that begin as ``state`` does."""
    for (arm, stint, _), (agent, states) in _choices(state).items():
        rounds = min(stint, horizon - state.t)
        actions = state.actions + (arm,) * rounds
        laws = {rewards: (raw, law[states]) for rewards, (raw, law) in state.laws.items()}
        if not any(law.any() for _, law in laws.values()):
            continue
        if state.t + rounds == horizon:
            table = found.setdefault(actions, np.zeros((2,) * horizon))
            for rewards, (_, law) in laws.items():
                table[rewards] += law.sum()  # whatever the last rewards are: nothing is decided on them
            continue
        here = state._replace(actions=actions, agent=agent, released=state.released[states], laws=laws)
        _follow(_feed(here, arm, rounds, rounds == stint), horizon, found)


def _choices(state: State) -> dict[tuple[int, int, bytes], tuple[Any, Integers]]:
    """Ask the agent in every state: (arm, stint, its memory) to the agent as it is then, and the states."""
    curator, agent = copy_part(state.curator), copy_part(state.agent)
    for name, array in memory(curator):
        if name.startswith(RAW):
            array[...] = np.nan if array.dtype == np.float64 else np.iinfo(np.int64).min
    arrays = [array for _, array in _released(curator)]
    kept = [(array, array.copy()) for _, array in memory(agent)]
    groups: dict[tuple[int, int, bytes], tuple[Any, list[int]]] = {}
    for i, row in enumerate(state.released):
        place = 0
        for array in arrays:
            array.flat = row[place : place + array.size]
            place += array.size
        for array, before in kept:
            array[...] = before
        arm, stint, line = agent.act(curator, state.t + 1, Silent())
        if line > NO_LINE:
            raise NotVerifiableError(
                "stints must stand to be verified by actions, got one that ends where a mean falls"
            )
        key = (int(arm), int(stint), b"".join(array.tobytes() for array, _ in kept))
        if key not in groups:
            groups[key] = (copy_part(agent), [])
        groups[key][1].append(i)
    return {key: (agent, np.array(states)) for key, (agent, states) in groups.items()}


def _feed(state: State, arm: int, rounds: int, closes: bool) -> State:
    """Feed the curator with all rewards of a stint, for each reward vector before it."""
    fed: dict[Rewards, Fed] = {}
    for rewards, (raw, _) in state.laws.items():
        for more in itertools.product((0, 1), repeat=rounds):
            fed[rewards + more] = _feed_one(raw, arm, more, closes)
    after = {
        b"".join(a.tobytes() for n, a in memory(one.raw) if not (n.startswith(RAW) or a.dtype == np.float64))
        for one in fed.values()
    }
    if len(after) > 1:
        raise NotVerifiableError("counts must not depend on rewards to be verified by actions, got some that do")
    columns = _columns(fed)
    released, inverse = _without(state.released, [column.place for column in columns])
    laws = {}
    for rewards, one in fed.items():
        old = state.laws[rewards[: state.t]][1]
        law: Floats = np.bincount(inverse, old, len(released)).astype(np.float64)
        for column in columns:
            law = np.multiply.outer(law, column.laws[rewards]).ravel()
        laws[rewards] = (one.raw, law)
    for column in columns:
        count = len(column.support)
        released = np.repeat(released, count, axis=0)
        released[:, column.place] = np.tile(column.support, len(released) // count)
    return State(state.t + rounds, state.actions, state.agent, next(iter(fed.values())).raw, released, laws)


def _feed_one(before: Any, arm: int, rewards: Rewards, closes: bool) -> Fed:
    """Feed one curator; its memory afterwards, and what it released."""
    writes: list[tuple[int, Draw | float]] = []
    fields, place = [], 0
    for name, value in before._asdict().items():
        if not isinstance(value, np.ndarray):
            fields.append(value)
        elif not name.startswith(RAW) and value.dtype == np.float64:
            fields.append(Sealed.like(value, writes, place))
            place += value.size
        else:
            fields.append(value.copy())
    curator, tape = type(before)(*fields), Tape(_keep_out)
    for reward in rewards:
        curator.add(arm, curator.respond(float(reward), 0.0, tape), 0.0, tape)
    if closes:
        curator.close(arm, tape)
    roots = [write.root for _, write in writes if isinstance(write, Draw)]
    if len({*roots}) < len(roots):
        raise NotVerifiableError("each noise must be in one release to be verified by actions, got one in several")
    plain = [np.zeros(f.shape) if isinstance(f, Sealed) else f for f in fields]
    return Fed(type(before)(*plain), writes)


def _keep_out(draw: Draw) -> float:
    raise NotVerifiableError(
        "noise must go into a release to be verified by actions, got noise that is kept or compared"
    )


def _columns(fed: dict[Rewards, Fed]) -> list[Column]:
    """The released numbers that were written, with their laws; the last of several writes to one place stands."""
    places = {tuple(place for place, _ in one.writes) for one in fed.values()}
    if len(places) > 1:
        raise NotVerifiableError(
            "what is released must not depend on rewards to be verified by actions, got some that does"
        )
    order = places.pop()
    columns = []
    for place in dict.fromkeys(order):
        position = len(order) - 1 - order[::-1].index(place)
        columns.append(_column(place, {rewards: one.writes[position][1] for rewards, one in fed.items()}))
    return columns


def _column(place: int, writes: dict[Rewards, Draw | float]) -> Column:
    """The law of one released number for each reward vector."""
    if not all(isinstance(write, Draw) for write in writes.values()):
        support = np.array(sorted({float(write) for write in writes.values()}))
        return Column(place, support, {r: (support == float(write)).astype(float) for r, write in writes.items()})
    values = {rewards: write.value for rewards, write in writes.items()}  # type: ignore[union-attr]
    scales = {rewards: write.scale for rewards, write in writes.items()}  # type: ignore[union-attr]
    low = min(values.values())
    gaps = np.diff(np.unique(np.array([*values.values()])))
    gaps = gaps[gaps > CLOSE * max(scales.values())]
    grid = float(gaps.min()) if gaps.size else max(scales.values())
    steps = {rewards: (value - low) / grid for rewards, value in values.items()}
    if any(abs(step - round(step)) > CLOSE for step in steps.values()):
        raise NotVerifiableError("released values must lie on a grid to be verified by actions, got some that do not")
    beyond = min(math.ceil(NEGLIGIBLE * max(scales.values()) / grid), MOST_STEPS)
    top = max(round(step) for step in steps.values()) + beyond
    at = np.arange(-beyond, top + 1)
    laws = {r: discrete_laplace(at - round(steps[r]), grid / scales[r]) for r in writes}
    return Column(place, low + grid * at, laws)


def discrete_laplace(steps: Integers, rate: float) -> Floats:
    """The law tanh(rate/2) e^(-rate |k|) on consecutive ``steps``, with what is beyond them at the ends.

    >>> discrete_laplace(np.arange(-1, 3), 1.0).round(3).tolist()
    [0.269, 0.462, 0.17, 0.099]
    """
    tail = 1.0 / (1.0 + math.exp(-rate))  # P(noise >= k) = tail e^(-rate k) for k > 0, and likewise below
    law = np.asarray(math.tanh(0.5 * rate) * np.exp(-rate * np.abs(steps)), np.float64)
    law[0] = math.exp(rate * steps[0]) * tail if steps[0] < 0 else 1.0 - math.exp(-rate * (steps[0] + 1)) * tail
    law[-1] = math.exp(-rate * steps[-1]) * tail if steps[-1] > 0 else 1.0 - math.exp(rate * (steps[-1] - 1)) * tail
    return law


def _without(released: Floats, places: list[int]) -> tuple[Floats, Integers]:
    """The different states when some numbers are forgotten, and which of them each state becomes."""
    forgotten = released.copy()
    forgotten[:, places] = 0.0
    different, inverse = np.unique(forgotten, axis=0, return_inverse=True)
    return different, inverse.ravel()


def _check_total(found: dict[Actions, Floats], horizon: int) -> None:
    total = sum(found.values(), np.zeros((2,) * horizon))
    if not np.allclose(total, 1.0, rtol=0.0, atol=1e-9):
        raise ArithmeticError(f"the probabilities of all action sequences add up to {total.min()}..{total.max()}")


def _worst(found: dict[Actions, Floats], horizon: int) -> Worst:
    """The largest ratio between reward vectors that differ in one round."""
    worst = Worst(0.0, (), (), 0, (1.0, 1.0), len(found))
    for actions, table in found.items():
        for changed in range(horizon):
            zero, one = np.moveaxis(table, changed, 0)
            with np.errstate(divide="ignore", invalid="ignore"):
                loss = np.nan_to_num(np.abs(np.log(zero) - np.log(one)), nan=0.0, posinf=np.inf)
            where = np.unravel_index(int(np.argmax(loss)), loss.shape)
            if loss[where] > worst.epsilon:
                bits = [int(bit) for bit in where]
                rewards = (*bits[:changed], 0, *bits[changed:])
                pair = (float(zero[where]), float(one[where]))
                worst = Worst(float(loss[where]), actions, rewards, changed, pair, len(found))
    return worst
