"""Policies to compare, as a user lists them in Python: which simulations they are, and what each is called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dpbandits.checks import known, nearest
from dpbandits.errors import InputError
from dpbandits.experiments.cells import Cell
from dpbandits.policies import lookup
from dpbandits.policies.policy import Policy
from dpbandits.simulation import Simulation, Trace
from dpbandits.simulation.runs import ENGINES
from dpbandits.simulation.settings import settings

__all__ = ["policies_of"]


def policies_of(
    what: Any, runs: int, given: Mapping[str, Any], engine: str = "compiled"
) -> tuple[dict[str, Cell], dict[str, Trace]]:
    """The simulations to play and the traces to take as they are, by label."""
    known("engine", engine, ENGINES)
    if not isinstance(what, Iterable):
        raise InputError("policies", f"must be a list of policies, or the path of a file, got {what!r:.80}")
    cells: dict[str, Cell] = {}
    traces: dict[str, Trace] = {}
    entries = list(_labelled(what))
    _refuse_unknown(given, [one for _, one in entries if not isinstance(one, Trace | Simulation)])
    for label, one in entries:
        if isinstance(one, Trace):
            found: dict[str, Any] = {label or one.label: one}
        elif isinstance(one, Simulation):
            cell = Cell(one, runs, label, engine)
            found = {cell.name: cell}
        else:
            found = {cell.name: cell for cell in _cells(label, one, runs, given, engine)}
        for name, each in found.items():
            if name in cells or name in traces:
                raise InputError("policies", f"must have different labels, got '{name}' twice: use a mapping of labels")
            (traces if isinstance(each, Trace) else cells)[name] = each
    if not cells and not traces:
        raise InputError("policies", "must be at least one, got none")
    return cells, traces


def _refuse_unknown(given: Mapping[str, Any], policies: Sequence[Any]) -> None:
    """Refuse a keyword that no policy takes, before anything that is missing is asked for: it may be misspelt."""
    asked = [one.get("policy") if isinstance(one, Mapping) else one for one in policies]
    options = {name for one in asked if one is not None and not isinstance(one, Policy) for name in lookup.options(one)}
    unknown = [name for name in given if name not in settings() and name not in options]
    if unknown and policies:
        hint = nearest(unknown[0], ["runs", *settings(), *sorted(options)])
        raise InputError(unknown[0], f"is neither a setting of a simulation nor an option of these policies: {hint}")


def _labelled(what: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(what, Mapping):
        yield from ((str(label), one) for label, one in what.items())
    else:
        yield from (("", one) for one in what)


def _cells(label: str, one: Any, runs: int, given: Mapping[str, Any], engine: str) -> list[Cell]:
    """The cells of one entry, one for each epsilon."""
    own = dict(one) if isinstance(one, Mapping) else {"policy": one}
    if "policy" not in own:
        raise InputError("policies", f"must have the key 'policy' where one is a mapping, got {sorted(map(str, own))}")
    policy, label = own.pop("policy"), str(own.pop("label", label))
    made = isinstance(policy, Policy)
    factory = policy.factory if made else lookup.find(policy)
    taken, allowed = settings(), {} if made else lookup.options(factory)
    for name in own:
        if name not in taken and name not in allowed:
            hint = nearest(name, [*taken, *allowed])
            raise InputError(str(name), f"is no setting and no option of {lookup.written(factory)}: {hint}")
    shared = {name: value for name, value in given.items() if name in taken or name in allowed}
    if lookup.traits(factory).levels is None:
        shared.pop("levels", None)
    if made or not lookup.takes(factory, "epsilon"):
        shared.pop("epsilon", None)
    used = {name for name in shared if name in allowed}
    options = {**lookup.merged(shared.pop("options", None), {n: shared.pop(n) for n in used})}
    mine = {name: own.pop(name) for name in list(own) if name in allowed}
    options |= lookup.merged(own.pop("options", None), mine)
    merged = {**shared, **own}
    cells = []
    for epsilon in _listed(merged.pop("epsilon", None)):
        simulation = Simulation.of(policy, **merged, epsilon=epsilon, options=options)
        several = label and isinstance(given.get("epsilon"), Iterable) and not isinstance(given.get("epsilon"), str)
        named = f"{label}, ε = {simulation.epsilon:g}" if several and simulation.epsilon is not None else label
        cells.append(Cell(simulation, runs, named or _name(simulation, mine), engine))
    return cells


def _name(simulation: Simulation, own: Mapping[str, Any]) -> str:
    """The policy, its epsilon, and the options that this entry alone has."""
    parts = [simulation.policy.name]
    if simulation.epsilon is not None:
        parts.append(f"ε = {simulation.epsilon:g}")
    return ", ".join([*parts, *(f"{name} = {value}" for name, value in own.items())])


def _listed(epsilon: Any) -> list[Any]:
    return [epsilon] if isinstance(epsilon, str) or not isinstance(epsilon, Iterable) else list(epsilon)
