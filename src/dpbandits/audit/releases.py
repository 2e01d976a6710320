"""The exact privacy loss of everything that a curator releases: which draws of noise hide a reward, and their scales.

The noisy sums are held fixed and one reward is changed. Everything that the curator makes public must stay the same to
the last bit, which shows that it is computed from the noisy sums alone. The value under each noise shows by how much
the change moved it. Laplace noise of scale b on a value that moves by d loses at most d/b, and loses d/b in its tail.
So the sum over all draws is the exact loss for an adversary who sees every release. It is an upper bound on the loss of
anything that is computed from the releases.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dpbandits.audit.instruments import Draw, NotVerifiableError, Tape, public_memory
from dpbandits.audit.memory import RAW
from dpbandits.curators.rounds import OneByOne
from dpbandits.environments import Scripted
from dpbandits.parts import arrays, copied
from dpbandits.policies.policy import Policy
from dpbandits.privacy.composition import heterogeneous
from dpbandits.privacy.ledger import Ledger, LedgerError
from dpbandits.privacy.renyi import laplace_rdp, rdp_to_dp
from dpbandits.simulation.loop import play_stint

__all__ = [
    "RewardLoss",
    "Step",
    "accounted",
    "accounted_adaptively",
    "accounted_by_zcdp",
    "enter_all",
    "losses",
    "played",
]

SEED = 5  # of the numbers that replace noisy sums; any seed would do


class Step(NamedTuple):
    """One round: the arm that is played, and whether its stint ends there."""

    arm: int
    closes: bool


class Noised(NamedTuple):
    """The value that one draw of noise is added to, and the scale of the noise."""

    value: float
    scale: float


class RewardLoss(NamedTuple):
    """The privacy loss of a change of one reward."""

    round: int  # 0-based
    costs: tuple[tuple[int, float], ...]  # the number of each draw, and its loss d/b
    unhidden: int | None  # the first round after which the public fields differ
    steps: tuple[Step, ...]
    rewards: tuple[float, ...]

    @property
    def epsilon(self) -> float:
        """The total loss; infinite if something is not hidden by noise."""
        return math.inf if self.unhidden is not None else math.fsum(cost for _, cost in self.costs)


class Run(NamedTuple):
    """The value under each draw of noise, and the public fields after each round."""

    noised: list[Noised]
    shown: list[bytes]
    kept: list[list[str]]  # for each draw: the curator's raw fields of each arm


def losses(curator: Any, steps: Sequence[Step], rounds: Iterable[int]) -> Iterator[RewardLoss]:
    """The loss of changing each of these rewards: from 0 to 1 among rewards of 0, and from 1 to 0 among 1s."""
    steps = tuple(steps)
    for background in (0.0, 1.0):
        rewards = [background] * len(steps)
        before = _run(curator, steps, rewards)
        other = _run(curator, steps, rewards, seed=SEED + 1)
        if [one.scale for one in before.noised] != [one.scale for one in other.noised]:
            raise NotVerifiableError(
                "noise", "must not depend on what was released, to be verified, got noise that does"
            )
        for changed in rounds:
            neighbour = [*rewards[:changed], 1.0 - background, *rewards[changed + 1 :]]
            yield _compare(before, _run(curator, steps, neighbour), changed, steps, tuple(rewards))


def _compare(before: Run, after: Run, changed: int, steps: tuple[Step, ...], rewards: tuple[float, ...]) -> RewardLoss:
    unhidden = next((t for t, (a, b) in enumerate(zip(before.shown, after.shown, strict=True)) if a != b), None)
    if [one.scale for one in before.noised] != [one.scale for one in after.noised]:
        unhidden = changed if unhidden is None else unhidden  # the amount of noise reveals the reward
        return RewardLoss(changed, (), unhidden, steps, rewards)
    costs = tuple(
        (number, abs(a.value - b.value) / a.scale if a.scale else math.inf)
        for number, (a, b) in enumerate(zip(before.noised, after.noised, strict=True))
        if a.value != b.value
    )
    return RewardLoss(changed, costs, unhidden, steps, rewards)


def _run(fresh: Any, steps: Sequence[Step], rewards: Sequence[float], seed: int = SEED, keep: bool = False) -> Run:
    """Feed the curator. Each noisy sum becomes a random number that does not depend on the value under the noise."""
    curator, stand_in = copied(fresh), np.random.default_rng(seed)
    arms = 1 + max(step.arm for step in steps)
    noised: list[Noised] = []
    kept: list[list[str]] = []
    rows = [array for name, array in arrays(curator) if name.startswith(RAW)]

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
    """The row of an array for this arm, or the whole array if it has no such row."""
    return bytes(array[arm].tobytes() if arm < len(array) else array.tobytes())


def accounted(costs: Iterable[float], delta: float) -> float:
    """The epsilon at ``delta`` of Laplace releases with these losses: the least of sum, optimal and Rényi composition.

    >>> accounted([0.5, 0.5], 0.0), round(accounted([0.1] * 100, 1e-6), 3)
    (1.0, 4.775)
    """
    each = np.asarray([*costs], np.float64)
    pure = math.fsum(each)
    if delta == 0.0 or not 0.0 < pure < math.inf:
        return pure
    return min(pure, heterogeneous(each, delta), accounted_adaptively([each], delta))


def accounted_adaptively(choices: Iterable[Iterable[float]], delta: float) -> float:
    """The epsilon at ``delta`` if what was released decides which of these losses come next.

    Optimal composition is about losses that are fixed beforehand. The largest Rényi divergence of the choices bounds
    that of every adaptive one, order by order (Feldman & Zrnic 2021, Theorem 3.1).

    >>> round(accounted_adaptively([[0.1] * 100, [0.9]], 1e-6), 3), accounted_adaptively([[0.5], [0.2, 0.1]], 0.0)
    (4.984, 0.5)
    """
    every = [np.asarray([*costs], np.float64) for costs in choices]
    pure = max((math.fsum(costs) for costs in every), default=0.0)
    if delta == 0.0 or not 0.0 < pure < math.inf:
        return pure
    return min(pure, rdp_to_dp(lambda order: max(float(np.sum(laplace_rdp(c, order))) for c in every), delta))


def accounted_by_zcdp(choices: Iterable[Iterable[float]], delta: float) -> float:
    """The epsilon at ``delta`` under normal noise, by zCDP: half the largest sum of the squares of these costs.

    A pure loss of c is c^2/2-zCDP as well (Bun & Steinke 2016, Propositions 1.3 and 1.4).

    >>> round(accounted_by_zcdp([[0.1]], 1e-6), 3), accounted_by_zcdp([[0.1]], 0.0)
    (0.531, inf)
    """
    rho = max((0.5 * math.fsum(cost * cost for cost in costs) for costs in choices), default=0.0)
    if rho == 0.0 or delta == 0.0:
        return math.inf if rho else 0.0
    return rho + 2.0 * math.sqrt(-rho * math.log(delta))


def played(policy: Policy, rewards: Sequence[float], seed: int) -> tuple[Step, ...]:
    """The rounds that a policy plays on these rewards, with noise from this seed."""
    environment = Scripted.start(np.tile(np.array(rewards)[None, :, None], (1, 1, policy.arms)))
    curator, agent = OneByOne(copied(policy.curator)), copied(policy.agent)
    noise, choices = (np.random.default_rng([seed, stream]) for stream in range(2))
    steps: list[Step] = []
    while len(steps) < len(rewards):
        left = len(rewards) - len(steps)
        arm, rounds, closed = play_stint(environment, curator, agent, len(steps) + 1, left, noise, noise, choices)
        steps += [Step(int(arm), closed and number == rounds) for number in range(1, rounds + 1)]
    return tuple(steps)


def enter_all(policy: Policy, steps: Sequence[Step], ledger: Ledger) -> None:
    """Enter every release of these rounds into a ledger, which refuses a second draw and losses above its claim.

    A release is identified by its arm, by the rewards under its noise, and by the number of the state of the curator's
    raw fields at that time: which of the states it is, and not what is in it. So two draws over the same rewards, with
    nothing new in between, are one release that is drawn twice.
    """
    costs: dict[int, dict[int, Fraction]] = {}
    for loss in itertools.islice(losses(policy.curator, steps, range(len(steps))), len(steps)):
        if loss.unhidden is not None:
            raise LedgerError(
                f"reward {loss.round + 1} must be under noise, got it unhidden in round {loss.unhidden + 1}"
            )
        for number, cost in loss.costs:
            costs.setdefault(number, {})[loss.round + 1] = _exact(cost)
    rewards = np.random.default_rng(SEED).random(len(steps)).tolist()  # all different, to show any memory of them
    kept = _run(policy.curator, steps, rewards, keep=True).kept
    states: dict[str, int] = {}
    for number in sorted(costs):
        touched = costs[number]
        arm = steps[min(touched) - 1].arm
        state = states.setdefault(kept[number][arm], len(states) + 1)
        ledger.enter(("arm", arm, "rewards", tuple(sorted(touched)), "state", state), touched)


def _exact(cost: float) -> Fraction:
    """The simple fraction that a cost was before it was rounded, whatever its size: 1/3, and 1/10^12 too."""
    digits, _, power = f"{cost:.16e}".partition("e")
    return Fraction(digits).limit_denominator(10**9) * Fraction(10) ** int(power)
