"""The exact privacy loss of a policy's actions at a small horizon, over all reward vectors and all single changes.

Rewards are 0 or 1. The Laplace noise that the code asks for is made discrete on the grid of the values that it hides,
with the rate grid / scale. So each released number takes finitely many values, and the probability of an action
sequence is computed by following the joint distribution of the released numbers, round by round:

* the agent is called once for each state of the released numbers, with the curator's ``raw_`` fields set to NaN or to
  the smallest integer;
* the curator is fed once for each reward vector, and cannot read the released numbers.

So the agent cannot depend on raw rewards, and the curator cannot depend on earlier releases. Nothing else is assumed
about either. Released values are clamped beyond the point where the noise is negligible, which is post-processing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dpbandits.audit.instruments import RAW, Draw, NotVerifiableError, Sealed, Silent, Tape
from dpbandits.parts import arrays, copied
from dpbandits.policies.policy import Policy
from dpbandits.protocols import NO_LINE
from dpbandits.types import Floats, Integers

__all__ = ["Worst", "largest_horizon", "worst_actions"]

NEGLIGIBLE = 28.0  # scales beyond which Laplace noise has probability 1e-12
MOST_STEPS = 64  # the most grid steps on either side, if that is fewer
MAX_PROBABILITIES = 1 << 24  # the most probabilities that are held in memory
TOLERANCE = 1e-9  # relative, for rounding errors

Rewards = tuple[int, ...]
Actions = tuple[int, ...]


class Worst(NamedTuple):
    """The largest loss, and where it occurs: two reward vectors that differ in one round, and an action sequence."""

    epsilon: float
    actions: Actions
    rewards: Rewards
    changed: int  # 0-based round
    probabilities: tuple[float, float]
    sequences: int


class Column(NamedTuple):
    """One released number: its possible values, and their distribution for each reward vector."""

    place: int
    support: Floats
    laws: dict[Rewards, Floats]


class Fed(NamedTuple):
    """The curator after it was fed one reward vector, and what it wrote."""

    raw: Any
    writes: list[tuple[int, Draw | float]]


class State(NamedTuple):
    """The state after ``t`` rounds and one sequence of actions: possible releases, and their distributions."""

    t: int
    actions: Actions
    agent: Any
    curator: Any
    released: Floats  # (states, released numbers)
    laws: dict[Rewards, tuple[Any, Floats]]  # by rewards so far: curator's memory, distribution over the states


def worst_actions(policy: Policy, horizon: int) -> Worst:
    """The largest loss of ``policy``'s first ``horizon`` actions, for two arms and rewards of 0 and 1."""
    if policy.arms != 2:
        raise NotVerifiableError("arms", f"must be 2 to verify actions exactly, got {policy.arms}")
    if any(isinstance(field, tuple) for field in policy.curator):  # type: ignore[attr-defined]
        raise NotVerifiableError("curator", "must be made of one part to verify actions exactly, got several")
    columns = sum(array.size for _, array in _released(policy.curator))
    start = State(0, (), policy.agent, policy.curator, np.zeros((1, columns)), {(): (policy.curator, np.ones(1))})
    found: dict[Actions, Floats] = {}
    _follow(start, horizon, found)
    _check_total(found, horizon)
    return _worst(found, horizon)


def largest_horizon(epsilon: float) -> int:
    """The largest horizon that fits in memory: the distribution of two released numbers for every reward vector.

    >>> largest_horizon(1.0), largest_horizon(0.1)
    (11, 9)
    """
    values = 2 * min(math.ceil(NEGLIGIBLE / epsilon), MOST_STEPS) + 1
    horizon = 1
    while (values + horizon + 1) ** 2 << horizon + 1 <= MAX_PROBABILITIES:
        horizon += 1
    return horizon


def _released(curator: Any) -> Iterator[tuple[str, Any]]:
    return ((name, a) for name, a in arrays(curator) if not name.startswith(RAW) and a.dtype == np.float64)


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
                table[rewards] += law.sum()  # for all values of the last rewards: no action follows them
            continue
        here = state._replace(actions=actions, agent=agent, released=state.released[states], laws=laws)
        _follow(_feed(here, arm, rounds, rounds == stint), horizon, found)


def _choices(state: State) -> dict[tuple[int, int, bytes], tuple[Any, Integers]]:
    """Call the agent in every state. Maps (arm, stint, the agent's memory) to the agent afterwards, and the states."""
    curator, agent = copied(state.curator), copied(state.agent)
    for name, array in arrays(curator):
        if name.startswith(RAW):
            array[...] = np.nan if array.dtype == np.float64 else np.iinfo(np.int64).min
    released = [array for _, array in _released(curator)]
    kept = [(array, array.copy()) for _, array in arrays(agent)]
    groups: dict[tuple[int, int, bytes], tuple[Any, list[int]]] = {}
    for i, row in enumerate(state.released):
        place = 0
        for array in released:
            array.flat = row[place : place + array.size]
            place += array.size
        for array, before in kept:
            array[...] = before
        arm, stint, line = agent.act(curator, state.t + 1, Silent())
        if line > NO_LINE:
            raise NotVerifiableError(
                "stints", "must have a fixed length for an exact check of actions, got one that ends when a mean falls"
            )
        key = (int(arm), int(stint), b"".join(array.tobytes() for array, _ in kept))
        if key not in groups:
            groups[key] = (copied(agent), [])
        groups[key][1].append(i)
    return {key: (agent, np.array(states)) for key, (agent, states) in groups.items()}


