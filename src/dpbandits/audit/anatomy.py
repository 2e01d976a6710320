"""What a part is made of: its classes, and the names of its fields, with those of the parts inside it."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["classes", "fields", "inner", "shapes"]


def classes(part: Any) -> list[type]:
    """The class of a part, and those of the parts inside it."""
    return [type(part), *(c for value in part if hasattr(value, "_fields") for c in classes(value))]


def fields(part: Any, memory: bool) -> set[str]:
    """The names of the fields that are memory, or of those that are parameters, in a part and in those inside it."""
    found: set[str] = set()
    for name, value in zip(part._fields, part, strict=True):
        if (isinstance(value, np.ndarray) or hasattr(value, "_fields")) == memory:
            found.add(name)
        if hasattr(value, "_fields"):
            found |= fields(value, memory)
    return found


def shapes(part: Any) -> dict[str, set[int]]:
    """The numbers of dimensions of the arrays in a part and in those inside it, by name."""
    found: dict[str, set[int]] = {}
    for name, value in zip(part._fields, part, strict=True):
        more = {name: {value.ndim}} if isinstance(value, np.ndarray) else shapes(value) if name in inner(part) else {}
        for field, dimensions in more.items():
            found[field] = found.get(field, set()) | dimensions
    return found


def inner(part: Any) -> set[str]:
    """The names of the fields that are parts, in a part and in those inside it."""
    pairs = [(name, value) for name, value in zip(part._fields, part, strict=True) if isinstance(value, tuple)]
    return {name for name, _ in pairs}.union(*(inner(value) for _, value in pairs))
