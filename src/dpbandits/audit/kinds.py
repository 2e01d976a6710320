"""The class of a user's part may hold plain methods and constants.

A class can put another thing in place of a field, make itself again as something else, or answer operators. So its
names are checked, and everything that is not known to be harmless is refused.
"""

from __future__ import annotations

import ast
import collections
import functools
import inspect
import os
import sys
import types
from collections.abc import Iterable
from typing import Any, Generic

import dpbandits
from dpbandits.audit.refusals import Refused
from dpbandits.exact import SystemNoise

__all__ = [
    "FOLDER",
    "PLAIN",
    "STANDARD",
    "changers",
    "check_kind",
    "is_exact_noise",
    "is_plain",
    "of_package",
    "one_of",
    "rebound",
]

#: Types of constants. A subclass of one of them may have operators of its own.
PLAIN = (bool, int, float, str, type(None))
FOLDER = os.path.dirname(os.path.abspath(dpbandits.__file__)) + os.sep
STANDARD = os.path.dirname(os.path.abspath(collections.__path__[0])) + os.sep  # the standard library
INSIDE = (FOLDER, STANDARD, "<string>", "<namedtuple")  # where code of the package is; NamedTuple makes some from text
HARMLESS = {
    *("__slots__", "__doc__", "__module__", "__qualname__", "__annotations__", "__orig_bases__", "__match_args__"),
    *("__parameters__", "__slotnames__"),
    *("__static_attributes__", "__firstlineno__", "__annotate__", "__annotate_func__", "__annotations_cache__"),
}
#: Names in a module that can change what another name means, or what a function does.
CHANGERS = {
    *("globals", "locals", "vars", "setattr", "delattr", "exec", "eval", "__import__", "modules", "reload"),
    *("__dict__", "__globals__", "f_globals", "f_locals", "__builtins__", "__setattr__", "__delattr__", "attrgetter"),
    *("__getattribute__", "importlib", "runpy", "ctypes", "gc", "mock", "settrace", "setprofile"),
    *("sys", "inspect", "operator", "builtins", "pickle", "copyreg", "marshal", "threading", "signal", "atexit"),
    *("methodcaller", "getmembers", "update_wrapper", "wraps", "Formatter", "register_at_fork"),
}
#: Attributes that, when they are set, change what a function or a class does.
INNER = {"__code__", "__defaults__", "__kwdefaults__", "__class__", "__bases__", "__closure__", "cell_contents"}


def one_of(value: Any, known: Iterable[Any]) -> bool:
    """Whether a value is one of these objects. Equality is not asked, because a class can define it."""
    return any(value is one for one in known)


def is_plain(value: Any) -> bool:
    """Whether a value is a number, a text or None of Python's own types."""
    return one_of(type(value), PLAIN)


def of_package(kind: type) -> bool:
    """Whether a class is one of this package: its module has it, and all its code is in the package's files."""
    module = sys.modules.get(kind.__module__)
    inside = os.path.abspath(getattr(module, "__file__", None) or "").startswith(FOLDER)
    if not inside or getattr(module, kind.__name__, None) is not kind:
        return False
    for value in vars(kind).values():
        for inner in (value, *(getattr(value, place, None) for place in ("__func__", "fget", "fset", "fdel"))):
            if type(inner) is types.FunctionType and not inner.__code__.co_filename.startswith(INSIDE):
                return False
    return True


def is_exact_noise(value: Any) -> bool:
    """Whether this is the package's exact noise, with no method of it replaced."""
    return type(value) is SystemNoise and not any(hasattr(SystemNoise, name) for name in getattr(value, "__dict__", ()))


