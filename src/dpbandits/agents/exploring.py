"""What index policies share: which arm must be explored first, and the mean that an index starts from."""

from __future__ import annotations

from dpbandits.numerics import unit
from dpbandits.protocols import Releases

__all__ = ["first_unready", "raised_mean"]


def first_unready(releases: Releases, arms: int, t: int, confidence: float) -> int:
    """An arm whose mean cannot be bounded yet: the one whose turn it is, or else the first; ``arms`` if there is none.

    >>> from dpbandits.curators import Plain
    >>> [first_unready(Plain.start(3), 3, t, 1.0) for t in (1, 2, 3, 4)]
    [0, 1, 2, 0]
    """
    turn = (t - 1) % arms
    if not releases.ready(turn, confidence):
        return turn
    for arm in range(arms):
        if not releases.ready(arm, confidence):
            return arm
    return arms


def raised_mean(releases: Releases, arm: int, confidence: float) -> float:
    """The released mean, raised by the width of the noise and clipped to [0, 1]."""
    return unit(releases.mean(arm) + releases.width(arm, confidence, 0))
