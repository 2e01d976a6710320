"""The inputs of a session, as people have them: policy, arms and logs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpbandits.checks import at_least, positive
from dpbandits.display import shortened
from dpbandits.environments import Arms
from dpbandits.environments.distributions import Distribution
from dpbandits.environments.scipy_arms import is_scipy
from dpbandits.errors import InputError
from dpbandits.exact import Exactly, rational
from dpbandits.policies import lookup
from dpbandits.policies.policy import Policy, Traits

__all__ = ["epsilon_of_response", "made_of", "names_of", "pairs_of", "plain_name", "renamed"]


def made_of(
    policy: str | lookup.Factory | Policy,
    arms: object,
    epsilon: Exactly | None,
    horizon: int | None,
    users: Mapping[str, Any],
    options: Mapping[str, Any],
) -> tuple[tuple[Any, ...], Policy]:
    """The names of the arms, and the policy."""
    if isinstance(policy, Policy):
        if epsilon is not None or horizon is not None or options or any(one is not None for one in users.values()):
            raise InputError(
                "policy", "is an instance: epsilon, horizon, rewards_per_user and options are set where it is made"
            )
        names, made = names_of(policy.arms if arms is None else arms), policy
    else:
        if arms is None:
            raise InputError("arms", "is required: the names of the arms, or how many there are, got none")
        names = names_of(arms)
        level = None if epsilon is None else positive("epsilon", rational("epsilon", epsilon))
        made = lookup.make(policy, arms=len(names), epsilon=level, horizon=horizon, **users, given=options)
    if len(set(names)) != made.arms or len(names) != made.arms:
        raise InputError("arms", f"must be {made.arms} different names, got {shortened(list(names), 200)}")
    return names, made


def names_of(arms: object) -> tuple[Any, ...]:
    """The names of arms that are given as names, as their number, or in any way that ``simulate`` takes them.

    Numbers in a list are names, such as doses.

    >>> names_of(["red", "green"]), names_of(2), names_of([0.5, 2.0]), names_of("0.9,0.6")
    (('red', 'green'), (0, 1), (0.5, 2.0), (0, 1))
    """
    if isinstance(arms, int | np.integer) and not isinstance(arms, bool):
        return tuple(range(at_least("arms", int(arms), 2)))
    if isinstance(arms, Sequence | np.ndarray) and not isinstance(arms, str):
        if len(arms) < 2:
            got = shortened(list(arms), 200) if len(arms) else "none"
            raise InputError("arms", f"must be at least two names, got {got}")
        if not any(isinstance(arm, Distribution) or is_scipy(arm) for arm in arms):
            return tuple(plain_name(arm) for arm in arms)
    elif isinstance(arms, Mapping):
        return tuple(plain_name(arm) for arm in arms)
    try:
        read = Arms.of(arms)
    except InputError as error:
        if not isinstance(arms, str) or "(" in arms or "@" in arms:
            raise
        raise InputError("arms", f"must be names such as ['red', 'green'], or how many, got {arms!r:.80}") from error
    return read.names if read.named else tuple(range(len(read)))


def plain_name(name: Any) -> Any:
    """The name of an arm as JSON holds it: a text, or a number."""
    plain = name.item() if isinstance(name, np.generic) else name
    if isinstance(plain, str | int) or (isinstance(plain, float) and math.isfinite(plain)):
        return plain
    raise InputError("arms", f"must be named by texts or numbers, got {name!r:.80}")


def pairs_of(log: Any) -> Iterable[tuple[Any, Any]]:
    """Pairs of an arm and its reward or response. A refusal does not show them: they are private."""
    try:
        return [(arm, told) for arm, told in (log.items() if isinstance(log, Mapping) else log)]
    except (TypeError, ValueError):
        raise InputError("log", "must be a file, a data frame, or pairs of an arm and its reward or response") from None


def renamed(policy: str | lookup.Factory, saved: Mapping[str, Any]) -> dict[str, Any]:
    """Saved settings of a policy, by the names that its options have now.

    >>> renamed("dp-se", {"arms": 2, "scale": 0.01})
    {'arms': 2, 'epoch_factor': 0.01}
    """
    declared = getattr(lookup.find(policy), "traits", None)  # a function that is not published declares nothing
    names = declared.renamed if isinstance(declared, Traits) else {}
    return {names.get(name, name): value for name, value in saved.items()}


def epsilon_of_response(policy: Policy, epsilon: Fraction | None) -> Fraction | None:
    """The epsilon of a single response, exactly: the user's, divided by the number of their rewards."""
    if epsilon is None or policy.rewards_per_user is None:
        return epsilon
    if policy.user_delta is not None:  # they compose, and the share is a number of few digits
        return rational("epsilon", policy.of_reward["epsilon"])
    return epsilon / policy.rewards_per_user
