"""The privacy cost of DP-UCB-INT, and the shortest interval that meets a target (Tossou & Dimitrakakis 2016).

One reward changes an arm's mean over n rewards by at most 1/n. The mean is released with Laplace noise of scale
n^(v/2-1), so a release at count n is n^(-v/2)-private. The worst case is an arm's first reward, because every release
of that arm contains it. Releases of other arms do not contain it, so the cost of one arm's releases is the cost of the
whole algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import zeta

from dpbandits.checks import at_least, fraction, known, positive
from dpbandits.errors import InputError
from dpbandits.numerics import power_sum
from dpbandits.privacy.composition import advanced, heterogeneous, heterogeneous_delta
from dpbandits.privacy.release_points import SCHEDULES, next_release
from dpbandits.privacy.renyi import laplace_rdp, rdp_to_dp
from dpbandits.types import Floats

__all__ = [
    "Cost",
    "corollary_3_1",
    "exact_interval",
    "interval_cost",
    "release_counts",
    "schedule_cost",
    "theorem_3_4",
]

SINGLE_RELEASES = 512  # the first releases, which are accounted one by one
BLOCK_GROWTH = 1.002  # later releases are grouped in blocks, whose epsilons differ by at most 0.15 %


class Cost(NamedTuple):
    """The epsilon at one delta by four kinds of accounting. All are valid, so the least one counts."""

    pure: float
    advanced: float
    optimal: float
    renyi: float

    @property
    def epsilon(self) -> float:
        """The least of the four."""
        return min(self)


def theorem_3_4(rate: float, v: float, t: int, delta: float, *, as_printed: bool = False) -> tuple[float, float]:
    """Theorem 3.4: (C, D), the pure and the advanced cost after t rounds at this rate. The guarantee is their minimum.

    C = rate sum n^(-v/2) and D = rate sum n^(-v/2) (e^(n^(-v/2)) - 1) + sqrt(rate sum 2 ln(1/delta) n^-v), over n <= t.
    The paper prints t^(-v/2) in front of the exponential, which is smaller and not proven. The theorem holds for the
    corrected algorithm, which draws the noise of each release once.

    >>> [round(x, 4) for x in theorem_3_4(0.0039643, 1.1, 100_000, math.exp(-10))]
    [1.5599, 0.8021]
    """
    _check(rate, v, t)
    fraction("delta", delta)
    pure = rate * power_sum(1, t, 0.5 * v)
    # e^x - 1 = x + x^2/2 + ...: each power of n^(-v/2) has its own sum. From the twentieth on they are negligible.
    if as_printed:
        drift = t ** (-0.5 * v) * sum(power_sum(1, t, 0.5 * v * k) / math.factorial(k) for k in range(1, 20))
    else:
        drift = sum(power_sum(1, t, 0.5 * v * (k + 1)) / math.factorial(k) for k in range(1, 20))
    spread = math.sqrt(2.0 * rate * math.log(1.0 / delta) * power_sum(1, t, v))
    return pure, rate * drift + spread


def corollary_3_1(rate: float, v: float, t: int, delta: float) -> tuple[float, float]:
    """Corollary 3.1: closed-form upper bounds on C and D of Theorem 3.4. The second holds for every t.

    C <= rate (t^(1-v/2) - v/2) / (1 - v/2) and D <= 2 rate zeta(v) + sqrt(2 rate zeta(v) ln(1/delta)).
    Corollary 3.2 inverts the second: ``release_points.interval_rate``.

    >>> [round(x, 4) for x in corollary_3_1(0.0039643, 1.1, 100_000, math.exp(-10))]
    [1.5617, 1.0]
    """
    _check(rate, v, t)
    fraction("delta", delta)
    half = 0.5 * v
    squares = rate * float(zeta(v))
    return rate * (t ** (1.0 - half) - half) / (1.0 - half), 2.0 * squares + math.sqrt(
        2.0 * squares * math.log(1.0 / delta)
    )


def release_counts(rate: float, v: float, horizon: int, schedule: str) -> list[int]:
    """The counts at which Lemma B.1's ``schedule`` (constant, x or y) releases an arm's mean, up to the horizon.

    >>> release_counts(0.0039643, 1.1, 700, "y")
    [46, 177, 354, 554]
    """
    _check(rate, v, horizon)
    rule = SCHEDULES[known("schedule", schedule, SCHEDULES)]
    counts: list[int] = []
    last = next_release(0, rate, v, rule)
    while last <= horizon:
        counts.append(last)
        last = next_release(last, rate, v, rule)
    return counts


def schedule_cost(rate: float, v: float, horizon: int, delta: float, schedule: str) -> Cost:
    """The privacy cost of a schedule's actual releases up to the horizon.

    >>> [round(x, 3) for x in schedule_cost(0.0039643, 1.1, 100_000, math.exp(-10), "constant")]
    [1.482, 0.492, 0.311, 0.342]
    """
    counts = np.asarray(release_counts(rate, v, horizon, schedule), dtype=np.float64)
    return _cost(counts ** (-0.5 * v), np.ones(len(counts)), delta)


def interval_cost(interval: int, v: float, horizon: int, delta: float) -> Cost:
    """The privacy cost of Laplace releases at interval, 2 interval, 3 interval, ... up to the horizon.

    >>> [round(x, 3) for x in interval_cost(253, 1.1, 100_000, math.exp(-10))]
    [1.482, 0.492, 0.311, 0.342]
    """
    at_least("interval", interval, 1)
    _check(1.0, v, horizon)
    return _cost(*_releases(interval, v, horizon), delta)


def exact_interval(epsilon: float, delta: float, v: float, horizon: int) -> int:
    """The shortest constant interval that is (epsilon, delta)-private up to the horizon, by three kinds of accounting.

    The least of the pure sum, optimal composition of any mechanisms with these epsilons (Kairouz, Oh & Viswanath 2015)
    and Rényi composition must be at most epsilon. All are valid, so the interval is private. It can be slightly longer
    than necessary: the privacy-loss distribution of Laplace noise itself would allow 38 instead of 39 at epsilon = 1,
    delta = e^-10 and 20,000 rounds.

    A longer interval has fewer and later releases, so the cost decreases with the interval, and bracketing
    finds the shortest one. Corollary 3.2 holds for every horizon, and is far from tight at a finite one: at epsilon =
    0.1 and 10^5 rounds it gives an interval of 21591.

    >>> exact_interval(1.0, math.exp(-10), 1.1, 100_000), exact_interval(0.1, math.exp(-10), 1.1, 100_000)
    (44, 1307)
    """
    positive("epsilon", epsilon)
    fraction("delta", delta, zero=True)
    horizon = at_least("horizon", horizon, 1)
    if not 1 < v <= 1.5:
        raise InputError("v", f"must be in (1, 1.5], got {v}")
    if horizon ** (-0.5 * v) > epsilon:
        raise InputError(
            "epsilon", f"must be at least {horizon ** (-0.5 * v):.6g}, one release at the horizon, got {epsilon}"
        )
    shortest = _shortest(horizon, lambda f: _excess(_pure(f, v, horizon), epsilon))
    if delta > 0.0:
        shortest = _shortest(shortest, lambda f: _excess(_renyi(*_releases(f, v, horizon), delta), epsilon))
        shortest = _shortest(shortest, lambda f: _optimal_excess(*_releases(f, v, horizon), epsilon, delta))
    return shortest


def _shortest(high: int, excess: Callable[[int], float]) -> int:
    """The least interval below ``high`` whose cost is within the target, or else ``high``, which is known to be valid.

    ``excess(interval)`` is roughly log(cost / target). As a function of log(interval) its slope is about -1 or -1/2, so
    a secant search in logarithms, kept inside a bracket, needs five or six evaluations. After eight, bisection follows.
    """
    low, last, last_excess = 0, high, -math.inf
    trial, trials = high - 1, 0
    while high - low > 1:
        over = excess(trial)
        low, high = (trial, high) if over > 0.0 else (low, trial)
        slope = (over - last_excess) / math.log(trial / last)
        root = trial * math.exp(-over / slope if -math.inf < slope < 0.0 else over)
        last, last_excess, trials = trial, over, trials + 1
        trial = min(max(math.ceil(root), low + 1), high - 1) if trials < 8 else (low + high) // 2
    return high


def _releases(interval: int, v: float, horizon: int) -> tuple[Floats, Floats]:
    """The epsilons of the releases, and how many releases have each.

    The first releases are listed one by one. Later ones are grouped in blocks, with the epsilon of the block's first.
    """
    count = horizon // interval
    first = np.arange(1, min(count, SINGLE_RELEASES) + 2, dtype=np.float64)
    if count > SINGLE_RELEASES:
        blocks = math.ceil(math.log((count + 1) / (SINGLE_RELEASES + 1)) / math.log(BLOCK_GROWTH))
        later = np.unique(np.floor(np.geomspace(SINGLE_RELEASES + 1, count + 1, blocks + 1) + 1e-9))
        first = np.concatenate([first[:-1], later])
    return (interval * first[:-1]) ** (-0.5 * v), np.diff(first)


def _pure(interval: int, v: float, horizon: int) -> float:
    return float(interval ** (-0.5 * v)) * power_sum(1, horizon // interval, 0.5 * v)


def _renyi(e: Floats, m: Floats, delta: float) -> float:
    return rdp_to_dp(lambda order: float(np.dot(m, laplace_rdp(e, order))), delta)


def _excess(cost: float, epsilon: float) -> float:
    """log(cost / epsilon). A cost by Renyi divergences can be 0 or less if delta is large: it is within any target."""
    return math.log(cost / epsilon) if cost > 0.0 else -1.0


def _optimal_excess(e: Floats, m: Floats, epsilon: float, delta: float) -> float:
    """Roughly how far optimal composition exceeds epsilon, given that delta falls as exp(-epsilon^2 / (2 variance))."""
    spent = heterogeneous_delta(e, epsilon, counts=m)
    return 0.5 * math.log(spent / delta) / math.log(1.0 / delta) if spent > 0.0 else -1.0


def _cost(e: Floats, m: Floats, delta: float) -> Cost:
    if not len(e):
        return Cost(0.0, 0.0, 0.0, 0.0)
    both = advanced(np.repeat(e, m.astype(np.int64)), delta)
    return Cost(float(np.dot(m, e)), both, heterogeneous(e, delta, counts=m), _renyi(e, m, delta))


def _check(rate: float, v: float, t: int) -> None:
    if not 0 < rate <= 1:
        raise InputError("rate", f"must be in (0, 1], got {rate}")
    if not 1 < v <= 1.5:
        raise InputError("v", f"must be in (1, 1.5], got {v}")
    at_least("horizon", t, 1)
