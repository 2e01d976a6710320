"""The problem that a theorem is evaluated on: arms, privacy and horizon."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dpbandits.bounds.bound import DoesNotHold
from dpbandits.bounds.divergences import RewardLaw, d_inf, gaussian_d_inf, gaussian_t_inf, kl_across, t_inf
from dpbandits.checks import at_least, positive
from dpbandits.environments import AnyLevels, Arms, Levels
from dpbandits.environments.distributions import Distribution, Normal
from dpbandits.errors import InputError

__all__ = ["LinearProblem", "Problem", "law_of"]


@dataclass(frozen=True)
class Problem:
    """Arms, a horizon, and either one epsilon for all users or a population of levels.

    >>> problem = Problem.bernoulli([0.9, 0.6], horizon=1000, epsilon=1.0)
    >>> problem.arms, problem.best, [round(gap, 6) for gap in problem.gaps]
    (2, 0.9, [0.3])
    """

    means: tuple[float, ...]
    horizon: int
    epsilon: float | None = None
    levels: AnyLevels | None = None
    family: Literal["bernoulli", "normal", "bounded"] = "bernoulli"
    sd: float = 1.0  # of normal rewards
    laws: tuple[RewardLaw, ...] = ()  # of bounded rewards
    from_log: bool = False  # whether the means follow from a user's log

    def __post_init__(self) -> None:
        at_least("horizon", self.horizon, 1)
        at_least("arms", len(self.means), 1)
        positive("sd", self.sd)
        if self.epsilon is not None:
            positive("epsilon", self.epsilon)
            if self.levels is not None:
                raise InputError("epsilon", f"and levels must not both be given, got {self.epsilon} and {self.levels}")
        if len(self.laws) != (self.arms if self.family == "bounded" else 0):
            raise InputError("laws", f"must be one for each arm of bounded rewards, got {len(self.laws)}")
        for mean in self.means:
            if self.family != "normal" and not 0 <= mean <= 1:
                raise InputError("means", f"must lie in [0, 1], got {mean}")

    @classmethod
    def on(
        cls,
        arms: Arms,
        horizon: float,
        *,
        epsilon: float | None = None,
        levels: AnyLevels | None = None,
        reward_range: tuple[float, float] | None = None,
    ) -> Problem:
        """The problem with these arms: Bernoulli if rewards are 0 or 1, normal if all arms are, otherwise bounded.

        With a ``reward_range``, rewards are mapped from this range to [0, 1]. No reward may lie outside the range.

        >>> Problem.on(Arms.of("0.9,0.6"), 1000).family, Problem.on(Arms.of("normal(1,1)+normal(2,1)"), 1000).family
        ('bernoulli', 'normal')
        >>> mixed = Problem.on(Arms.of("beta(4,1)+choice(0.4,1)"), 1e3, levels=Levels.of([0, 1]))
        >>> mixed.family, [round(mean, 3) for mean in mixed.means], mixed.levels.accepted(1.0)
        ('bounded', [0.8, 0.7], 0.5)
        """
        rounds = at_least("horizon", horizon, 1)
        asked = cls._of(arms, rounds, epsilon, levels, reward_range)
        return replace(asked, from_log=True) if arms.from_log else asked

    @classmethod
    def _of(
        cls,
        arms: Arms,
        rounds: int,
        epsilon: float | None,
        levels: AnyLevels | None,
        reward_range: tuple[float, float] | None,
    ) -> Problem:
        if arms.binary and reward_range in (None, (0.0, 1.0)):
            return cls.bernoulli(arms.means, rounds, epsilon=epsilon, levels=levels)
        normal = [arm for arm in arms if isinstance(arm, Normal)]
        if reward_range is None and len(normal) == len(arms):
            sds = sorted({arm.sd for arm in normal})
            if len(sds) > 1:
                raise InputError("arms", f": the bounds for normal rewards need one sd, got {sds[0]:g} and {sds[-1]:g}")
            return cls.gaussian(arms.means, rounds, sd=sds[0], epsilon=epsilon, levels=levels)
        laws = [law_of(arm, reward_range or (0.0, 1.0)) for arm in arms]
        return cls.bounded(laws, rounds, epsilon=epsilon, levels=levels)

    @classmethod
    def bernoulli(
        cls, means: Iterable[float], horizon: int, *, epsilon: float | None = None, levels: AnyLevels | None = None
    ) -> Problem:
        """Rewards 0 and 1."""
        return cls(tuple(map(float, means)), horizon, epsilon, levels)

    @classmethod
    def gaussian(
        cls,
        means: Iterable[float],
        horizon: int,
        *,
        sd: float = 1.0,
        epsilon: float | None = None,
        levels: AnyLevels | None = None,
    ) -> Problem:
        """Normal rewards with a common, known standard deviation."""
        return cls(tuple(map(float, means)), horizon, epsilon, levels, "normal", sd)

    @classmethod
    def bounded(
        cls, laws: Sequence[RewardLaw], horizon: int, *, epsilon: float | None = None, levels: AnyLevels | None = None
    ) -> Problem:
        """Rewards in [0, 1] with any distribution, which the policy does not know."""
        return cls(tuple(law.mean for law in laws), horizon, epsilon, levels, "bounded", laws=tuple(laws))

    @property
    def arms(self) -> int:
        """The number of arms."""
        return len(self.means)

    @property
    def best(self) -> float:
        """The best arm's mean."""
        return max(self.means)

    @property
    def worse(self) -> list[int]:
        """The arms that are not best."""
        return [arm for arm, mean in enumerate(self.means) if mean < self.best]

    @property
    def gaps(self) -> list[float]:
        """How far each worse arm's mean is below the best."""
        return [self.best - self.means[arm] for arm in self.worse]

    def kl_gap(self, arm: int) -> float:
        """d_inf: the least KL divergence from the arm's law to one of its family with a mean above the best."""
        if self.family == "normal":
            return gaussian_d_inf(self.best - self.means[arm], self.sd)
        if self.family == "bounded":
            return d_inf(self.laws[arm], self.best)
        return kl_across(self.means[arm], self.best - self.means[arm])

    def tv_gap(self, arm: int) -> float:
        """t_inf: the same in total variation."""
        if self.family == "normal":
            return gaussian_t_inf(self.best - self.means[arm], self.sd)
        law = RewardLaw.bernoulli(self.means[arm]) if self.family == "bernoulli" else self.laws[arm]
        return t_inf(law, self.best)

    @property
    def gap_at_random(self) -> float:
        """How far the mean of a random arm is below the best, on average: what random play loses in a round."""
        return math.fsum(self.best - mean for mean in self.means) / self.arms

    @property
    def at_random(self) -> float:
        """What random play loses by the horizon."""
        return self.gap_at_random * self.horizon

    def population(self) -> AnyLevels:
        """The users' levels. If only epsilon is given, it is the level of all users."""
        if self.levels is not None:
            return self.levels
        if self.epsilon is not None:
            return Levels.of([self.epsilon])
        raise DoesNotHold("it needs an epsilon or a population of levels")

    def one_epsilon(self) -> float:
        """The epsilon of all users. Raises DoesNotHold if there is not one epsilon for all."""
        if self.epsilon is not None:
            return self.epsilon
        if isinstance(self.levels, Levels) and len(set(self.levels.sample)) == 1 and self.levels.largest > 0.0:
            return self.levels.largest
        raise DoesNotHold("it needs one epsilon for all users")

    def need(self, *families: str) -> None:
        """Raise DoesNotHold unless the rewards are of one of these families."""
        if self.family not in families:
            raise DoesNotHold(f"rewards must be {' or '.join(families)}, and are {self.family}")

    def need_unit_rewards(self) -> None:
        """Raise DoesNotHold if rewards may lie outside [0, 1]."""
        if self.family == "normal":
            raise DoesNotHold("rewards must lie in [0, 1], and are normal")

    def need_room(self) -> None:
        """Raise DoesNotHold if no arm could have a larger mean than the best one."""
        if self.family != "normal" and self.best >= 1.0:
            raise DoesNotHold(f"the best mean must be below 1, and is {self.best:g}")