def _feed(state: State, arm: int, rounds: int, closes: bool) -> State:
    """Feed the curator all possible rewards of a stint, after each earlier reward vector."""
    fed: dict[Rewards, Fed] = {}
    for rewards, (raw, _) in state.laws.items():
        for more in itertools.product((0, 1), repeat=rounds):
            fed[rewards + more] = _feed_one(raw, arm, more, closes)
    after = {
        b"".join(a.tobytes() for n, a in arrays(one.raw) if not (n.startswith(RAW) or a.dtype == np.float64))
        for one in fed.values()
    }
    if len(after) > 1:
        raise NotVerifiableError("counts", "must not depend on rewards for an exact check of actions, got some that do")
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
    """Feed one curator; return its memory afterwards, and what it released."""
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
        raise NotVerifiableError(
            "noise", "must be drawn anew for each release for an exact check of actions, got one draw in two"
        )
    plain = [np.zeros(f.shape) if isinstance(f, Sealed) else f for f in fields]
    return Fed(type(before)(*plain), writes)


def _keep_out(draw: Draw) -> float:
    raise NotVerifiableError(
        "noise", "must go into a release for an exact check of actions, got noise that is stored or compared"
    )


def _columns(fed: dict[Rewards, Fed]) -> list[Column]:
    """The released numbers that were written, with their distributions. The last write to a place counts."""
    places = {tuple(place for place, _ in one.writes) for one in fed.values()}
    if len(places) > 1:
        raise NotVerifiableError(
            "releases", "must be made whatever the rewards are, for an exact check of actions, got some that are not"
        )
    order = places.pop()
    columns = []
    for place in dict.fromkeys(order):
        position = len(order) - 1 - order[::-1].index(place)
        columns.append(_column(place, {rewards: one.writes[position][1] for rewards, one in fed.items()}))
    return columns


def _column(place: int, writes: dict[Rewards, Draw | float]) -> Column:
    """The distribution of one released number for each reward vector."""
    if not all(isinstance(write, Draw) for write in writes.values()):
        support = np.array(sorted({float(write) for write in writes.values()}))
        return Column(place, support, {r: (support == float(write)).astype(float) for r, write in writes.items()})
    values = {rewards: write.value for rewards, write in writes.items()}  # type: ignore[union-attr]
    scales = {rewards: write.scale for rewards, write in writes.items()}  # type: ignore[union-attr]
    low = min(values.values())
    gaps = np.diff(np.unique(np.array([*values.values()])))
    gaps = gaps[gaps > TOLERANCE * max(scales.values())]
    grid = float(gaps.min()) if gaps.size else max(scales.values())
    steps = {rewards: (value - low) / grid for rewards, value in values.items()}
    if any(abs(step - round(step)) > TOLERANCE for step in steps.values()):
        raise NotVerifiableError("releases", "must lie on a grid for an exact check of actions, got some that do not")
    beyond = min(math.ceil(NEGLIGIBLE * max(scales.values()) / grid), MOST_STEPS)
    top = max(round(step) for step in steps.values()) + beyond
    at = np.arange(-beyond, top + 1)
    laws = {r: discrete_laplace(at - round(steps[r]), grid / scales[r]) for r in writes}
    return Column(place, low + grid * at, laws)


def discrete_laplace(steps: Integers, rate: float) -> Floats:
    """The probabilities tanh(rate/2) e^(-rate |k|) on consecutive ``steps``, with both tails added to the ends.

    >>> discrete_laplace(np.arange(-1, 3), 1.0).round(3).tolist()
    [0.269, 0.462, 0.17, 0.099]
    """
    tail = 1.0 / (1.0 + math.exp(-rate))  # P(noise >= k) = tail e^(-rate k) for k > 0, and likewise below
    law = np.asarray(math.tanh(0.5 * rate) * np.exp(-rate * np.abs(steps)), np.float64)
    law[0] = math.exp(rate * steps[0]) * tail if steps[0] < 0 else 1.0 - math.exp(-rate * (steps[0] + 1)) * tail
    law[-1] = math.exp(-rate * steps[-1]) * tail if steps[-1] > 0 else 1.0 - math.exp(rate * (steps[-1] - 1)) * tail
    return law


def _without(released: Floats, places: list[int]) -> tuple[Floats, Integers]:
    """The distinct states when the numbers at ``places`` are ignored, and the index of each state among them."""
    forgotten = released.copy()
    forgotten[:, places] = 0.0
    different, inverse = np.unique(forgotten, axis=0, return_inverse=True)
    return different, inverse.ravel()


def _check_total(found: dict[Actions, Floats], horizon: int) -> None:
    total = sum(found.values(), np.zeros((2,) * horizon))
    if not np.allclose(total, 1.0, rtol=0.0, atol=1e-9):
        raise ArithmeticError(f"the probabilities of all action sequences add up to {total.min()}..{total.max()}")


def _worst(found: dict[Actions, Floats], horizon: int) -> Worst:
    """The largest ratio of probabilities between reward vectors that differ in one round."""
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
