"""The only module that knows Numba: teaches it our verbs, and compiles the loop."""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import re
import shutil
import signal
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
from numba.core.errors import NumbaError
from numba.core.types import BaseNamedTuple
from numba.extending import overload_method, register_jitable

import dpbandits
from dpbandits import mechanisms, numerics
from dpbandits.curators import hybrid, rounds, tree
from dpbandits.privacy import release_points
from dpbandits.simulation import trials
from dpbandits.simulation.loop import play as play_in_python

OPTIONS = {"error_model": "numpy"}  # Python's checks for division by zero cost a factor of 6
PART = {**OPTIONS, "forceinline": True}  # a call counts references to every array that it takes: up to a factor of 2
PACKAGE = Path(dpbandits.__file__).parent
INSTALLED = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
KEEP_SECONDS = 30 * 24 * 3600
OURS = re.compile(r"loop-[0-9a-f]{16}")  # the folders that we make, and alone may remove

#: What is raised for parts that only plain Python can play.
NOT_COMPILABLE = (NumbaError, TypeError)

_lock = threading.Lock()
_taught: dict[str, int] = {}  # verb: number of its arguments


def _register_functions() -> None:
    for module in (numerics, mechanisms, release_points, rounds, tree, hybrid):
        for name in module.__all__:
            if inspect.isfunction(getattr(module, name)):
                register_jitable(**PART)(getattr(module, name))


def _teach(verb: str, arity: int, ours: bool) -> None:
    """Let compiled code call ``verb`` on any NamedTuple class that defines it; ``ours`` are short enough to inline."""
    if verb in _taught:
        if _taught[verb] != arity:
            raise TypeError(f"{verb} takes {_taught[verb]} arguments in another part, and {arity} here: rename it")
        return
    _taught[verb] = arity

    def method(self: Any) -> Any:
        return getattr(self.instance_class, verb, None)

    stub = {
        1: lambda self: method(self),
        2: lambda self, a: method(self),
        3: lambda self, a, b: method(self),
        4: lambda self, a, b, c: method(self),
        5: lambda self, a, b, c, d: method(self),
        6: lambda self, a, b, c, d, e: method(self),
        7: lambda self, a, b, c, d, e, f: method(self),
    }[arity]
    overload_method(BaseNamedTuple, verb, strict=False, jit_options=PART if ours else OPTIONS)(stub)


def _classes(parts: Iterable[Any]) -> set[type]:
    """The NamedTuple classes of these parts and of the parts inside them."""
    found = set()
    for part in parts:
        if isinstance(part, tuple):
            found |= {type(part)} | _classes(part)
    return found


def _teach_class(cls: type) -> None:
    clash = sorted({*getattr(cls, "_fields", ())} & {*_taught})
    if clash:
        raise TypeError(f"{cls.__name__}.{clash[0]} is a field here and a method of another part: rename it")
    for verb, method in inspect.getmembers(cls, inspect.isfunction):  # inherited ones, too
        if not verb.startswith("_"):
            _teach(verb, len(inspect.signature(method).parameters), _is_ours(cls.__module__))


def _is_ours(module: str) -> bool:
    return module.split(".")[0] == "dpbandits"


def _digest(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256(f"{numba.__version__} {sys.version}".encode())
    for path in sorted(paths):
        digest.update(str(path).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Where compiled code is kept: DPBANDITS_CACHE, or the user's cache folder."""
    root = os.environ.get("DPBANDITS_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "dpbandits"
    try:
        return Path(root).expanduser()
    except RuntimeError:  # nobody's home
        return Path(root)


def _prepare(folder: Path) -> bool:
    """Make the folder and drop those that no run has used for a month; False where nothing can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        for other in folder.parent.iterdir():
            if OURS.fullmatch(other.name) and other.stat().st_mtime < time.time() - KEEP_SECONDS:
                shutil.rmtree(other, ignore_errors=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


@functools.cache
def _compile(loop: Callable[..., None], sources: frozenset[Path] | None) -> Callable[..., None]:
    """A loop, compiled, with a disk cache that any edit of our sources, or of ``sources``, invalidates.

    Numba's own cache looks only at the file of the loop, which calls into all others; so its folder is named by a hash
    of all of them. None stands for classes without a source file, whose code is not kept.
    """
    if sources is None:
        return numba.njit(nogil=True, **OPTIONS)(loop)
    folder = cache_folder() / f"loop-{_digest([*PACKAGE.rglob('*.py'), *sources])}"
    if not _prepare(folder):
        return numba.njit(nogil=True, **OPTIONS)(loop)
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)
    try:
        return numba.njit(cache=True, nogil=True, **OPTIONS)(loop)
    finally:
        numba.config.CACHE_DIR = before


def _sources(classes: Iterable[type]) -> frozenset[Path] | None:
    """The files that define the classes which are not ours, and those that they import, but for installed packages."""
    files: dict[str, Path] = {}
    for cls in classes:
        module = cls.__module__
        if not _is_ours(module):
            file = getattr(sys.modules.get(module), "__file__", None)
            if file is None or module == "__main__":
                return None
            files[module] = Path(file)
            _add_imports(sys.modules[module], files)
    return frozenset(files.values())


def _add_imports(module: ModuleType, files: dict[str, Path]) -> None:
    for value in list(vars(module).values()):
        name = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None)
        other = sys.modules.get(name) if isinstance(name, str) and not _is_ours(name) else None
        file = getattr(other, "__file__", None)
        if name not in files and file is not None and not file.startswith(INSTALLED):
            files[name] = Path(file)
            _add_imports(other, files)


def _compiled_for(loop: Callable[..., None], parts: tuple[Any, ...]) -> Callable[..., None]:
    with _lock:  # Numba's cache folder is a global setting
        classes = _classes(parts)
        for cls in sorted(classes, key=lambda cls: not _is_ours(cls.__module__)):
            _teach_class(cls)
        return _compile(loop, _sources(classes))


def loop_for(*parts: Any) -> Callable[..., None]:
    """``loop.play``, compiled for parts of these classes."""
    return _compiled_for(play_in_python, parts)


def trials_for(curator: Any, agent: Any) -> Callable[..., None]:
    """``trials.play_trials``, compiled for parts of these classes."""
    return _compiled_for(trials.play_trials, (curator, agent))


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back while something is compiled: raised in a callback of LLVM's, it would be lost."""
    here = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if here else None
    if before is None:  # signals come to the main thread
        yield
        return
    held: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held:
            signal.raise_signal(signal.SIGINT)


def play(environment: Any, curator: Any, agent: Any, *rest: Any) -> None:
    """``loop.play``, compiled for these parts and played."""
    with uninterrupted():
        loop_for(environment, curator, agent)(environment, curator, agent, *rest)


_register_functions()
