"""What a part is made of: its classes, and the names of its fields, with those of the parts inside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpbandits.parts import arrays, every_field, nested

__all__ = ["classes", "fields", "inner", "shapes"]


def classes(part: Any) -> list[type]:
    """The class of a part, and those of the parts inside it."""
    return [type(one) for one in nested(part)]


def fields(part: Any, memory: bool) -> set[str]:
    """The names of the fields that are memory, or of those that are parameters, in a part and in those inside it."""
    return {name for _, name, value in every_field(part) if _is_memory(value) == memory}


def _is_memory(value: Any) -> bool:
    return isinstance(value, np.ndarray) or hasattr(value, "_fields")


def shapes(part: Any) -> dict[str, set[int]]:
    """The numbers of dimensions of the arrays in a part and in those inside it, by name."""
    found: dict[str, set[int]] = {}
    for name, array in arrays(part):
        found.setdefault(name, set()).add(array.ndim)
    return found


def inner(part: Any) -> set[str]:
    """The names of the fields that are parts, in a part and in those inside it."""
    return {name for _, name, value in every_field(part) if hasattr(value, "_fields")}