def check_kind(kind: Any, name: str) -> None:
    """Refuse a class of parts that is more than a NamedTuple with plain methods and constants."""
    if type(kind) is not type:
        raise Refused(f"the {name}'s class {kind.__name__} has a metaclass")
    bases = [c for c in kind.__mro__ if "_fields" in vars(c)]
    if len(bases) != 1 or tuple not in bases[0].__bases__:
        raise Refused(f"the {name}'s class {kind.__name__} does not have the fields of exactly one NamedTuple")
    for place, field in enumerate(bases[0]._fields):  # type: ignore[attr-defined]
        getter = inspect.getattr_static(kind, field, None)
        if type(getter).__name__ != "_tuplegetter" or getter.__reduce__()[1][0] != place:
            raise Refused(f"the {name}'s {field} is not its field, but something that its class has put in front of it")
    for c in kind.__mro__:
        if c not in (tuple, object, Generic) and not of_package(c):
            _check_names(c, made=c is bases[0])


def _check_names(kind: type, made: bool) -> None:
    """Refuse a class that holds more than plain methods and constants; ``made`` is whether NamedTuple made it."""
    own = vars(collections.namedtuple("Fields", kind._fields)) if made else {}  # type: ignore[attr-defined]
    for name, value in vars(kind).items():
        special = name.startswith("__") and name.endswith("__")
        if name in HARMLESS or (name in ("__dict__", "__weakref__") and type(value) is types.GetSetDescriptorType):
            continue
        if type(value).__name__ == "_tuplegetter" and name in own:
            continue
        if made and name in own and _code(value) == _code(own[name]):
            continue
        if special or name in ("_fields", "_make", "_replace", "_asdict", "_field_defaults"):
            raise Refused(f"{kind.__name__} defines {name}")
        inner = value.__func__ if type(value) in (classmethod, staticmethod) else value
        if type(inner) is not types.FunctionType and not is_plain(value):
            raise Refused(f"{kind.__name__}.{name} is {type(value).__name__}, and no plain method or constant")


def _code(value: Any) -> Any:
    """What a method of a NamedTuple does."""
    value = getattr(value, "__func__", value)
    return value.__code__.co_code if isinstance(value, types.FunctionType) else type(value)


@functools.cache
def _nodes(path: str) -> tuple[ast.AST, ...] | None:
    """All nodes of the source of a file that is not the package's; None if it cannot be read."""
    if os.path.abspath(path).startswith(FOLDER):
        return ()
    try:
        with open(path, encoding="utf-8") as file:
            return tuple(ast.walk(ast.parse(file.read())))
    except (OSError, SyntaxError, ValueError):
        return None


@functools.cache
def changers(path: str) -> frozenset[str]:
    """The names in a file that could change what other names mean."""
    return frozenset(name for node in _nodes(path) or () for name in _names(node) if name in CHANGERS)


@functools.cache
def rebound(path: str) -> frozenset[str]:
    """The names that code of this file may bind again at run time; "*" if it may be any of them.

    The package's own files are not asked.
    """
    nodes = _nodes(path)
    if nodes is None:
        return frozenset("*")
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Global):
            found.update(node.names)
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            found |= {"*"} if node.attr in INNER else {node.attr}
        inside = isinstance(node, ast.FunctionDef) and any(
            isinstance(n, ast.Attribute) and n.attr == "register" for line in node.body for n in ast.walk(line)
        )
        if inside or set(_names(node)) & CHANGERS:
            found.add("*")
    direct = [n.func for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    if any(isinstance(n, ast.Name) and n.id == "getattr" and n not in direct for n in nodes):
        found.add("*")
    return frozenset(found)


def _names(node: ast.AST) -> list[str]:
    """The names that a node uses: its own, those that it imports, and those that it asks for by ``getattr``."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, ast.ImportFrom):
        module = (node.module or "").split(".")
        return [*(() if module[0] == "dpbandits" else module), *(alias.name for alias in node.names)]
    if isinstance(node, ast.Import):
        return [name for alias in node.names for name in alias.name.split(".")]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
        name = node.args[1] if len(node.args) > 1 else None
        return [str(name.value) if isinstance(name, ast.Constant) else "attrgetter"]
    return []
