"""The name of a field decides no verdict."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from dpbandits.agents import UCB
from dpbandits.audit import verify
from dpbandits.curators.common import Trusted
from dpbandits.numerics import unit
from dpbandits.policies.policy import Parts, published
from dpbandits.privacy.guarantee import Guarantee
from dpbandits.types import Floats, Integers, Rng


class Values(NamedTuple):
    epsilon: float
    raw_sums: Floats
    counts: Integers
    value: Floats


class Arms(NamedTuple):
    epsilon: float
    raw_sums: Floats
    counts: Integers
    arm: Floats


class NoNoise(Trusted):
    """Broken: it releases every sum as it is."""

    __slots__ = ()

    @classmethod
    def start(cls: Any, arms: int, epsilon: float) -> Any:
        return cls(epsilon, np.zeros(arms), np.zeros(arms, np.int64), np.zeros(arms))

    def guarantee(self: Any) -> Guarantee:
        return Guarantee.central(self.epsilon)

    def samples(self: Any, arm: int, ahead: int) -> float:
        return float(self.counts[arm])

    def width(self: Any, arm: int, exponent: float, ahead: int) -> float:
        return 0.0


class InValue(NoNoise, Values):
    __slots__ = ()

    def add(self, arm: int, response: float, level: float, rng: Rng) -> None:
        self.raw_sums[arm] += unit(response)
        self.counts[arm] += 1
        self.value[arm] = self.raw_sums[arm] / self.counts[arm]

    def mean(self, arm: int) -> float:
        return float(self.value[arm])


class InArm(NoNoise, Arms):
    __slots__ = ()

    def add(self, arm: int, response: float, level: float, rng: Rng) -> None:
        self.raw_sums[arm] += unit(response)
        self.counts[arm] += 1
        self.arm[arm] = self.raw_sums[arm] / self.counts[arm]

    def mean(self, arm: int) -> float:
        return float(self.arm[arm])


@pytest.mark.parametrize("curator", [InValue, InArm])
def test_a_leak_is_shown_whatever_its_field_is_called(curator: Any) -> None:
    def leak(arms: int, *, epsilon: float) -> Parts:
        return Parts(UCB.start(arms, alpha=1.0), curator.start(arms, epsilon))

    verdict = verify(published("nobody yet")(leak), epsilon=1.0, horizon=8)
    assert verdict.verdict == "violated", f"{verdict}"
