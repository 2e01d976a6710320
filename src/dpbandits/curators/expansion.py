"""The misfit of bits as a power series about one mean, which every bit updates."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from dpbandits.curators.likelihood import HIGH, LOW
from dpbandits.types import Floats, Integers

__all__ = ["NOTHING", "Bits", "Expansion"]

TOLERANCE = 1e-10  # the terms that are left out add up to at most this
MEAN_TOLERANCE = 1e-12  # the terms that are left out move the mean by at most this
MOST_CHANGES = 1000  # then the sums are computed anew, because adding and taking away rounds
STEPS = 6  # to the least point; it mostly takes one or two

Bits = tuple[float, float, float]  # how many, how many of them are ones, and the sum of their attenuations
NOTHING: Bits = (0.0, 0.0, 0.0)


class Expansion(NamedTuple):
    """For each arm a point, and the misfit of the arm's bits near it.

    Let p be the probability of a one at the point, for a bit of attenuation s, and x the distance of a mean from the
    point. Then the misfit of a one is -log(1 + u x) with u = s/p, and that of a zero is -log(1 - v x) with
    v = s/(1 - p), up to constants. So the misfit of all bits is the sum of A_k x^k / k over k >= 1, where A_k is the
    sum of (-u)^k over the ones and of v^k over the zeros.

    The first 8 terms are used. Let 1/r be the largest u of the ones and v of the zeros. All summands of A_8 are
    positive, so |A_k| <= A_8 / r^(k - 8) for k > 8. What is left out is therefore at most
    A_8 |x|^8 (|x|/r) / (9 (1 - |x|/r)), which is at most A_8 |x|^8 / 9 where 2 |x| <= r.

    >>> near = Expansion.start(1)
    >>> near.begin(0, 0.6)
    >>> near.replace(0, NOTHING, (100.0, 61.0, 100.0))
    >>> near.means[0] = 0.6
    >>> bool(near.move(0)), round(float(near.means[0]), 12)
    (True, 0.61)
    """

    points: Floats  # (arms,): 0 where there is none yet
    means: Floats  # (arms,): the least point of the misfit
    rooms: Floats  # (arms,): r, or less: the distance from the point at which the first bit has no probability left
    a1: Floats  # (arms,): A_1, and so on
    a2: Floats
    a3: Floats
    a4: Floats
    a5: Floats
    a6: Floats
    a7: Floats
    a8: Floats
    changes: Integers  # (arms,): bits since these sums were computed, plus 1; 0 where the sums are out of date
    waits: (
        Integers  # (arms,): the bits until these sums are computed, where the mean is right without them; 0 elsewhere
    )

    @classmethod
    def start(cls, arms: int) -> Self:
        """No points."""
        points, means, rooms, a1, a2, a3, a4, a5, a6, a7, a8 = np.zeros((11, arms))
        return cls(points, means, rooms, a1, a2, a3, a4, a5, a6, a7, a8, *np.zeros((2, arms), np.int64))

    def begin(self, arm: int, point: float) -> None:
        """Begin a series of no bits about this point."""
        self.points[arm], self.rooms[arm], self.changes[arm], self.waits[arm] = point, math.inf, 1, 0
        for sums in (self.a1, self.a2, self.a3, self.a4, self.a5, self.a6, self.a7, self.a8):
            sums[arm] = 0.0

    def replace(self, arm: int, before: Bits, after: Bits) -> None:
        """Add the bits ``after`` to the sums, in place of the bits ``before``; all of them have one attenuation."""
        point = self.points[arm] - 0.5
        n, ones, slopes = after
        half, off, zeros = 0.5 * n, point * slopes, n - ones
        one, zero, room = -slopes / (half + off), slopes / (half - off), self.rooms[arm]
        if ones > 0.0 and -room * one > 1.0:
            room = -1.0 / one
        if zeros > 0.0 and room * zero > 1.0:
            room = 1.0 / zero
        self.rooms[arm] = room
        n, old_ones, slopes = before
        old_one, old_zero, old_zeros = 0.0, 0.0, n - old_ones
        if n > 0.0:
            half, off = 0.5 * n, point * slopes
            old_one, old_zero = -slopes / (half + off), slopes / (half - off)
        for sums in (self.a1, self.a2, self.a3, self.a4, self.a5, self.a6, self.a7, self.a8):
            ones *= one
            zeros *= zero
            old_ones *= old_one
            old_zeros *= old_zero
            sums[arm] += ones - old_ones + (zeros - old_zeros)
        changes = self.changes[arm]
        self.changes[arm] = changes + 1 if changes < MOST_CHANGES else 0

    def covers(self, arm: int, low: float, high: float) -> bool:
        """Whether the series is up to date, and right from ``low`` to ``high``, up to the tolerance."""
        point = self.points[arm]
        return self.changes[arm] > 0 and self.reaches(arm, high - point if low + high > 2.0 * point else point - low)

    def reaches(self, arm: int, x: float) -> bool:
        """Whether the series is right at the distance ``x`` from the point, up to the tolerance."""
        room, square = self.rooms[arm], x * x
        fourth = square * square
        return 4.0 * square <= room * room and self.a8[arm] * fourth * fourth <= 9.0 * TOLERANCE

    def largest(self) -> float:
        """The largest mean of all arms."""
        top = 0.0
        for arm in range(len(self.means)):
            top = max(top, self.means[arm])
        return top

    def score(self, arm: int, mean: float) -> tuple[float, float]:
        """The first and second derivative of the misfit."""
        x, a2, a3, a4 = mean - self.points[arm], self.a2[arm], self.a3[arm], self.a4[arm]
        y, a5, a6, a7, a8 = x * x, self.a5[arm], self.a6[arm], self.a7[arm], self.a8[arm]
        slope = self.a1[arm] + y * (a3 + y * (a5 + y * a7)) + x * (a2 + y * (a4 + y * (a6 + y * a8)))
        bend = a2 + y * (3.0 * a4 + y * (5.0 * a6 + y * 7.0 * a8)) + x * (2.0 * a3 + y * (4.0 * a5 + y * 6.0 * a7))
        return slope, bend

    def rise(self, arm: int, low: float, high: float) -> float:
        """The misfit at ``high`` less that at ``low``."""
        point, a2, a3, a4 = self.points[arm], 0.5 * self.a2[arm], self.a3[arm] / 3.0, 0.25 * self.a4[arm]
        a5, a6, a7, a8 = 0.2 * self.a5[arm], self.a6[arm] / 6.0, self.a7[arm] / 7.0, 0.125 * self.a8[arm]
        x, y = high - point, low - point
        far = x * x * (a2 + x * (a3 + x * (a4 + x * (a5 + x * (a6 + x * (a7 + x * a8))))))
        close = y * y * (a2 + y * (a3 + y * (a4 + y * (a5 + y * (a6 + y * (a7 + y * a8))))))
        return self.a1[arm] * (high - low) + far - close

    def move(self, arm: int) -> bool:
        """Find the least point of the misfit, from the last one; False where the series is not right there.

        Let a, b, c and d be the Taylor coefficients of the slope at a mean, x the distance of that mean from the point,
        m = r - |x|, and q = -a/b. The slope is 0 at q - (c/b) q^2 + (2 (c/b)^2 - d/b) q^3 + ..., the inverse series.
        The u and v of the bits at this mean are at most 1/m, so |c/b| <= 1/m, |d/b| <= 1/m^2 and so on. The
        coefficients of the inverse series are then at most those of the inverse of x - x^2/m - x^3/m^2 - ..., which are
        11/m^3, 45/m^4, 197/m^5 and so on. So after the step the error is below 16 q^4/m^3 if |q| < 0.07 m. The step is
        the last one where q^4/m^3 <= 1e-14. Where the series is right m is at least 5e-10, so |q| < 0.07 m there.

        At a distance x from the point the slope leaves out at most A_8 |x|^8 (1/r) / (1 - |x|/r), by the argument
        above, which moves the mean by at most 2 A_8 x^8 / (b r). Less is allowed where the point is next to 0 or 1,
        because the slope of a rival's evidence against a largest mean t is up to n / (1 - t).
        """
        mean, a1, a2, a3, a4 = self.means[arm], self.a1[arm], self.a2[arm], self.a3[arm], self.a4[arm]
        a5, a6, a7, a8 = self.a5[arm], self.a6[arm], self.a7[arm], self.a8[arm]
        point, room = self.points[arm], self.rooms[arm]
        for _ in range(STEPS):
            x = mean - point
            y = x * x
            bend = a2 + y * (3.0 * a4 + y * (5.0 * a6 + y * 7.0 * a8)) + x * (2.0 * a3 + y * (4.0 * a5 + y * 6.0 * a7))
            if bend <= 0.0:
                return False
            slope = a1 + y * (a3 + y * (a5 + y * a7)) + x * (a2 + y * (a4 + y * (a6 + y * a8)))
            m, square = room - abs(x), 0.0
            stays = (mean == LOW and slope > 0.0) or (mean == HIGH and slope < 0.0)  # at an end of the range
            if not stays:
                flat = 1.0 / bend
                q = -flat * slope
                third = flat * (a3 + y * (6.0 * a5 + y * 15.0 * a7) + x * (3.0 * a4 + y * (10.0 * a6 + y * 21.0 * a8)))
                fourth = flat * (a4 + y * (10.0 * a6 + y * 35.0 * a8) + x * (4.0 * a5 + y * 20.0 * a7))
                mean = min(max(mean + q * (1.0 + q * (q * (2.0 * third * third - fourth) - third)), LOW), HIGH)
                square, x = q * q, mean - point
            if square * square <= 1e-14 * m * m * m:
                self.means[arm] = mean
                y = x * x
                left_out, narrow = 2.0 * a8 * y * y * y * y, min(room, point, 1.0 - point)
                return left_out <= MEAN_TOLERANCE * bend * narrow and self.reaches(arm, x)
        return False
