"""The real call of a curator on a device, with random words that the audit chooses."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import MethodType
from typing import Any

from dpbandits.errors import InputError
from dpbandits.exact import LocalCurator
from dpbandits.exact.probability import WORD

__all__ = ["TOP", "Call", "NoLawError"]

MOST_DRAWN = 4000  # words that one response may take
TOP = (1 << WORD) - 1


class NoLawError(Exception):
    """The call does something that this module cannot prove private; the text says what."""


class _Rig:
    """Entropy that the audit chooses: these words, and then the largest word for ever."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self.used = 0

    def __call__(self, count: int) -> bytes:
        if count % (WORD // 8):
            raise NoLawError(f"takes {count} random bytes at a time, which are no whole words")
        drawn = b""
        for _ in range(count // (WORD // 8)):
            word = self.words[self.used] if self.used < len(self.words) else TOP
            drawn += word.to_bytes(WORD // 8, "little")
            self.used += 1
        if self.used > MOST_DRAWN:
            raise NoLawError(f"takes more than {MOST_DRAWN} random words")
        return drawn


def _replace_entropy(part: Any, entropy: Callable[[int], bytes], seen: set[int]) -> list[tuple[Any, str]]:
    """Replace ``os.urandom`` wherever ``part`` and what it is made of hold it; where that was."""
    if id(part) in seen:
        return []
    seen.add(id(part))
    slots = (name for kind in type(part).__mro__ for name in getattr(kind, "__slots__", ()))
    replaced: list[tuple[Any, str]] = []
    for name in {*slots, *getattr(part, "__dict__", ())}:
        value = getattr(part, name, None)
        if value is os.urandom:
            object.__setattr__(part, name, entropy)
            replaced.append((part, name))
        elif isinstance(value, MethodType):
            replaced += _replace_entropy(value.__self__, entropy, seen)
        elif not isinstance(value, type) and type(value).__module__ not in ("builtins", "fractions", "functools"):
            replaced += _replace_entropy(value, entropy, seen)
    return replaced


class Call:
    """The curator's real call, with words that the audit chooses."""

    def __init__(self, curator: LocalCurator) -> None:
        self.rig, self.curator = _Rig(), curator
        self.replaced = _replace_entropy(curator, self.rig, set())
        if not self.replaced:
            raise InputError("curator", "must draw from os.urandom by dpbandits.exact to be verified; this does not")
        self.width = 0

    def restore(self) -> None:
        """Give the curator its entropy back: it may be used afterwards."""
        for part, name in self.replaced:
            object.__setattr__(part, name, os.urandom)

    def measure(self) -> None:
        """Find how many words a response takes."""
        self.respond(0.0, [])
        self.width = self.rig.used
        if self.width == 0:
            raise NoLawError("takes no random word")

    def respond(self, reward: Any, words: list[int]) -> int:
        """The response to these words; after them come the largest ones, which are below no threshold."""
        self.rig.words, self.rig.used = words, 0
        try:
            answer = self.curator.respond(reward)
        except NoLawError:
            raise
        except Exception as error:  # whatever it is: the decision stays without a response, and that tells
            raise NoLawError(f"to the reward {reward} is an error, {type(error).__name__}") from None
        if not isinstance(answer, int) or isinstance(answer, bool):
            raise NoLawError(f"responds with a {type(answer).__name__}")
        return answer

    def at(self, reward: Any, place: int, words: list[int], before: tuple[int, ...] = ()) -> int:
        """The response if the random word at ``place`` is the first of ``words``, and the rest come after the draw."""
        draw = [*before, *[TOP] * (self.width - len(before))]
        draw[place] = words[0]
        return self.respond(reward, draw + words[1:])
