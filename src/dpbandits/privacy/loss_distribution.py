"""The privacy loss distribution of composed pure mechanisms, on a grid. Every approximation rounds up.

Among epsilon-private mechanisms randomised response is the worst (Kairouz, Oh & Viswanath 2015): its loss is
+epsilon with probability e^epsilon / (1 + e^epsilon), otherwise -epsilon. So the composition of mechanisms has at most
delta(total) = E[(1 - e^(total - L))_+], where L is the sum of their two-point losses.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit

from dpbandits.types import Floats

__all__ = ["LossDistribution", "composed_loss", "tilt_for_delta", "tilt_for_total"]

CHEAP_WORK = 1 << 19  # frequencies times losses that are computed in negligible time
MAX_POINTS = 1 << 18  # of a grid
DEVIATIONS = 9.3  # half the width of the grid; by Hoeffding's inequality a probability of 3e-19 lies outside
NEGLIGIBLE = math.log(1e-30)  # frequencies below this are dropped; together they contribute less than 1e-25
CHUNK_CELLS = 200_000  # frequencies times losses that are computed at once


class LossDistribution(NamedTuple):
    """A distribution on a grid, stored after exponential tilting.

    The probability of ``values[i]`` is tilted[i] * exp(log_moment - tilt * values[i]).
    """

    values: Floats
    tilted: Floats
    tilt: float
    log_moment: float
    missing: float  # bound on the tilted probability outside the grid, and on rounding errors

    def delta(self, total: float) -> float:
        """An upper bound on E[(1 - e^(total - L))_+]. The missing probability counts in full, at the worst point."""
        first = int(np.searchsorted(self.values, total, side="right"))
        excess = self.values[first:] - total
        inside = float(np.sum(self.tilted[first:] * np.exp(-self.tilt * excess) * -np.expm1(-excess)))
        return (inside + self.missing) * math.exp(min(self.log_moment - self.tilt * total, 700.0))

    def epsilon(self, delta: float) -> float:
        """The least total whose delta is at most ``delta``; infinite if the grid does not reach that far.

        Between two points of the grid delta is convex in e^total, so interpolation along the chord is conservative.
        """
        if self.delta(0.0) <= delta:
            return 0.0
        low, high = int(np.searchsorted(self.values, 0.0, side="right")), len(self.values) - 1
        if low > high or self.delta(float(self.values[high])) > delta:
            return math.inf
        if self.delta(float(self.values[low])) <= delta:
            return float(self.values[low])
        while high - low > 1:
            middle = (low + high) // 2
            if self.delta(float(self.values[middle])) <= delta:
                high = middle
            else:
                low = middle
        left, right = float(self.values[low]), float(self.values[high])
        above, below = self.delta(left), self.delta(right)
        return left + math.log1p(math.expm1(right - left) * (above - delta) / (above - below))


def log_moment(e: Floats, m: Floats, order: float) -> float:
    """log E[e^(order L)], where L is the sum of ``m`` losses of each epsilon in ``e``."""
    return float(np.dot(m, _log_cosh(e * (order + 0.5)) - _log_cosh(0.5 * e)))


def tilt_for_total(e: Floats, m: Floats, total: float) -> float:
    """The tilt under which the mean loss is ``total``, for the best accuracy; 0 if the untilted mean is above it."""

    def lack(tilt: float) -> float:
        return float(np.dot(m, e * np.tanh(e * (tilt + 0.5)))) - total

    if lack(0.0) >= 0.0:
        return 0.0
    most = 18.0 / float(np.min(e))
    return most if lack(most) <= 0.0 else float(brentq(lack, 0.0, most, xtol=1e-6, rtol=1e-6))


def tilt_for_delta(e: Floats, m: Floats, delta: float) -> float:
    """The tilt for which Chernoff's bound gives the least epsilon at ``delta``."""

    def chernoff(log_order: float) -> float:
        order = math.exp(log_order)
        return (log_moment(e, m, order) - math.log(delta)) / order

    centre = 0.5 * math.log(2.0 * math.log(1.0 / delta) / float(np.dot(m, e * e)))
    found = minimize_scalar(chernoff, bounds=(centre - 5.0, centre + 5.0), method="bounded", options={"xatol": 1e-3})
    return min(math.exp(float(found.x)), 18.0 / float(np.min(e)))


