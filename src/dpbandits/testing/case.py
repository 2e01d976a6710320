"""The case on which a law is tried: a policy with settings and arms, and ways to play it."""

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

__all__ = ["ROUNDS", "Case", "Law", "PolicyPlayer", "generators", "play_policy", "player", "same_memory"]

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


def generators(*seed: int, count: int = 3) -> tuple[Rng, ...]:
    """This many independent generators."""
    return tuple(np.random.default_rng([*seed, stream]) for stream in range(count))


#: Plays a policy on an environment, with checkpoints and generators, and returns the pulls.
PolicyPlayer = Callable[[Policy, Any, Integers, tuple[Rng, ...]], Integers]


def player(
    policy: Policy, environment: Any, *, skipping: bool = True, bulk: bool = True, quick: bool = True
) -> PolicyPlayer:
    """A function that plays policies and environments of these classes many times.

    It returns the pulls, (marks, arms); a run's memory stays in the policy. ``skipping`` lets the agent prove how long
    its choices stand, ``bulk`` lets the curator draw many rewards at once, and ``quick`` is compiled.
    """

    def parts(policy: Policy, environment: Any) -> tuple[Any, Any, Any]:
        agent: Any = skip_ahead(policy.agent, policy.curator) if skipping else policy.agent
        return environment, policy.curator if bulk else OneByOne(policy.curator), agent

    run = compiled.compiled(loop.play, *parts(policy, environment)) if quick else loop.play

    def played(policy: Policy, environment: Any, marks: Integers, random: tuple[Rng, ...]) -> Integers:
        pulls = np.zeros((len(marks), policy.arms), np.int64)
        with compiled.uninterrupted():
            run(*parts(policy, environment), marks, pulls, *random)
        return pulls

    return played


def play_policy(policy: Policy, environment: Any, marks: Integers, random: tuple[Rng, ...], **how: bool) -> Integers:
    """Play once, as ``player`` does."""
    return player(policy, environment, **how)(policy, environment, marks, random)


def same_memory(one: Any, two: Any) -> bool:
    """Whether two parts remember the same, to the last bit."""
    pairs = zip(arrays(one), arrays(two), strict=True)
    return all(np.array_equal(a, b, equal_nan=a.dtype == np.float64) for (_, a), (_, b) in pairs)
