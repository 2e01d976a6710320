"""Playing a stint one reward at a time: this defines ``absorb``, which curators may compute more quickly."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

from dpbandits.privacy.guarantee import Guarantee
from dpbandits.protocols import NO_LINE, Curator, Environment
from dpbandits.types import Rng

__all__ = ["OneByOne", "PassedOn", "one_by_one"]

Inner = TypeVar("Inner", bound=Curator)


def one_by_one(
    curator: Curator, environment: Environment, arm: int, n: int, line: float, rewards: Rng, noise: Rng
) -> int:
    """Play ``arm`` n times, or until its released mean is no longer above ``line``; return how many rounds it took."""
    for played in range(1, n + 1):
        level = environment.population.level(rewards)
        response = curator.respond(environment.draw(arm, rewards), level, noise)
        curator.add(arm, response, level, noise)
        if line > NO_LINE and curator.mean(arm) <= line:
            return played
    return n


class PassedOn:
    """What passes questions on to the releases in its field ``inner``."""

    __slots__ = ()

    def ready(self: Any, arm: int, exponent: float) -> bool:
        return self.inner.ready(arm, exponent)

    def mean(self: Any, arm: int) -> float:
        return self.inner.mean(arm)

    def lowest(self: Any, arm: int, ahead: int) -> float:
        return self.inner.lowest(arm, ahead)

    def due(self: Any, arm: int) -> int:
        return self.inner.due(arm)

    def evidence(self: Any, arm: int, mean: float, top: float) -> float:
        return self.inner.evidence(arm, mean, top)

    def reaches(self: Any, arm: int, mean: float) -> bool:
        return self.inner.reaches(arm, mean)

    def upper(self: Any, arm: int, budget: float) -> float:
        return self.inner.upper(arm, budget)

    def steepness(self: Any, arm: int, mean: float) -> float:
        return self.inner.steepness(arm, mean)

    def rise(self: Any, arm: int, mean: float, top: float, evidence: float) -> float:
        return self.inner.rise(arm, mean, top, evidence)

    def lower(self: Any, arm: int, mean: float, top: float, evidence: float, budget: float, ahead: int) -> float:
        return self.inner.lower(arm, mean, top, evidence, budget, ahead)


class OneByOneFields(NamedTuple, Generic[Inner]):
    """The field of ``OneByOne``."""

    inner: Inner


class OneByOne(PassedOn, OneByOneFields[Inner]):
    """The same curator without bulk draws, with which bulk draws are compared.

    >>> from dpbandits.curators import Batch
    >>> OneByOne(Batch.start(2, epsilon=1.0)).guarantee().epsilon
    1.0
    """

    __slots__ = ()

    @property
    def by_stint(self) -> bool:
        return self.inner.by_stint

    @property
    def others_stand(self) -> bool:
        return self.inner.others_stand

    @property
    def counts_ahead(self) -> bool:
        return self.inner.counts_ahead

    @property
    def steps(self) -> int:
        return self.inner.steps

    @property
    def mechanism(self) -> str:
        return self.inner.mechanism

    def guarantee(self) -> Guarantee:
        return self.inner.guarantee()

    def respond(self, reward: float, level: float, rng: Rng) -> float:
        return self.inner.respond(reward, level, rng)

    def accepts(self, response: float) -> bool:
        return self.inner.accepts(response)

    def add(self, arm: int, response: float, level: float, rng: Rng) -> None:
        self.inner.add(arm, response, level, rng)

    def close(self, arm: int, rng: Rng) -> None:
        self.inner.close(arm, rng)

    def absorb(self, environment: Environment, arm: int, n: int, line: float, rewards: Rng, noise: Rng) -> int:
        return one_by_one(self.inner, environment, arm, n, line, rewards, noise)

    def samples(self, arm: int, ahead: int) -> float:
        return self.inner.samples(arm, ahead)

    def width(self, arm: int, exponent: float, ahead: int) -> float:
        return self.inner.width(arm, exponent, ahead)
