"""The memory of a part: the arrays among its fields and among those of the parts inside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from dpbandits.errors import InputError

__all__ = ["arrays", "copied", "every_field", "freeze", "in_plain_python", "nested", "rebuilt", "thaw"]

Part = TypeVar("Part")

#: How numbers are written that JSON does not have. Some states were stored with null in place of infinity.
NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan, None: math.inf}


def every_field(part: Any) -> Iterator[tuple[Any, str, Any]]:
    """Every field of a part and of the parts inside it: the part that has it, its name and its value.

    The fields of a part inside come right after the field that holds it.
    """
    for name, value in zip(part._fields, part, strict=True):
        yield part, name, value
        if hasattr(value, "_fields"):
            yield from every_field(value)


def nested(part: Any) -> Iterator[Any]:
    """A part, and the parts inside it.

    >>> from dpbandits.agents import UCB, Doubling
    >>> [type(one).__name__ for one in nested(Doubling.start(2, UCB.start(2)))]
    ['Doubling', 'UCB']
    """
    yield part
    yield from (value for _, _, value in every_field(part) if hasattr(value, "_fields"))


def arrays(part: Any) -> Iterator[tuple[str, Any]]:
    """The arrays of a part, and of the parts inside it, each with the name of its field.

    >>> from dpbandits.agents import UCB, Doubling
    >>> [name for name, array in arrays(Doubling.start(2, UCB.start(2)))]
    ['pulls']
    """
    return ((name, value) for _, name, value in every_field(part) if isinstance(value, np.ndarray))


def rebuilt(part: Part, place: Callable[[Any], Any]) -> Part:
    """The same part, with ``place(array)`` in place of each of its arrays."""
    fields: Any = part
    return type(part)(
        *(
            place(value)
            if isinstance(value, np.ndarray)
            else rebuilt(value, place)
            if hasattr(value, "_fields")
            else value
            for value in fields
        )
    )


def copied(part: Part) -> Part:
    """The same part with memory of its own."""
    return rebuilt(part, np.ndarray.copy)


def in_plain_python(part: Part) -> Part:
    """The same part on the same memory, whose numbers read as Python's own: about three times as quick outside Numba.

    >>> from dpbandits.curators import Batch
    >>> curator = Batch.start(2, epsilon=1.0)
    >>> in_plain_python(curator).means[1] = 0.5
    >>> curator.means.tolist()
    [0.0, 0.5]
    """
    return rebuilt(part, memoryview)


def freeze(part: Any) -> dict[str, Any]:
    """The memory of a part, JSON-ready. Its parameters follow from the settings that it was made with.

    >>> from dpbandits.agents import LikelihoodIMED
    >>> agent = LikelihoodIMED.start(2)
    >>> agent.indices[1] = math.inf
    >>> freeze(agent)["indices"]
    [0.0, 'inf']
    """
    frozen: dict[str, Any] = {}
    for name, value in zip(part._fields, part, strict=True):
        if isinstance(value, np.ndarray):
            finite = value.dtype.kind != "f" or np.isfinite(value).all()
            frozen[name] = value.tolist() if finite else _written(value.tolist())
        elif hasattr(value, "_fields"):
            frozen[name] = freeze(value)
    return frozen


def thaw(part: Any, frozen: Any) -> None:
    """Put frozen memory into a part of the same kind, or refuse what does not fit.

    A class names in a property ``forgotten`` what its earlier versions kept besides, which is left out, and in a
    property ``added`` what they did not keep, which stays as it is. Fields of these names are fields like others.
    """
    expected = freeze(part)
    fits = isinstance(frozen, dict) and set(frozen).difference(_declared(part, "forgotten")) <= set(expected)
    if not fits or not set(expected).difference(frozen) <= set(_declared(part, "added")):
        raise InputError("text", f"was saved by another policy or version: {type(part).__name__} has other memory")
    for name in expected:
        if name not in frozen:
            continue
        inner, value = getattr(part, name), frozen[name]
        if not isinstance(inner, np.ndarray):
            thaw(inner, value)
            continue
        try:
            array = np.array(value)
            if inner.dtype.kind == "f" and array.dtype.kind in "UO":  # with texts or null
                array = np.array(_read(value))
        except ValueError:
            array = np.array(None)
        if array.shape != inner.shape or not np.can_cast(array.dtype, inner.dtype, "same_kind"):
            raise InputError("text", f"does not fit: {type(part).__name__}.{name} needs {inner.dtype} {inner.shape}")
        inner[...] = array


def _declared(part: Any, name: str) -> tuple[str, ...]:
    """What the property of this name says, if the part's class has one."""
    return getattr(part, name) if isinstance(getattr(type(part), name, None), property) else ()


def _written(values: Any) -> Any:
    """Lists of numbers in which those that JSON does not have are texts."""
    if isinstance(values, list):
        return [_written(value) for value in values]
    return values if math.isfinite(values) else str(values)


def _read(values: Any) -> Any:
    """Lists of numbers as they were before ``_written``."""
    if isinstance(values, list):
        return [_read(value) for value in values]
    return NOT_FINITE.get(values, values) if values is None or isinstance(values, str) else values
