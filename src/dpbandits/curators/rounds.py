"""Playing a stint one reward at a time: the meaning of ``absorb``, whatever a curator does to be quicker."""

from __future__ import annotations

from dpbandits.protocols import NO_LINE, Curator, Environment, Rng

__all__ = ["one_by_one"]


def one_by_one(
    curator: Curator, environment: Environment, arm: int, n: int, line: float, rewards: Rng, noise: Rng
) -> int:
    """Play ``arm`` n times, or until its released mean is no longer above ``line``; how many rounds that took."""
    for played in range(1, n + 1):
        level = environment.population.level(rewards)
        response = curator.respond(environment.draw(arm, rewards), level, noise)
        curator.add(arm, response, level, noise)
        if line > NO_LINE and curator.mean(arm) <= line:
            return played
    return n
