"""Which Python code a function can run, and a digest of that code.

Compiled code and stored results are only valid for the code that they were made from. Hashing whole files would renew
everything whenever a help text changes, and would miss an edit made after the file was imported. So this module
follows the loaded functions themselves: their instructions, their constants, the globals that they read, the functions
that they call, and those methods of the given classes whose names occur in them.
"""

from __future__ import annotations

import dis
import enum
import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator
from functools import cache
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Reach", "UnknownCodeError", "reach"]

#: Packages whose code is not followed: their versions stand for it.
VERSIONED = frozenset({"numpy", "numba", "llvmlite", "scipy", *sys.stdlib_module_names, *sys.builtin_module_names})

CONSTANTS = (bool, int, float, complex, str, bytes, np.generic)


class UnknownCodeError(Exception):
    """Some code can be reached that cannot be described, so nothing that depends on it may be stored."""


class Reach(NamedTuple):
    """What can be reached: the functions called by name, and a digest of everything."""

    functions: tuple[FunctionType, ...]
    digest: str | None  # None where something cannot be described


@cache
def reach(roots: tuple[Callable[..., Any], ...], classes: tuple[type, ...] = ()) -> Reach:
    """Follow ``roots``, which call methods of objects of ``classes``.

    The answer is kept. A function that is replaced later in the same process changes neither the digest nor the
    compiled code, so that the two agree.

    >>> from dpbandits import numerics
    >>> [function.__name__ for function in reach((numerics.kl_upper,)).functions]
    ['kl_upper']
    """
    walk = _Walk()
    try:
        for root in roots:
            walk.describe(root)
        for cls in classes:
            walk.describe(cls)
        walk.finish()
    except UnknownCodeError:
        return Reach(walk.helpers(), None)
    return Reach(walk.helpers(), hashlib.sha256("\n".join(walk.lines).encode()).hexdigest())


class _Walk:
    """One traversal. Functions and classes are numbered in the order in which they are found."""

    def __init__(self) -> None:
        self.lines: list[str] = []
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
        if _is_versioned(value) and isinstance(value, BuiltinFunctionType | np.ufunc):
            return f"builtin {getattr(value, '__module__', '')} {value.__name__}"
        raise UnknownCodeError(f"cannot describe {type(value).__name__}")

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
                    found |= self._method(cls, name)

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

    def _method(self, cls: type, name: str) -> bool:
        """Follow the method or property ``name`` of ``cls``, if it has one that was not followed before."""
        if (id(cls), name) in self._resolved:
            return False
        self._resolved.add((id(cls), name))
        found = inspect.getattr_static(cls, name, None)
        found = found.fget if isinstance(found, property) else found
        if isinstance(found, CONSTANTS):
            self.lines.append(f"{self._class(cls)}.{name}: {self.describe(found)}")
        if not isinstance(found, FunctionType) or _is_versioned(found):
            return False
        number, new = self._number(found)
        if new:
            self._waiting.append(found)
        self.lines.append(f"{self._class(cls)}.{name}: function {number}")
        return True

    def _follow(self, function: FunctionType) -> None:
        closure = [cell.cell_contents for cell in function.__closure__ or ()]
        parts = [self._number(function)[0], function.__module__, function.__qualname__, self._code(function.__code__)]
        parts += [self.describe(value) for value in (*closure, *(function.__defaults__ or ()))]
        parts += [f"{name}={self.describe(value)}" for name, value in sorted((function.__kwdefaults__ or {}).items())]
        attributes = [name for opcode, name in _names(function.__code__) if opcode != "LOAD_GLOBAL"]
        self._attributes.update(dict.fromkeys(attributes))
        for opcode, name in _names(function.__code__):
            if opcode == "LOAD_GLOBAL":
                parts.append(f"{name} is {self._global(function, name, attributes)}")
        self.lines.append(" ".join(map(str, parts)))

    def _global(self, function: FunctionType, name: str, attributes: list[str]) -> str:
        builtins = function.__globals__["__builtins__"]
        found = vars(builtins) if isinstance(builtins, ModuleType) else builtins
        if name in function.__globals__:
            found = function.__globals__
        if name not in found:
            return "missing"
        text = self.describe(found[name])
        if isinstance(found[name], ModuleType) and not _is_versioned(found[name]):
            text += self._inside(found[name], attributes)
        return text

    def _inside(self, module: ModuleType, attributes: list[str]) -> str:
        """What the attributes read in a function are, if they are attributes of this module."""
        known = vars(module)
        return "".join(f" {name} is {self.describe(known[name])}" for name in attributes if name in known)

    def _code(self, code: CodeType) -> str:
        constants = code.co_consts
        if constants and isinstance(constants[0], str) and _has_docstring(code):
            constants = (None, *constants[1:])
        shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        listed = ", ".join(self.describe(constant) for constant in constants)
        return f"code {shape} {names} {code.co_exceptiontable.hex()} {code.co_code.hex()} ({listed})"


def _has_docstring(code: CodeType) -> bool:
    """Whether the first constant may be a docstring: then it is not loaded by any instruction."""
    return all(step.arg != 0 for step in dis.get_instructions(code) if step.opname in ("LOAD_CONST", "RETURN_CONST"))


def _names(code: CodeType) -> Iterator[tuple[str, str]]:
    """(instruction, name) for each global and attribute that the code, or code inside it, reads."""
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield "LOAD_GLOBAL", step.argval
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            yield "LOAD_ATTR", step.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_versioned(value: Any) -> bool:
    module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return (module or "builtins").split(".")[0] in VERSIONED
