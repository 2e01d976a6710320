"""Sums of rewards as integers, for a live central curator, and the single release of each sum."""

from __future__ import annotations

from dpbandits.checks import at_least
from dpbandits.errors import InputError
from dpbandits.exact.noise import Noise, SystemNoise
from dpbandits.exact.rational import Exactly, rational
from dpbandits.exact.responses import LAPLACE_GRID, on_grid


class IntegerSum:
    """A sum of rewards in [0, 1], in units of 2^-16, and its epsilon-private release.

    Integer addition is exact. So the sum does not depend on the order of the rewards, and one reward changes it by at
    most 2^16. Floating-point sums have neither property (Casacuberta et al. 2022). The noise is drawn once, so a
    repeated release is the same number. ``raw_total`` never leaves the curator, except to be frozen with an open stint.

    >>> from dpbandits.exact.noise import RiggedNoise
    >>> total = IntegerSum("1", RiggedNoise(lambda n: b"\\xff" * n))  # for tests: this noise is 0
    >>> for reward in (0.25, 1.0, 1e9):
    ...     total.add(reward)
    >>> total.release(), total.value(), total.count
    (147456, 2.25, 3)
    """

    __slots__ = ("_noise", "_released", "count", "epsilon", "raw_total")

    def __init__(self, epsilon: Exactly, noise: Noise | None = None, *, raw_total: int = 0, count: int = 0) -> None:
        self.epsilon = rational("epsilon", epsilon)
        self._noise = (noise or SystemNoise()).discrete_laplace(self.epsilon, 1 << LAPLACE_GRID)
        self._released: int | None = None
        self.raw_total = at_least("raw_total", raw_total, 0)
        self.count = at_least("count", count, 0)

    def add(self, reward: float) -> None:
        """Add a reward, clamped to [0, 1]. A released sum accepts no more rewards."""
        if self._released is not None:
            raise InputError("rewards", f"must come before the release, got one more after {self.count}")
        self.raw_total += on_grid(reward, LAPLACE_GRID)
        self.count += 1

    def release(self) -> int:
        """The private sum, in units of 2^-16."""
        if self._released is None:
            self._released = self._noise(self.raw_total)
        return self._released

    def value(self) -> float:
        """The private sum in the unit of the reward. This is post-processing."""
        return self.release() / (1 << LAPLACE_GRID)
