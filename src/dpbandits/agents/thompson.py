"""Posterior sampling."""

from __future__ import annotations

from typing import NamedTuple, Self

from dpbandits.protocols import NO_LINE, Releases
from dpbandits.types import Rng


class Thompson(NamedTuple):
    """Play the arm with the largest draw from its Beta posterior (Thompson 1933; uniform prior).

    >>> import numpy as np
    >>> from dpbandits.curators import Plain
    >>> Thompson.start(2).act(Plain.start(2), 1, np.random.default_rng(0))
    (1, 1, -inf)
    """

    arms: int

    @classmethod
    def start(cls, arms: int) -> Self:
        """A fresh agent."""
        return cls(arms)

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        best, largest = 0, -1.0
        for arm in range(self.arms):
            successes, n = 0.0, 0.0
            if releases.ready(arm, 0.0):
                n = releases.samples(arm, 0)
                successes = n * releases.mean(arm)
            sample = rng.beta(successes + 1.0, max(n - successes, 0.0) + 1.0)
            if sample > largest:
                best, largest = arm, sample
        return best, 1, NO_LINE
