"""Which Python code a function can run, and a digest of that code.

Compiled code and stored results are only valid for the code that they were made from. Hashing whole files would renew
everything whenever a help text changes, and would miss an edit made after the file was imported. So this module
follows the loaded functions themselves: their instructions, their constants, the globals that they read, the functions
that they call, and those methods of the given classes whose names occur in them.
"""

from __future__ import annotations

import collections
import dis
import enum
import hashlib
import inspect
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Reach", "reach"]

#: Packages whose code is not followed: their versions stand for it.
PACKAGES = frozenset({"numpy", "numba", "llvmlite", "scipy"})

CONSTANTS = (bool, int, float, complex, str, bytes, np.generic)

#: Functions that read names that are not in the code.
DYNAMIC = frozenset({"__import__", "eval", "exec", "globals", "locals", "vars"})

#: A field of a named tuple: its name and its place are known from the class.
FIELD = type(collections.namedtuple("Pair", "one two").one)  # type: ignore[attr-defined]


class Reach(NamedTuple):
    """What can be reached: the functions called by name, a digest of everything, and what each name meant."""

    functions: tuple[FunctionType, ...]
    digest: str | None  # None where something cannot be described: nothing that depends on it may be stored
    unknown: tuple[str, ...]  # what cannot be described
    meanings: Mapping[tuple[Any, str], Any]  # (function or class, name): what the name meant there


def reach(roots: Iterable[Callable[..., Any]], classes: Iterable[type] = (), values: Iterable[Any] = ()) -> Reach:
    """Follow ``roots``, which call methods of objects of ``classes``; the digest is also one of ``values``.

    >>> from dpbandits import numerics
    >>> [function.__name__ for function in reach([numerics.kl_upper]).functions]
    ['kl_upper']
    """
    walk = _Walk()
    for value in (*roots, *classes, *values):
        walk.lines.append(walk.describe(value))
    walk.finish()
    digest = None if walk.unknown else hashlib.sha256("\n".join(walk.lines).encode()).hexdigest()
    return Reach(walk.helpers(), digest, tuple(dict.fromkeys(walk.unknown)), walk.meanings)


