"""All choices of arms and of ends of stints, by an argument about the structure of the curator, or one by one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from dpbandits.audit.accounts import Accounts, Deviations
from dpbandits.audit.memory import cells, copy_of_memory, named_arrays, public, same
from dpbandits.audit.poison import Poison, Varies
from dpbandits.audit.refusals import Used
from dpbandits.audit.states import State, again, make_public, step
from dpbandits.audit.symbols import REWARD, Num, added

__all__ = ["Proof", "all_arms_at_once", "each_arm_alone", "every_sequence", "stint_by_stint"]

MOST_STATES = 6000  # that are tried one by one
MOST_STINTS = 64  # rounds that are covered stint by stint, which takes their square

#: A whole number that depends on the arms and the lengths of stints: it may be added to, and nothing else.
UNKNOWN = Varies(2, 0, {(-1, 0): 1})


class Proof(NamedTuple):
    """The largest cost of a reward, and over what it was found."""

    epsilon: float  # the sum of its costs; infinite if something is not under noise, or under normal noise
    costs: frozenset[tuple[float, ...]]  # of all rewards
    how: str  # all choices were covered
    horizon: int  # up to which they were
    complete: bool  # whether that is the horizon asked for
    text: str  # where the largest cost occurs
    tight: bool  # whether epsilon is reached for these choices, and not only an upper bound
    on_grid: bool  # whether it holds for exact noise too
    leaks: bool  # whether something is not under noise
    fixed: bool  # whether a reward's costs are fixed beforehand, whatever is chosen; a choice may still end them early
    stints: bool = False  # whether ``horizon`` bounds each stint, and not all rounds


def _proof(logs: Iterable[Accounts], how: str, horizon: int, complete: bool, arms: int = 1) -> Proof:
    """The worst of these logs. Rewards are numbered by round, or by round and arm."""
    worst, text, tight, on_grid, leaks = 0.0, "nothing is released", True, True, False
    every: dict[int, set[tuple[float, ...]]] = {}
    for log in logs:
        on_grid, leaks = on_grid and log.on_grid, leaks or log.leak is not None
        for number, costs in log.costs.items():
            every.setdefault(number, set()).add(costs)
            total = math.inf if any(isinstance(cost, Deviations) for cost in costs) else math.fsum(costs)
            if total > worst:
                worst, tight = total, log.tight
                text = f"reward {number // arms + 1} is under {len(costs)} noises, and loses "
                text += " + ".join(f"{cost:.4g}" for cost in costs[:12]) + (" + .." if len(costs) > 12 else "")
                text += " standard deviations" if math.isinf(total) else ""
        if log.leak is not None and not math.isinf(worst):
            worst, text, tight = math.inf, log.leak, log.tight
    fixed = all(_one_after_another(choices) for choices in every.values())
    costs_of_all = frozenset(costs for choices in every.values() for costs in choices)
    return Proof(worst, costs_of_all, how, horizon, complete, text, tight, on_grid, leaks, fixed)


def _one_after_another(choices: set[tuple[float, ...]]) -> bool:
    """Whether these are the beginnings of one sequence."""
    longest = max(choices, key=len)
    return all(costs == longest[: len(costs)] for costs in choices)


def every_sequence(start: State, arms: int, horizon: int) -> Proof:
    """All choices of arms and of ends of stints, for as many rounds as can be tried, at most ``horizon``."""
    level, t, seen, leaked = [start], 0, 1, []
    while t < horizon and seen + len(level) * 2 * arms <= MOST_STATES:
        after: list[State] = []
        for state in level:
            for arm in range(arms):
                for open_ in step(state, t, arm):
                    after.append(open_)
                    for closed in step(open_, t, arm, add=False, close=True):
                        if not all(map(same, cells(open_.curator), cells(closed.curator))):
                            after.append(closed)
        level, t, seen = after, t + 1, seen + len(after)
        leaked = [state for state in level if state.log.leak is not None]
        if leaked:
            break
    how = "every sequence of arms and ends of stints"
    return _proof([state.log for state in leaked or level], how, t, t >= horizon or bool(leaked))


def each_arm_alone(start: State, arms: int, horizon: int) -> Proof | None:
    """All choices for many rounds, if arms are independent, and ends of stints do nothing or forget everything.

    Each arm is played alone while the memory of the others is poison: using, moving or overwriting it ends the
    argument. So nothing that is done between two rounds of an arm matters to it, by induction over its rounds. What is
    left to choose is where its stints end:

    * Closing changes no cell, after any number of rounds. Then stints do not matter, and the run is every run. Or
    * closing leaves the arm's raw cells as they were at the start, after any number of rounds, and the public cells are
      never used by ``add`` and ``close``, which poison shows again. Then every stint is a first stint, and its rewards
      are in no other, by induction over stints. A raw cell that is left different is poison from the start as well: it
      may be overwritten, and must not be used before.
    """
    found: list[Accounts] = []
    by_stint = True
    try:
        for arm in range(arms):
            logs = _alone(start, arm, arms, horizon, stints=False, dead=set())
            by_stint = by_stint and logs is None
            dead: set[int] = set()
            while logs is None:
                known = len(dead)
                logs = _alone(start, arm, arms, horizon, stints=True, dead=dead)
                if logs is None and len(dead) == known:
                    return None
            found += logs
    except Used:
        return None
    proof = _proof(found, "every sequence of arms and ends of stints, by each arm alone", horizon, True)
    return proof._replace(stints=by_stint)


def _alone(start: State, arm: int, arms: int, horizon: int, *, stints: bool, dead: set[int]) -> list[Accounts] | None:
    """The runs of one arm. None if the argument fails; then ``dead`` has got the cells that were left different."""
    state = again(start)
    own: list[bool] = []
    held: list[bool] = []
    for name, array in named_arrays(state.curator):
        flat, width = array.reshape(-1), max(array.size // max(len(array), 1), 1)
        for k in range(array.size):
            place = len(own)
            own.append(len(array) >= arms and k // width == arm)
            held.append(own[-1] and not public(name) and place not in dead)
            if not own[-1] or (stints and public(name)) or place in dead:
                flat[k] = Poison()  # one for each cell, so that moving it shows
    initial, ended = cells(state.curator), []
    for t in range(horizon):
        after = step(state, t, arm)
        if len(after) != 1 or not _untouched(initial, after[0], own):
            return None
        state = after[0]
        for closed in step(state, t, arm, add=False, close=True):
            now = cells(closed.curator)
            if not _untouched(initial, closed, own):
                return None
            if not stints and not all(map(same, now, cells(state.curator))):
                return None
            different = {k for k, mine in enumerate(held) if mine and not same(initial[k], now[k])}
            if stints and different:
                dead |= different
                return None
            ended.append(closed.log)
        if ended[-1].leak is not None:
            break
    return ended if stints else [*ended[-1:], state.log]


def stint_by_stint(start: State, arms: int, horizon: int) -> Proof | None:
    """All choices, where ``close`` builds on what was released, and each stint forgets its rewards.

    Each arm is played alone, as above. From the start of its k-th stint on, the stint is ended after every number of
    rounds. The raw cells must then be as at the start, so that no later stint has anything of its rewards. What a
    public cell holds is kept for the next stint if it is the same whatever the length was. Otherwise a float becomes a
    number of which nothing is known but that it is public, and an integer one that may be added to, and nothing else.
    So the next start stands for all lengths of all stints before, by induction over stints.
    """
    rounds = min(horizon, MOST_STINTS)
    found: list[Accounts] = []
    try:
        for arm in range(arms):
            state, own = again(start), []
            for _, array in named_arrays(state.curator):
                flat, width = array.reshape(-1), max(array.size // max(len(array), 1), 1)
                for k in range(array.size):
                    own.append(len(array) >= arms and k // width == arm)
                    if not own[-1]:
                        flat[k] = Poison()
            for first in range(rounds):
                ended = _one_stint(state, first, arm, rounds, own)
                if ended is None:
                    return None
                found += [closed.log for closed in ended]
                if ended[-1].log.leak is not None:
                    break
                state = _next_start(state, ended)
    except Used:
        return None
    how = "every sequence of arms and ends of stints, by each arm alone, stint by stint"
    return _proof(found, how, rounds, rounds == horizon)


def _one_stint(start: State, first: int, arm: int, rounds: int, own: list[bool]) -> list[State] | None:
    """The states after a stint of every length that begins in round ``first``; None if it does not forget."""
    initial = cells(start.curator)
    hidden = [not public(name) for name, array in named_arrays(start.curator) for _ in range(array.size)]
    state, ended = start, []
    for t in range(first, rounds):
        after = step(state, t, arm)
        closed = step(after[0], t, arm, add=False, close=True)
        if len(after) + len(closed) != 2 or not all(_untouched(initial, one, own) for one in (*after, *closed)):
            return None
        now = cells(closed[0].curator)
        if any(
            raw and mine and not same(initial[k], now[k]) for k, (raw, mine) in enumerate(zip(hidden, own, strict=True))
        ):
            return None
        state = after[0]
        ended += closed
        if closed[0].log.leak is not None:
            break
    return ended


def _next_start(start: State, ended: list[State]) -> State:
    """The common part of these states. About the rest, nothing is known except that it is public."""
    log = Accounts()
    made = State(copy_of_memory(ended[0].curator), log, start.tape)
    every = [cells(state.curator) for state in ended]
    place = 0
    for _, array in named_arrays(made.curator):
        flat = array.reshape(-1)
        for k in range(flat.size):
            cell = every[0][place]
            if isinstance(cell, Num) or not all(same(cell, other[place]) for other in every):
                numbers = [other[place] for other in every]
                whole = any(isinstance(number, int | Poison) for number in numbers)
                flat[k] = UNKNOWN if whole else log.release(Num(log, 0.0, 1, {}, max(map(_peak, numbers)), grid=False))
            place += 1
    return made


def _peak(cell: Any) -> float:
    return cell.peak if isinstance(cell, Num) else abs(cell)


def _untouched(initial: list[Any], state: State, own: list[bool]) -> bool:
    """Whether all cells of other arms are unchanged, and the played arm's cells hold only values that they may."""
    now = cells(state.curator)
    return all(a is b or (mine and _allowed(b)) for a, b, mine in zip(initial, now, own, strict=True))


