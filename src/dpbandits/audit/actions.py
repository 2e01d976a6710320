"""How much of the loss of the releases shows in the actions: all reward vectors and all action sequences of few rounds.

This number accompanies a proof; it is no proof itself. Rewards are 0 or 1. Each release is rounded to a cell before the
agent sees it, and the probability of a cell is a difference of Laplace's distribution function, at any epsilon. So the
number is the exact loss of the policy with an agent that sees rounded means. It tends to the policy's own loss as cells
get finer. The agent is asked on a curator with its real memory, and must not notice when the raw memory is exchanged.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from dpbandits.audit.memory import cells, copy_of_memory, named_arrays, public
from dpbandits.audit.poison import Poison
from dpbandits.audit.reading import read_curator
from dpbandits.audit.refusals import Refused, Used
from dpbandits.audit.states import State, fresh, step
from dpbandits.audit.symbols import NOISE, REWARD, Num
from dpbandits.parts import in_plain_python
from dpbandits.policies.policy import Policy
from dpbandits.protocols import NO_LINE
from dpbandits.types import Bools, Floats

__all__ = ["MOST_ROUNDS", "Worst", "worst_actions"]

MOST_ROUNDS = 8
CELLS = 64  # about, for each arm
TAILS = 5.0  # cells reach to the square of this, in scales
NARROWEST = 0.02  # cell, in scales

Rewards = tuple[int, ...]
Actions = tuple[int, ...]
CellPlace = tuple[str, int]
Laws = dict[Rewards, Floats]  # by rewards so far: the probability of each state


class Worst(NamedTuple):
    """The largest loss, and where it occurs: two reward vectors that differ in one round, and an action sequence.

    Where the promise is one for users, they differ in at most as many rounds as a user has rewards, whichever they are.
    """

    epsilon: float
    actions: Actions
    rewards: Rewards
    neighbour: Rewards
    probabilities: tuple[float, float]
    sequences: int


class Shown(NamedTuple):
    """What an arm's release is: the places in public memory, and the value for each cell."""

    places: list[CellPlace]
    values: list[float]


class Following:
    """A walk through all action sequences."""

    def __init__(self, policy: Policy, horizon: int) -> None:
        self.policy, self.horizon = policy, horizon
        self.found: dict[Actions, dict[Rewards, float]] = {}

    def follow(self, t: int, actions: Actions, agent: Any, state: State, shown: list[Shown | None], laws: Laws) -> None:
        """Add the probabilities of all sequences that begin with ``actions``."""
        for (arm, stint, _), (after, mask) in self.ask(t, agent, state, shown, laws).items():
            rounds = min(stint, self.horizon - t)
            here = {rewards: law * mask for rewards, law in laws.items()}
            if not any(law.any() for law in here.values()):
                continue
            so_far, more = actions + (arm,) * rounds, list(itertools.product((0, 1), repeat=rounds))
            if t + rounds == self.horizon:
                table = self.found.setdefault(so_far, {})
                for rewards, law in here.items():
                    for last in more:  # no action depends on them
                        table[rewards + last] = table.get(rewards + last, 0.0) + float(law.sum())
                continue
            new = state
            for k in range(rounds):
                [new] = step(new, t + k, arm, close=k == stint - 1, show=False)
            places, form, unit = _released(state, new)
            edges = _edges(rounds, unit, arm)
            centres = [edges[1], *(0.5 * (x + y) for x, y in itertools.pairwise(edges[1:-1])), edges[-2]]
            chances = [
                np.array([_between((x - s) / unit, (y - s) / unit) for x, y in itertools.pairwise(edges)])
                for s in range(rounds + 1)
            ]
            slope = float(next(iter(form.of(REWARD).values())))
            shape = [-1 if k == arm else 1 for k in range(self.policy.arms)]
            rest = {rewards: law.sum(axis=arm, keepdims=True) for rewards, law in here.items()}
            onward = {r + last: rest[r] * chances[sum(last)].reshape(shape) for r in rest for last in more}
            seen = list(shown)
            seen[arm] = Shown(places, [slope * centre + form.const for centre in centres])
            self.follow(t + rounds, so_far, after, _known(new, places), seen, onward)

    def ask(
        self, t: int, agent: Any, state: State, shown: list[Shown | None], laws: Laws
    ) -> dict[tuple[int, int, bytes], tuple[Any, Bools]]:
        """The agent's answers with its memory afterwards, each with the states in which they are given."""
        possible: Bools = np.asarray(sum(laws.values()) > 0)
        curators = [_asked(self.policy.curator, state, raw) for raw in (0.0, 1.0)]
        views = [dict(named_arrays(curator)) for curator in curators]
        quick = [in_plain_python(curator) for curator in curators]
        kept = [(array, array.copy()) for _, array in named_arrays(agent)]
        asked = in_plain_python(agent)
        groups: dict[tuple[int, int, bytes], tuple[Any, Bools]] = {}
        for number, index in enumerate(itertools.product(*map(range, possible.shape))):
            if not possible[index]:
                continue
            keys = []
            for view, curator in zip(views, quick, strict=True):
                for at, release in zip(index, shown, strict=True):
                    for name, k in release.places if release else ():
                        view[name].reshape(-1)[k] = release.values[at]  # type: ignore[union-attr]
                for array, before in kept:
                    array[...] = before
                arm, stint, line = asked.act(curator, t + 1, None)
                if line > NO_LINE:
                    raise Refused("stints end when a mean falls")
                keys.append((int(arm), int(stint), b"".join(array.tobytes() for array, _ in kept)))
                if number % 16:
                    break  # the second curator has other raw memory; it is asked now and then
            if keys[0] != keys[-1]:
                raise Refused("the agent's answer depends on raw memory")
            if keys[0] not in groups:
                groups[keys[0]] = (copy_of_memory(agent), np.zeros(possible.shape, bool))
            groups[keys[0]][1][index] = True
        for array, before in kept:
            array[...] = before
        return groups


