"""A curator on symbols, and one round of it: all ways through the code, and what becomes public on each."""

from __future__ import annotations

from typing import Any, NamedTuple

from dpbandits.audit.accounts import Accounts, SymbolicNoise
from dpbandits.audit.counts import Count
from dpbandits.audit.functions import stand_ins
from dpbandits.audit.memory import cells, copy_of_memory, named_arrays, public, symbolic
from dpbandits.audit.poison import Poison
from dpbandits.audit.refusals import Refused
from dpbandits.audit.substitutes import substituted
from dpbandits.audit.symbols import NOISE, Num
from dpbandits.audit.watch import beat

__all__ = ["State", "again", "fresh", "make_public", "step"]

MOST_PATHS = 64  # through one step


class State(NamedTuple):
    """A curator on symbols, and what is public of it."""

    curator: Any
    log: Accounts
    tape: SymbolicNoise  # the curator may hold it, so it is one for all states


def fresh(curator: Any, functions: set[Any]) -> State:
    """The curator on symbols, before the first round."""
    log = Accounts()
    tape = SymbolicNoise(log)
    return State(symbolic(substituted(curator, functions, stand_ins(tape)), tape), log, tape)


def again(state: State) -> State:
    """The same state with memory and knowledge of its own."""
    log = state.log.copy()
    curator = copy_of_memory(state.curator)
    for _, array in named_arrays(curator):
        flat = array.reshape(-1)
        for k, cell in enumerate(flat.tolist()):
            if isinstance(cell, Num):
                flat[k] = cell.again(log)
    return State(curator, log, state.tape)


def step(
    state: State,
    t: int,
    arm: int,
    *,
    add: bool = True,
    close: bool = False,
    show: bool = True,
    number: int | None = None,
) -> list[State]:
    """The states after a round on ``arm``, one for each way through the code. The reward is symbol ``number``, or t."""
    found: list[State] = []
    todo: list[list[bool]] = [[]]
    while todo:
        beat()
        forced = todo.pop()
        child = again(state)
        log, level = child.log, Poison("the user's level, which is not followed in the central model")
        log.forced, log.taken, log.where = forced, [], f"round {t + 1}, arm {arm}"
        child.tape.log = log
        before = cells(child.curator)
        if add:
            reward = log.reward(t if number is None else number)
            sent = child.curator.respond(reward, level, child.tape)
            if not child.curator.accepts(sent):
                raise Refused("accepts turns some rewards down, and whether it does reveals the reward")
            child.curator.add(Count(arm), sent, level, child.tape)
        if close:
            child.curator.close(Count(arm), child.tape)
        if show:
            make_public(child, before)
        found.append(child)
        todo += [[*log.taken[:k], True] for k in range(len(forced), len(log.taken))]
        if len(found) + len(todo) > MOST_PATHS:
            raise Refused(f"round {t + 1}: there are more than {MOST_PATHS} ways through one step")
    return found


def make_public(state: State, before: list[Any]) -> None:
    """Make public everything that was written into public memory. The same form in several places is one number.

    All forms become public at once, so their order may be chosen. Forms with fewer noises come first, because a noise
    that is alone in one form cannot also hide a reward in another.
    """
    written: list[tuple[Any, int, Num]] = []
    place = 0
    for name, array in named_arrays(state.curator):
        flat = array.reshape(-1)
        for k, cell in enumerate(flat.tolist()):
            if public(name) and isinstance(cell, Num) and cell is not before[place]:
                written.append((flat, k, cell))
            place += 1
    shown: dict[int, Num] = {}
    for flat, k, cell in sorted(written, key=lambda one: len(one[2].of(NOISE))):
        if id(cell) not in shown:
            shown[id(cell)] = state.log.release(cell)
        flat[k] = shown[id(cell)]
