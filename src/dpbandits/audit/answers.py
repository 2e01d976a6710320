"""A numerical check of responses that symbolic execution cannot follow, at the rewards in ``REWARDS``.

It can refute a claim but not prove one. A grid of ``STEPS`` uniform numbers shows which answer may be more likely under
one reward than under another. The low bits of its numbers are always the same, so it is no proof. That answer is then
counted over ``DRAWS`` random uniform numbers under each of the two rewards. The reported loss is the ratio of the two
Clopper-Pearson bounds, which is too large with probability at most ``ERROR``.
"""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple, NoReturn

import numpy as np

from dpbandits.audit.refusals import Refused
from dpbandits.audit.watch import beat
from dpbandits.proportions import share_at_least, share_at_most

__all__ = ["REWARDS", "Answered", "refuted"]

REWARDS = (0.0, 1.0, 0.5, 0.3, 0.25, 0.75, 7.0, -1.0, math.nan, math.inf, -math.inf)
STEPS = 4096
DRAWS = 50_000
ERROR = 1e-9
SEED = 11
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


def refuted(curator: Any, level: float, claim: float, delta: float = 0.0) -> Answered | None:
    """An answer that breaks the claim at this delta, or None. ``Refused`` if answers cannot be enumerated."""
    laws = {repr(reward): (reward, _law(curator, reward, level)) for reward in REWARDS}
    if repr(laws["0.0"][1]) != repr(_law(curator, 0.0, level)):
        raise Refused("two responses with the same uniform number differ: respond has a source of its own")
    worst: Answered | None = None
    for a, one in laws.values():
        for b, two in laws.values():
            for answer, (share, borders) in one.items():
                other, others = two.get(answer, (0, 0))
                low = (share - borders) / STEPS - delta
                high = (other + others + 1) / STEPS  # shorter intervals are not seen
                if low < LIKELY:
                    continue
                epsilon = math.log(low / high)
                if epsilon > max(claim, worst.epsilon if worst else 0.0):
                    worst = Answered(epsilon, (a, b), answer, (share / STEPS, other / STEPS))
    return None if worst is None else _confirmed(curator, level, claim, delta, worst)


def _confirmed(curator: Any, level: float, claim: float, delta: float, found: Answered) -> Answered | None:
    """The same answer over random uniform numbers, with bounds that hold with probability 1 - ERROR."""
    rng = np.random.default_rng(SEED)
    counts = []
    for reward in found.rewards:
        kept = copy.deepcopy(curator)
        answers = (_answer(kept, reward, level, number) for number in rng.random(DRAWS).tolist())
        counts.append(sum(answer == found.answer for answer in answers))
    one, two = counts
    low, high = share_at_least(one, DRAWS, ERROR / 2.0), share_at_most(two, DRAWS, ERROR / 2.0)
    if low - delta <= high * math.exp(claim):
        return None
    return Answered(math.log((low - delta) / high), found.rewards, found.answer, (one / DRAWS, two / DRAWS))


def _answer(curator: Any, reward: float, level: float, number: float) -> str:
    beat()
    return repr(curator.respond(reward, level, OneUniform(number)))


def _law(curator: Any, reward: float, level: float) -> dict[str, tuple[int, int]]:
    """For each answer: how many of the uniform numbers give it, and how many borders it has among them."""
    found: dict[str, tuple[int, int]] = {}
    last = ""
    kept = copy.deepcopy(curator)
    for step in range(STEPS):
        answer = _answer(kept, reward, level, (step + 0.5) / STEPS)
        share, borders = found.get(answer, (0, 1))
        found[answer] = (share + 1, borders + (answer != last))
        last = answer
    return found