def worst_actions(policy: Policy, horizon: int) -> Worst:
    """The largest loss of the first ``horizon`` actions. ``Refused`` unless each stint releases one noisy sum.

    The policy must have been proved: here its agent is asked on public memory alone.
    """
    if policy.arms != 2:
        raise Refused(f"there are {policy.arms} arms")
    following = Following(policy, horizon)
    start = fresh(policy.curator, read_curator(policy.curator))
    try:
        following.follow(0, (), policy.agent, start, [None] * policy.arms, {(): np.ones((1,) * policy.arms)})
    except Used:
        raise Refused("releases are computed from earlier releases") from None
    _check_total(following.found)
    return _worst(following.found, horizon, policy.rewards_per_user or 1)


def _asked(curator: Any, state: State, raw: float) -> Any:
    """A curator with the public memory of a state, and raw memory of rewards that are all ``raw``."""
    made = copy_of_memory(curator)
    values = iter(cells(state.curator))
    for name, array in named_arrays(made):
        flat = array.reshape(-1)
        for k in range(flat.size):
            cell = next(values)
            if isinstance(cell, Poison):
                cell = 0.0
            elif isinstance(cell, Num):
                cell = cell.const + raw * float(sum(cell.of(REWARD).values()))
            flat[k] = cell if public(name) or raw == 0.0 else cell + raw
    return made


def _released(old: State, new: State) -> tuple[list[CellPlace], Num, float]:
    """Where the stint has released its noisy sum, the sum, and the scale of its noise in units of the sum."""
    places, forms = [], []
    for (name, array), (_, before) in zip(named_arrays(new.curator), named_arrays(old.curator), strict=True):
        pairs = zip(array.reshape(-1).tolist(), before.reshape(-1).tolist(), strict=True)
        for k, (cell, was) in enumerate(pairs):
            if public(name) and isinstance(cell, Num) and not isinstance(was, Num):
                places.append((name, k))
                forms.append(cell)
    if not forms or any(form is not forms[0] for form in forms):
        raise Refused("a stint does not release one number")
    form = forms[0]
    noises, rewards = form.of(NOISE), form.of(REWARD)
    if len(noises) != 1 or len(set(rewards.values())) != 1 or len(noises) + len(rewards) != len(form.terms):
        raise Refused("a stint does not release one noisy sum of its rewards")
    [((_, j), f)] = noises.items()
    return places, form, float(abs(f / next(iter(rewards.values())))) * new.log.scales[j]


def _known(state: State, places: list[CellPlace]) -> State:
    """The same without the releases, which the curator must not use here: the distribution gives their values."""
    curator = copy_of_memory(state.curator)
    flats = {name: array.reshape(-1) for name, array in named_arrays(curator)}
    for name, k in places:
        flats[name][k] = Poison()
    return State(curator, state.log, state.tape)


def _edges(n: int, scale: float, arm: int) -> list[float]:
    """Borders of cells for noisy sums of n bits: narrow where the noise of some sum is near 0, open at both ends.

    They differ between arms, so that rounding does not make means equal.
    """
    count = max(CELLS // (1 if n < scale else n + 1), 9)
    shift = 0.5 * arm * 2.0 * TAILS / count
    steps = [math.copysign(q * q, q) for q in np.linspace(-TAILS, TAILS, count) + shift]
    kept = [-math.inf]
    for point in sorted({s + scale * size for s in range(n + 1) for size in steps}):
        if point - kept[-1] > NARROWEST * scale:
            kept.append(point)
    return [*kept, math.inf]


def _between(low: float, high: float) -> float:
    """The probability of (low, high) under Laplace noise of scale 1, to full precision in both tails.

    >>> _between(-math.inf, math.inf), round(_between(40.0, math.inf) / math.exp(-40), 12)
    (1.0, 0.5)
    """
    if high <= 0.0:
        low, high = -high, -low
    if low >= 0.0:
        return 0.5 * (math.exp(-low) - math.exp(-high))
    return 1.0 - 0.5 * math.exp(-high) - 0.5 * math.exp(low)


def _check_total(found: dict[Actions, dict[Rewards, float]]) -> None:
    total: dict[Rewards, float] = {}
    for table in found.values():
        for rewards, p in table.items():
            total[rewards] = total.get(rewards, 0.0) + p
    if any(abs(p - 1.0) > 1e-9 for p in total.values()):
        raise ArithmeticError(f"the probabilities of all action sequences add up to {min(total.values())}")


def _worst(found: dict[Actions, dict[Rewards, float]], horizon: int, most: int) -> Worst:
    """The largest ratio of probabilities between reward vectors that differ in at most this many rounds."""
    zero = (0,) * horizon
    worst = Worst(0.0, (), zero, (1, *zero[1:]), (1.0, 1.0), len(found))
    sets = [set(c) for n in range(1, min(most, horizon) + 1) for c in itertools.combinations(range(horizon), n)]
    for actions, table in found.items():
        for rewards, p in table.items():
            for changed in sets:
                if rewards[min(changed)]:
                    continue  # the pair is found from its other end
                other = tuple(1 - r if t in changed else r for t, r in enumerate(rewards))
                q = table.get(other, 0.0)
                loss = abs(math.log(p / q)) if p > 0.0 and q > 0.0 else 0.0 if p == q else math.inf
                if loss > worst.epsilon:
                    worst = Worst(loss, actions, rewards, other, (p, q), len(found))
    return worst
