"""A published algorithm: an agent paired with a curator, with claim, citation, and what differs from the paper."""

from __future__ import annotations

import functools
import inspect
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, ParamSpec

from dpbandits.checks import at_least, fraction, nearest, positive
from dpbandits.display import card, shortened
from dpbandits.errors import InputError
from dpbandits.parts import copied
from dpbandits.privacy.guarantee import SHOWS, Guarantee
from dpbandits.privacy.users import delta_of_reward, for_users, of_response, of_reward
from dpbandits.protocols import Agent, Curator

__all__ = ["AUTO", "Mechanism", "Parts", "Policy", "SimulationCost", "Traits", "published", "user_settings"]

P = ParamSpec("P")

#: What a parameter is for, where a policy is made without it.
NEEDED = {"horizon": ": how many rounds it will be played", "arms": ": how many there are"}
LONGEST_TITLE = 30

#: Settings that every private policy has beside its own, and that its curator and agent never see.
USERS = {
    "rewards_per_user": inspect.Parameter(
        "rewards_per_user", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="int | None"
    ),
    "user_delta": inspect.Parameter(
        "user_delta", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="float | None"
    ),
}

#: The value of a threshold that is chosen by the users' levels.
AUTO = "auto"

#: How a response is made private in the local model.
Mechanism = Literal["laplace", "bernoulli"]

#: What a simulated round costs: a draw for each stint, a draw for many rounds, divergences for many rounds, a noise for
#: each round, a counter for each round, or work on every arm in every round.
SimulationCost = Literal["stint", "bulk", "divergence", "noise", "counter", "arms"]

#: A policy with at least this many disasters in 10,000 runs needs a caution. A disaster is a run that loses more than
#: ten times the median. With 10 of them, the 99.9 % quantile in our tables is itself a disaster. What counts is the
#: worst cell for tails of the standing benchmark (docs/benchmark.md), with the options that a plan would choose; a test
#: compares.
CAUTION_DUE = 10


@dataclass(frozen=True)
class Traits:
    """What is known about an algorithm before it is made with any settings."""

    paper: str
    differs: str = "nothing"  # from the published algorithm
    cost: SimulationCost = "arms"
    levels: Mechanism | None = None  # where each user has a level: how a response at that level is made private
    delta: str | None = None  # the option that is the delta of its promise, beside epsilon; a user's rewards share it
    threshold: str | None = None  # the option that is a least level, where responses of users below it are discarded
    needs_horizon: bool | Mapping[str, Any] = False  # whether it must know the number of rounds: always, or with these
    # options; a parameter ``horizon`` without a default is always needed, and need not be declared
    any_reward: bool = False  # whether rewards may lie outside [0, 1]
    unbounded: str | Mapping[str, Any] = ""  # if they may not: another policy, or options of this one, that allow it
    sample: Mapping[str, Any] = field(default_factory=dict)  # values for required options, to try it out with
    short: Mapping[str, Any] = field(default_factory=dict)  # options for an audit of few rounds; as private as others
    tight: Mapping[str, Any] = field(default_factory=dict)  # options with which all of epsilon is spent
    overspends: Mapping[str, Any] = field(default_factory=dict)  # options with which it promises more than epsilon
    in_turns: bool = False  # whether a simulation plays the arms of an epoch in turns: the agent says how many
    practical: Mapping[str, Any] = field(default_factory=dict)  # options that often lose less, outside the theorem
    caution: str = ""  # what goes badly wrong in a small share of the runs, and how often; due from CAUTION_DUE on
    advised: Callable[[int], Mapping[str, Any]] | None = None  # options that a careful user sets, by the horizon
    stops: bool = False  # whether it stops when it knows the best arm; its option ``beta`` bounds how often it errs
    low_regret: bool = True  # False: it is made to name the best arm soon, and a plan plays it only if it is asked for
    private: bool = True  # whether anything is promised; if so, ``rewards_per_user`` is one of its settings
    recommended: bool = False  # whether it is the one to try first in its trust model: docs/papers/strongest.md
    renamed: Mapping[str, str] = field(default_factory=dict)  # options by earlier names, which saved runs still have
    relative: str = ""  # the nearest older policy, beside whose speed its own is measured
    title: str = ""  # as papers write it; empty: what its docstring begins with, before the colon

    @property
    def slow(self) -> bool:
        """Whether a simulation takes longer than those of most other policies together."""
        return self.cost == "arms"

    def horizon_needed(self, settings: Mapping[str, Any]) -> bool:
        """Whether it must know the number of rounds if it is made with these settings."""
        needed = self.needs_horizon
        return needed if isinstance(needed, bool) else _agree(settings, needed)


