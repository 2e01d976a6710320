"""Whether a curator on a device is one of the package's, to the last object that it is made of.

It is compared with one that is made anew for the same epsilon, and the code of ``dpbandits.exact`` with its source.
"""

from __future__ import annotations

import abc
import builtins
import functools
import struct
import sys
import types
from fractions import Fraction
from typing import Any

from dpbandits.audit.kinds import FOLDER, STANDARD, of_package, one_of
from dpbandits.audit.reading import function_of
from dpbandits.audit.sources import source_of
from dpbandits.exact import BernoulliCurator, LaplaceCurator, PiecewiseCurator, RandomisedResponse, SigmoidCurator
from dpbandits.exact.probability import Probability
from dpbandits.exact.responses import ThresholdCurator

__all__ = ["is_ours"]

OF_EPSILON = (RandomisedResponse, BernoulliCurator, LaplaceCurator, PiecewiseCurator)
MODULES = [f"dpbandits.exact.{name}" for name in ("noise", "probability", "rational", "responses", "sampling")]
NUMBERS = (int, float, Fraction, str, bytes)


def is_ours(curator: Any) -> bool:
    """Whether a curator is one that the package makes for its epsilon, and the package's code is that of its source."""
    return _as_shipped() and _is_made_alike(curator)


def _is_made_alike(curator: Any) -> bool:
    kind = type(curator)
    if one_of(kind, OF_EPSILON):
        return _alike(curator, kind(curator.epsilon))
    if kind is ThresholdCurator:
        threshold = curator._threshold
        return type(threshold) in (int, float) and _alike(curator, ThresholdCurator(curator.epsilon, threshold))
    return kind is SigmoidCurator and curator.epsilon == curator._within.epsilon and _is_made_alike(curator._within)


def _alike(one: Any, two: Any) -> bool:
    """Whether two objects are the same, or of the same types and the same values all the way down."""
    if one is two:
        return True
    if type(one) is not type(two):
        return False
    if one_of(type(one), NUMBERS):
        return repr(one) == repr(two)  # of exact types; NaN is like NaN
    if type(one) is tuple:
        return len(one) == len(two) and all(map(_alike, one, two))
    if type(one) is types.MethodType:
        return one.__func__ is two.__func__ and _alike(one.__self__, two.__self__)
    if type(one) is types.BuiltinMethodType:
        return one.__name__ == two.__name__ and _alike(one.__self__, two.__self__)
    if type(one) is functools.partial:
        return _alike((one.func, one.args, *one.keywords.items()), (two.func, two.args, *two.keywords.items()))
    if type(one) is struct.Struct:
        return one.format == two.format
    if not of_package(type(one)) or type(one) is Probability:  # a probability is made once, and kept
        return False
    slots = {name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ())}
    kept = ({**getattr(part, "__dict__", {}), **{n: getattr(part, n, None) for n in slots}} for part in (one, two))
    mine, theirs = ({name: value for name, value in held.items() if name != "_samplers"} for held in kept)
    return mine.keys() == theirs.keys() and all(_alike(mine[name], theirs[name]) for name in mine)


def _as_shipped() -> bool:
    """Whether the code of exact noise and responses is what its source says, and its names mean what they meant."""
    for module in (sys.modules[name] for name in MODULES):
        for name, value in vars(module).items():
            if name in vars(builtins) and not name.startswith("__"):
                return False
            if isinstance(value, types.ModuleType) and sys.modules.get(value.__name__) is not value:
                return False
            held = vars(value).values() if isinstance(value, type) and of_package(value) else [value]
            if not all(map(_is_own_code, held)):
                return False
    return True


def _is_own_code(value: Any) -> bool:
    """Whether a function is the package's, as its source says, or the standard library's; True for other objects."""
    inner = value.__wrapped__ if isinstance(value, functools._lru_cache_wrapper) else value
    function = function_of(inner.fget if isinstance(inner, property) else inner)
    if function is None or function is abc.abstractmethod or function.__code__.co_filename.startswith(STANDARD):
        return True
    return function.__code__.co_filename.startswith(FOLDER) and source_of(function.__code__)
