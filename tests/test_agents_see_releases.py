"""An agent's own signature says which releases it asks for. `make lint` runs mypy, which refuses everything else."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import typing
from collections.abc import Iterator
from typing import Any

import pytest

import dpbandits.agents
from dpbandits.protocols import Curator, Releases

#: What a curator can do that is no release.
HIDDEN = {name for name in vars(Curator) if not name.startswith("_")} - set(vars(Releases))


def functions() -> Iterator[tuple[str, Any]]:
    """Every function and method of the package's agents that is given releases."""
    for module in pkgutil.iter_modules(dpbandits.agents.__path__, "dpbandits.agents."):
        members = vars(importlib.import_module(module.name))
        for owner in (members, *(vars(one) for one in members.values() if inspect.isclass(one))):
            for name, function in owner.items():
                inside = inspect.isfunction(function) and function.__module__ == module.name
                if inside and "releases" in inspect.signature(function).parameters:
                    yield f"{module.name}.{name}", function


@pytest.mark.parametrize(("name", "function"), [pytest.param(*one, id=one[0]) for one in functions()])
def test_an_agent_is_given_releases_and_nothing_else(name: str, function: Any) -> None:
    given = typing.get_type_hints(function)["releases"]
    assert Releases in given.__mro__, f"{name}: {given} may be anything"
    assert not HIDDEN & set(dir(given)), name


def test_there_are_agents_to_look_at_and_things_to_hide() -> None:
    assert len(list(functions())) > 40
    assert {"add", "close", "respond", "absorb", "guarantee"} <= HIDDEN
