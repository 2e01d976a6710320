"""Looks for two plays that break a claim: the policy itself, on plain rewards that differ in one round.

Where the promise is one for users, they differ in as many rounds in a row as a user has rewards.

The first play shows noisy numbers that are chosen here. In the second play the same numbers are shown, because its
noise takes up the difference. So both plays show the same, and the ratio of their probability densities at that point
is known. If a number without noise differs nevertheless, such as an arm, then the loss is infinite. The agent is the
policy's own, on the curator itself, with nothing hidden from it.

A point where the density ratio exceeds e^epsilon refutes the claim, because the densities are continuous. There are
three conditions: each shown number has one new noise, nothing private was decided by noise, and plays can be repeated.
If one of them fails, the search gives no answer.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dpbandits.audit.accounts import Accounts, SymbolicNoise, outcome
from dpbandits.audit.memory import check_memory, equal, named_arrays, public, symbolic
from dpbandits.audit.reading import read_curator
from dpbandits.audit.refusals import Refused, Used
from dpbandits.audit.substitutes import substituted
from dpbandits.audit.symbols import NOISE, Num, plain
from dpbandits.audit.watch import beat
from dpbandits.draws import WatchedGenerator
from dpbandits.exact import SystemNoise
from dpbandits.policies.policy import Policy
from dpbandits.protocols import NO_LINE

__all__ = ["Event", "Play", "Stage", "Witness", "changed_to", "different_action", "find_witness"]

#: Rewards to which a reward is changed: both ends, some between, and some that must be clamped.
SPECIAL = (0.0, 1.0, 0.5, 0.3, 0.9, math.nan, math.inf, -math.inf, 7.0, -1.0)
ROUNDS = 12
TOLERANCE = 1e-7  # between numbers that are equal but for rounding
MOST_EVENTS = 100_000
MOST_PLAYED = 60_000  # rounds of one search
SEED = 7
CHOICE = "choice of an arm"  # what an event is about; other events are about a field, and no field has such a name


class Event(NamedTuple):
    """Something that is shown: where, and a plain value, or the log density of the noisy number that is shown."""

    what: tuple[Any, ...]
    value: Any  # None for a noisy number
    density: float


class Play(NamedTuple):
    """What a play shows."""

    events: list[Event]
    numbers: list[float]  # the noisy numbers that are shown, in turn
    certain: bool  # whether noise decided nothing that is not shown
    chance: bool  # whether the agent has chance of its own


class Witness(NamedTuple):
    """Two sequences of rewards that differ in one round, or in those of a user, and what shows it."""

    epsilon: float
    rewards: tuple[float, ...]
    changed: range  # 0-based rounds
    value: float  # what these rewards are changed to
    arms: tuple[int, ...]  # that are played
    event: str
    at_once: bool  # whether nothing noisy is shown before it, so that it always happens


class Chosen(Accounts):
    """Noisy numbers become plain ones when they are shown: those given, or else chosen in units of their scale."""

    strict = False  # infinite rewards are tried as they are

    def __init__(self, targets: Sequence[float], numbers: Sequence[float] | None) -> None:
        super().__init__()
        self.targets, self.given = targets, numbers
        self.values: dict[int, float] = {}  # of the noises
        self.events: list[Event] = []
        self.numbers: list[float] = []
        self.certain = True

    def settle(self, form: Num, what: tuple[Any, ...]) -> float:
        """The value of a noisy number."""
        noises = {term[1]: float(c) for term, c in form.of(NOISE).items()}
        known = form.const + math.fsum(f * self.values[j] for j, f in noises.items() if j in self.values)
        fresh = [j for j in noises if j not in self.values]
        if not fresh or not math.isfinite(known):
            self.events.append(Event(what, known, 0.0))
            return known
        if len(self.events) > MOST_EVENTS:
            raise Refused("the code draws noise without end")
        pivot = max(fresh, key=lambda j: abs(noises[j]) * self.scales[j])
        for j in fresh:
            self.certain = self.certain and j == pivot
            self.values[j] = 0.37 * self.scales[j]
        rest = known + math.fsum(noises[j] * self.values[j] for j in fresh if j != pivot)
        f, scale, k = noises[pivot], self.scales[pivot], len(self.numbers)
        shown = self.targets[k % len(self.targets)] * abs(f) * scale
        if self.given is not None and k < len(self.given):
            shown = self.given[k]
        self.numbers.append(shown)
        self.values[pivot] = (shown - rest) / f
        self.events.append(Event(what, None, -abs(self.values[pivot]) / scale - math.log(2.0 * scale * abs(f))))
        return shown

    def compare(self, form: Any, kind: str) -> bool:
        if not isinstance(form, Num):
            return outcome(kind, form)
        return outcome(kind, self.number(form, "compare"))

    def against_infinity(self, form: Num, other: float, kind: str) -> bool:
        return outcome(kind, other)

    def number(self, form: Num, how: str) -> float:
        self.certain = False
        return self.settle(form, ("looked at",))


class ChosenNoise(SymbolicNoise):
    """As a curator's source of noise; it can also draw several numbers at once."""

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        if size is not None:
            drawn = np.empty(size, object)
            for place in np.ndindex(drawn.shape):
                drawn[place] = self.laplace(loc, scale)
            return drawn
        scale = float(scale)
        if scale == 0.0:
            return loc
        if not 0.0 < scale < math.inf:
            raise Refused(f"the scale of the noise is {scale:g}")
        return self.log.noise(scale) + loc

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        raise Refused("plays are compared on Laplace noise, and the curator's noise is normal")