def composed_loss(e: Floats, m: Floats, tilt: float) -> LossDistribution:
    """The tilted distribution of the sum of ``m`` randomised-response losses of each epsilon in ``e``."""
    count, square = float(np.sum(m)), float(np.dot(m, e * e))
    # A cell of width h adds at most h^2/4 to a loss's variance. Up to MAX_POINTS there are enough points
    # to keep what all cells add below the share 1e-4 of sum m e^2.
    wanted = max(100.0 * DEVIATIONS * math.sqrt(count), min(CHEAP_WORK / len(e), 1 << 16))
    points = min(1 << math.ceil(math.log2(wanted)), MAX_POINTS)
    half = min(DEVIATIONS * math.sqrt(square), 2.0 * float(np.dot(m, e))) + float(np.max(e))
    step = 2.0 * half / (points - 4)
    cells = _Cells.connecting(e, step, tilt)
    reach = (cells.cell + 1) * step
    outside = 0.0  # if the window reaches from below 0 to beyond the largest loss
    if float(np.dot(m, reach)) > half:
        outside = 2.0 * math.exp(-0.5 * half * half / float(np.dot(m, reach * reach)))
    origin = round(float(np.dot(m, cells.mean)) / step) - points // 2
    tilted = np.maximum(np.fft.irfft(_spectrum(cells, m, origin, points), points), 0.0).astype(np.float64)
    values = np.asarray((origin + np.arange(points)) * step, dtype=np.float64)
    rounding = 1e-13 + 1e-15 * count  # rounding errors of the transform and of the summed angles
    return LossDistribution(values, tilted, tilt, float(np.dot(m, cells.log_moment)), outside + rounding)


class _Cells(NamedTuple):
    """Losses on the four points -(cell+1), -cell, cell, cell+1 of the grid, tilted and normalised."""

    cell: NDArray[np.int64]
    near: Floats  # probability of +cell
    far: Floats  # probability of +(cell+1)
    minus_near: Floats
    minus_far: Floats
    mean: Floats
    log_moment: Floats

    @classmethod
    def connecting(cls, e: Floats, step: float, tilt: float) -> _Cells:
        """The tightest distribution on the grid that dominates randomised response.

        Connecting the dots (Doroshenko et al. 2022): delta(total) is interpolated between its values on the grid,
        linearly in e^total. This moves the mass at loss e to the two neighbouring grid points, and keeps both total
        masses.
        """
        cell = np.floor(e / step).astype(np.int64)
        low = cell * step
        wrong = expit(-e)
        far = np.minimum(wrong * np.expm1(np.maximum(e - low, 0.0)) / math.expm1(step), wrong)
        near = wrong - far
        with np.errstate(divide="ignore"):
            logs = np.log(np.stack([near, far, near, far]))
        logs[0] += (1.0 + tilt) * low
        logs[1] += (1.0 + tilt) * (low + step)
        logs[2] -= tilt * low
        logs[3] -= tilt * (low + step)
        moment = np.logaddexp.reduce(logs, axis=0)
        mass = np.exp(logs - moment)
        mean = low * (mass[0] - mass[2]) + (low + step) * (mass[1] - mass[3])
        return cls(cell, mass[0], mass[1], mass[2], mass[3], mean, moment)


def _spectrum(cells: _Cells, m: Floats, origin: int, points: int) -> NDArray[np.complex128]:
    """The Fourier transform of the sum's distribution, shifted so that ``origin`` comes first.

    It is a product of factors of modulus at most 1. A frequency is dropped as soon as its partial product is
    negligible. With many losses only about a hundred frequencies remain after the first few factors.
    """
    circle = np.exp(2j * math.pi * np.arange(points) / points)
    alive = np.arange(points // 2 + 1)
    modulus, angle = np.zeros(len(alive)), np.zeros(len(alive))
    first = 0
    while first < len(m):
        part = slice(first, first + max(1, CHUNK_CELLS // len(alive)))
        inner = circle[np.multiply.outer(cells.cell[part], alive) % points]
        outer = circle[np.multiply.outer(cells.cell[part] + 1, alive) % points]
        near, far = cells.near[part, None], cells.far[part, None]
        minus_near, minus_far = cells.minus_near[part, None], cells.minus_far[part, None]
        real = (near + minus_near) * inner.real + (far + minus_far) * outer.real
        imaginary = (near - minus_near) * inner.imag + (far - minus_far) * outer.imag
        modulus += 0.5 * (m[part] @ np.log(np.maximum(real * real + imaginary * imaginary, 1e-300)))
        angle += m[part] @ np.arctan2(imaginary, real)
        kept = modulus > NEGLIGIBLE
        alive, modulus, angle = alive[kept], modulus[kept], angle[kept]
        first = part.stop
    spectrum = np.zeros(points // 2 + 1, dtype=np.complex128)
    spectrum[alive] = np.exp(modulus - 1j * angle) * circle[(alive * origin) % points]
    return spectrum


def _log_cosh(x: Floats) -> Floats:
    """log cosh, without overflow."""
    return np.abs(x) + np.log1p(np.exp(-2.0 * np.abs(x))) - math.log(2.0)
