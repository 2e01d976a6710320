"""Arms of which too little is known are played first."""

from __future__ import annotations

from dpbandits.protocols import Releases

__all__ = ["first_unready"]


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