class _Walk:
    """One traversal. Functions and classes are numbered in the order in which they are found."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.unknown: list[str] = []  # what cannot be described
        self.meanings: dict[tuple[Any, str], Any] = {}
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # keeps the ids in ``_numbers`` alive
        self._waiting: list[FunctionType] = []
        self._called: list[FunctionType] = []
        self._classes: list[type] = []
        self._attributes: dict[str, None] = {}
        self._resolved: set[tuple[int, str]] = set()

    def helpers(self) -> tuple[FunctionType, ...]:
        """The functions that were reached by a global name."""
        return tuple(self._called)

    def describe(self, value: Any) -> str:
        """A text that is equal for equal values only. What it refers to is put on the list."""
        if value is None or isinstance(value, CONSTANTS):
            return f"{type(value).__name__} {value!r}"
        if isinstance(value, np.ndarray):
            return f"array {value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
        if isinstance(value, tuple):
            return f"{self.describe(type(value))} ({', '.join(map(self.describe, value))})"
        if isinstance(value, frozenset):
            return f"set ({', '.join(sorted(map(self.describe, value)))})"
        if isinstance(value, CodeType):
            return self._code(value)
        if isinstance(value, ModuleType):
            return f"module {value.__name__}"
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(getattr(value, "py_func", None), FunctionType):  # a function that a user compiled with Numba
            return f"compiled {self._function(value.py_func)} {sorted(value.targetoptions.items())!r}"
        if _is_library_builtin(value):
            return f"builtin {getattr(value, '__module__', '')} {value.__name__}"
        self.unknown.append(type(value).__name__)
        return "unknown"

    def finish(self) -> None:
        """Follow what is on the list until nothing new is found."""
        found = True
        while found:
            found = False
            while self._waiting:
                self._follow(self._waiting.pop(0))
                found = True
            for cls in list(self._classes):
                for name in list(self._attributes):
                    found |= self._members(cls, name)

    def _number(self, value: Any) -> tuple[int, bool]:
        new = id(value) not in self._numbers
        if new:
            self._numbers[id(value)] = len(self._numbers)
            self._kept.append(value)
        return self._numbers[id(value)], new

    def _function(self, function: FunctionType) -> str:
        if _is_versioned(function):
            return f"library {function.__module__}.{function.__qualname__}"
        number, new = self._number(function)
        if new:
            self._waiting.append(function)
            self._called.append(function)
        return f"function {number}"

    def _class(self, cls: type) -> str:
        if _is_versioned(cls):
            return f"class {cls.__module__}.{cls.__qualname__}"
        number, new = self._number(cls)
        if new:
            self._classes.append(cls)
            members = list(cls.__members__.items()) if issubclass(cls, enum.Enum) else getattr(cls, "_fields", ())
            self.lines.append(f"class {number}: {cls.__module__}.{cls.__qualname__} {members!r}")
        return f"class {number}"

    def _members(self, cls: type, name: str) -> bool:
        """Follow what ``cls`` and its bases have under ``name``, if it was not followed before."""
        if (id(cls), name) in self._resolved:
            return False
        self._resolved.add((id(cls), name))
        found = [vars(base)[name] for base in cls.__mro__ if name in vars(base) and not _is_versioned(base)]
        for place, member in enumerate(found):
            self._member(cls, f"{name} {place}", member)
        return bool(found)

    def _member(self, cls: type, name: str, member: Any) -> None:
        """Follow a method, a property or a constant of a class."""
        if isinstance(member, FIELD) or (inspect.isdatadescriptor(member) and not isinstance(member, property)):
            return
        if isinstance(member, property):
            member = member.fget
        elif isinstance(member, staticmethod | classmethod):
            member = member.__func__
        if isinstance(member, FunctionType) and not _is_versioned(member):  # a method: it is not called by a name
            number, new = self._number(member)
            if new:
                self._waiting.append(member)
            text = f"function {number}"
        else:
            text = self.describe(member)
        self.meanings[cls, name] = member
        self.lines.append(f"{self._class(cls)}.{name}: {text}")

    def _follow(self, function: FunctionType) -> None:
        names = _names(function.__code__)
        if names.dynamic:
            self.unknown.append(function.__qualname__)
        self._attributes.update(dict.fromkeys(names.attributes))
        parts = [f"{self._number(function)[0]} {function.__module__} {function.__qualname__}"]
        for name, value in _read(function, names):
            parts.append(f"{name} is {self.describe(value)}")
            self.meanings[function, name] = value
        self.lines.append(" ".join(parts))

    def _code(self, code: CodeType) -> str:
        constants = code.co_consts
        if constants and isinstance(constants[0], str) and _has_docstring(code):
            constants = (None, *constants[1:])
        shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        listed = ", ".join(self.describe(constant) for constant in constants)
        return f"code {shape} {names} {code.co_exceptiontable.hex()} {code.co_code.hex()} ({listed})"


class _Names(NamedTuple):
    """The names that code, or code inside it, reads."""

    globals: tuple[str, ...]
    attributes: tuple[str, ...]
    dynamic: bool  # whether it may read others, too


@cache
def _names(code: CodeType) -> _Names:
    read, attributes, dynamic = dict[str, None](), dict[str, None](), False
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"):
            read[step.argval] = None
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"):
            attributes[step.argval] = None
        dynamic |= step.opname == "IMPORT_NAME"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = _names(constant)
            read.update(dict.fromkeys(inner.globals))
            attributes.update(dict.fromkeys(inner.attributes))
            dynamic |= inner.dynamic
    if "getattr" in read:
        attributes.update(dict.fromkeys(_texts(code.co_consts)))
    return _Names(tuple(read), tuple(attributes), dynamic or not DYNAMIC.isdisjoint(read))


def _texts(constants: tuple[Any, ...]) -> Iterator[str]:
    """The texts among constants, and in the tuples among them."""
    for constant in constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, tuple):
            yield from _texts(constant)


@cache
def _has_docstring(code: CodeType) -> bool:
    """Whether the first constant may be a docstring: then it is not loaded by any instruction."""
    return all(step.arg != 0 for step in dis.get_instructions(code) if step.opname in ("LOAD_CONST", "RETURN_CONST"))


def _read(function: FunctionType, names: _Names) -> list[tuple[str, Any]]:
    """What a function reads: its code, its closure, its defaults, globals, and what it takes out of modules."""
    code = function.__code__
    read: list[tuple[str, Any]] = [("code", code)]
    read += zip(code.co_freevars, (cell.cell_contents for cell in function.__closure__ or ()), strict=True)
    read += ((f"default {number}", value) for number, value in enumerate(function.__defaults__ or ()))
    read += sorted((function.__kwdefaults__ or {}).items())
    builtins = function.__globals__["__builtins__"]
    found = {**(vars(builtins) if isinstance(builtins, ModuleType) else builtins), **function.__globals__}
    read += ((name, found[name]) for name in names.globals if name in found)
    opened: list[ModuleType] = []
    for name, value in read:  # grows
        if isinstance(value, ModuleType) and not _is_versioned(value) and value not in opened:
            opened.append(value)
            inside = vars(value)
            read += ((f"{name}.{each}", inside[each]) for each in names.attributes if each in inside)
    return read


def _is_library_builtin(value: Any) -> bool:
    """Whether this is a compiled function of Python or of one of the packages, and not an object that a user made."""
    if isinstance(value, np.ufunc):
        return any(getattr(sys.modules.get(name), value.__name__, None) is value for name in ("numpy", "scipy.special"))
    return (
        isinstance(value, BuiltinFunctionType)
        and _is_versioned(value)
        and (value.__self__ is None or isinstance(value.__self__, ModuleType | type))
    )


def _is_versioned(value: Any) -> bool:
    if isinstance(value, FunctionType):
        module = value.__globals__.get("__name__")
    else:
        module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return _is_library((module or "builtins").split(".")[0])


@cache
def _is_library(package: str) -> bool:
    """Whether a package is one whose version stands for its code. A user's ``code.py`` is not Python's own."""
    if package in PACKAGES or package in sys.builtin_module_names:
        return True
    if package not in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(package), "__file__", None)
    if file is None:  # frozen, or never loaded
        return True
    own, file = Path(sysconfig.get_path("stdlib")).resolve(), Path(file).resolve()
    return file.is_relative_to(own) and "site-packages" not in file.relative_to(own).parts
