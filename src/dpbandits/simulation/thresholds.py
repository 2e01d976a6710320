"""``epsilon_min=auto``: the users' levels choose below which of them responses are discarded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dpbandits.curators import HeterogeneousBernoulli, HeterogeneousLaplace
from dpbandits.environments import Levels, NormalLevels
from dpbandits.errors import InputError
from dpbandits.policies import lookup

if TYPE_CHECKING:
    from dpbandits.bounds.levels import Mechanism

__all__ = ["AUTO", "choose_epsilon_min"]

AUTO = "auto"

#: How the curators that discard responses make them private: what a response costs at each level follows from it.
MECHANISMS: dict[type, Mechanism] = {HeterogeneousLaplace: "laplace", HeterogeneousBernoulli: "bernoulli"}


def choose_epsilon_min(
    policy: str | lookup.Factory, options: Mapping[str, Any] | None, population: Levels | NormalLevels | None
) -> Mapping[str, Any]:
    """The options, with a number for ``epsilon_min=auto``: where this population's responses cost least.

    That is the V_L or V_B rule of the HeLDP paper.

    >>> from dpbandits.environments import parse_levels
    >>> choose_epsilon_min("heldp-ucb-b", {"epsilon_min": "auto"}, parse_levels("choice(0,0.2,1,2,100)"))
    {'epsilon_min': 2.0}
    """
    options = options or {}
    if options.get("epsilon_min") != AUTO or "epsilon_min" not in lookup.options(lookup.find(policy)):
        return options
    from dpbandits.bounds.levels import best_epsilon_min  # SciPy, which few runs need
    from dpbandits.bounds.text import population as users

    any_threshold = lookup.make(policy, arms=2, given={**options, "epsilon_min": 1.0})
    mechanism = MECHANISMS.get(type(any_threshold.curator))
    if mechanism is None:
        raise InputError(f"epsilon_min of {any_threshold.name} must be a number: no rule chooses it, got {AUTO}")
    if population is None:
        raise InputError(f"levels is required by epsilon_min={AUTO}, got none")
    return {**options, "epsilon_min": best_epsilon_min(users(population), mechanism)}
