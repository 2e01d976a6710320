"""Policies by name, and their options as text, for the command line and everything else that takes names."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dpbandits import policies
from dpbandits.checks import nearest, positive
from dpbandits.errors import InputError
from dpbandits.policies.policy import Policy, Traits

__all__ = [
    "Factory",
    "find",
    "kinds",
    "make",
    "merged",
    "names",
    "needs_horizon",
    "options",
    "overview",
    "own",
    "sample",
    "takes",
    "traits",
    "valued",
    "written",
]

Factory = Callable[..., Policy]

REQUIRED = "required"  # in place of a default

#: Parameters that have a place of their own in every call; all others are options.
COMMON = ("arms", "epsilon", "horizon", "rewards_per_user", "user_delta")


def names() -> list[str]:
    """The names of all policies.

    >>> "adap-klucb" in names()
    True
    """
    return [name.replace("_", "-") for name in policies.__all__]


def find(policy: str | Factory) -> Factory:
    """The policy of a name in any spelling, a user's ``module:function``, or a function that makes a policy.

    >>> find("AdaP_UCB").__name__
    'adap_ucb'
    """
    if callable(policy):
        return policy
    if isinstance(policy, Policy):
        raise InputError("policy", f"must be a name or a function here, got an instance of {policy.name}")
    if not isinstance(policy, str):
        raise InputError("policy", f"must be a name or a function that makes one, got {policy!r:.80}")
    if ":" in policy:
        return own(policy)
    name = policy.strip().lower().replace("-", "_").replace(" ", "_")
    if name not in policies.__all__:
        raise InputError("policy", f"'{policy}' is unknown: {nearest(name.replace('_', '-'), names())}")
    return getattr(policies, name)


def own(target: str) -> Callable[..., Any]:
    """The user's function that ``module:function`` names; the working directory is searched first."""
    module, _, name = target.partition(":")
    if module.endswith(".py") or "/" in module:
        meant = f"{Path(module).stem}:{name}"
        raise InputError("policy", f"must be a name or module:function, such as {meant}, got '{target}'")
    if "<" in name:
        raise InputError("policy", f"must be a function at the top level of a module, got {target}")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError("policy", f"must be a name or module:function, got '{target}': {error}") from None
    except (Exception, SystemExit) as error:  # whatever a user's module raises while it is imported
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError("policy", f"'{target}' cannot be imported: {what:.200}") from None
    if not callable(found):
        raise InputError("policy", f"must be a function, got '{target}'")
    return found


def written(factory: Factory) -> str:
    """The text that ``find`` reads as this function: its name where it is one of ours, else ``module:function``."""
    name = factory.__name__
    if getattr(policies, name, None) is factory:
        return name.replace("_", "-")
    return f"{factory.__module__}:{factory.__qualname__}"


def merged(options: Mapping[str, Any] | None, more: Mapping[str, Any]) -> dict[str, Any]:
    """Options that are given as a mapping and as keywords.

    >>> merged({"alpha": 2}, {"delta": 0.1})
    {'alpha': 2, 'delta': 0.1}
    """
    if options is not None and not isinstance(options, Mapping):
        raise InputError("options", f"must be a mapping such as {{'alpha': 2}}, got {options!r:.80}")
    for name in more:
        if name in (options or {}):
            raise InputError(name, "must be given once, got it in options and as a keyword")
    return {**(options or {}), **more}


def needs_horizon(policy: str | Factory, options: Mapping[str, Any] | None = None) -> bool:
    """Whether a policy must be told for how many rounds it will be played, if it has these options.

    >>> needs_horizon("adap-moss"), needs_horizon("adap-ucb"), needs_horizon("dp-ucb-int")
    (True, False, False)
    >>> needs_horizon("dp-ucb-int", {"schedule": "exact"})
    True
    """
    defaults = {name: one.default for name, one in inspect.signature(find(policy)).parameters.items()}
    return traits(policy).horizon_needed({**defaults, **(options or {})})


def traits(policy: str | Factory) -> Traits:
    """What is known about a policy before it is made.

    >>> traits("heldp-ucb-b").levels
    'bernoulli'
    """
    found = getattr(find(policy), "traits", None)
    if not isinstance(found, Traits):
        name = policy if isinstance(policy, str) else getattr(policy, "__name__", repr(policy))
        raise InputError("policy", f"must be made by a function with @published, got {name!s:.80}")
    return found


def takes(policy: str | Factory, parameter: str) -> bool:
    """Whether a policy has this parameter."""
    return parameter in inspect.signature(find(policy)).parameters


def options(policy: str | Factory) -> dict[str, inspect.Parameter]:
    """The options of a policy beyond the common parameters."""
    return {name: p for name, p in inspect.signature(find(policy)).parameters.items() if name not in COMMON}


