"""What happens to a decision that is asked for, whatever the database.

``Embedded`` decides on the one state there is; with several workers, each decides on a copy, and one of them folds.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from dpbandits.draws import WatchedGenerator
from dpbandits.service import tokens
from dpbandits.service.experiment import HOLDOUT, POLICY, RANDOM, REPLACED, SHADOW, Experiment
from dpbandits.service.keyring import Keyring
from dpbandits.service.problems import Refusal
from dpbandits.service.state import LiveState
from dpbandits.service.tokens import Lease, Token

__all__ = [
    "SILENT",
    "Ask",
    "LiveRun",
    "Made",
    "choose",
    "fallback",
    "foldable",
    "new_decision",
    "shown",
    "taken",
]  # fmt: skip

#: The levels of decisions to which no response is taken are those from here down: ``silenced`` says of which level.
#: In rows of earlier versions it is this one, whatever the level was.
SILENT = -1


def silenced(level: int) -> int:
    """What is stored as the level of a decision to which no response is taken.

    >>> silenced(0), silenced(1)
    (-2, -3)
    """
    return SILENT - 1 - level


_chance = random.SystemRandom()


@dataclass
class LiveRun:
    """An experiment that runs: its settings, its last state that is on disk, and how often that was written."""

    experiment: Experiment
    state: LiveState
    epoch: int = 0
    draws: int = 0
    changed: int = 0


class Made(NamedTuple):
    """Decisions of one lease that are alike, a row of the table ``decisions``; a single one is a row of its own."""

    experiment: int
    decision: str
    first: int
    items: int
    lease: int
    arm: int
    stint: int
    kind: int
    level: int
    made: int
    version: int
    propensity: float | None
    person: bytes | None
    folded: bool


@dataclass(slots=True)
class Ask:
    """A decision, or a lease of many, that is asked for."""

    experiment: int
    decision: str | None
    person: bytes
    level: int  # which of the experiment's levels
    count: int  # 0 is a single decision


_numbers = itertools.count()
_code = hashlib.blake2s(key=os.urandom(32), digest_size=8)


def _renamed() -> None:
    global _code
    _code = hashlib.blake2s(key=os.urandom(32), digest_size=8)


os.register_at_fork(after_in_child=_renamed)


def new_decision(now: int) -> str:
    """A name for a decision. Names grow, so that rows are appended to the table's index, and nobody can guess them.

    They end with a keyed code of their number. Random bits for each would give the other thread a turn each time.
    """
    number = next(_numbers)
    code = _code.copy()
    code.update(number.to_bytes(8, "big"))
    return f"{now:011x}{number & 0xFFFFF:05x}{code.hexdigest()}"


def taken(experiment: Experiment, made: Made, ask: Ask) -> Refusal | None:
    """The answer to somebody who asks for a stored decision by another request than the first; None to the same one."""
    if (made.person or b"") != ask.person:
        other = "for another user"
    elif made.lease != ask.count:
        other = "with another count"
    elif made.level not in (SILENT, ask.level, silenced(ask.level)):
        other = "with another level"
    else:
        return None
    text = f"decision is taken: {experiment.name} has one of this name, {other}; send the first request again"
    return Refusal(409, f"{text}, or choose another name", parameter="decision")


def choose(
    run: LiveRun, state: LiveState, ask: Ask, silent: bool, now: float, noise: Any, choices: WatchedGenerator
) -> list[Made]:
    """Make decisions on ``state``. Their time is in milliseconds, as tokens have it: responses are awaited by it."""
    made = int(now * 1000)
    now = made / 1000
    name = ask.decision or new_decision(made)
    person = ask.person or None
    experiment = run.experiment
    silent = silent or ask.level in experiment.silent_levels
    if ask.count == 0 and not (silent or experiment.special or state.over):
        choices.used = False
        version = state.version
        arm, stint = state.decide(now, noise, choices)
        likely = None if choices.used else 1.0
        return [Made(experiment.id, name, 0, 1, 0, arm, stint, POLICY, ask.level, made, version, likely, person, True)]
    rows: list[Made] = []
    alike: tuple[tuple[int, int, int, float | None], bool] | None = None
    first = 0
    version, number = state.version, max(ask.count, 1)
    item = 0
    while item < number:
        quiet = silent or state.over  # a lease may go beyond the rounds that a policy is made for
        found = _pick(run, state, ask.person, quiet, now, noise, choices), quiet
        count = 1
        if found != alike:
            if alike is not None:
                rows.append(_row(run, name, ask, first, item - first, *alike, made, version, person))
            alike, first = found, item
        elif not (experiment.special or quiet):  # the first decision of a stint may be random; the others have its arm
            count += state.decide_alike(*found[0][:2], int(min(number - item - 1, state.left)), now)
        item += count
    assert alike is not None
    rows.append(_row(run, name, ask, first, number - first, *alike, made, version, person))
    return rows


def _row(
    run: LiveRun,
    name: str,
    ask: Ask,
    first: int,
    count: int,
    alike: tuple[int, int, int, float | None],
    silent: bool,
    made: int,
    version: int,
    person: bytes | None,
) -> Made:
    arm, stint, kind, propensity = alike
    level = silenced(ask.level) if silent else ask.level
    return Made(
        run.experiment.id,
        name,
        first,
        count,
        ask.count,
        arm,
        stint,
        kind,
        level,
        made,
        version,
        propensity,
        person,
        True,
    )


def _pick(
    run: LiveRun, state: LiveState, person: bytes, silent: bool, now: float, noise: Any, choices: WatchedGenerator
) -> tuple[int, int, int, float | None]:
    """(arm, stint, kind, propensity) of one decision.

    The propensity is the probability of the arm given all that was settled before this decision's own random draw: what
    the policy had been told, which arms are paused, and whether the user is held out. It is None where the policy
    itself chooses at random, because it does not say with which probabilities.
    """
    experiment = run.experiment
    choices.used = False
    if not (experiment.special or silent):
        arm, stint = state.decide(now, noise, choices)
        return arm, stint, POLICY, None if choices.used else 1.0
    instead = fallback(experiment)
    if experiment.holdout > 0.0 and run_share(experiment, person) < experiment.holdout:
        return instead, 0, HOLDOUT if instead == experiment.baseline else REPLACED, 1.0
    if experiment.shadow:
        arm, stint = (-1, 0) if silent else state.decide(now, noise, choices)
        return (arm, stint, POLICY, 1.0) if arm == instead else (instead, 0, SHADOW, 1.0)
    if silent:
        arm, odds = state.peek(now, noise, choices), None if choices.used else 1.0
        return (instead, 0, REPLACED, odds) if arm in experiment.paused else (arm, 0, POLICY, odds)
    return _pick_or_draw(experiment, state, instead, now, noise, choices)


def _pick_or_draw(
    experiment: Experiment, state: LiveState, instead: int, now: float, noise: Any, choices: WatchedGenerator
) -> tuple[int, int, int, float | None]:
    """By the policy or, for a floor or a burn-in, by chance among the arms that are not paused."""
    allowed = [arm for arm in range(len(experiment.arms)) if arm not in experiment.paused]
    by_chance = 1.0 if state.random_decisions < experiment.burn_in else experiment.floor * len(experiment.arms)
    if by_chance > 0.0 and _chance.random() < by_chance:
        kind, arm, preferred = RANDOM, _chance.choice(allowed), state.peek(now, noise, choices)
        state.random_decisions += 1
        stint = state.current()[1] if experiment.by_stint and state.current()[0] == arm else 0
        if stint or not experiment.by_stint:
            state.note(arm, stint, now)
    else:
        kind, (arm, stint) = POLICY, state.decide(now, noise, choices)
        preferred = arm
        if arm in experiment.paused:
            kind, arm, stint = REPLACED, instead, 0
    if choices.used and by_chance < 1.0:
        return arm, stint, kind, None
    preferred = instead if preferred in experiment.paused else preferred
    return arm, stint, kind, by_chance / len(allowed) + (1.0 - by_chance) * (arm == preferred)


def fallback(experiment: Experiment) -> int:
    """The arm of users who get none of the policy's choice: the baseline, or the first that is not paused."""
    if experiment.baseline is not None and experiment.baseline not in experiment.paused:
        return experiment.baseline
    return next((arm for arm in range(len(experiment.arms)) if arm not in experiment.paused), 0)


