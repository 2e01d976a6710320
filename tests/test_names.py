"""One word, one thing: no two classes or type aliases of the library have the same name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import dpbandits

PACKAGE = Path(dpbandits.__file__).parent


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


def test_no_two_classes_have_one_name() -> None:
    places = defaultdict(list)
    for path, tree in trees():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(path)
    assert len(places) > 80, "the classes are not found"
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_two_type_aliases_have_one_name() -> None:
    places = defaultdict(list)
    for path, tree in trees():
        for name in filter(None, map(alias, tree.body)):
            places[name].append(path)
    assert len(places) > 20, "the aliases are not found"
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
