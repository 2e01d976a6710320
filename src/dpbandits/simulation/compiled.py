"""The only module that knows Numba: it compiles the loops for the parts that they play with.

Every class of parts becomes a Numba type of its own, with the methods of that class. So the fields and methods of two
parts may have the same names. Plain functions that the methods call are found and compiled too.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import event, types
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.datamodel.models import TupleModel
from numba.core.errors import NumbaError
from numba.core.serialize import dumps
from numba.core.typing.typeof import typeof_impl
from numba.extending import overload_method, register_jitable, register_model

from dpbandits.errors import InputError
from dpbandits.simulation import compiling, loop
from dpbandits.simulation.reach import CONSTANTS, Reach, reach
from dpbandits.simulation.store import CodeStore, folder

#: Users' functions: without Python's checks for division by zero, which cost a factor of 6, and without an entry for C,
#: which takes time to compile and is never called.
OPTIONS = {"error_model": "numpy", "_nrt": True, "no_cfunc_wrapper": True}

#: Our own functions are short enough to be inlined. They make no arrays, so references to arrays need not be counted.
#: Together this is up to 3 times as fast.
OWN_OPTIONS = {**OPTIONS, "forceinline": True, "_nrt": False}

#: What is raised for parts that only plain Python can play.
NOT_COMPILABLE = (NumbaError, TypeError)

_lock = threading.Lock()


class _Clock(event.Listener):
    """Tells ``compiling`` when the compiler begins and ends; code that is read from disk is not compiled."""

    def on_start(self, which: Any) -> None:
        compiling.begins()

    def on_end(self, which: Any) -> None:
        compiling.ends()


event.register("numba:compile", _Clock())


class PartType(types.NamedTuple):
    """The Numba type of a part. Each class of parts has a subclass of this one, which holds its methods."""

    def __reduce__(self) -> Any:
        return _part_type, (self.instance_class, self.types)


def _part_type(cls: type, fields: tuple[Any, ...]) -> PartType:
    return _type_class(cls)(fields, cls)


@functools.cache
def _type_class(cls: type) -> type[PartType]:
    """The Numba type class for a class of parts, with the methods of that class."""
    made = type(cls.__qualname__, (PartType,), {})
    register_model(made)(TupleModel)
    typeof_impl.register(cls)(lambda part, context: made(tuple(typeof_impl(value, context) for value in part), cls))
    for name, method in inspect.getmembers(cls, inspect.isfunction):  # inherited ones, too
        if not name.startswith("_"):
            overload_method(made, name, jit_options=_options(method))(_returning(method))
    return made


def _returning(method: Callable[..., Any]) -> Callable[..., Any]:
    """The function that Numba calls to get the implementation of a method. It has the method's signature."""

    @functools.wraps(method)
    def implementation(*args: Any) -> Callable[..., Any]:
        return method

    return implementation


@functools.cache
def _register_function(function: Any) -> None:
    register_jitable(**_options(function))(function)


def _is_ours(thing: Any) -> bool:
    return thing.__module__.split(".")[0] == "dpbandits"


def _options(function: Any) -> dict[str, Any]:
    return OWN_OPTIONS if _is_ours(function) else OPTIONS


def _classes(parts: Iterable[Any]) -> Iterator[type]:
    """The classes of these parts and of the parts inside them."""
    for part in parts:
        if isinstance(part, tuple):
            yield type(part)
            yield from _classes(part)