def _allowed(cell: Any) -> bool:
    """Whether a cell of the played arm may hold this: no poison, except a count that varies with the arms played."""
    return not isinstance(cell, Poison) or isinstance(cell, Varies)


def all_arms_at_once(start: State, arms: int, horizon: int) -> Proof | None:
    """All choices for many rounds, where every round enters a number for every arm: 0 for arms that were not played.

    Each round has one symbol for each arm. The played arm's is the reward, and the others are 0. A run on symbols holds
    for all their values, 0 included. So if playing arm a and playing arm b leave the same memory except for their
    symbols, the memory with all symbols stands for both, and one run covers every sequence of arms. Plain numbers that
    differ depend only on the arms (``Varies``). Ends of stints must do nothing.
    """
    state = start
    try:
        for t in range(horizon):
            played = []
            for arm in range(arms):
                after = step(state, t, arm, show=False, number=t * arms + arm)
                closed = step(after[0], t, arm, add=False, close=True, show=False)
                if len(after) + len(closed) != 2:
                    return None
                if not all(map(same, cells(after[0].curator), cells(closed[0].curator))):
                    return None
                played += after
            merged = _merged(state, played, t)
            if merged is None:
                return None
            state = merged
            if state.log.leak is not None:
                break
    except Used:
        return None
    return _proof([state.log], "every sequence of arms, by all arms at once", horizon, True, arms)


