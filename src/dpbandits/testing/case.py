"""What a law is tried on: a policy with settings and arms, and ways to play it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpbandits.agents import skip_ahead
from dpbandits.curators.rounds import OneByOne
from dpbandits.environments import Arms, Bernoulli, Mixed, parse_levels
from dpbandits.parts import arrays
from dpbandits.policies import lookup
from dpbandits.policies.policy import Policy
from dpbandits.simulation import compiled, loop
from dpbandits.types import Integers, Rng

__all__ = ["ROUNDS", "Case", "Law", "play", "same_memory", "streams"]

ROUNDS = 1500


@dataclass(frozen=True)
class Case:
    """A policy with settings and arms on which to try it."""

    factory: lookup.Factory
    arms: str = "0.9,0.6,0.4"
    settings: Mapping[str, Any] = field(default_factory=dict)
    levels: str = "choice(0,0.5,1,2)"
    reward_range: tuple[float, float] | None = None

    @property
    def name(self) -> str:
        """The policy's name."""
        return self.factory.__name__.replace("_", "-")

    def policy(self, **changed: Any) -> Policy:
        """A fresh policy."""
        given = {**self.settings, **changed}
        common = {"arms": len(Arms.of(self.arms)), "epsilon": 0.7, "horizon": ROUNDS}
        return lookup.sample(self.factory, **{**common, **given})

    def environment(self, arms: str | None = None) -> Bernoulli | Mixed:
        """The arms, with some users whose responses the heterogeneous policies discard."""
        return Arms.of(arms or self.arms).environment(parse_levels(self.levels), self.reward_range)


#: A law takes a case and raises AssertionError where it is broken.
Law = Callable[[Case], None]


def streams(*seed: int, count: int = 3) -> tuple[Rng, ...]:
    """This many independent generators."""
    return tuple(np.random.default_rng([*seed, stream]) for stream in range(count))


def play(
    policy: Policy,
    environment: Any,
    marks: Integers,
    random: tuple[Rng, ...],
    *,
    skipping: bool = True,
    bulk: bool = True,
    quick: bool = True,
) -> Integers:
    """(marks, arms): the pulls of a run, whose memory stays in ``policy``.

    ``skipping`` lets the agent prove how long its choices stand, ``bulk`` lets the curator draw many rewards at once,
    and ``quick`` is compiled.
    """
    agent: Any = skip_ahead(policy.agent) if skipping and policy.curator.others_stand else policy.agent
    curator: Any = policy.curator if bulk else OneByOne(policy.curator)
    pulls = np.zeros((len(marks), policy.arms), np.int64)
    run = compiled.play if quick else loop.play
    run(environment, curator, agent, marks, pulls, *random)
    return pulls


def same_memory(one: Any, two: Any) -> bool:
    """Whether two parts remember the same, to the last bit."""
    pairs = zip(arrays(one), arrays(two), strict=True)
    return all(np.array_equal(a, b, equal_nan=a.dtype == np.float64) for (_, a), (_, b) in pairs)