class CodeOnDisk(_Cache):
    """The cache of a Numba dispatcher: one stored entry for each signature.

    Numba's own cache keeps an index in which it names files by counting them. Two processes that compile at once can
    take the same name, and one policy's code then runs as another's.
    """

    def __init__(self, function: Any, counting: bool) -> None:
        self._function, self._counting = function, counting

    @property
    def cache_path(self) -> str:
        return str(folder())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code for this signature; None where there is none, or where it is not what was asked for."""
        target_context.refresh()
        key = self._key(sig, target_context.codegen())
        content = None if key is None else CodeStore(folder()).read(key)
        if content is None:
            return None
        try:
            found = CompileResult._rebuild(target_context, *pickle.loads(content))
        except Exception:  # the stored code cannot be used, so it is compiled again
            return None
        return found if tuple(found.signature.args) == tuple(sig) else None

    def save_overload(self, sig: Any, data: Any) -> None:
        key = self._key(sig, data.codegen)
        if key is not None and not data.lifted and not data.library.has_dynamic_globals:
            try:
                body = dumps(data._reduce())
            except Exception:  # what cannot be written is compiled again by the next process
                return
            CodeStore(folder()).write(key, body)

    def _key(self, sig: Any, codegen: Any) -> str | None:
        """A digest of everything that the machine code depends on; None where some of it cannot be described."""
        classes = tuple(dict.fromkeys(_part_classes(sig)))
        if not all(map(_is_importable, classes)):
            return None
        code = reach((self._function,), classes).digest
        if code is None:
            return None
        names = [f"{cls.__module__}.{cls.__qualname__}" for cls in classes]
        versions = (sys.version, numba.__version__, llvmlite.__version__, np.__version__)
        settings = sorted((name, value) for name, value in os.environ.items() if name.startswith("NUMBA_"))
        described = (str(sig), names, code, versions, settings, codegen.magic_tuple(), self._counting, _own_source())
        return hashlib.sha256(repr(described).encode()).hexdigest()

    def enable(self) -> None:
        pass

    def disable(self) -> None:
        pass

    def flush(self) -> None:
        pass


@functools.cache
def _own_source() -> str:
    """A digest of this file, which decides how code is compiled."""
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


def _part_classes(signature: Iterable[Any]) -> Iterator[type]:
    """The classes of the parts in a signature, in order."""
    for each in signature:
        if isinstance(each, types.BaseTuple):
            if isinstance(each, types.BaseNamedTuple):
                yield each.instance_class
            yield from _part_classes(each)


def _is_importable(cls: type) -> bool:
    """Whether another process finds this class by its name."""
    found: Any = sys.modules.get(cls.__module__)
    for name in cls.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is cls and cls.__module__ != "__main__"


@functools.cache
def _dispatcher(function: Any, classes: tuple[type, ...]) -> Any:
    """``function``, to be compiled for parts of these classes.

    Each tuple of classes has a dispatcher of its own. One dispatcher for all would take two classes for the same if
    they have the same name and the same fields, as a class has that is defined again in a notebook: Numba chooses
    among the codes of a dispatcher by names.
    """
    counting = not all(map(_is_ours, classes))  # users' parts may make arrays, so references are counted
    made = numba.njit(nogil=True, **{**OPTIONS, "_nrt": counting})(function)
    made._cache = CodeOnDisk(function, counting)
    return made


#: What the names meant in each function and class when it was first compiled.
_meanings: dict[tuple[Any, str], Any] = {}


def _refuse_changes(found: Reach) -> None:
    """Refuse to play a function that was changed, or whose globals were, after Numba had compiled it."""
    for (place, name), value in found.meanings.items():
        if not _is_same(_meanings.setdefault((place, name), _kept(value)), value):
            label = f"{name.split()[0]} in {place.__module__}.{place.__qualname__}"
            raise InputError(
                "policy",
                f": {label} was changed after it was compiled; run that definition again, or use engine python",
            )


def _kept(value: Any) -> Any:
    """A value that later changes in place do not reach: a copy of an array, otherwise the value itself."""
    return value.copy() if isinstance(value, np.ndarray) else value


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and type(one) is type(other):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    return one is other or (isinstance(one, CONSTANTS) and type(one) is type(other) and repr(one) == repr(other))


def compiled(function: Any, *parts: Any) -> Any:
    """``function``, to be called with parts of the classes of ``parts``, compiled when it is first called."""
    with _lock:
        classes = tuple(dict.fromkeys(_classes(parts)))
        for cls in classes:
            _type_class(cls)
        found = reach((function,), classes)
        _refuse_changes(found)
        for helper in found.functions:
            if helper is not function:
                _register_function(helper)
        return _dispatcher(function, classes)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C while something is compiled: an interrupt inside a callback of LLVM would be lost.

    A second Ctrl-C is not delayed.
    """
    here = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if here else None
    if before is None:  # signals come to the main thread
        yield
        return

    def wait(number: int, frame: Any) -> None:
        compiling.stopping = True
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if compiling.stopping:
            compiling.stopping = False
            signal.raise_signal(signal.SIGINT)


def play(environment: Any, curator: Any, agent: Any, *rest: Any) -> None:
    """``loop.play``, compiled for these parts and played."""
    with uninterrupted():
        compiled(loop.play, environment, curator, agent)(environment, curator, agent, *rest)