class Parts(NamedTuple):
    """What a policy is made of."""

    agent: Agent
    curator: Curator


@dataclass(frozen=True, eq=False)
class Policy:
    """One algorithm, ready to start: fresh parts, and what is said about them."""

    name: str
    settings: dict[str, Any]  # the arguments it was made with, ``arms`` included
    agent: Agent
    curator: Curator
    traits: Traits
    factory: Callable[..., Policy]  # what makes it

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, from the curator's own numbers: for one reward, or for a user with at most this many."""
        promise = self.curator.guarantee()
        if self.rewards_per_user is None:
            return promise
        return for_users(promise, self.rewards_per_user, self.user_delta or 0.0)

    @property
    def rewards_per_user(self) -> int | None:
        """The most rewards that a user gives, where the promise is one for users."""
        return self.settings.get("rewards_per_user")

    @property
    def user_delta(self) -> float | None:
        """The delta of a promise for users, where their responses compose to one with a delta."""
        return self.settings.get("user_delta")

    @property
    def title(self) -> str:
        """The name as papers write it, for figures."""
        return self.traits.title or self.name

    @property
    def arms(self) -> int:
        """How many arms it chooses from."""
        return int(self.settings["arms"])

    @property
    def horizon(self) -> int | None:
        """The most rounds it can be played, where it was made for a number of rounds."""
        return self.settings.get("horizon")

    @property
    def options(self) -> dict[str, Any]:
        """The settings of its own: everything but the arms, the horizon and what concerns users."""
        shared = ("arms", "horizon", *USERS)
        return {name: value for name, value in self.settings.items() if name not in shared}

    @property
    def of_reward(self) -> dict[str, Any]:
        """The settings for one reward, from which the noise is made: those of a user, shared among their rewards."""
        users = {name: self.settings[name] for name in USERS if name in self.settings}
        asked = {name: value for name, value in self.settings.items() if name not in USERS}
        return _of_rewards(asked, users, self.traits)

    @property
    def any_reward(self) -> bool:
        """Whether rewards may lie outside [0, 1]."""
        needed = self.traits.unbounded
        return self.traits.any_reward if isinstance(needed, str) else _agree(self.settings, needed)

    @property
    def threshold(self) -> float | None:
        """The level below which users' responses are discarded; None where nobody's are."""
        return None if self.traits.threshold is None else self.settings.get(self.traits.threshold)

    @property
    def overspends(self) -> bool:
        """Whether it promises more than the epsilon that was asked for, as its declaration says of these options."""
        return bool(self.traits.overspends) and _agree(self.settings, self.traits.overspends)

    def for_users(self, rewards_per_user: int, user_delta: float | None = None) -> Policy:
        """The same policy, whose promise is for users with at most this many rewards; each reward gets a share of it.

        It is what the settings ``rewards_per_user`` and ``user_delta`` make. See ``dpbandits.privacy.users``.

        >>> from dpbandits import policies
        >>> policies.adap_ucb(2, epsilon=1.0).for_users(10)
        Policy: adap-ucb(arms=2, epsilon=1, alpha=3.1, rewards_per_user=10)
          Azize & Basu 2022
          central privacy, epsilon 1 for one user
        """
        asked = {"rewards_per_user": rewards_per_user, "user_delta": user_delta}
        if not self.traits.private:
            raise InputError("policy", f"must be private to promise something to users, got {self.name}")
        return self.factory(**{**self.settings, **asked})

    def fresh(self) -> Policy:
        """The same policy, before its first round."""
        return self.factory(**self.settings).on_own_memory()

    def on_own_memory(self) -> Policy:
        """The same policy on its own copy of the memory, which the policy's function cannot reach."""
        agent = copied(self.agent) if hasattr(self.agent, "_fields") else self.agent
        curator = copied(self.curator) if hasattr(self.curator, "_fields") else self.curator
        return replace(self, agent=agent, curator=curator)

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        return card(self._lines(), self.guarantee.picture(), SHOWS)

    def _lines(self) -> list[str]:
        settings = ", ".join(
            f"{name}={f'{value:g}' if isinstance(value, float) else repr(value)}"
            for name, value in self.settings.items()
        )
        lines = [f"Policy: {self.name}({shortened(settings, 90)})", f"  {self.traits.paper}"]
        lines.append(f"  {self.guarantee.in_short}")
        if self.horizon is not None:
            lines.append(f"  for at most {self.horizon:,} rounds")
        return lines


