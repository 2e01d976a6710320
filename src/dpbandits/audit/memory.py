"""The memory of a part as objects, so that it can hold symbols: checked, copied, compared and poisoned cell by cell.

The fields are walked here, and not by ``dpbandits.parts``, because a subject may be made to deceive. Its class may
change what its constructor is given, so a part is built again by ``tuple.__new__``, which runs no code of the class.
And what is inside a raw part is raw here, whatever its own name is.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from dpbandits.audit.counts import Count, Float
from dpbandits.audit.kinds import PLAIN, is_exact_noise, one_of
from dpbandits.audit.poison import Poison
from dpbandits.audit.refusals import Refused
from dpbandits.audit.symbols import Num
from dpbandits.exact import SystemNoise

__all__ = [
    "RAW",
    "cells",
    "check_apart",
    "check_memory",
    "copy_of_memory",
    "equal",
    "named_arrays",
    "public",
    "same",
    "symbolic",
]

RAW = "raw_"
SCALARS = (*PLAIN, np.int64, np.float64, np.bool_)  # smaller ones are widened by NumPy alone
MOST_CELLS = 5000  # every step copies each of them


def check_memory(part: Any, name: str) -> None:
    """Refuse parts that cannot be followed: memory must be arrays, and parameters plain numbers."""
    if not (isinstance(part, tuple) and hasattr(part, "_fields")):
        raise Refused(f"the {name} is no NamedTuple, but {type(part).__name__}")
    if len(part._fields) != len(part) or getattr(part, "__dict__", None):
        raise Refused(f"the {name} holds more than its fields")
    for field, value in zip(part._fields, part, strict=True):
        if type(inspect.getattr_static(type(part), field, None)).__name__ != "_tuplegetter":
            raise Refused(f"the {name}'s {field} is not its field, but something that its class has put in front of it")
        if isinstance(value, tuple):
            check_memory(value, f"{name}'s {field}")
        elif isinstance(value, np.ndarray):
            if type(value) is not np.ndarray or value.dtype not in (np.float64, np.int64):
                raise Refused(f"the {name}'s {field} is an array of {value.dtype}, not of float64 or int64")
            if not value.flags.c_contiguous or 0 in value.strides:
                raise Refused(f"the {name}'s {field} is not stored cell after cell")
        elif not one_of(type(value), SCALARS) and not is_exact_noise(value):
            raise Refused(f"the {name}'s {field} is no number, array or part, but {type(value).__name__}")
    if sum(array.size for _, array in named_arrays(part)) > MOST_CELLS:
        raise Refused(f"the {name} has more than {MOST_CELLS} cells of memory")


def check_apart(*parts: Any) -> None:
    """No two arrays may share memory: what is written in one place must not show in another."""
    every = [(name, array) for part in parts for name, array in named_arrays(part)]
    for k, (name, one) in enumerate(every):
        for other, two in every[:k]:
            if np.shares_memory(one, two):
                raise Refused(f"{other} and {name} share memory")


class Cells(np.ndarray):
    """Objects in place of an array of numbers. Its cells are used one by one; arithmetic on whole arrays is refused."""

    __array_ufunc__ = None  # type: ignore[assignment]

    def __getitem__(self, place: Any) -> Any:
        """One cell, as a new number of NumPy or Python each time. An array does the same."""
        value = super().__getitem__(_place(place))
        if isinstance(value, Num):
            return value.again()
        return Count(value) if type(value) is int else Float(value) if type(value) is float else value

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __contains__(self, _: Any) -> NoReturn:
        raise Refused("a whole array is searched")

    @property
    def flat(self) -> Any:
        raise Refused("an array is used by flat")


def _place(place: Any) -> Any:
    """``place``; a boolean is refused, because an array and the memory of a session read it differently."""
    if any(isinstance(one, bool | np.bool_) for one in (place if isinstance(place, tuple) else (place,))):
        raise Refused("a boolean is used as an index, which is a mask for an array, and 0 or 1 in a session")
    return place


class Whole(Cells):
    """Integers. A value that an array of integers would round is refused."""

    def __setitem__(self, place: Any, value: Any) -> None:
        place = _place(place)
        if isinstance(value, Num):
            raise Refused("a private number is stored among integers")
        if isinstance(value, np.ndarray):
            value = np.array([_whole(cell) for cell in value.reshape(-1).tolist()], object).reshape(value.shape)
        elif not isinstance(value, Poison):
            value = _whole(value)
        super().__setitem__(place, value)


def _whole(value: Any) -> int:
    if isinstance(value, Num) or float(value) != int(value) or not -(2**63) <= int(value) < 2**63:
        raise Refused("a number that is not whole is stored among integers")
    return int(value)


class Real(Cells):
    """Floats. An integer becomes a float, as in an array of floats."""

    def __setitem__(self, place: Any, value: Any) -> None:
        place = _place(place)
        if isinstance(value, np.ndarray) and value.dtype != object:
            value = value.astype(float)
        elif isinstance(value, np.ndarray):
            value = value.copy().view(np.ndarray)
            flat = value.reshape(-1)
            for k, cell in enumerate(flat.tolist()):
                flat[k] = cell if isinstance(cell, Num | Poison) else float(cell)
        kept = isinstance(value, Num | Poison | np.ndarray)
        super().__setitem__(place, value if kept else float(value))


class FreeWhole(Whole):
    """Integers of Python, in arrays that may be used as a whole: for plays, which can refute but prove nothing."""

    __array_ufunc__ = np.ndarray.__array_ufunc__  # type: ignore[assignment]
    flat = np.ndarray.flat

    def __getitem__(self, place: Any) -> Any:
        value = super().__getitem__(place)
        return int(value) if isinstance(value, Count) else value


class FreeReal(Real):
    """Floats of NumPy that may be used as a whole."""

    __array_ufunc__ = np.ndarray.__array_ufunc__  # type: ignore[assignment]
    flat = np.ndarray.flat

    def __getitem__(self, place: Any) -> Any:
        value = super().__getitem__(place)
        return np.float64(value) if isinstance(value, Float) else value


def symbolic(part: Any, source: Any = None, *, free: bool = False) -> Any:
    """The same part with arrays of objects; ``source`` in place of a source of exact noise.

    ``free`` is whether arrays may be used as a whole.
    """
    real, whole = (FreeReal, FreeWhole) if free else (Real, Whole)

    def place(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value.astype(object).view(real if value.dtype.kind == "f" else whole)
        return source.another() if type(value) is SystemNoise and source is not None else value

    return mapped(part, place)


def mapped(part: Any, place: Callable[[Any], Any]) -> Any:
    """The same part with ``place(field)`` in place of each field that is no part."""
    return tuple.__new__(
        type(part), [mapped(value, place) if isinstance(value, tuple) else place(value) for value in part]
    )


def copy_of_memory(part: Any) -> Any:
    """The same part with memory of its own."""
    return mapped(part, lambda value: value.copy() if isinstance(value, np.ndarray) else value)


def named_arrays(part: Any, raw: bool = False) -> Iterator[tuple[str, Any]]:
    """All arrays by name. Everything inside a raw part is raw, and its name says so."""
    for name, value in zip(part._fields, part, strict=True):
        hidden = raw or name.startswith(RAW)
        if isinstance(value, np.ndarray):
            yield (name if name.startswith(RAW) or not raw else RAW + name), value
        elif isinstance(value, tuple):
            yield from named_arrays(value, hidden)


def cells(part: Any) -> list[Any]:
    """Everything that a part remembers."""
    return [cell for _, array in named_arrays(part) for cell in array.reshape(-1).tolist()]


def public(name: str) -> bool:
    """Whether the field of this name is released."""
    return not name.startswith(RAW)


def same(one: Any, two: Any) -> bool:
    """Whether two cells hold the same: the same form, or equal plain numbers."""
    if one is two:
        return True
    if isinstance(one, Num) and isinstance(two, Num):
        return one.const == two.const and one.factor == two.factor and one.terms == two.terms
    if isinstance(one, Num | Poison) or isinstance(two, Num | Poison):
        return False
    return equal(one, two)


def equal(one: Any, two: Any) -> bool:
    """Whether two plain numbers are the same, NaN and the sign of 0 included."""
    if one != one and two != two:
        return True
    return bool(one == two) and (one != 0 or math.copysign(1.0, one) == math.copysign(1.0, two))