def _merged(before: State, played: list[State], t: int) -> State | None:
    """The memory that stands for all of ``played``; None if there is none."""
    log = played[0].log.copy()
    if any(
        (child.log.scales, child.log.normal) != (log.scales, log.normal) or child.log.leak != before.log.leak
        for child in played
    ):
        return None
    log.where = f"round {t + 1}"
    made = State(copy_of_memory(played[0].curator), log, before.tape)
    was, alternatives = cells(before.curator), [cells(child.curator) for child in played]
    place = 0
    for _, array in named_arrays(made.curator):
        flat = array.reshape(-1)
        for k in range(flat.size):
            cell = _together([child[place] for child in alternatives], t, log)
            if cell is None:
                return None
            flat[k] = was[place] if same(cell, was[place]) else cell
            place += 1
    make_public(made, was)
    return made


def _together(alternatives: list[Any], t: int, log: Accounts) -> Any:
    """One number for what a cell holds after each of the arms was played; None if there is none."""
    first, arms = alternatives[0], len(alternatives)
    if not any(isinstance(one, Num) for one in alternatives):
        if all(same(first, other) for other in alternatives):
            return first
        return _counted(alternatives, t, arms)
    terms: dict[Any, Any] = {}
    base = None
    for arm, one in enumerate(alternatives):
        form = one if isinstance(one, Num) else Num(log, one, 1, {}, abs(one)) if isinstance(one, float | int) else None
        if form is None:
            return None
        rest: dict[Any, Any] = {}
        for term, c in form.terms.items():
            new = term[0] == REWARD and term[1] >= t * arms
            if new and term[1] != t * arms + arm:
                return None
            (terms if new else rest)[term] = form.factor * c
        if base is not None and (form.const, rest) != base:
            return None
        base = (form.const, rest)
    if base is None:
        return None
    peak = max(one.peak if isinstance(one, Num) else abs(one) for one in alternatives)
    forms = [one for one in alternatives if isinstance(one, Num)]
    noisy, off = any(form.noisy for form in forms), any(form.off for form in forms)
    return Num(log, base[0], 1, added(base[1], terms, 1), peak, noisy, all(form.grid for form in forms), off)


def _counted(alternatives: list[Any], t: int, arms: int) -> Any:
    """Whole numbers that differ between the arms."""
    numbers = [(one.base, one.marks) if isinstance(one, Varies) else (one, {}) for one in alternatives]
    if any(not isinstance(base, int) or marks != numbers[0][1] for base, marks in numbers):
        return None
    least = min(base for base, _ in numbers)
    marks = {(t, arm): base - least for arm, (base, _) in enumerate(numbers) if base > least}
    return Varies(arms, least, {**numbers[0][1], **marks})