def law_of(arm: Distribution, within: tuple[float, float] = (0.0, 1.0)) -> RewardLaw:
    """The arm's distribution after ``within`` is mapped to [0, 1]. A continuous one is represented by its quantiles.

    >>> from dpbandits.environments.distributions import Coin, Uniform
    >>> law_of(Uniform(0, 2), (0, 2)).mean, law_of(Coin(0.25)).support
    (0.5, (0.0, 1.0))
    """
    low, high = within
    least, most = arm.support
    if least < low or most > high:
        # The ends of a log are single rewards, and are not shown.
        paid = "a log pays others" if arm.from_log else f"{arm} pays in [{least:g}, {most:g}]"
        raise InputError("arms", f": bounds need rewards in [{low:g}, {high:g}], {paid}")

    def unit(reward: float) -> float:
        return min(max((reward - low) / (high - low), 0.0), 1.0)

    if arm.atoms is not None:
        values, weights = arm.atoms
        return RewardLaw(tuple(unit(float(value)) for value in values), tuple(map(float, weights)))
    return RewardLaw.of_quantiles(lambda share: unit(arm.quantile(share)))


@dataclass(frozen=True)
class LinearProblem:
    """Actions in R^d whose mean reward is their inner product with a parameter, under normal noise of variance 1.

    >>> LinearProblem(((1.0, 0.0), (0.0, 1.0)), (1.0, 0.5), horizon=1000, epsilon=1.0).gaps
    [0.0, 0.5]
    """

    actions: tuple[tuple[float, ...], ...]
    parameter: tuple[float, ...]
    horizon: int
    epsilon: float
    from_log: bool = False  # whether the parameter follows from a user's log

    def __post_init__(self) -> None:
        at_least("horizon", self.horizon, 1)
        positive("epsilon", self.epsilon)
        at_least("dimension", len(self.parameter), 1)
        for action in self.actions:
            if len(action) != len(self.parameter):
                raise InputError("actions", f"must have dimension {len(self.parameter)}, got {len(action)}")

    @property
    def dimension(self) -> int:
        """The dimension of the actions."""
        return len(self.parameter)

    @property
    def gaps(self) -> list[float]:
        """How far each action's mean is below the best."""
        means = [sum(x * y for x, y in zip(action, self.parameter, strict=True)) for action in self.actions]
        return [max(means) - mean for mean in means]

    @property
    def gap_at_random(self) -> float:
        """The mean of the gaps: what playing the actions at random loses in a round."""
        return math.fsum(self.gaps) / len(self.gaps)

    @property
    def at_random(self) -> float:
        """What playing the actions at random loses by the horizon."""
        return self.gap_at_random * self.horizon
