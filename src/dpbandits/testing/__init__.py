"""The conformance suite: laws that every policy obeys, ours and yours.

from dpbandits.testing import check
check(my_policy)                     # all laws
check(my_policy, epsilon=0.3)        # with settings of its own
"""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

from dpbandits import policies
from dpbandits.policies import lookup
from dpbandits.testing import living, playing, promising
from dpbandits.testing.case import Case, Law

__all__ = ["LAWS", "Case", "Law", "check", "subjects"]

#: Rewards of 0 and 1, and rewards of every kind between.
PROBLEMS = ("0.9,0.6,0.4", "beta(4,1)+choice(0.2,0.9)+uniform(0,1)+bernoulli(0.3)")


def _laws(module: ModuleType) -> dict[str, Law]:
    """Every public function of a module that takes a case."""
    return {
        name: law
        for name, law in vars(module).items()
        if inspect.isfunction(law)
        and law.__module__ == module.__name__
        and not name.startswith("_")
        and list(inspect.signature(law).parameters) == ["case"]
    }


#: All laws, by name.
LAWS: dict[str, Law] = {**_laws(playing), **_laws(living), **_laws(promising)}


def subjects() -> list[Case]:
    """Every policy of the package on both problems, and every kind of environment under one policy.

    >>> {case.name for case in subjects()} == set(lookup.names())
    True
    """
    cases = [Case(getattr(policies, name), arms) for name in policies.__all__ for arms in PROBLEMS]
    wide = "normal(0.9,1)+normal(0.2,1)+uniform(-1,3)"
    cases += [
        Case(policies.ucb1, wide, {"sigmoid": True}),
        Case(policies.ldp_ucb_ls, wide),
        Case(policies.heldp_ucb_bs, wide, levels="normal(1,1)"),
        Case(policies.adap_ucb, wide, reward_range=(-2.0, 3.0)),
        Case(policies.dp_ucb_int, settings={"epsilon": 4.0}),  # releases from the first rewards on
        Case(policies.dp_ucb_int, settings={"epsilon": 4.0, "cover_noise": True}),
    ]
    return cases


def check(factory: lookup.Factory, **settings: Any) -> None:
    """Hold a policy to every law; an AssertionError names the first that it breaks.

    >>> check(policies.adap_ucb, epsilon=0.3)
    """
    for arms in PROBLEMS:
        for name, law in LAWS.items():
            try:
                law(Case(factory, arms, settings))
            except AssertionError as error:
                raise AssertionError(f"{factory.__name__} breaks '{name.replace('_', ' ')}': {error}") from error
