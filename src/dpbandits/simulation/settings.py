"""What decides the numbers of a simulation, as one value: read and checked once, written as JSON and read back.

A new setting is a field of ``Simulation``, and a parameter of ``simulate`` so that editors and type checkers know it.
The command line, TOML files, stored results and traces take it from the field: how it is read and written, and what it
is for. The parameters of ``simulate`` cannot be derived from the fields: they take more types than a field holds, and
``typing.Unpack`` allows no further keywords, which are the options of the policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from functools import cache, cached_property
from typing import Annotated, Any, Self, get_type_hints

import numpy as np

from dpbandits.checks import at_least, fraction, known, nearest, positive, seed_of
from dpbandits.environments import AnyLevels, Arms, Bernoulli, Mixed
from dpbandits.environments.delays import Delay, parse_delay
from dpbandits.environments.levels import levels_of
from dpbandits.environments.numbers import low_and_high, read_number, share
from dpbandits.errors import InputError
from dpbandits.exact import rational
from dpbandits.policies import lookup
from dpbandits.policies.levels import check_levels, check_threshold
from dpbandits.policies.policy import AUTO, USERS, Policy
from dpbandits.privacy.guarantee import Guarantee
from dpbandits.privacy.users import of_reward
from dpbandits.simulation.options import NO_OPTIONS, Options
from dpbandits.types import Integers

__all__ = ["ARM_ORDERS", "Setting", "Simulation", "settings"]

ARM_ORDERS = ("shuffled", "given")
MOST_DELAYED = 10**8  # rounds in which responses may be on their way


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _read_horizon(value: Any) -> int:
    return at_least("horizon", read_number("horizon", value), 2)


def _read_epsilon(value: Any) -> float | None:
    if isinstance(value, Decimal) or (isinstance(value, str) and "/" in value):
        return float(rational("epsilon", value.strip() if isinstance(value, str) else value))
    return None if value is None else positive("epsilon", read_number("epsilon", value))


def _read_options(value: Any) -> Options:
    if value is None:
        return NO_OPTIONS
    if not isinstance(value, Mapping):
        raise InputError("options", f"must be a mapping such as {{'alpha': 2}}, got {value!r:.80}")
    return Options(value)


def _read_seed(value: Any) -> int:
    return seed_of(read_number("seed", value))


def _read_range(value: Any) -> tuple[float, float] | None:
    return None if value is None else low_and_high("reward_range", value)


def _read_order(value: Any) -> str:
    return known("arm_order", value, ARM_ORDERS)


def _read_checkpoints(value: Any) -> int | tuple[int, ...]:
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        return tuple(at_least("checkpoints", mark, 1) for mark in value)
    return at_least("checkpoints", read_number("checkpoints", value), 1)


def _read_delay(value: Any) -> Delay | None:
    if value is None or isinstance(value, Delay):
        return value
    if not isinstance(value, str):
        raise InputError("delay", f"must be a text such as 'exponential(100)', got {value!r:.80}")
    return parse_delay(value)


def _read_loss(value: Any) -> float:
    return fraction("loss", share("loss", value) if isinstance(value, str) else value, zero=True)


def _read_rewards_per_user(value: Any) -> int | None:
    return None if value is None else at_least("rewards_per_user", read_number("rewards_per_user", value), 1)


def _read_user_delta(value: Any) -> float | None:
    return None if value is None else fraction("user_delta", read_number("user_delta", value))


def _read_window(value: Any) -> float | None:
    return None if value is None else positive("window", read_number("window", value))


@dataclass(frozen=True)
class Setting:
    """How one setting is read, what it is for, and how it is written as JSON."""

    read: Callable[[Any], Any]
    help: str
    write: Callable[[Any], Any] = lambda value: value
    required: bool = False
    form: str = "N"  # what is written after the option


@dataclass(frozen=True)
class Simulation:
    """A policy on a problem, and how it is played: everything that the runs of a simulation share.

    ``Simulation.of`` reads what people write: texts, lists, numbers of NumPy.

    >>> simulation = Simulation.of("adap-ucb", arms=[0.9, 0.6], horizon="1e4", epsilon=1)
    >>> simulation == Simulation.from_json(simulation.to_json()), simulation.policy.settings
    (True, {'arms': 2, 'epsilon': 1.0, 'alpha': 3.1})
    """

    factory: lookup.Factory
    arms: Annotated[
        Arms,
        Setting(
            Arms.of,
            "0.9,0.8 or bernoulli(0.9)+5*beta(4,1) or @ren2020-mixed or log.csv.",
            Arms.to_json,
            required=True,
            form="ARMS",
        ),
    ]
    horizon: Annotated[int, Setting(_read_horizon, "Rounds of a run.", required=True)]
    epsilon: Annotated[
        float | None,
        Setting(
            _read_epsilon, "Epsilon of every user. Policies with a level for each user take levels instead.", form="E"
        ),
    ] = None
    options: Annotated[
        Options, Setting(_read_options, "An option of the policy; repeatable.", Options.to_json, form="NAME=VALUE")
    ] = NO_OPTIONS
    levels: Annotated[
        AnyLevels | None,
        Setting(
            levels_of,
            "Levels of the users: constant(1), choice(0,0.2,1,2,100) or normal(1,1).",
            _text,
            form="LEVELS",
        ),
    ] = None
    seed: Annotated[int, Setting(_read_seed, "Seed of all random numbers.")] = 0
    reward_range: Annotated[
        tuple[float, float] | None,
        Setting(_read_range, "Clip rewards to this range and map it to [0,1].", _listed, form="LOW,HIGH"),
    ] = None
    arm_order: Annotated[str, Setting(_read_order, "Order of the arms in each run.", form="|".join(ARM_ORDERS))] = (
        "shuffled"
    )
    checkpoints: Annotated[
        int | tuple[int, ...], Setting(_read_checkpoints, "How many points of the curve.", _listed)
    ] = 100
    delay: Annotated[
        Delay | None,
        Setting(
            _read_delay,
            "Rounds until a response comes: constant(100), exponential(100) or lognormal(100,1).",
            _text,
            form="DELAY",
        ),
    ] = None
    loss: Annotated[float, Setting(_read_loss, "Share of the responses that never come.", form="SHARE")] = 0.0
    window: Annotated[
        float | None, Setting(_read_window, "Rounds for which a response is waited for.", form="ROUNDS")
    ] = None
    rewards_per_user: Annotated[
        int | None,
        Setting(
            _read_rewards_per_user,
            "The most rewards that a user gives: epsilon is then the promise for the whole user.",
            form="M",
        ),
    ] = None
    user_delta: Annotated[
        float | None,
        Setting(
            _read_user_delta,
            "Local policies: a user's responses together are (epsilon, this delta)-private.",
            form="DELTA",
        ),
    ] = None

    @classmethod
    def of(cls, policy: str | lookup.Factory | Policy, **given: Any) -> Self:
        """Read and check settings; the policy is a name, ``module:function``, a function that makes it, or a policy."""
        if isinstance(policy, Policy):
            given = _with_settings_of(policy, given)
            policy = policy.factory
        known_settings, read = settings(), {}
        for name, value in given.items():
            if name not in known_settings:
                raise InputError(name, f"is not a setting of a simulation: {nearest(name, known_settings)}")
            read[name] = known_settings[name].read(value)
        for name, setting in known_settings.items():
            if setting.required and name not in read:
                raise InputError(name, "is required, got none")
        made = cls(lookup.find(policy), **read)._resolved()
        made._check()
        return made

    def _resolved(self) -> Self:
        """With what follows from other settings: a delay of 0 where responses may be lost or late, and the threshold.

        A threshold of ``auto`` is where this population's responses cost least: the rule of the HeLDP paper.
        """
        if self.delay is None and (self.loss > 0.0 or self.window is not None):
            return replace(self, delay=parse_delay("constant(0)"))._resolved()
        traits = lookup.traits(self.factory)
        threshold, mechanism = traits.threshold, traits.levels
        if threshold is None or mechanism is None or self.options.get(threshold) != AUTO:
            return self
        from dpbandits.bounds.levels import best_epsilon_min  # SciPy, which few runs need

        levels = self.levels_of_rewards
        if levels is None or self.levels is None:
            raise InputError("levels", f"is required by {threshold}={AUTO}, got none")
        best, rewards = best_epsilon_min(levels, mechanism), self.rewards_per_user or 1
        of_user = next((x for x in self.levels.thresholds() if of_reward(x, rewards) == best), best * rewards)
        return replace(self, options=Options({**self.options, threshold: of_user}))

    def _check(self) -> None:
        """Refuse settings that contradict each other, before the first round is played."""
        if self.horizon < len(self.arms):
            each = f"one for each of the {len(self.arms)} arms"
            raise InputError("horizon", f"must be at least {len(self.arms)} rounds, {each}, got {self.horizon}")
        check_levels(self.policy.name, self.policy.traits, self.levels)
        check_threshold(self.policy, self.levels)
        self._check_rewards()
        if self.delay is not None and self.horizon > MOST_DELAYED:
            raise InputError("horizon", f"must be at most {MOST_DELAYED:.0e} with a delay, got {self.horizon}")
        if not isinstance(self.checkpoints, int) and max(self.checkpoints, default=0) > self.horizon:
            raise InputError("checkpoints", f"must be at most the horizon {self.horizon}, got {max(self.checkpoints)}")

    def _check_rewards(self) -> None:
        """Rewards must lie in [0, 1], unless the policy takes any, or a range says how to get them there."""
        if self.policy.any_reward and self.reward_range is None:
            return
        low, high = self.reward_range or (0.0, 1.0)
        if self.arms.log is not None:
            self.arms.log.check(low, high)
        if self.reward_range is not None:
            return
        for arm in self.arms:
            least, most = arm.support
            if least < low or most > high:
                # The ends of a log are single rewards, and are not shown.
                how = "pays others: use --reward-range" if arm.from_log else self._remedy(least, most)
                raise InputError("arms", f": {self.policy.name} needs rewards in [0,1]; {arm} {how}")

    def _remedy(self, low: float, high: float) -> str:
        if np.isfinite([low, high]).all():
            return f"pays in [{low:g},{high:g}]: use --reward-range {low:g},{high:g}"
        instead = self.policy.traits.unbounded or "--reward-range to clip its rewards"
        if not isinstance(instead, str):
            instead = " ".join(f"--option {name}={str(value).lower()}" for name, value in instead.items())
        return f"is unbounded: use {instead}"

    @cached_property
    def policy(self) -> Policy:
        """The policy, made for these arms."""
        arms = len(self.arms)
        return lookup.make(
            self.factory,
            arms=arms,
            epsilon=self.epsilon,
            horizon=self.horizon,
            rewards_per_user=self.rewards_per_user,
            user_delta=self.user_delta,
            given=self.options,
        )

    @cached_property
    def levels_of_rewards(self) -> AnyLevels | None:
        """The levels at which single rewards are made private: those of the users, divided by their rewards."""
        if self.levels is None or self.rewards_per_user is None:
            return self.levels
        return self.levels.divided(self.rewards_per_user)

    @cached_property
    def environment(self) -> Bernoulli | Mixed:
        """Who pays, in the order in which the arms were given."""
        return self.arms.environment(self.levels_of_rewards, self.reward_range)

    @cached_property
    def marks(self) -> Integers:
        """The rounds of the checkpoints, the horizon among them; a number of them is spaced evenly in the logarithm."""
        if not isinstance(self.checkpoints, int):
            return np.unique([*self.checkpoints, self.horizon]).astype(np.int64)
        if self.checkpoints == 1:
            return np.array([self.horizon], np.int64)
        return np.unique(np.round(np.geomspace(1, self.horizon, self.checkpoints)).astype(np.int64))

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of what a run leaves: a row of pulls for each checkpoint, by arm.

        If the policy stops, a last row has the rounds after which an arm was named the best one, and 0 for the others.
        """
        return self.marks.size + (1 if self.policy.traits.stops else 0), len(self.arms)

    @property
    def guarantee(self) -> Guarantee:
        """The policy's guarantee, with what the range adds to it. What is computed from a log has none."""
        promise = self.policy.guarantee
        if self.reward_range is not None:
            promise = promise.within(*self.reward_range)
        return promise.from_log() if self.arms.from_log else promise

    def to_json(self) -> dict[str, Any]:
        """JSON-ready; ``from_json`` reads it back."""
        record = {name: setting.write(getattr(self, name)) for name, setting in settings().items()}
        return {"policy": lookup.written(self.factory), **record}

    @classmethod
    def from_json(cls, record: Mapping[str, Any], arms: object = None) -> Self:
        """The simulation that was written; everything is checked again. ``arms`` is its data frame, if it had one."""
        given = dict(record)
        return cls.of(given.pop("policy"), **{**given, "arms": Arms.from_json(given["arms"], arms)})

    def __getstate__(self) -> dict[str, Any]:
        """What travels to another process: the settings, and not what was made from them."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


def _with_settings_of(policy: Policy, given: dict[str, Any]) -> dict[str, Any]:
    """The settings of a simulation of a policy that is given as an instance."""
    for name in ("epsilon", "options"):
        if given.get(name):
            raise InputError("policy", f"is an instance: set {name} where it is made, got {given[name]}")
    if "arms" in given and len(read := Arms.of(given["arms"])) != policy.arms:
        raise InputError("arms", f"must be {policy.arms} for this {policy.name}, got {len(read)} in '{read.text}'")
    if policy.horizon is not None and _read_horizon(given.get("horizon", policy.horizon)) != policy.horizon:
        raise InputError("horizon", f"is {policy.horizon} rounds for this {policy.name}, got {given['horizon']}")
    for name in USERS:
        if given.get(name) is not None and given[name] != policy.settings.get(name):
            raise InputError("policy", f"is an instance: set {name} where it is made, got {given[name]}")
    users = {name: policy.settings.get(name) for name in USERS}
    own = {name: value for name, value in policy.options.items() if name != "epsilon" and name not in USERS}
    return {**given, "epsilon": policy.settings.get("epsilon"), "options": own, **users}


@cache
def settings() -> dict[str, Setting]:
    """The settings of a simulation beside its policy, by name.

    >>> list(settings())[:3]
    ['arms', 'horizon', 'epsilon']
    """
    hints = get_type_hints(Simulation, include_extras=True)
    return {one.name: hints[one.name].__metadata__[0] for one in fields(Simulation) if one.name != "factory"}
