"""What the compiler says about a user's own policy, in one line: what is wrong, where, and what to do."""

from __future__ import annotations

import linecache
import re
from pathlib import Path
from typing import Any

import numpy as np

from dpbandits.display import shortened
from dpbandits.errors import ChoiceError, InputError
from dpbandits.parts import nested

__all__ = ["misplayed", "refused"]

ADVICE = "write it with numbers, loops, math and NumPy arrays, or use engine='python'"

#: What the compiler says where it knows what is wrong, and what to tell the user.
REASONS = (
    (re.compile(r"wrong tuple length.*expected 3, got (\d+)"), r"act must return (arm, stint, line), got \1 values"),
    (re.compile(r"Unknown attribute '(\w+)' of type Module\(<module '([\w.]+)'"), r"\2.\1 is unknown to the compiler"),
    (re.compile(r"Unknown attribute '(\w+)' of type (\w+)"), r"\2 has no \1 that the compiler knows"),
    (re.compile(r"NameError: (name '\w+' is not defined)"), r"\1"),
    (re.compile(r"Untyped global name '(\w+)'"), r"the compiler does not know what \1 is"),
    (re.compile(r"(Cannot unify .{1,60}?) for"), r"\1"),
    (re.compile(r"(?:NumbaNotImplementedError|UnsupportedError|LoweringError|TypingError): (?!Failed in)(.+)"), r"\1"),
    (
        re.compile(r"No implementation of function Function\(<[^>]*?(\w+)(?: at 0x\w+)?>\)"),
        r"\1 is not known for these",
    ),
)
PLACE = re.compile(r"(?:at|from|From|File) \"?([^\s\"]+\.py)\"?,?:? (?:\(|line |Line )(\d+)")
COLOUR = re.compile(r"\x1b\[[\d;]*m")
PACKAGES = ("numba", "dpbandits", "llvmlite")


def refused(error: Exception, policy: str, parts: Any) -> Exception:
    """The error to raise where a policy cannot be compiled. Errors of our own parts stay as they are."""
    own = [part for part in _all(parts) if not type(part).__module__.startswith("dpbandits.")]
    if isinstance(error, InputError | ChoiceError) or not own:
        return error
    field = _bad_field(own)
    if field:
        return InputError("policy", f"{policy} cannot be compiled: {field}; {ADVICE}")
    if not _by_compiler(error):
        return error
    text = COLOUR.sub("", str(error))
    return InputError("policy", f"{policy} cannot be compiled: {_reason(text)}{_place(text)}; {ADVICE}")


def misplayed(error: Exception, policy: str, parts: Any) -> Exception:
    """The error to raise where a loop in plain Python cannot play a user's own parts, which lack what it calls."""
    own = any(not type(part).__module__.startswith("dpbandits.") for part in _all(parts))
    if isinstance(error, InputError | ChoiceError) or not own or not _last_module(error).startswith("dpbandits."):
        return error
    rule = "act must take (releases, t, rng) and return (arm, stint, line), and a curator must have all its methods"
    return InputError("policy", f"{policy} cannot be played: {shortened(str(error), 120)}; {rule}")


def _all(parts: Any) -> list[Any]:
    return [one for part in parts if hasattr(part, "_fields") for one in nested(part)]


def _by_compiler(error: Exception) -> bool:
    """Whether an error was raised while something was compiled, and not by the code that then ran."""
    if type(error).__module__.split(".")[0] in PACKAGES:
        return True
    return _last_module(error).split(".")[0] in PACKAGES


def _last_module(error: Exception) -> str:
    """The module whose code raised an error."""
    trace, last = error.__traceback__, ""
    while trace is not None:
        last = trace.tb_frame.f_globals.get("__name__", "")
        trace = trace.tb_next
    return last


def _bad_field(parts: list[Any]) -> str:
    """A field that compiled code cannot hold."""
    for part in parts:
        for name, value in zip(part._fields, part, strict=True):
            if not isinstance(value, bool | int | float | complex | str | np.ndarray | np.generic | tuple):
                return f"{type(part).__name__}.{name} must be a number, an array or a part, got {type(value).__name__}"
    return ""


def _reason(text: str) -> str:
    for pattern, words in REASONS:
        found = list(pattern.finditer(text))
        if found:
            return shortened(found[-1].expand(words), 120)
    return shortened(text.split("\n")[0].split(" Raised from")[0].strip(" ."), 120)


def _place(text: str) -> str:
    """The first line of the user's that the compiler names."""
    for path, number in PLACE.findall(text):
        if not any(f"/{package}/" in path for package in PACKAGES):
            line = linecache.getline(path, int(number)).strip()
            shown = f" ({shortened(line, 60)})" if line else ""
            return f", at {Path(path).name} line {number}{shown}"
    return ""
