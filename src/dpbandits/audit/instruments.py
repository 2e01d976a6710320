"""Replacements for random numbers where a ledger is kept: draws that record what they were added to.

The policy's own code is run. It asks its source of noise for ``laplace(0, scale)``, adds the answer to a value, and
stores the sum. Here the answer is a ``Draw``. It records the scale and the value that it was added to, and becomes a
number only when the code needs one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from dpbandits.audit.memory import RAW
from dpbandits.errors import InputError
from dpbandits.parts import arrays

__all__ = ["Draw", "NotVerifiableError", "Tape", "public_memory"]


class NotVerifiableError(InputError):
    """This level of exact verification does not apply; the message says why."""


class Draw:
    """``value + factor * noise``, for one draw of noise."""

    __array_ufunc__ = None  # so that NumPy floats leave arithmetic with a Draw to this class

    def __init__(self, root: Root, value: float, factor: float) -> None:
        self.root, self.value, self.factor = root, value, factor

    @property
    def scale(self) -> float:
        """The scale of the Laplace noise in it."""
        return abs(self.factor) * self.root.scale

    def __float__(self) -> float:
        return self.root.settle(self)

    def __add__(self, other: Any) -> Draw:
        return Draw(self.root, self.value + _number(other), self.factor)

    def __sub__(self, other: Any) -> Draw:
        return self + -_number(other)

    def __mul__(self, other: Any) -> Draw:
        return Draw(self.root, self.value * _number(other), self.factor * _number(other))

    def __truediv__(self, other: Any) -> Draw:
        return self * (1.0 / _number(other))

    def __neg__(self) -> Draw:
        return self * -1.0

    def __rsub__(self, other: Any) -> Draw:
        return -self + other

    __radd__, __rmul__ = __add__, __mul__

    def __lt__(self, other: Any) -> bool:
        return float(self) < float(other)

    def __le__(self, other: Any) -> bool:
        return float(self) <= float(other)

    def __gt__(self, other: Any) -> bool:
        return float(self) > float(other)

    def __ge__(self, other: Any) -> bool:
        return float(self) >= float(other)

    def __abs__(self) -> float:
        return abs(float(self))

    def __int__(self) -> int:
        return int(float(self))

    def __bool__(self) -> bool:
        return bool(float(self))


def _number(other: Any) -> float:
    return float(other)  # a second draw in one sum becomes a number first: each is accounted for separately


class Root:
    """One draw of noise: its scale, and, once it became a number, the first sum it was part of and that sum's value."""

    def __init__(self, scale: float, settle: Callable[[Draw], float]) -> None:
        self.scale, self._settle = scale, settle
        self.first: Draw | None = None
        self.seen = 0.0

    def settle(self, draw: Draw) -> float:
        """The value of a sum. Noise that is known from one sum has the same value in others, and hides nothing more."""
        if self.first is None:
            self.first, self.seen = draw, self._settle(draw)
        if draw.value == self.first.value and draw.factor == self.first.factor:
            return self.seen
        return draw.value + draw.factor * (self.seen - self.first.value) / self.first.factor


class Tape:
    """A source of Laplace noise that returns draws; ``settle`` turns a draw into a number."""

    def __init__(self, settle: Callable[[Draw], float]) -> None:
        self._settle = settle
        self.draws = 0

    def laplace(self, loc: float = 0.0, scale: float = 1.0) -> Draw:
        """Noise of this scale around ``loc``."""
        self.draws += 1
        return Draw(Root(float(scale), self._settle), float(loc), 1.0)

    def __getattr__(self, name: str) -> NoReturn:
        raise NotVerifiableError("noise", f"must be Laplace to be verified exactly, got {name}")


def public_memory(curator: Any) -> bytes:
    """All fields of a curator that are not raw, as bytes."""
    return b"".join(array.tobytes() for name, array in arrays(curator) if not name.startswith(RAW))
