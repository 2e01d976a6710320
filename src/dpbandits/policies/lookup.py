"""Policies by name, and their options as text: what the command line, and anything else that takes names, needs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from dpbandits import policies
from dpbandits.errors import InputError, known, positive
from dpbandits.policies.policy import Policy

Factory = Callable[..., Policy]

#: Parameters that have a place of their own in every call; all others are options.
COMMON = ("arms", "epsilon", "horizon")


def names() -> list[str]:
    """The names of all policies.

    >>> "adap-klucb" in names()
    True
    """
    return [name.replace("_", "-") for name in policies.__all__]


def find(name: str | Factory) -> Factory:
    """The policy of that name; a function that makes one stands for itself."""
    if callable(name):
        return name
    return getattr(policies, known("policy", name, names()).replace("-", "_"))


def options(factory: Factory) -> dict[str, inspect.Parameter]:
    """The options of a policy beyond the common parameters."""
    return {name: p for name, p in inspect.signature(factory).parameters.items() if name not in COMMON}


def make(
    name: str | Factory,
    *,
    arms: int,
    epsilon: float | None = None,
    horizon: int | None = None,
    given: Mapping[str, Any] | None = None,
) -> Policy:
    """A policy from its name, the common parameters as far as it takes them, and options, as values or as text.

    >>> make("adap-ucb", arms=5, epsilon=1.0, given={"alpha": "1"}).settings
    {'arms': 5, 'epsilon': 1.0, 'alpha': 1.0}
    """
    factory = find(name)
    label = name if isinstance(name, str) else factory.__name__
    wanted = inspect.signature(factory).parameters
    settings: dict[str, Any] = {"arms": arms}
    if "epsilon" in wanted:
        if epsilon is None:
            raise InputError(f"epsilon is required by {label}, got none")
        settings["epsilon"] = positive("epsilon", epsilon)
    elif epsilon is not None:
        where = "it has --levels and epsilon_min instead" if "epsilon_min" in wanted else "it is not private"
        raise InputError(f"epsilon is not a parameter of {label} ({where}), got {epsilon}")
    if "horizon" in wanted:
        settings["horizon"] = horizon
    for option, value in (given or {}).items():
        known(f"option of {label}", option, options(factory))
        settings[option] = _value(option, value, str(wanted[option].annotation))
    for option, parameter in options(factory).items():
        if parameter.default is inspect.Parameter.empty and option not in settings:
            raise InputError(f"option {option} is required by {label}, got none")
    return factory(**settings)


def _value(option: str, value: Any, annotation: str) -> Any:
    """``value``, read from text as its parameter's type asks."""
    if not isinstance(value, str):
        return value
    kinds = [kind.strip() for kind in annotation.split("|")]
    if "bool" in kinds:
        if value.lower() not in ("true", "false"):
            raise InputError(f"{option} must be true or false, got '{value}'")
        return value.lower() == "true"
    if "float" in kinds or "int" in kinds:
        try:
            return float(value)
        except ValueError:
            if "str" not in kinds:
                raise InputError(f"{option} must be a number, got '{value}'") from None
    return value


def overview() -> list[dict[str, Any]]:
    """For each policy: its name, paper, trust, guarantee in words, options with their defaults, and what differs.

    >>> next(row["guarantee"] for row in overview() if row["name"] == "dp-ucb-int")
    '(epsilon, delta)'
    """
    rows = []
    for name in names():
        factory = find(name)
        sample = {"arms": 2, "epsilon": 1.0, "epsilon_min": 1.0, "horizon": 1000}
        wanted = inspect.signature(factory).parameters
        policy = factory(**{key: value for key, value in sample.items() if key in wanted})
        rows.append(
            {
                "name": name,
                "summary": (inspect.getdoc(factory) or "").split("\n")[0],
                "paper": policy.paper,
                "trust": policy.guarantee.trust,
                "guarantee": _in_words(policy),
                "options": {option: _with_default(parameter) for option, parameter in options(factory).items()},
                "differs": policy.differs,
            }
        )
    return rows


def _in_words(policy: Policy) -> str:
    if policy.guarantee.trust == "none":
        return "none"
    if policy.guarantee.epsilon is None:
        return "pure, each user's own epsilon"
    return "(epsilon, delta)" if policy.guarantee.delta > 0 else "pure epsilon"


def _with_default(parameter: inspect.Parameter) -> str:
    if parameter.default is inspect.Parameter.empty:
        return f"{parameter.name} (required)"
    default = parameter.default
    return f"{parameter.name}={default:g}" if isinstance(default, float) else f"{parameter.name}={default}"
