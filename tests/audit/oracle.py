"""The truth about a policy by brute force, on plain numbers, with nothing hidden from anybody.

A play is a function of rewards and noise. For two sequences of rewards that differ in one, noise is looked for with
which the second play shows what the first one shows: number by number, by moving one noise that is not in use yet. The
ratio of the noises' densities is then the loss. If no noise does it, the loss is infinite. This shares no code with the
audits. It is for policies that show one number for each noise.
"""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any

import numpy as np

from dpbandits.policies.policy import Policy

STEP = 0.25
EQUAL = 1e-9
TAPES = ([0.7131, 1.9277, 0.4119], [-0.7131, -1.9277], [1.3193, -0.6071, 0.2237, -2.1459])
VALUES = (0.0, 1.0, math.nan, 7.0, 0.3)


class Source:
    """Laplace noise from a list, in absolute numbers; beyond its end, of a pattern."""

    def __init__(self, noise: list[float], pattern: list[float]) -> None:
        self.noise, self.pattern, self.scales, self.drawn = list(noise), pattern, [], 0  # type: ignore[var-annotated]

    def laplace(self, loc: float = 0.0, scale: float = 1.0) -> float:
        if self.drawn == len(self.noise):
            size = self.pattern[self.drawn % len(self.pattern)]
            self.noise.append(size * (1.0 + 0.01317 * self.drawn) * scale)  # no two are the same
        self.scales.append(scale)
        self.drawn += 1
        return loc + self.noise[self.drawn - 1]


Shown = list[tuple[Any, float]]


def play(policy: Policy, rewards: list[float], noise: list[float], pattern: list[float]) -> tuple[Shown, Source]:
    """Everything that is shown, in order: arms, lengths of stints, and whatever changes in public memory."""
    agent, curator, source = copy.deepcopy(policy.agent), copy.deepcopy(policy.curator), Source(noise, pattern)
    chance: Any = np.random.default_rng(1)
    shown: Shown = []
    memory: dict[Any, float] = {}
    left, arm = 0, 0
    for t, reward in enumerate(rewards):
        if left == 0:
            arm, left, _ = agent.act(curator, t + 1, chance)
            shown += [(("arm", t), float(arm)), (("stint", t), float(left))]
        curator.add(arm, curator.respond(reward, 0.0, source), 0.0, source)  # type: ignore[arg-type]
        left -= 1
        if left == 0:
            curator.close(arm, source)  # type: ignore[arg-type]
        for name, array in curator._asdict().items():  # type: ignore[attr-defined]
            if isinstance(array, np.ndarray) and not name.startswith("raw_"):
                for k, value in enumerate(array.ravel().tolist()):
                    if memory.get((name, k), 0.0) != value:
                        memory[name, k] = value
                        shown.append(((name, k, t), value))
    return shown, source


def differs(one: Shown, two: Shown) -> int | None:
    """The first place where two plays differ."""
    for k in range(max(len(one), len(two))):
        if k >= len(one) or k >= len(two) or one[k][0] != two[k][0]:
            return k
        a, b = one[k][1], two[k][1]
        if not (abs(a - b) <= EQUAL * (1.0 + abs(a)) or (a != a and b != b)):
            return k
    return None


def loss(policy: Policy, rewards: list[float], other: list[float], pattern: list[float]) -> float:
    """The loss at one play: how much less likely the same show is with the other rewards."""
    first, source = play(policy, rewards, [], pattern)
    noise, used = list(source.noise), set[int]()
    while True:
        second, again = play(policy, other, noise, pattern)
        noise, k = list(again.noise), differs(first, second)
        if k is None:
            break
        if k >= min(len(first), len(second)) or first[k][0] != second[k][0] or first[k][0][0] in ("arm", "stint"):
            return math.inf
        if not (math.isfinite(first[k][1]) and math.isfinite(second[k][1])):
            return math.inf
        for j in reversed(range(again.drawn)):
            if j in used:
                continue
            moved = list(noise)
            moved[j] += STEP * again.scales[j]
            third, _ = play(policy, other, moved, pattern)
            if len(third) > k and third[k][0] == second[k][0] and third[k][1] != second[k][1]:
                slope = (third[k][1] - second[k][1]) / (STEP * again.scales[j])
                noise[j] += (first[k][1] - second[k][1]) / slope
                used.add(j)
                break
        else:
            return math.inf
    total = 0.0
    for j, scale in enumerate(source.scales):
        if j >= len(again.scales):  # the other rewards ask for less noise: what is too much must not show
            moved = list(source.noise)
            moved[j] += STEP * scale
            if differs(first, play(policy, rewards, moved, pattern)[0]) is not None:
                return math.inf
            continue
        other_scale = again.scales[j]
        total += abs(again.noise[j]) / other_scale - abs(source.noise[j]) / scale + math.log(other_scale / scale)
    return abs(total)


def true_epsilon(policy: Policy, rounds: int = 4, longer: int = 12) -> float:
    """The largest loss over all rewards of 0 and 1 of a few rounds, some of more rounds, and all changes of one."""
    rng = np.random.default_rng(2)
    vectors = [list(map(float, bits)) for bits in itertools.product((0, 1), repeat=rounds)]
    vectors += [[0.0] * longer, [1.0] * longer, rng.integers(0, 2, longer).astype(float).tolist()]
    worst = 0.0
    for rewards in vectors:
        for changed in range(len(rewards)):
            for value in VALUES if rewards[0] == rewards[-1] == 0.0 else VALUES[:2]:
                if value == rewards[changed]:
                    continue
                other = [*rewards[:changed], value, *rewards[changed + 1 :]]
                for pattern in TAPES:
                    worst = max(worst, loss(policy, rewards, other, pattern))
                    if math.isinf(worst):
                        return worst
    return worst