def make(
    policy: str | Factory,
    *,
    arms: int,
    epsilon: float | None = None,
    horizon: int | None = None,
    rewards_per_user: int | None = None,
    user_delta: float | None = None,
    given: Mapping[str, Any] | None = None,
) -> Policy:
    """A policy from its name, the common parameters as far as it takes them, and options, as values or as text.

    >>> make("adap-ucb", arms=5, epsilon=1.0, given={"alpha": "1"}).settings
    {'arms': 5, 'epsilon': 1.0, 'alpha': 1.0}
    """
    factory = find(policy)
    users = {"rewards_per_user": rewards_per_user, "user_delta": user_delta}
    settings = {**_common(factory, arms, epsilon, horizon, users), **_options(factory, given or {})}
    if takes(factory, "horizon") and horizon is None and needs_horizon(factory, settings):
        raise InputError("horizon", f"is required by {_with_options(written(factory), factory)}, got none")
    return factory(**settings)


def _common(
    factory: Factory, arms: int, epsilon: float | None, horizon: int | None, users: Mapping[str, Any]
) -> dict[str, Any]:
    """The parameters that policies have in common, as far as this one takes them; ``users`` are those for a user."""
    label = written(factory)
    settings: dict[str, Any] = {"arms": arms}
    if takes(factory, "epsilon"):
        if epsilon is None:
            raise InputError("epsilon", f"is required by {label}, got none")
        settings["epsilon"] = positive("epsilon", epsilon)
    elif epsilon is not None:
        own = "each user has a level of their own" if traits(factory).levels else "its privacy has other parameters"
        where = own if traits(factory).private else "it is not private"
        raise InputError("epsilon", f"is not a parameter of {label} ({where}), got {epsilon}")
    if takes(factory, "horizon"):
        settings["horizon"] = horizon
    for name, setting in users.items():
        if setting is not None:
            if not takes(factory, name):
                raise InputError(name, f"is not a parameter of {label}, which is not private, got {setting}")
            settings[name] = setting
    return settings


def _options(factory: Factory, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a policy, as values. Refuses one that it does not have, and the lack of one that it requires."""
    label, settings, allowed = written(factory), dict[str, Any](), options(factory)
    for option, value in given.items():
        if option not in allowed:
            hint = nearest(option, allowed) if allowed else "it has none"
            raise InputError(str(option), f"is not an option of {label}: {hint}")
        settings[option] = valued(option, value, allowed[option].annotation)
    for option, parameter in allowed.items():
        if parameter.default is inspect.Parameter.empty and option not in settings:
            raise InputError(option, f"is an option that {label} requires, got none")
    return settings


def _with_options(label: str, factory: Factory) -> str:
    """A policy that needs a horizon, with the options that make it so, and what the horizon is."""
    needed = traits(factory).needs_horizon
    chosen = "" if isinstance(needed, bool) else f" with {', '.join(f'{k}={v}' for k, v in needed.items())}"
    return f"{label}{chosen}: how many rounds it will be played"


def sample(policy: str | Factory, *, arms: int = 2, epsilon: float = 1.0, horizon: int = 1000, **given: Any) -> Policy:
    """A policy to try out: its required parameters are filled in.

    >>> sample("heldp-ucb-b").settings
    {'arms': 2, 'epsilon_min': 1.0}
    """
    common = {"arms": arms, "epsilon": epsilon, "horizon": horizon, **traits(policy).sample}
    return find(policy)(**{**{name: value for name, value in common.items() if takes(policy, name)}, **given})


def kinds(annotation: Any) -> set[str]:
    """The types that a parameter takes, by name; an annotation is text in a module that postpones annotations.

    >>> kinds("float | str") == kinds(float | str) == {"float", "str"}
    True
    """
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return {kind.strip() for kind in text.split("|")}


def valued(option: str, value: Any, annotation: Any) -> Any:
    """``value``, read from text as its parameter's type asks; a number of NumPy as Python's."""
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    if not isinstance(value, str):
        return value
    taken = kinds(annotation)
    if "bool" in taken:
        if value.lower() not in ("true", "false"):
            raise InputError(option, f"must be true or false, got '{value}'")
        return value.lower() == "true"
    if "float" in taken or "int" in taken:
        try:
            return float(value)
        except ValueError:
            if "str" not in taken:
                raise InputError(option, f"must be a number, got '{value}'") from None
    return value


def overview() -> list[dict[str, Any]]:
    """For each policy: its name, paper, trust, guarantee in words, options with their defaults, and what differs.

    >>> next(row["guarantee"] for row in overview() if row["name"] == "dp-ucb-int")
    '(epsilon, delta)'
    """
    rows = []
    for name in names():
        policy = sample(name)
        rows.append(
            {
                "name": name,
                "summary": (inspect.getdoc(find(name)) or "").split("\n")[0],
                "paper": policy.traits.paper,
                "trust": policy.guarantee.trust,
                "guarantee": _in_words(policy),
                "options": {option: _default(parameter) for option, parameter in options(name).items()}
                | ({"horizon": REQUIRED} if needs_horizon(name) else {}),
                "differs": policy.traits.differs,
            }
        )
    return rows


def _in_words(policy: Policy) -> str:
    if policy.guarantee.trust == "none":
        return "none"
    if policy.guarantee.epsilon is None:
        return "pure, each user's own epsilon"
    return "(epsilon, delta)" if policy.guarantee.delta > 0 else "pure epsilon"


def _default(parameter: inspect.Parameter) -> Any:
    return REQUIRED if parameter.default is inspect.Parameter.empty else parameter.default
