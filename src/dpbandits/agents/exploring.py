"""What index policies share: the arm that must be explored first, the largest index, and the mean with its width."""

from __future__ import annotations

import math
from typing import Any

from dpbandits.numerics import positive_log, unit
from dpbandits.protocols import NO_LINE, Releases

__all__ = ["first_unready", "largest_bound", "raised_mean", "rounds_ready"]


def first_unready(releases: Releases, arms: int, t: int, exponent: float) -> int:
    """An arm whose mean cannot be bounded yet: the one whose turn it is, or else the first; ``arms`` if there is none.

    >>> from dpbandits.curators import Plain
    >>> [first_unready(Plain.start(3), 3, t, 1.0) for t in (1, 2, 3, 4)]
    [0, 1, 2, 0]
    """
    for arm in range(arms):
        if not releases.ready(arm, exponent):
            turn = (t - 1) % arms
            return arm if releases.ready(turn, exponent) else turn
    return arms


def rounds_ready(releases: Releases, arms: int, t: int, alpha: float) -> int:
    """A number of rounds after t, at most t, in which no arm must be explored at the exponent ``alpha`` log t."""
    ahead = t
    while ahead > 0:
        if first_unready(releases, arms, t, alpha * positive_log(t + ahead)) == arms:
            return ahead
        ahead //= 4
    return 0


def largest_bound(agent: Any, releases: Releases, t: int, exponent: float) -> tuple[int, int, float]:
    """The answer of ``act``: an arm that must be explored, else the first one with the largest ``agent.bound``."""
    arm = first_unready(releases, agent.arms, t, exponent)
    if arm < agent.arms:
        return arm, 1, NO_LINE
    best, largest = 0, -math.inf
    for arm in range(agent.arms):
        index = agent.bound(releases, arm, t)
        if index > largest:
            best, largest = arm, index
    return best, 1, NO_LINE


def raised_mean(releases: Releases, arm: int, exponent: float) -> float:
    """The released mean, raised by the width of the noise and clipped to [0, 1]."""
    return unit(releases.mean(arm) + releases.width(arm, exponent, 0))
