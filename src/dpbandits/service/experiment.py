"""One experiment: its settings as they were asked for, checked, and what follows from them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, Literal
from unicodedata import normalize

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictFloat,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
)
from pydantic_core import PydanticCustomError

from dpbandits.bounds.levels import best_epsilon_min
from dpbandits.checks import MAX_EXACT_INT
from dpbandits.client.responder import MECHANISMS
from dpbandits.environments.levels import Levels
from dpbandits.errors import InputError
from dpbandits.exact import rational
from dpbandits.numerics import on_grid, unit
from dpbandits.parts import arrays
from dpbandits.policies import lookup
from dpbandits.policies.levels import check_levels, check_threshold
from dpbandits.policies.policy import AUTO, Policy
from dpbandits.privacy.guarantee import Guarantee
from dpbandits.service.keyring import Keyring
from dpbandits.session import EXACT_NOISE

__all__ = ["HOLDOUT", "POLICY", "RANDOM", "REPLACED", "SHADOW", "Experiment", "Reward", "Settings", "refuse_alike"]

#: Who chose the arm of a decision: the policy; chance, for a floor or before the policy begins; the baseline, for a
#: user who is held out, or for everybody in shadow mode; the baseline in place of a paused arm.
POLICY, RANDOM, HOLDOUT, SHADOW, REPLACED = range(5)

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
MOST_ARMS = 1000
LEAST_EPSILON = Fraction(1, 10**9)  # below, estimates are not numbers
WIDEST = 1e200  # range of rewards; with noise an estimate may be far outside, and must be a float
SHORTEST_WINDOW = 0.001  # times are in milliseconds
LARGEST_RESPONSE = MAX_EXACT_INT  # a public bound; exact noise exceeds it never in practice, a forger might
EVERYBODY_ANSWERS = "whether a response comes does not depend on the reward"


def _one_of(said: str) -> WrapValidator:
    """One error for a field that may be several things, instead of one for each of them."""

    def checked(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
        try:
            return check(value)
        except ValidationError:
            raise PydanticCustomError("one_of", f"must be {said}") from None

    return WrapValidator(checked)


Exact = Annotated[str | StrictFloat, _one_of("a number, or a text such as 0.1 or 1/3")]
Option = Annotated[str | float | bool, _one_of("a number, a text, true or false")]


class _Fields(BaseModel):
    """Fields of which none is true or false."""

    model_config = ConfigDict(extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_value(cls, value: Any) -> Any:
        if isinstance(value, bool):  # to Python it is a number, too
            raise PydanticCustomError("truth_value", "must not be true or false")
        return value


class Reward(_Fields):
    """What a reward is: a number from low to high, which is clipped and mapped to [0, 1]; or any number."""

    kind: Literal["bounded", "unbounded"] = "bounded"
    low: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    high: Annotated[float, Field(allow_inf_nan=False)] = 1.0


class Settings(_Fields):
    """An experiment as it is asked for. What concerns privacy cannot change after the start."""

    name: str = Field(pattern=f"^{NAME.pattern}$", description="Letters, digits and . _ - signs.")
    arms: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        min_length=2, max_length=MOST_ARMS, description="The names of the arms."
    )
    policy: str = Field(max_length=200, description="As in `dpbandits policies`.")
    epsilon: Exact | None = Field(None, description="Exact where it is text: 0.1 or 1/3.")
    levels: list[Exact] | None = Field(
        None, min_length=1, max_length=1000, description="The levels that users may have, where each has their own."
    )
    horizon: int | None = Field(
        None, ge=1, le=MAX_EXACT_INT, description="The number of rounds, where the policy needs one."
    )
    options: dict[str, Option] = Field(default_factory=dict, description="The policy's own options.")
    reward: Reward = Reward()
    response_window: float | None = Field(
        86_400.0, gt=0, le=1e9, allow_inf_nan=False, description="Seconds until a response is late; null: never late."
    )
    max_responses_per_user: int | None = Field(None, ge=1, le=2**31)
    mode: Literal["live", "shadow"] = "live"
    baseline: str | None = Field(None, description="The arm that held-out users get, and everybody in shadow mode.")
    floor: float = Field(0.0, ge=0, le=0.5, description="The least probability of every arm.")
    burn_in: int = Field(
        0, ge=0, le=MAX_EXACT_INT, description="How many decisions are made at random before the policy begins."
    )
    holdout: float = Field(0.0, ge=0, lt=1, description="The share of users who always get the baseline.")


@dataclass
class Experiment:
    """Checked settings, and what follows from them."""

    id: int
    settings: Settings
    status: str = "running"  # or paused, stopped, archived, halted
    revision: int = 0
    created: float = 0.0
    added: list[str] = field(default_factory=list)  # arms that came later
    paused: frozenset[int] = frozenset()
    own: Collection[str] = ()  # module:function names that the operator allows
    keys: Keyring = field(default_factory=Keyring.fresh, repr=False)

    def __post_init__(self) -> None:
        asked = self.settings
        self.name = asked.name
        self.arms = _names([*asked.arms, *self.added])
        self.levels = _levels(asked)
        self.policy = _policy(asked, len(self.arms), self.levels, self.own)
        self.trust = self.policy.guarantee.trust
        self.local = self.trust == "local"
        self.server_draws = self.trust == "central"  # noise, which must never be drawn twice
        self.epsilon = None if asked.epsilon is None else rational("epsilon", asked.epsilon)
        promised = self.policy.guarantee.epsilon
        if (
            self.trust == "central"
            and promised is not None
            and (self.epsilon is None or float(self.epsilon) != promised)
        ):
            self.epsilon = rational("epsilon", promised)  # it follows from another option, or is larger than epsilon
        self.costs = self.levels or [self.epsilon or Fraction(0)]  # of a response, for each level
        self.level_values = [float(cost) for cost in self.costs]
        self.silent_levels = {number for number, level in enumerate(self.levels or ()) if not level}  # nothing is taken
        self.active = self.status in ("running", "paused")  # stints close, and responses are taken
        self.window = math.inf if asked.response_window is None else asked.response_window
        self.baseline = self._arm("baseline", asked.baseline)
        self.steps = self.policy.curator.steps
        self.burn_in, self.floor, self.holdout, self.cap = (
            asked.burn_in, asked.floor, asked.holdout, asked.max_responses_per_user,
        )  # fmt: skip
        self.shadow = asked.mode == "shadow"
        self.by_stint = self.policy.curator.by_stint
        self.special = bool(self.floor or self.burn_in or self.holdout or self.shadow or self.paused)
        self.mechanism = _mechanism(self.policy) if self.local else "none"
        self.range = (asked.reward.low, asked.reward.high) if asked.reward.kind == "bounded" else None
        self.arms_json = [json.dumps(arm) for arm in self.arms]
        self.deadline = (-1, "")  # that was shown last: when a decision was made, and by when a response must come
        self.curators = [self._curator(level) for level in self.costs]
        self.taken = lru_cache(1024)(self._taken)
        self._check()

    def has(self, arm: int, level: int) -> bool:
        """Whether there are this arm and level. A restored copy may not have an arm that was added after it."""
        return arm < len(self.arms) and level < len(self.costs)

    @property
    def tallied(self) -> str:
        """What the tally calls it: another experiment of the same name is another one."""
        return f"{self.name}@{int(self.created * 1000)}"

    @property
    def guarantee(self) -> Guarantee:
        """What is promised."""
        promise = self.policy.guarantee
        if self.trust == "none":
            return promise
        return promise.under(EXACT_NOISE).under(EVERYBODY_ANSWERS)

    def _curator(self, level: Fraction) -> str:
        """The beginning of the JSON that tells a client what to do with a reward; the deadline is added."""
        record: dict[str, Any] = {"mechanism": self.mechanism, "epsilon": None if self.trust == "none" else str(level)}
        record["range"] = None if self.range is None else list(self.range)
        if self.mechanism != "none":
            record |= {"sigmoid": self.policy.any_reward, "steps": self.steps}
        record["respond_within"] = self.settings.response_window  # a device's clock may be wrong: a time from now
        return json.dumps(record, separators=(",", ":"))[:-1] + ',"respond_by":'

    def _arm(self, parameter: str, name: str | None) -> int | None:
        if name is None:
            return None
        if name not in self.arms:
            raise InputError(parameter, f"must be one of the arms {', '.join(self.arms)}, got '{name}'")
        return self.arms.index(name)

    def _check(self) -> None:
        asked = self.settings
        if asked.reward.kind == "unbounded":
            if not self.policy.any_reward:
                raise InputError("reward", f"must be bounded for {self.policy.name}; {_unbounded(self.policy)}")
        elif not asked.reward.low < asked.reward.high:
            raise InputError("reward", f"must have low < high, got {asked.reward.low:g} and {asked.reward.high:g}")
        if self.floor * len(self.arms) > 1:
            raise InputError("floor", f"must be at most 1/{len(self.arms)}, got {self.floor:g}")
        for setting, needed in (("mode", self.shadow), ("holdout", self.holdout > 0)):
            if needed and self.baseline is None:
                raise InputError("baseline", f"is required by {setting}={getattr(asked, setting)}, got none")

    def check_new(self) -> None:
        """Refuse what cannot work. It is not asked of experiments that are stored: a server must start with them."""
        refuse_alike("arms", self.arms)
        if self.levels and not any(self.levels):
            raise InputError("levels", "must have a level above 0, at which users answer, got only 0")
        if self.range is not None and (wide := self.range[1] - self.range[0]) > WIDEST:
            raise InputError("reward", f"must have high - low of at most {WIDEST:g}, got {wide:g}")
        least = min((cost for cost in self.costs if cost), default=LEAST_EPSILON)
        if least < LEAST_EPSILON:
            raise InputError("levels" if self.levels else "epsilon", f"must be at least 1e-9, got {float(least):g}")
        if self.window < SHORTEST_WINDOW:
            raise InputError("response_window", f"must be at least {SHORTEST_WINDOW:g} seconds, got {self.window:g}")

    def value(self, reward: float) -> float:
        """A reward of the central model as the curator takes it: clipped, mapped to [0, 1], on the grid."""
        if self.range is not None:
            low, high = self.range
            reward = unit((reward - low) / (high - low))
        value = float(self.policy.curator.respond(reward, 0.0, None))  # type: ignore[arg-type]  # no noise comes here
        return on_grid(unit(value)) if self.trust != "none" else value

    def _taken(self, response: int) -> float | None:
        """A response of a device as the curator takes it; None where its mechanism cannot make it."""
        if abs(response) >= LARGEST_RESPONSE:
            return None
        value = response / self.steps
        return value if self.policy.curator.accepts(value) else None

    @property
    def decided_anywhere(self) -> bool:
        """Whether several workers can decide from a copy: only stints, which one of them opens, change the agent."""
        return self.by_stint or next(arrays(self.policy.agent), None) is None

    def to_json(self) -> dict[str, Any]:
        """As the API shows it."""
        asked = self.settings.model_dump()
        return {
            **asked,
            "arms": list(self.arms),
            "epsilon": None if self.epsilon is None else str(self.epsilon),
            "levels": None if self.levels is None else [str(level) for level in self.levels],
            "policy": self.policy.name,
            "status": self.status,
            "paused_arms": [self.arms[arm] for arm in sorted(self.paused)],
            "created": self.created,
            "guarantee": self.guarantee.to_json(),
        }


def _names(arms: list[str]) -> list[str]:
    for arm in arms:
        if not 0 < len(arm) <= 200 or not arm.isprintable():
            raise InputError("arms", f"must be names of 1 to 200 printable characters, got {arm!r:.80}")
    if len(set(arms)) < len(arms):
        twice = next(arm for arm in arms if arms.count(arm) > 1)
        raise InputError("arms", f"must have different names, got '{twice}' twice")
    return arms


def refuse_alike(parameter: str, arms: list[str]) -> None:
    """Refuse two names that differ only in spaces, or in how a letter with an accent is encoded: they look the same."""
    seen: dict[str, str] = {}
    for arm in arms:
        other = seen.setdefault(" ".join(normalize("NFC", arm).split()), arm)
        if other != arm:
            raise InputError(parameter, f"must be names that look different, got {other!a} and {arm!a}")


def _levels(asked: Settings) -> list[Fraction] | None:
    if asked.levels is None:
        return None
    levels = [Fraction(0) if level in (0, "0") else rational("levels", level) for level in asked.levels]
    if len(set(levels)) < len(levels):
        raise InputError("levels", "must be different levels, got one of them twice")
    return levels


def _policy(asked: Settings, arms: int, levels: list[Fraction] | None, own: Collection[str]) -> Policy:
    if ":" in asked.policy and asked.policy not in own:
        raise InputError(
            "policy", f"'{asked.policy}' is not allowed: name your own policies in the server's setting own_policies"
        )
    traits, options = lookup.traits(asked.policy), dict(asked.options)
    users = None if levels is None else Levels.of(float(level) for level in levels)  # floats, as the threshold is
    check_levels(asked.policy, traits, users)
    if users is not None and traits.levels and traits.threshold and options.get(traits.threshold) == AUTO:
        options[traits.threshold] = best_epsilon_min(users, traits.levels)
    if asked.horizon is not None and not lookup.takes(asked.policy, "horizon"):
        raise InputError("horizon", f"is not a setting of {asked.policy}, which plays on for ever, got {asked.horizon}")
    epsilon = None if asked.epsilon is None else float(rational("epsilon", asked.epsilon))
    try:
        policy = lookup.make(asked.policy, arms=arms, epsilon=epsilon, horizon=asked.horizon, given=options)
    except InputError as error:
        if error.parameter != "horizon" or asked.horizon is not None:
            raise
        raise InputError("horizon", f"is required by {asked.policy}: the number of rounds, got none") from None
    check_threshold(policy, users)
    return policy


def _mechanism(policy: Policy) -> str:
    """What clients are told to do with a reward, as the curator says."""
    said = getattr(policy.curator, "mechanism", None)
    if said not in MECHANISMS:
        known = ", ".join(MECHANISMS)
        raise InputError(
            "policy", f"must have a curator whose mechanism is one of {known}, got {policy.name}: {said!r}"
        )
    return str(said)


def _unbounded(policy: Policy) -> str:
    instead = policy.traits.unbounded
    if isinstance(instead, str):
        return f"{instead} takes any reward" if instead else "give reward a low and a high, to which it is clipped"
    return f"the options {', '.join(f'{name}={value}' for name, value in instead.items())} allow any reward"