class Stage:
    """A policy, ready to be played on chosen noise many times."""

    def __init__(self, policy: Policy) -> None:
        check_memory(policy.curator, "curator")
        self.policy, self.tape, self.curator = policy, ChosenNoise(Accounts()), policy.curator
        self.played = 0  # rounds
        self.rewards_per_user = policy.rewards_per_user or 1
        try:  # exact noise of its own comes from the tape too
            functions = read_curator(policy.curator)
            self.curator = substituted(policy.curator, functions, {SystemNoise: self.tape})
        except Refused:
            pass

    def play(self, rewards: Sequence[float], targets: Sequence[float], numbers: Sequence[float] | None = None) -> Play:
        """One play on these rewards, which shows these ``numbers``, or such as ``targets`` say."""
        self.played += len(rewards)
        log, chance = Chosen(targets, numbers), WatchedGenerator(np.random.default_rng(SEED))
        tape, self.tape.log = self.tape, log
        curator, agent = symbolic(copy.deepcopy(self.curator), tape, free=True), copy.deepcopy(self.policy.agent)
        shown = {place: plain(cell) for place, cell in _public(curator)}
        arm, left, line = 0, 0, NO_LINE
        for t, reward in enumerate(rewards):
            beat()
            if left == 0:
                answer = agent.act(curator, t + 1, chance)  # type: ignore[arg-type]
                if not answer[1] >= 1:
                    raise Refused(f"act answers a stint of {answer[1]} rounds")
                arm, left, line = int(answer[0]), int(answer[1]), float(answer[2])
                log.events.append(Event((CHOICE, t), (arm, left, line), 0.0))
                if not 0 <= arm < self.policy.arms or left < 1:
                    raise Refused(f"act answers arm {arm} for {left} rounds")
            curator.add(arm, curator.respond(reward, 0.0, tape), 0.0, tape)
            left -= 1
            _show(curator, log, shown, t)
            if left == 0:
                curator.close(arm, tape)
                _show(curator, log, shown, t)
            elif line > NO_LINE and curator.mean(arm) <= line:
                left = 0
        return Play(log.events, log.numbers, log.certain, chance.used)

    def check_repeatable(self, rewards: list[float], other: list[float], first: Play, targets: Sequence[float]) -> None:
        """Refuse a policy whose plays cannot be repeated."""
        again = [self.play(r, targets, first.numbers) for r in (rewards, other, rewards, other)]
        if not (_same(first, again[0]) and _same(again[0], again[2]) and _same(again[1], again[3])):
            raise Refused("two plays on the same rewards and the same noise differ: the policy has a source of its own")


def _public(curator: Any) -> Iterator[tuple[tuple[str, int], Any]]:
    for name, array in named_arrays(curator):
        if public(name):
            yield from (((name, k), cell) for k, cell in enumerate(array.reshape(-1).tolist()))


def _show(curator: Any, log: Chosen, shown: dict[tuple[str, int], Any], t: int) -> None:
    """Show what has changed in public memory."""
    flats = {name: array.reshape(-1) for name, array in named_arrays(curator)}
    for (name, k), cell in list(_public(curator)):
        if isinstance(cell, Num):
            flats[name][k] = shown[name, k] = log.settle(cell, (name, k, t))
        elif not _equal(cell, shown[name, k]):
            shown[name, k] = plain(cell)
            log.events.append(Event((name, k, t), plain(cell), 0.0))


def _equal(a: Any, b: Any) -> bool:
    return equal(a, b) if isinstance(a, float) and isinstance(b, float) else bool(a == b)


def _nearly(a: Any, b: Any) -> bool:
    floats = isinstance(a, float) and isinstance(b, float)
    return floats and abs(a - b) <= TOLERANCE * (1.0 + abs(a))


class Loss(NamedTuple):
    """The log ratio of two densities, and what shows it."""

    epsilon: float
    event: str
    noisy: int  # numbers that are shown before
    action: bool = False  # whether an action differs although all that was shown before is the same


