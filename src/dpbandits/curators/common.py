"""Methods that several curators share.

A curator is a NamedTuple of its fields, and takes the methods that it shares with others from here.
``class Tree(Trusted, TreeFields)`` has the fields of ``TreeFields``, the methods of ``Trusted``, and its own.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

from dpbandits.curators.rounds import one_by_one
from dpbandits.numerics import sigmoid, unit
from dpbandits.protocols import Environment, Schedules
from dpbandits.types import Floats, Integers, Rng

__all__ = ["Averaging", "Local", "NotNegative", "PerResponse", "Released", "Trusted"]


class _Counting(Protocol):
    @property
    def counts(self) -> Integers: ...


class _Summing(_Counting, Protocol):
    @property
    def sums(self) -> Floats: ...


class PerResponse:
    """Every response may change the release of its arm, and may add noise. The field ``counts`` is by arm."""

    __slots__ = ()

    by_stint = False
    others_stand = True
    counts_ahead = True
    steps = 1
    mechanism = "none"

    def close(self, arm: int, rng: Rng) -> None:
        pass

    def absorb(self: Any, environment: Environment, arm: int, n: int, line: float, rewards: Rng, noise: Rng) -> int:
        return one_by_one(self, environment, arm, n, line, rewards, noise)

    def ready(self: _Counting, arm: int, exponent: float) -> bool:
        return self.counts[arm] > 0

    def reaches(self: Any, arm: int, mean: float) -> bool:
        return self.mean(arm) >= mean

    def lowest(self, arm: int, ahead: int) -> float:
        return -math.inf

    def samples(self: _Counting, arm: int, ahead: int) -> float:
        return float(self.counts[arm] + ahead)

    def width(self, arm: int, exponent: float, ahead: int) -> float:
        return 0.0


class Trusted(PerResponse):
    """The device sends the reward, whatever it is; ``add`` clips it."""

    __slots__ = ()

    def respond(self, reward: float, level: float, rng: Rng) -> float:
        return reward

    def accepts(self, response: float) -> bool:
        return True


@Schedules.register
class Released(Trusted):
    """An arm's mean is released when its rewards reach a number that is known before, and kept in ``means``.

    The curators have ``due`` (how many more rewards that takes), ``take`` (this many rewards, with this sum) and
    ``release`` (if it is due).
    """

    __slots__ = ()

    def add(self: Any, arm: int, response: float, level: float, rng: Rng) -> None:
        self.take(arm, 1, unit(response))
        self.release(arm, rng)

    def absorb(self: Any, environment: Environment, arm: int, n: int, line: float, rewards: Rng, noise: Rng) -> int:
        played = 0
        while played < n:
            step = min(n - played, self.due(arm))
            if self.mean(arm) <= line:
                step = 1  # the mean may change after one round
            self.take(arm, step, environment.total(arm, step, rewards))
            self.release(arm, noise)
            played += step
            if self.mean(arm) <= line:
                break
        return played

    def mean(self: Any, arm: int) -> float:
        return self.means[arm]

    def lowest(self: Any, arm: int, ahead: int) -> float:
        return self.means[arm] if ahead < self.due(arm) else -math.inf


class _Bounding(Protocol):
    @property
    def sigmoid(self) -> bool: ...


class Averaging(PerResponse):
    """The release is the mean of all responses; the fields ``counts`` and ``sums`` are by arm."""

    __slots__ = ()

    def add(self: _Summing, arm: int, response: float, level: float, rng: Rng) -> None:
        self.counts[arm] += 1
        self.sums[arm] += response

    def mean(self: _Summing, arm: int) -> float:
        return self.sums[arm] / self.counts[arm]


class NotNegative:
    """The mean of responses that are at least 0: it is least if all further ones are 0."""

    __slots__ = ()

    def lowest(self: _Summing, arm: int, ahead: int) -> float:
        return self.sums[arm] / (self.counts[arm] + ahead)


class Local(Averaging):
    """Each device makes a private response of its reward. With the field ``sigmoid`` any real reward is allowed.

    Each curator says by which ``mechanism``.
    """

    __slots__ = ()

    def bounded(self: _Bounding, reward: float) -> float:
        """The number in [0, 1] that the device makes private."""
        return sigmoid(reward) if self.sigmoid else unit(reward)