def run_share(experiment: Experiment, person: bytes) -> float:
    """Where a user stands in [0, 1): fixed for a user who is named, drawn for one who is not."""
    return experiment.keys.chosen(person, experiment.id) if person else _chance.random()


def foldable(experiment: Experiment, kind: int, stint: int) -> bool:
    """Whether the policy learns from it: the policy decided, or chance did and the policy can use the response."""
    return kind == POLICY or (kind == RANDOM and (stint > 0 or not experiment.by_stint))


def shown(experiment: Experiment, rows: list[Made], keys: Keyring) -> bytes:
    """The answer to a request for decisions, as JSON."""
    first = rows[0]
    if first.lease == 0:
        return next(_decisions(experiment, first, (first.decision,), keys)).encode()
    parts: list[str] = []
    for row in rows:
        items = range(row.first, row.first + row.items)
        parts += _decisions(experiment, row, [f"{row.decision}.{item}" for item in items], keys)
    return f'{{"lease":"{first.decision}","decisions":[{",".join(parts)}]}}'.encode()


def _decisions(experiment: Experiment, row: Made, names: Sequence[str], keys: Keyring) -> Iterator[str]:
    """The JSON of the decisions of a row, which differ in their names and tokens."""
    propensity = "null" if row.propensity is None else repr(row.propensity)
    same = f'","arm":{experiment.arms_json[row.arm]},"propensity":{propensity},"version":{row.version},"curator":'
    if row.level <= SILENT:
        for name in names:
            yield f'{{"decision":"{name}{same}null,"token":null}}'
        return
    same += f'{experiment.curators[row.level]}{_deadline(experiment, row)}}},"token":"'
    lease = Lease(row.experiment, row.level, row.kind, row.made, row.person or b"", row.decision)
    token = Token(lease, row.first, row.arm, row.stint)
    items = range(row.first, row.first + row.items)
    for name, text in zip(names, tokens.write_each(token, items, keys), strict=True):
        yield f'{{"decision":"{name}{same}{text}"}}'


def _deadline(experiment: Experiment, row: Made) -> str:
    if experiment.settings.response_window is None:
        return "null"
    if experiment.deadline[0] != row.made:  # those of one commit were made at the same time
        at = row.made / 1000 + experiment.window
        experiment.deadline = (row.made, f'"{datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")}"')
    return experiment.deadline[1]
