"""The rules on users' levels, for everybody who makes a policy for them."""

from __future__ import annotations

from dpbandits.environments.levels import AnyLevels
from dpbandits.errors import InputError
from dpbandits.policies.policy import Policy, Traits

__all__ = ["check_levels", "check_threshold"]


def check_levels(name: str, traits: Traits, levels: AnyLevels | None) -> None:
    """Refuse levels for a policy of this name that has none, and no levels for one that has them."""
    if traits.levels is None and levels is not None:
        rule = f"is not a parameter of {name} (one epsilon holds for all users)"
        raise InputError("levels", f"{rule}, got {levels!s:.80}")
    if traits.levels is not None and levels is None:
        raise InputError("levels", f"is required by {name}, for instance choice(0.5,1,2), got none")


def check_threshold(policy: Policy, levels: AnyLevels | None) -> None:
    """Refuse a threshold at which everybody's responses would be discarded."""
    name, least = policy.traits.threshold, policy.threshold
    if name is not None and least is not None and levels is not None and levels.accepted(least) == 0.0:
        rule = f"must be a level that some users reach, where users have {levels!s:.80}"
        raise InputError(name, f"{rule}, got {least:g}")