def published(
    paper: str, differs: str = "nothing", **traits: Any
) -> Callable[[Callable[P, Parts]], Callable[P, Policy]]:
    """Make a function that builds an agent and a curator into a policy of that name, with these ``Traits``."""

    def decorate(build: Callable[P, Parts]) -> Callable[P, Policy]:
        own, name = inspect.signature(build), build.__name__.replace("_", "-")
        signature = own
        about = _with_horizon(name, Traits(paper, differs, **{"title": _title(build), **traits}), own)
        _check_threshold(name, about, own)
        _check_delta(name, about, own)
        if about.private:
            signature = own.replace(parameters=[*own.parameters.values(), *USERS.values()])

        @functools.wraps(build)
        def factory(*args: P.args, **kwargs: P.kwargs) -> Policy:
            bound = _bound(name, signature, args, kwargs)
            asked = bound.arguments
            asked["arms"] = at_least("arms", asked["arms"], 2)
            users = user_settings(asked)
            settings = {key: value for key, value in asked.items() if key not in USERS}
            given = inspect.BoundArguments(own, OrderedDict(_of_rewards(settings, users, about)))
            parts = _checked(name, about, build(*given.args, **given.kwargs))
            if about.needs_horizon and not about.horizon_needed(settings):
                del settings["horizon"]  # it has no effect here, and the policy plays on for ever
            made = Policy(name, {**settings, **users}, parts.agent, parts.curator, about, factory)
            _check_users(made)
            return made

        factory.traits = about  # type: ignore[attr-defined]
        factory.__signature__ = signature.replace(return_annotation=Policy)  # type: ignore[attr-defined]
        return factory

    return decorate


def _with_horizon(name: str, traits: Traits, signature: inspect.Signature) -> Traits:
    """The traits, with what the parameters say on the horizon; a declaration that contradicts them is refused."""
    needed, parameter = traits.needs_horizon, signature.parameters.get("horizon")
    if parameter is not None and parameter.default is inspect.Parameter.empty:
        if isinstance(needed, Mapping):
            raise InputError("needs_horizon", f"is always so for {name}, whose horizon has no default, got {needed}")
        return replace(traits, needs_horizon=True)
    if needed and parameter is None:
        raise InputError("needs_horizon", f"is a trait of policies with a parameter horizon, and {name} has none")
    for option in needed if isinstance(needed, Mapping) else ():
        if option not in signature.parameters:
            hint = nearest(option, signature.parameters)
            raise InputError("needs_horizon", f"must name options of {name}, got '{option}': {hint}")
    return traits


