"""Refutes a claim with a delta: an event of the first stint that is too likely.

Until the agent is asked a second time, no release has influenced a choice. So the noisy numbers of the first
stint are Laplace noises around numbers that one reward moves by c_1, c_2 .. scales. Take the event that m of them are
at or beyond the centres that they have under one of the two rewards. Its probability is 2^-m under that one, and
2^-m exp(-C) under the other, with C the sum of their c. So delta must be at least 2^-m (1 - exp(epsilon - C)).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from dpbandits.audit.witness import CHOICE, Event, Play, Stage, Witness, changed_to
from dpbandits.policies.policy import Policy
from dpbandits.protocols import NO_LINE

__all__ = ["find_event"]

FAR = 40.0  # scales: in the tail, where the ratio of two densities is constant
ROUNDS = 64  # of the first stint, at most


def find_event(policy: Policy, epsilon: float, delta: float, *, several: bool) -> Witness | None:
    """An event that breaks the claim, or None. ``several`` is whether scales are known not to depend on releases.

    Otherwise the first noisy number alone is used, before which nothing was shown.
    """
    stage, worst = Stage(policy), delta * (1.0 + 1e-6)
    found: Witness | None = None
    rounds = min(ROUNDS, policy.horizon or ROUNDS)
    for rewards, value, side in itertools.product(([0.0] * rounds, [1.0] * rounds), (0.0, 1.0), (FAR, -FAR)):
        first = stage.play(rewards, [side])
        stands = first.events[0].value[2] == NO_LINE  # otherwise a number may end the stint
        for start in range(min(_length(first), rounds)) if value != rewards[0] else ():
            changed = range(start, min(start + stage.rewards_per_user, _length(first)))
            other = changed_to(rewards, changed, value)
            second = stage.play(other, [1.0], first.numbers)
            costs = _costs(first, second)
            if costs is None or not first.certain or not second.certain:
                continue
            costs = costs if several and stands else costs[:1]
            needed, numbers = least_delta(epsilon, costs)
            if needed > worst:
                stage.check_repeatable(rewards, other, first, [side])
                worst = needed
                lost, likely = _sum(costs, numbers), 2.0**-numbers
                which = "the first noisy number" if numbers == 1 else f"{numbers} noisy numbers of the first stint"
                event = (
                    f"{which} at or beyond the value without noise: probability {likely:.4g} against "
                    f"{likely * math.exp(-lost):.4g}, which needs a delta of {needed:.4g}"
                )
                arms = tuple(first.events[0].value[0] for _ in range(_length(first)))
                short = tuple(rewards[: _length(first)])
                at_delta = lost + math.log1p(-delta / likely)  # the epsilon that this event needs
                found = Witness(at_delta, short, changed, value, arms, event, True)
    return found


def least_delta(epsilon: float, costs: Sequence[float]) -> tuple[float, int]:
    """A lower bound on the delta that these losses need, and how many of them it is for.

    >>> needed, numbers = least_delta(1.0, [0.5, 2.0])
    >>> round(needed, 4), numbers
    (0.3161, 1)
    """
    needed = [(2.0**-m * -math.expm1(epsilon - _sum(costs, m)), m) for m in range(1, len(costs) + 1)]
    return max(needed, default=(0.0, 0))


def _sum(costs: Sequence[float], most: int) -> float:
    return math.fsum(sorted(costs, reverse=True)[:most])


def _length(play: Play) -> int:
    """The rounds of the first stint."""
    return int(min(play.events[0].value[1], ROUNDS))


def _opening(play: Play) -> list[Event]:
    """What is shown until the agent is asked a second time."""
    return [*play.events[:1], *itertools.takewhile(lambda event: event.what[0] != CHOICE, play.events[1:])]


def _costs(one: Play, two: Play) -> list[float] | None:
    """The shift of each noisy number in units of its noise scale; None if a number without noise differs."""
    first, second = _opening(one), _opening(two)
    alike = [a.what == b.what and (a.value is None) == (b.value is None) for a, b in zip(first, second, strict=False)]
    if len(first) != len(second) or not all(alike) or one.chance or two.chance:
        return None
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a.value is None]
    return [max(0.0, b.density - a.density) for a, b in pairs]