def loss(one: Play, two: Play) -> Loss:
    """The log ratio of the densities of two plays that show the same numbers, and what shows it.

    It is infinite at the first plain thing that differs, and 0 where nothing can be said.
    """
    total, noisy = 0.0, 0
    for k in range(max(len(one.events), len(two.events))):
        a, b = (play.events[k] if k < len(play.events) else Event(("nothing",), None, 0.0) for play in (one, two))
        if a.what == b.what and a.value is None and b.value is None:
            total, noisy = total + a.density - b.density, noisy + 1
            continue
        if a.what == b.what and a.value is not None and b.value is not None:
            if _equal(a.value, b.value):
                continue
            if _nearly(a.value, b.value):
                return Loss(0.0, "", noisy)  # rounding, or nearly nothing
        if one.chance or two.chance:
            return Loss(0.0, "", noisy)  # the agent's own chance may hide it
        action = a.what == b.what and a.what[0] == CHOICE
        return Loss(math.inf, f"{_text(a)} against {_text(b)}, and no noise hides it", noisy, action)
    return Loss(total, f"the {noisy} noisy numbers that are shown, at a point in their tails", noisy)


def _text(event: Event) -> str:
    name, *place = event.what
    if name == CHOICE:
        return f"in round {place[0] + 1} arm {event.value[0]} for {event.value[1]} rounds"
    at = f"{name}[{place[0]}] after round {place[1] + 1}" if place else str(name)
    return at if event.value is None else f"{at} = {event.value}"


def tapes() -> list[list[float]]:
    """Noisy numbers in units of their scales: far in the tails, moderate, and mixed."""
    rng = np.random.default_rng(SEED)
    sizes = [-30.0, -2.0, -0.4, 0.4, 2.0, 30.0]
    mixed = [(rng.choice(sizes, 31) * rng.uniform(0.8, 1.2, 31)).tolist() for _ in range(3)]
    return [[40.0], [-40.0], [0.3, -0.2], [40.0, -40.0, 1.0], *mixed]


def backgrounds(rounds: int, few: bool) -> list[list[float]]:
    """Rewards of 0, of 1, mixed, and between."""
    rng = np.random.default_rng(SEED + 1)
    mixed = [rng.integers(0, 2, rounds).astype(float).tolist() for _ in range(1 if few else 3)]
    return [[0.0] * rounds, [1.0] * rounds, *mixed, *([] if few else [rng.random(rounds).tolist()])]


def find_witness(policy: Policy, claim: float, *, rounds: int = ROUNDS, few: bool = False) -> Witness | None:
    """The largest loss that breaks the claim among similar plays, or None. ``Refused`` if plays cannot be compared.

    ``few`` tries less at every round, for many rounds.
    """
    stage = Stage(policy)
    tried = backgrounds(rounds, few)
    stage.check_repeatable(tried[2], tried[2], stage.play(tried[2], tapes()[2]), tapes()[2])
    for rewards in tried:
        for number, tape in enumerate(tapes()[:3] if few else tapes()):
            first = stage.play(rewards, tape)
            values = SPECIAL[: 2 if few or number > 2 else None]
            found = _worst(stage, rewards, first, values, claim) if first.certain else None
            if found:
                other = changed_to(rewards, found.changed, found.value)
                stage.check_repeatable(rewards, other, first, tape)
                return found
    return None


def _worst(stage: Stage, rewards: list[float], first: Play, values: Sequence[float], claim: float) -> Witness | None:
    """The largest loss of changing one reward of this play, or those of one user, if it is above the claim."""
    worst: Witness | None = None
    for start in range(len(rewards)):
        changed = range(start, min(start + stage.rewards_per_user, len(rewards)))
        for value in values:
            if all(value == rewards[t] for t in changed) or stage.played > MOST_PLAYED:
                continue
            second = stage.play(changed_to(rewards, changed, value), [1.0], first.numbers)
            if not second.certain:
                continue
            found = loss(first, second)
            epsilon = abs(found.epsilon)
            least = claim * (1.0 + 1e-6) + 1e-9 if worst is None else worst.epsilon
            if epsilon > least or (worst is None and math.isinf(epsilon)):
                arms = tuple(_arms(first, len(rewards)))
                worst = Witness(epsilon, tuple(rewards), changed, value, arms, found.event, found.noisy == 0)
                if math.isinf(epsilon):
                    return worst
    return worst


def changed_to(rewards: list[float], changed: range, value: float) -> list[float]:
    """The same rewards, with this value in some rounds."""
    return [*rewards[: changed.start], *(value for _ in changed), *rewards[changed.stop :]]


def _same(one: Play, two: Play) -> bool:
    return repr(one.events) == repr(two.events)


def _arms(first: Play, rounds: int) -> Iterator[int]:
    """The arm of each round."""
    starts = {event.what[1]: event.value[0] for event in first.events if event.what[0] == CHOICE}
    arm = 0
    for t in range(rounds):
        arm = starts.get(t, arm)
        yield arm


def different_action(policy: Policy) -> str | None:
    """The first action that differs between two plays whose releases are the same, in words; None if there is none."""
    try:
        stage = Stage(policy)
        for rewards in backgrounds(ROUNDS, few=True):
            for tape in tapes()[:3]:
                first = stage.play(rewards, tape)
                for changed in range(ROUNDS):
                    other = [*rewards[:changed], 1.0 - rewards[changed], *rewards[changed + 1 :]]
                    found = loss(first, stage.play(other, [1.0], first.numbers))
                    if found.action:
                        return found.event
    except (Refused, Used):
        return None
    return None