def _agree(settings: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    """Whether these options have these values."""
    return all(settings.get(name) == value for name, value in options.items())


def _check_threshold(name: str, traits: Traits, signature: inspect.Signature) -> None:
    """Refuse a threshold that is no option of the policy, or that has no levels to be compared with."""
    if traits.threshold is None:
        return
    if traits.threshold not in signature.parameters:
        hint = nearest(traits.threshold, signature.parameters)
        raise InputError("threshold", f"must be an option of {name}, got '{traits.threshold}': {hint}")
    if traits.levels is None:
        raise InputError("threshold", f"is a trait of policies with levels, and {name} has none")


def _check_delta(name: str, traits: Traits, signature: inspect.Signature) -> None:
    """Refuse a delta that is no option of the policy, or that has no epsilon beside it."""
    for needed in () if traits.delta is None else (traits.delta, "epsilon"):
        if needed not in signature.parameters:
            hint = nearest(needed, signature.parameters)
            raise InputError("delta", f"must be an option of {name} beside epsilon, and '{needed}' is none: {hint}")


def _checked(name: str, traits: Traits, parts: Any) -> Parts:
    """What the function of a policy returned, if it is what a policy is made of."""
    if not isinstance(parts, Parts):
        raise InputError("policy", f": {name} must return Parts(agent, curator), got {_kind(parts)}")
    needed = [("agent", parts.agent, "act"), ("curator", parts.curator, "add")]
    if traits.in_turns:
        needed.append(("agent", parts.agent, "turns"))
    for role, part, verb in needed:
        if isinstance(part, type) or not hasattr(part, "_fields"):
            raise InputError("policy", f": the {role} of {name} must be a NamedTuple, got {_kind(part)}")
        if not callable(getattr(part, verb, None)):
            raise InputError("policy", f": the {role} of {name} must have a method {verb}, and {_kind(part)} has none")
    return parts


def _kind(value: Any) -> str:
    if value is None:
        return "None"
    return f"the class {value.__name__} itself" if isinstance(value, type) else f"a {type(value).__name__}"


def _bound(name: str, signature: inspect.Signature, args: Any, kwargs: Any) -> inspect.BoundArguments:
    """The arguments of a policy by name. A missing or unknown argument is refused in one line."""
    for given in kwargs:
        if given not in signature.parameters:
            raise InputError(given, f"is not a parameter of {name}: {nearest(given, signature.parameters)}")
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        taken = [*list(signature.parameters)[: len(args)], *kwargs]
        needed = [key for key, one in signature.parameters.items() if one.default is inspect.Parameter.empty]
        for missing in (key for key in needed if key not in taken):
            raise InputError(missing, f"is required by {name}{NEEDED.get(missing, '')}, got none") from None
        raise InputError("policy", f"{name}: {error}") from None
    bound.apply_defaults()
    return bound


def user_settings(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The settings about users, as far as they are given, checked."""
    users = {name: asked[name] for name in USERS if asked.get(name) is not None}
    if "rewards_per_user" in users:
        users["rewards_per_user"] = at_least("rewards_per_user", users["rewards_per_user"], 1)
    elif users:
        raise InputError("rewards_per_user", "is required by user_delta: the most rewards of a user, got none")
    if "user_delta" in users:
        users["user_delta"] = fraction("user_delta", users["user_delta"])
    return users


def _of_rewards(asked: dict[str, Any], users: Mapping[str, Any], traits: Traits) -> dict[str, Any]:
    """The settings for one reward, from those for a user with several."""
    if not users:
        return asked
    rewards, delta, divided = users["rewards_per_user"], users.get("user_delta"), dict(asked)
    if delta is not None and "epsilon" in asked:
        divided["epsilon"] = of_response(positive("epsilon", asked["epsilon"]), delta, rewards)
        return divided
    for name in ("epsilon", traits.threshold):
        if name is not None and name in asked:
            divided[name] = of_reward(positive(name, asked[name]), rewards)
    if traits.delta is not None:
        divided[traits.delta] = delta_of_reward(asked["epsilon"], asked[traits.delta], rewards)
    return divided


def _check_users(policy: Policy) -> None:
    """Refuse settings about users for which there is no promise."""
    if policy.rewards_per_user is not None and policy.curator.guarantee().trust == "none":
        raise InputError("policy", f"must be private to promise something to users, got {policy.name}")
    if policy.user_delta is None:
        return
    if policy.traits.levels is not None:
        raise InputError("user_delta", f"is not a parameter of {policy.name}, whose users have levels of their own")
    policy.guarantee  # noqa: B018  # refuses a promise that does not compose


def _title(build: Callable[..., Any]) -> str:
    """The part of a docstring's first line before its colon; empty if there is no colon, or if it is a sentence."""
    head, colon, _ = (inspect.getdoc(build) or "").split("\n")[0].partition(":")
    return head if colon and len(head) <= LONGEST_TITLE else ""
