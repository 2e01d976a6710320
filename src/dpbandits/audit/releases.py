"""The exact privacy loss of everything that a curator releases: which noises hide a reward, and how large they are.

Noisy sums are held fixed and rewards are changed. Whatever the curator then shows must stay the same to the last bit,
so that all of it is computed from the noisy sums; and what is under each noise tells how far the change moved it. A
Laplace noise of scale b around a value that moves by d loses at most d/b, and loses it in its tail: so the sum over all
noises is the exact loss for who sees every release, and bounds the loss of whatever is computed from releases.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dpbandits.audit.instruments import RAW, Draw, NotVerifiableError, Tape, copy_part, memory, public_memory
from dpbandits.errors import at_least
from dpbandits.policies.policy import Policy
from dpbandits.privacy.composition import heterogeneous
from dpbandits.privacy.ledger import Ledger, LedgerError
from dpbandits.privacy.renyi import laplace_rdp, rdp_to_dp
from dpbandits.protocols import NO_LINE

__all__ = ["Loss", "Step", "accounted", "enter_all", "losses", "played", "worst_release"]

SEQUENCES = 1 << 8  # as many sequences of arms are tried one by one
SEED = 5  # of the numbers that stand for noisy sums: any would do


class Step(NamedTuple):
    """One round: the arm that is played, and whether its stint ends there."""

    arm: int
    closes: bool


class Noised(NamedTuple):
    """What is under one noise."""

    value: float
    scale: float


class Loss(NamedTuple):
    """What a change of one reward costs."""

    round: int  # 0-based
    costs: tuple[tuple[int, float], ...]  # number of the noise, and d/b
    unhidden: int | None  # the first round after which the curator shows something else
    steps: tuple[Step, ...]
    rewards: tuple[float, ...]

    @property
    def epsilon(self) -> float:
        """The loss in all; infinite where something is not hidden by noise."""
        return math.inf if self.unhidden is not None else math.fsum(cost for _, cost in self.costs)


class Run(NamedTuple):
    """What was under each noise, and what was shown after each round."""

    noised: list[Noised]
    shown: list[bytes]
    kept: list[list[str]]  # for each noise: what the curator keeps of each arm


def worst_release(policy: Policy, horizon: int) -> tuple[Loss, str]:
    """The largest loss of one reward within ``horizon`` rounds, and over which sequences of arms it was sought."""
    at_least("horizon", horizon, 1)
    arms = policy.arms
    if arms**horizon <= SEQUENCES:
        sequences: Iterable[Sequence[int]] = itertools.product(range(arms), repeat=horizon)
        tried, rounds = "every sequence of arms", range(horizon)
    else:
        own = [[step.arm for step in played(policy, [reward] * horizon, SEED)] for reward in (0.0, 1.0)]
        sequences = [[0] * horizon, [t % arms for t in range(horizon)], *own]
        tried = "all rounds on one arm, all arms in turn, and as it plays itself; rewards number 1, 2, 4, 8 .."
        rounds = sorted({2**k - 1 for k in range(horizon.bit_length())})  # type: ignore[assignment]
    worst: Loss | None = None
    for sequence in sequences:
        for steps in _closings(sequence):
            for loss in losses(policy.curator, steps, rounds):
                worst = loss if worst is None or loss.epsilon > worst.epsilon else worst
    if worst is None:
        raise AssertionError("no reward was tried")
    return (
        worst,
        f"{tried}, with stints that end after each round and at each change of arm; rewards 0 or 1, one changed",
    )


def _closings(arms: Sequence[int]) -> Iterator[tuple[Step, ...]]:
    """A sequence of arms with stints of one round, and with the longest stints."""
    yield tuple(Step(arm, True) for arm in arms)
    longest = tuple(Step(arm, t + 1 == len(arms) or arms[t + 1] != arm) for t, arm in enumerate(arms))
    if not all(step.closes for step in longest):
        yield longest


def losses(curator: Any, steps: Sequence[Step], rounds: Iterable[int]) -> Iterator[Loss]:
    """What a change of each of these rewards costs, from 0 to 1 among rewards of 0, and from 1 to 0 among 1s."""
    steps = tuple(steps)
    for background in (0.0, 1.0):
        rewards = [background] * len(steps)
        before = _run(curator, steps, rewards)
        other = _run(curator, steps, rewards, seed=SEED + 1)
        if [one.scale for one in before.noised] != [one.scale for one in other.noised]:
            raise NotVerifiableError("noise must not depend on what was released to be verified, got some that does")
        for changed in rounds:
            neighbour = [*rewards[:changed], 1.0 - background, *rewards[changed + 1 :]]
            yield _compare(before, _run(curator, steps, neighbour), changed, steps, tuple(rewards))


def _compare(before: Run, after: Run, changed: int, steps: tuple[Step, ...], rewards: tuple[float, ...]) -> Loss:
    unhidden = next((t for t, (a, b) in enumerate(zip(before.shown, after.shown, strict=True)) if a != b), None)
    if [one.scale for one in before.noised] != [one.scale for one in after.noised]:
        unhidden = changed if unhidden is None else unhidden  # how much noise there is tells the reward
        return Loss(changed, (), unhidden, steps, rewards)
    costs = tuple(
        (number, abs(a.value - b.value) / a.scale if a.scale else math.inf)
        for number, (a, b) in enumerate(zip(before.noised, after.noised, strict=True))
        if a.value != b.value
    )
    return Loss(changed, costs, unhidden, steps, rewards)


def _run(fresh: Any, steps: Sequence[Step], rewards: Sequence[float], seed: int = SEED, keep: bool = False) -> Run:
    """Feed the curator; every noisy sum becomes a number that depends only on how many there were before."""
    curator, stand_in = copy_part(fresh), np.random.default_rng(seed)
    arms = 1 + max(step.arm for step in steps)
    noised: list[Noised] = []
    kept: list[list[str]] = []
    rows = [array for name, array in memory(curator) if name.startswith(RAW)]

    def settle(draw: Draw) -> float:
        if keep:
            kept.append(["".join(_row(array, arm).hex() for array in rows) for arm in range(arms)])
        noised.append(Noised(float(draw.value), draw.scale))
        return float(stand_in.laplace(0.0, draw.scale))

    tape, shown = Tape(settle), []
    for step, reward in zip(steps, rewards, strict=True):
        curator.add(step.arm, float(curator.respond(reward, 0.0, tape)), 0.0, tape)
        if step.closes:
            curator.close(step.arm, tape)
        shown.append(public_memory(curator))
    return Run(noised, shown, kept)


def _row(array: Any, arm: int) -> bytes:
    """What an array holds of an arm: its row, or all of it where it is not by arm."""
    return bytes(array[arm].tobytes() if arm < len(array) else array.tobytes())


def accounted(costs: Iterable[float], delta: float) -> float:
    """What Laplace releases of these costs compose to at ``delta``: the least of the sum, the optimal and Rényi's.

    >>> accounted([0.5, 0.5], 0.0), round(accounted([0.1] * 100, 1e-6), 3)
    (1.0, 4.775)
    """
    each = np.asarray([*costs], np.float64)
    pure = math.fsum(each)
    if delta == 0.0 or not 0.0 < pure < math.inf:
        return pure
    renyi = rdp_to_dp(lambda order: float(np.sum(laplace_rdp(each, order))), delta)
    return min(pure, heterogeneous(each, delta), renyi)


def played(policy: Policy, rewards: Sequence[float], seed: int) -> tuple[Step, ...]:
    """The rounds that a policy really plays on these rewards, with noise from this seed."""
    curator, agent = copy_part(policy.curator), copy_part(policy.agent)
    noise, choices = (np.random.default_rng([seed, stream]) for stream in range(2))
    steps: list[Step] = []
    while len(steps) < len(rewards):
        arm, stint, line = agent.act(curator, len(steps) + 1, choices)
        for left in range(int(stint) - 1, -1, -1):
            curator.add(arm, curator.respond(rewards[len(steps)], 0.0, noise), 0.0, noise)
            steps.append(Step(int(arm), left == 0))
            if len(steps) == len(rewards) or (line > NO_LINE and curator.mean(arm) <= line):
                break
        if steps[-1].closes:
            curator.close(arm, noise)
    return tuple(steps)


def enter_all(policy: Policy, steps: Sequence[Step], ledger: Ledger) -> None:
    """Enter every release of these rounds into a ledger, which refuses a second draw and what breaks its claim.

    A release is named by the rewards under its noise, and by what the curator keeps of their arm when it is drawn: two
    noises over the same rewards, with nothing new in between, are one release that is drawn twice.
    """
    costs: dict[int, dict[int, Fraction]] = {}
    for loss in itertools.islice(losses(policy.curator, steps, range(len(steps))), len(steps)):
        if loss.unhidden is not None:
            raise LedgerError(f"reward {loss.round + 1} must be under noise, got shown in round {loss.unhidden + 1}")
        for number, cost in loss.costs:
            costs.setdefault(number, {})[loss.round + 1] = Fraction(cost).limit_denominator(10**9)
    rewards = np.random.default_rng(SEED).random(len(steps)).tolist()  # all different: whatever is kept, shows
    kept = _run(policy.curator, steps, rewards, keep=True).kept
    for number in sorted(costs):
        touched = costs[number]
        arm = steps[min(touched) - 1].arm
        ledger.enter((arm, tuple(sorted(touched)), kept[number][arm]), touched)
