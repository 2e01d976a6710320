"""One word, one thing: no two classes, type aliases or exported functions of the library have the same name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import dpbandits
from dpbandits.policies import lookup

PACKAGE = Path(dpbandits.__file__).parent

#: Names that still have two meanings, one of them in the service.
TWO_MEANINGS = {"check", "create", "estimate", "overview", "play", "write"}


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text())


def alias(node: ast.stmt) -> str | None:
    """The name of a type alias: a capitalised name that stands for something written with brackets, bars or Any."""
    match node:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=value)
        ):
            written = isinstance(value, ast.Subscript | ast.BinOp) or (
                isinstance(value, ast.Name) and value.id == "Any"
            )
            return name if written and not name.isupper() and name.lstrip("_")[:1].isupper() else None
    return None


def functions(tree: ast.Module) -> set[str]:
    """The functions that a module defines and lists in ``__all__``."""
    listed: set[str] = set()
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=names)):
                listed = {
                    name.value for name in names if isinstance(name, ast.Constant) and isinstance(name.value, str)
                }
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)} & listed


def twice(found: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The names that stand in several places, with these places."""
    places = defaultdict(list)
    for name, path in found:
        places[name].append(path)
    assert len(places) > 80, "the names are not found"
    return {name: paths for name, paths in places.items() if len(paths) > 1 and name not in TWO_MEANINGS}


def test_no_two_classes_or_type_aliases_have_one_name() -> None:
    found = [
        (name, path)
        for path, tree in trees()
        for node in tree.body
        if (name := node.name if isinstance(node, ast.ClassDef) else alias(node)) is not None
    ]
    assert sum(name in ("Trust", "Status", "AnyLevels") for name, _ in found) == 3, "the aliases are not found"
    assert twice(found) == {}


def test_no_two_exported_functions_have_one_name() -> None:
    """Theorems alone have the names of the policies that they are about."""
    policies = {name.replace("-", "_") for name in lookup.names()}
    found = [
        (name, path)
        for path, tree in trees()
        for name in functions(tree)
        if not (path.startswith("bounds/") and name in policies)
    ]
    assert twice(found) == {}
