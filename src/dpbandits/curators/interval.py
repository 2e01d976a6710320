"""The central model, with rare releases: the mean of all of an arm's rewards, at fixed counts only."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple, Self

import numpy as np

from dpbandits.checks import MAX_EXACT_INT, at_least, flag, fraction, known, positive
from dpbandits.curators.common import Released
from dpbandits.errors import InputError
from dpbandits.mechanisms import laplace
from dpbandits.privacy.guarantee import Guarantee
from dpbandits.privacy.release_points import CONSTANT, EXACT, SCHEDULES, interval_rate, next_release
from dpbandits.types import Floats, Integers, Rng


@cache  # every run of a simulation starts a fresh curator
def _exact_interval(epsilon: float, delta: float, v: float, horizon: int) -> int:
    from dpbandits.privacy.interval_accounting import exact_interval  # SciPy, which the other schedules do not need

    return exact_interval(epsilon, delta, v, horizon)


class IntervalFields(NamedTuple):
    """The fields of ``Interval``."""

    epsilon: float
    delta: float
    rate: float
    v: float
    schedule: int
    covers: bool  # whether ``width`` tells of the noise; as printed, it does not
    most_rounds: int  # rounds for which the guarantee holds; 0 if it holds for every number of rounds
    release_points: Integers  # (arms,): the count at which the next release is due
    pulls: Integers
    raw_sums: Floats
    counts: Integers
    means: Floats


class Interval(Released, IntervalFields):
    """The curator of DP-UCB-INT: at n rewards, the mean with noise of scale n^(v/2-1), that is n^(-v/2)-private.

    A mean is released when the count *reaches* a new release point, and kept. (As printed it is drawn anew in every
    round in which an arm's count is a multiple of the interval, which is not private.)

    >>> curator = Interval.start(2, epsilon=1.0, delta=4.5399929762484854e-05, v=1.1, schedule="constant")
    >>> int(curator.release_points[0])
    253
    """

    __slots__ = ()

    @classmethod
    def start(
        cls,
        arms: int,
        *,
        epsilon: float,
        delta: float,
        v: float,
        schedule: str,
        horizon: int | None = None,
        cover_noise: bool = False,
    ) -> Self:
        """A fresh curator; the interval follows from the target by Corollary 3.2, or from the exact accounting."""
        epsilon, delta, v = positive("epsilon", epsilon), fraction("delta", delta, zero=True), positive("v", v)
        if not 1.0 < v <= 1.5:
            raise InputError("v", f"must be in (1, 1.5], got {v}")
        horizon = None if horizon is None else at_least("horizon", horizon, 1)
        if known("schedule", schedule, (*SCHEDULES, EXACT)) == EXACT:
            if horizon is None:
                raise InputError("horizon", "is required by schedule=exact, got none")
            # The constant schedule releases every ceil(1/rate) rewards. The half keeps rounding from adding one.
            rate, code, most = 1.0 / (_exact_interval(epsilon, delta, v, horizon) - 0.5), CONSTANT, horizon
        elif delta == 0.0:
            rule = f"must be positive with schedule={schedule}, which holds for any number of rounds"
            raise InputError("delta", f"{rule}, got 0: use schedule=exact")
        else:
            rate, code, most = interval_rate(epsilon, delta, v), SCHEDULES[schedule], 0
        if rate * MAX_EXACT_INT < 1.0:
            raise InputError(
                "epsilon", f"must be larger: the first release would need over 2^53 rewards, got {epsilon}"
            )
        return cls(
            epsilon,
            delta,
            rate,
            v,
            code,
            flag("cover_noise", cover_noise),
            most,
            np.full(arms, next_release(0, rate, v, code), np.int64),
            np.zeros(arms, np.int64),
            np.zeros(arms),
            np.zeros(arms, np.int64),
            np.zeros(arms),
        )

    def guarantee(self) -> Guarantee:
        promise = Guarantee.central(self.epsilon, self.delta)
        return promise.under(f"at most {self.most_rounds} rounds") if self.most_rounds else promise

    def due(self, arm: int) -> int:
        return self.release_points[arm] - self.pulls[arm]

    def take(self, arm: int, n: int, total: float) -> None:
        """Take n rewards with this sum."""
        self.pulls[arm] += n
        self.raw_sums[arm] += total

    def release(self, arm: int, rng: Rng) -> None:
        """Release the arm's mean if its count has reached the next release point."""
        if self.due(arm) <= 0:
            n = self.pulls[arm]
            self.means[arm] = laplace(self.raw_sums[arm], 1.0, float(n) ** (-0.5 * self.v), rng) / n
            self.counts[arm] = n
            self.release_points[arm] = next_release(n, self.rate, self.v, self.schedule)

    def samples(self, arm: int, ahead: int) -> float:
        return float(self.counts[arm] if ahead < self.due(arm) else self.pulls[arm] + ahead)

    def width(self, arm: int, exponent: float, ahead: int) -> float:
        return exponent * self.samples(arm, ahead) ** (0.5 * self.v - 1.0) if self.covers else 0.0
