"""What a theorem is asked about: arms, privacy and horizon."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from dpbandits.bounds.bound import DoesNotHold
from dpbandits.bounds.divergences import Law, d_inf, gaussian_d_inf, gaussian_t_inf, kl_across, t_inf
from dpbandits.bounds.levels import Levels, Population
from dpbandits.errors import InputError, at_least, positive

__all__ = ["LinearProblem", "Problem"]


@dataclass(frozen=True)
class Problem:
    """Arms, everyone's epsilon or a population of levels, and a horizon.

    >>> problem = Problem.bernoulli([0.9, 0.6], horizon=1000, epsilon=1.0)
    >>> problem.arms, problem.best, [round(gap, 6) for gap in problem.gaps]
    (2, 0.9, [0.3])
    """

    means: tuple[float, ...]
    horizon: int
    epsilon: float | None = None
    levels: Population | None = None
    family: Literal["bernoulli", "gaussian", "bounded"] = "bernoulli"
    sd: float = 1.0  # of normal rewards
    laws: tuple[Law, ...] = ()  # of bounded rewards

    def __post_init__(self) -> None:
        at_least("horizon", self.horizon, 1)
        at_least("arms", len(self.means), 1)
        positive("sd", self.sd)
        if self.epsilon is not None:
            positive("epsilon", self.epsilon)
            if self.levels is not None:
                raise InputError(f"epsilon and levels must not both be given, got {self.epsilon} and {self.levels}")
        if len(self.laws) != (self.arms if self.family == "bounded" else 0):
            raise InputError(f"laws must be one for each arm of bounded rewards, got {len(self.laws)}")
        for mean in self.means:
            if self.family != "gaussian" and not 0 <= mean <= 1:
                raise InputError(f"means must lie in [0, 1], got {mean}")

    @classmethod
    def bernoulli(
        cls, means: Iterable[float], horizon: int, *, epsilon: float | None = None, levels: Population | None = None
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
        levels: Population | None = None,
    ) -> Problem:
        """Normal rewards with a common, known standard deviation."""
        return cls(tuple(map(float, means)), horizon, epsilon, levels, "gaussian", sd)

    @classmethod
    def bounded(
        cls, laws: Sequence[Law], horizon: int, *, epsilon: float | None = None, levels: Population | None = None
    ) -> Problem:
        """Rewards in [0, 1] with any distribution, which the policy does not know."""
        return cls(tuple(law.mean for law in laws), horizon, epsilon, levels, "bounded", laws=tuple(laws))

    @property
    def arms(self) -> int:
        """Their number."""
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
        """By how much each worse arm's mean is below the best."""
        return [self.best - self.means[arm] for arm in self.worse]

    def kl_gap(self, arm: int) -> float:
        """d_inf: the KL divergence from the arm's law to the nearest of its family with a mean above the best."""
        if self.family == "gaussian":
            return gaussian_d_inf(self.best - self.means[arm], self.sd)
        if self.family == "bounded":
            return d_inf(self.laws[arm], self.best)
        return kl_across(self.means[arm], self.best - self.means[arm])

    def tv_gap(self, arm: int) -> float:
        """t_inf: the same in total variation."""
        if self.family == "gaussian":
            return gaussian_t_inf(self.best - self.means[arm], self.sd)
        law = Law.bernoulli(self.means[arm]) if self.family == "bernoulli" else self.laws[arm]
        return t_inf(law, self.best)

    def population(self) -> Population:
        """The users' levels; one level for all where only epsilon is given."""
        if self.levels is not None:
            return self.levels
        if self.epsilon is not None:
            return Levels.constant(self.epsilon)
        raise DoesNotHold("it needs an epsilon or a population of levels")

    def one_epsilon(self) -> float:
        """Everyone's epsilon."""
        if self.epsilon is not None:
            return self.epsilon
        if isinstance(self.levels, Levels) and len(self.levels.thresholds()) == 1 and 0.0 not in self.levels.values:
            return self.levels.largest
        raise DoesNotHold("it needs one epsilon for all users")

    def need(self, *families: str) -> None:
        """Say so where the rewards are of another family."""
        if self.family not in families:
            raise DoesNotHold(f"rewards must be {' or '.join(families)}, and are {self.family}")

    def need_unit_rewards(self) -> None:
        """Say so where rewards may leave [0, 1]."""
        if self.family == "gaussian":
            raise DoesNotHold("rewards must lie in [0, 1], and are gaussian")

    def need_room(self) -> None:
        """Say so where no arm could be better than the best one."""
        if self.family != "gaussian" and self.best >= 1.0:
            raise DoesNotHold(f"the best mean must be below 1, and is {self.best:g}")


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

    def __post_init__(self) -> None:
        at_least("horizon", self.horizon, 1)
        positive("epsilon", self.epsilon)
        at_least("dimension", len(self.parameter), 1)
        for action in self.actions:
            if len(action) != len(self.parameter):
                raise InputError(f"actions must have dimension {len(self.parameter)}, got {len(action)}")

    @property
    def dimension(self) -> int:
        """Of the actions."""
        return len(self.parameter)

    @property
    def gaps(self) -> list[float]:
        """By how much each action's mean is below the best."""
        means = [sum(x * y for x, y in zip(action, self.parameter, strict=True)) for action in self.actions]
        return [max(means) - mean for mean in means]
