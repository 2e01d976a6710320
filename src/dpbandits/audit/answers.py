"""Responses that cannot be followed on symbols, at some rewards: what is answered over a fine grid of uniform numbers.

This can refute a claim and cannot prove one. A grid of ``STEPS`` uniform numbers shows every answer whose uniform
numbers are intervals longer than a step. So the probability of an answer is known up to a step for each of its borders.
"""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple, NoReturn

from dpbandits.audit.symbols import Refused

__all__ = ["REWARDS", "Answered", "refuted"]

REWARDS = (0.0, 1.0, 0.5, 0.3, 0.25, 0.75, 7.0, -1.0, math.nan, math.inf, -math.inf)
STEPS = 4096
LIKELY = 0.02  # answers that are less likely than this under both rewards are not compared


class Answered(NamedTuple):
    """An answer that is more likely under one reward than under another."""

    epsilon: float
    rewards: tuple[float, float]
    answer: str
    probabilities: tuple[float, float]


class OneUniform:
    """A source with one uniform number."""

    def __init__(self, number: float) -> None:
        self.number, self.asked = number, 0

    def random(self, size: Any = None) -> float:
        """The number, once."""
        self.asked += 1
        if size is not None or self.asked > 1:
            raise Refused("respond takes more than one uniform number")
        return self.number

    def __getattr__(self, name: str) -> NoReturn:
        raise Refused(f"respond draws {name}, which is not followed")


def refuted(curator: Any, level: float, claim: float) -> Answered | None:
    """An answer that breaks the claim, or None. ``Refused`` if answers cannot be enumerated."""
    laws = {repr(reward): (reward, _law(curator, reward, level)) for reward in REWARDS}
    if repr(laws["0.0"][1]) != repr(_law(curator, 0.0, level)):
        raise Refused("two responses with the same uniform number differ: respond has a source of its own")
    worst: Answered | None = None
    for a, one in laws.values():
        for b, two in laws.values():
            for answer, (share, borders) in one.items():
                other, others = two.get(answer, (0, 0))
                low, high = (share - borders) / STEPS, (other + others + 1) / STEPS  # shorter intervals are not seen
                if low < LIKELY:
                    continue
                epsilon = math.log(low / high)
                if epsilon > max(claim, worst.epsilon if worst else 0.0):
                    worst = Answered(epsilon, (a, b), answer, (share / STEPS, other / STEPS))
    return worst


def _law(curator: Any, reward: float, level: float) -> dict[str, tuple[int, int]]:
    """For each answer: how many of the uniform numbers give it, and how many borders it has among them."""
    found: dict[str, tuple[int, int]] = {}
    last = ""
    kept = copy.deepcopy(curator)
    for step in range(STEPS):
        answer = repr(kept.respond(reward, level, OneUniform((step + 0.5) / STEPS)))
        share, borders = found.get(answer, (0, 1))
        found[answer] = (share + 1, borders + (answer != last))
        last = answer
    return found
