"""One word, one thing: no two public classes of the library have the same name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import dpbandits

PACKAGE = Path(dpbandits.__file__).parent


def test_no_two_public_classes_have_one_name() -> None:
    places = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    assert len(places) > 80, "the classes are not found"
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
