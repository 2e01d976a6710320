"""The released mean is the one under which the releases are most likely."""

from __future__ import annotations

import math
from typing import Any

from dpbandits.numerics import newton_step

__all__ = ["HIGH", "LOW", "MostLikely"]

LOW, HIGH = 1e-9, 1.0 - 1e-9  # estimates of a mean are not closer to 0 and 1 than this
STEPS = 60  # of Newton's method, or halvings


class MostLikely:
    """The misfit of a mean is minus the log-likelihood of all releases; ``score`` has its first two derivatives."""

    __slots__ = ()

    def guess(self, arm: int) -> float:
        """Where Newton's method starts."""
        return 0.5

    def settled(self, mean: float, step: float) -> bool:
        """Whether Newton's method has come near enough to the mean, after this step."""
        return abs(step) <= 1e-12

    def mean(self: Any, arm: int) -> float:
        return self.search(arm)

    def search(self: Any, arm: int) -> float:
        """The mean at which the misfit is least: Newton's method, with halving where it would leave the bracket."""
        low, high, mean = -math.inf, math.inf, self.guess(arm)
        for _ in range(STEPS):
            slope, bend = self.score(arm, mean)
            if slope > 0.0:
                high = mean
            else:
                low = mean
            last = mean
            mean = min(max(mean + newton_step(mean, slope, bend, low, high), LOW), HIGH)
            if self.settled(mean, mean - last):
                break
        return mean

    def reaches(self: Any, arm: int, mean: float) -> bool:
        """Whether the released mean is at least ``mean``. The misfit is convex, so it must not rise there."""
        return self.score(arm, min(max(mean, LOW), HIGH))[0] <= 0.0
