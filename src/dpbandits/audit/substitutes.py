"""A part whose methods call the verifier's own functions in place of some others."""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping
from typing import Any

from dpbandits.audit.counts import Count
from dpbandits.audit.reading import uses_exact_noise
from dpbandits.exact import SystemNoise

__all__ = ["substituted"]


def substituted(part: Any, functions: set[Any], stand_ins: Mapping[Any, Any]) -> Any:
    """The same part, whose methods call ``stand_ins`` in place of some functions; nothing else is changed.

    ``functions`` are all that its methods can reach. Each is made again from the same code with other globals.
    """
    made = {f: types.FunctionType(_counting(f.__code__), {}, f.__name__, f.__defaults__) for f in functions}
    for f, clone in made.items():
        clone.__kwdefaults__ = f.__kwdefaults__
        clone.__globals__.update({name: _stand_in(value, made, stand_ins) for name, value in f.__globals__.items()})
    return _with_methods(part, made)


def _counting(code: types.CodeType) -> types.CodeType:
    """The same code, whose integers say when those of 64 bits would wrap around."""
    return code.replace(co_consts=tuple(Count(c) if type(c) is int else c for c in code.co_consts))


def _stand_in(value: Any, made: Mapping[Any, Any], stand_ins: Mapping[Any, Any]) -> Any:
    if type(value) is types.FunctionType:
        return stand_ins.get(value, made.get(value, value))
    if uses_exact_noise(value):
        source = stand_ins[SystemNoise]
        return source.another if value is SystemNoise else source.another()
    return value


def _with_methods(part: Any, made: Mapping[Any, Any]) -> Any:
    kind = type(part)
    methods = {}
    for name in dir(kind):
        method = inspect.getattr_static(kind, name)
        if type(method) is types.FunctionType and method in made:
            methods[name] = made[method]
    clone: Any = type(kind.__name__, (kind,), {"__slots__": (), **methods})
    return tuple.__new__(clone, [_with_methods(v, made) if hasattr(v, "_fields") else v for v in part])
