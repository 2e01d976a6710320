"""The class of a user's part may hold plain methods and constants.

A class can put another thing in the place of a field, make itself again as something else, or answer operators. So its
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
from typing import Any, Generic

import dpbandits
from dpbandits.audit.symbols import Refused
from dpbandits.exact import SystemNoise

__all__ = ["FOLDER", "PLAIN", "check_kind", "is_exact_noise", "of_package", "rebound"]

#: Types of constants. A subclass of one of them may have operators of its own.
PLAIN = (bool, int, float, str, type(None))
FOLDER = os.path.dirname(os.path.abspath(dpbandits.__file__)) + os.sep
HARMLESS = {
    *("__slots__", "__doc__", "__module__", "__qualname__", "__annotations__", "__orig_bases__", "__match_args__"),
    *("__parameters__", "__slotnames__"),
    *("__static_attributes__", "__firstlineno__", "__annotate__", "__annotate_func__", "__annotations_cache__"),
}
#: Names in a module that can change what another name means.
CHANGERS = {"globals", "setattr", "delattr", "vars", "exec", "eval", "__dict__", "modules", "__setattr__", "__import__"}


def of_package(kind: type) -> bool:
    """Whether a class is one of this package. Its ``__module__`` is only a claim, so the module must have it, too."""
    module = sys.modules.get(kind.__module__)
    inside = os.path.abspath(getattr(module, "__file__", None) or "").startswith(FOLDER)
    return inside and getattr(module, kind.__name__, None) is kind


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
        if type(inner) is not types.FunctionType and type(value) not in PLAIN:
            raise Refused(f"{kind.__name__}.{name} is {type(value).__name__}, and no plain method or constant")


def _code(value: Any) -> Any:
    """What a method of a NamedTuple does."""
    value = getattr(value, "__func__", value)
    return value.__code__.co_code if isinstance(value, types.FunctionType) else type(value)


@functools.cache
def rebound(path: str) -> frozenset[str]:
    """The names that code of this file may bind again at run time; "*" if it may be any of them.

    The package's own files are not asked.
    """
    if os.path.abspath(path).startswith(FOLDER):
        return frozenset()
    try:
        with open(path, encoding="utf-8") as file:
            nodes = list(ast.walk(ast.parse(file.read())))
    except (OSError, SyntaxError, ValueError):
        return frozenset("*")
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Global):
            found.update(node.names)
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            found.add(node.attr)
        if isinstance(node, ast.Attribute | ast.Name):
            name = node.attr if isinstance(node, ast.Attribute) else node.id
            found |= {"*"} if name in CHANGERS else set()
    return frozenset(found)
