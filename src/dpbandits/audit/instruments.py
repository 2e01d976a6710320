"""What the exact verifier puts in the place of random numbers: draws that say what they were added to.

The code under verification is the policy's own. It asks its source of noise for ``laplace(0, scale)``, adds the answer
to a value, and stores the sum; here the answer is a ``Draw``, which remembers the scale that was asked for and the
value that it was added to, and which becomes a number only when somebody needs one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from dpbandits.errors import InputError
from dpbandits.protocols import Floats

__all__ = ["Draw", "NotVerifiableError", "Sealed", "Silent", "Tape", "copy_part", "memory", "public_memory"]

RAW = "raw_"


class NotVerifiableError(InputError):
    """This level of exact verification does not apply; the message says why."""


class Draw:
    """``value + factor * noise``, for one noise that was asked for."""

    __array_ufunc__ = None  # a NumPy float that is added to this leaves the addition to us

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
    return float(other)  # a second noise in one sum becomes a number first: each is accounted on its own


class Root:
    """One noise: its scale, and, once it has been needed, the first sum that it entered and what that came to."""

    def __init__(self, scale: float, settle: Callable[[Draw], float]) -> None:
        self.scale, self._settle = scale, settle
        self.first: Draw | None = None
        self.seen = 0.0

    def settle(self, draw: Draw) -> float:
        """The number. A noise that was seen in one sum is known: in another it hides nothing more."""
        if self.first is None:
            self.first, self.seen = draw, self._settle(draw)
        if draw.value == self.first.value and draw.factor == self.first.factor:
            return self.seen
        return draw.value + draw.factor * (self.seen - self.first.value) / self.first.factor


class Tape:
    """A source of Laplace noise that answers with draws; ``settle`` says what number a draw becomes."""

    def __init__(self, settle: Callable[[Draw], float]) -> None:
        self._settle = settle
        self.draws = 0

    def laplace(self, loc: float = 0.0, scale: float = 1.0) -> Draw:
        """Noise of this scale around ``loc``."""
        self.draws += 1
        return Draw(Root(float(scale), self._settle), float(loc), 1.0)

    def __getattr__(self, name: str) -> NoReturn:
        raise NotVerifiableError(f"noise must be Laplace to be verified exactly, got {name}")


class Silent:
    """In the place of the agent's random numbers: a randomised agent has no single action sequence for its releases."""

    def __getattr__(self, name: str) -> NoReturn:
        raise NotVerifiableError(
            f"agent must choose without chance to be verified by its actions, got a draw of {name}"
        )


class Sealed(np.ndarray):
    """Released numbers that may be written and not read: whoever writes them cannot have depended on them."""

    writes: list[tuple[int, Draw | float]]
    offset: int

    @classmethod
    def like(cls, array: Floats, writes: list[tuple[int, Draw | float]], offset: int) -> Sealed:
        """An array of this shape; what is written is appended to ``writes`` with its place after ``offset``."""
        sealed = np.zeros(array.shape).view(cls)
        sealed.writes, sealed.offset = writes, offset
        return sealed

    def __setitem__(self, place: Any, value: Any) -> None:
        column = int(np.ravel_multi_index(np.atleast_1d(place), self.shape))
        self.writes.append((self.offset + column, value if isinstance(value, Draw) else float(value)))

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise NotVerifiableError(
            "releases must not depend on earlier releases to be verified by actions, got one that does"
        )

    __getitem__ = __iter__ = __array_ufunc__ = __array_function__ = _refuse
    copy = item = tolist = tobytes = astype = _refuse


def memory(part: Any) -> Iterator[tuple[str, Any]]:
    """The arrays of a part, and of the parts inside it, by name."""
    for name, value in part._asdict().items():
        if isinstance(value, np.ndarray):
            yield name, value
        elif isinstance(value, tuple):
            yield from memory(value)


def public_memory(curator: Any) -> bytes:
    """Everything that a curator shows."""
    return b"".join(array.tobytes() for name, array in memory(curator) if not name.startswith(RAW))


def copy_part(part: Any) -> Any:
    """The same part with memory of its own."""
    return type(part)(
        *(v.copy() if isinstance(v, np.ndarray) else copy_part(v) if isinstance(v, tuple) else v for v in part)
    )
