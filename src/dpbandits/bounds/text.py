"""Arms and levels as they are written on the command line, made into a problem that theorems are about."""

from __future__ import annotations

import numpy as np

from dpbandits.bounds.divergences import Law
from dpbandits.bounds.levels import ClippedNormal, Levels, Population
from dpbandits.bounds.problem import Problem
from dpbandits.environments import Levels as ListedLevels
from dpbandits.environments import NormalLevels, parse_arms, parse_levels
from dpbandits.environments.distributions import Beta, Choice, Coin, Distribution, Normal, Uniform
from dpbandits.environments.population import HIGHEST
from dpbandits.errors import InputError, at_least

__all__ = ["law", "population", "problem"]

Range = tuple[float, float]


def problem(
    arms: str,
    horizon: float,
    *,
    epsilon: float | None = None,
    levels: str | None = None,
    reward_range: Range | None = None,
) -> Problem:
    """The problem of these arms: Bernoulli where they pay 0 or 1, normal where all have one sd, else bounded rewards.

    With a ``reward_range`` it is about rewards mapped from there to [0, 1]; none of them may lie outside.

    >>> problem("0.9,0.6", 1000, epsilon=1.0).family, problem("normal(0.9,1)+normal(0.6,1)", 1000).family
    ('bernoulli', 'gaussian')
    >>> mixed = problem("beta(4,1)+choice(0.4,1)", 1e3, levels="choice(0,1)")
    >>> mixed.family, [round(mean, 3) for mean in mixed.means], mixed.levels.accepted(1.0)
    ('bounded', [0.8, 0.7], 0.5)
    """
    users = None if levels is None else population(parse_levels(levels))
    distributions = parse_arms(arms)
    rounds = at_least("horizon", horizon, 1)  # type: ignore[arg-type]
    plain = reward_range in (None, (0.0, 1.0))
    if plain and all(_binary(arm) for arm in distributions):
        return Problem.bernoulli([arm.mean for arm in distributions], rounds, epsilon=epsilon, levels=users)
    normal = [arm for arm in distributions if isinstance(arm, Normal)]
    if reward_range is None and len(normal) == len(distributions):
        sds = sorted({arm.sd for arm in normal})
        if len(sds) > 1:
            raise InputError(f"arms: the bounds for normal rewards need one sd, got {sds[0]:g} and {sds[-1]:g}")
        return Problem.gaussian([arm.mean for arm in normal], rounds, sd=sds[0], epsilon=epsilon, levels=users)
    within = reward_range or (0.0, 1.0)
    return Problem.bounded([law(arm, within) for arm in distributions], rounds, epsilon=epsilon, levels=users)


def law(arm: Distribution, within: Range = (0.0, 1.0)) -> Law:
    """The arm's distribution on [0, 1], to which ``within`` is mapped; a continuous one by its quantiles.

    >>> law(Uniform(0, 2), (0, 2)).mean, law(Coin(0.25)).support
    (0.5, (0.0, 1.0))
    """
    low, high = within
    least, most = arm.support
    if least < low or most > high:
        raise InputError(f"arms: bounds need rewards in [{low:g}, {high:g}], {arm} pays in [{least:g}, {most:g}]")

    def unit(reward: float) -> float:
        return min(max((reward - low) / (high - low), 0.0), 1.0)

    if isinstance(arm, Coin):
        return Law((unit(0.0), unit(1.0)), (1.0 - arm.p, arm.p))
    if isinstance(arm, Choice):
        return Law.of(unit(float(value)) for value in arm.values)
    if isinstance(arm, Uniform):
        return Law.of_quantiles(lambda share: unit(arm.low + share * (arm.high - arm.low)))
    if isinstance(arm, Beta):
        from scipy.special import betaincinv

        return Law.of_quantiles(lambda share: unit(float(betaincinv(arm.a, arm.b, share))))
    raise InputError(f"arms: no bound is known for {arm}")


def population(levels: ListedLevels | NormalLevels) -> Population:
    """The population of a simulation, as theorems want it.

    >>> population(parse_levels("choice(0,0.2,1,2)")).accepted(1.0)
    0.5
    """
    if isinstance(levels, NormalLevels):
        return ClippedNormal(levels.center, levels.sd, HIGHEST)
    return Levels.uniform(levels.values.tolist())


def _binary(arm: Distribution) -> bool:
    return isinstance(arm, Coin) or (isinstance(arm, Choice) and bool(np.isin(arm.values, (0, 1)).all()))
