"""Policies whose own code fails."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from dpbandits.agents import UCB
from dpbandits.curators import Batch
from dpbandits.policies.policy import Parts, published
from dpbandits.protocols import NO_LINE


class Fails(NamedTuple):
    arms: int

    def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
        return int(1.0 / (4.0 - t)) % 2, 1, NO_LINE


class Leaves(NamedTuple):
    arms: int

    def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
        sys.exit(1)


class OutOfRange(NamedTuple):
    arms: int

    def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
        return self.arms + 100_000, 1, NO_LINE


class NoRounds(NamedTuple):
    arms: int

    def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
        return 0, 0, NO_LINE


@published("faulty")
def fails_in_act(arms: int, *, epsilon: float) -> Parts:
    return Parts(Fails(arms), Batch.start(arms, epsilon=epsilon))


@published("faulty")
def leaves(arms: int, *, epsilon: float) -> Parts:
    return Parts(Leaves(arms), Batch.start(arms, epsilon=epsilon))


@published("faulty")
def no_such_arm(arms: int, *, epsilon: float) -> Parts:
    return Parts(OutOfRange(arms), Batch.start(arms, epsilon=epsilon))


@published("faulty")
def no_rounds(arms: int, *, epsilon: float) -> Parts:
    return Parts(NoRounds(arms), Batch.start(arms, epsilon=epsilon))


@published("faulty")
def cannot_be_made(arms: int, *, epsilon: float) -> Parts:
    return Parts(Fails(arms), Batch.start(arms, epsilon))  # type: ignore[call-arg]


def no_policy(arms: int, epsilon: float) -> str:
    return "no policy"


def not_published(arms: int, *, epsilon: float) -> Parts:
    return Parts(UCB.start(arms), Batch.start(arms, epsilon=epsilon))
