"""Values that mark memory which a proof needs to be untouched."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np

from dpbandits.audit.counts import bare
from dpbandits.audit.refusals import Refused, Used

__all__ = ["Poison", "Varies"]


class Poison:
    """Marks memory that must not be used. It may be overwritten, and nothing else."""

    __slots__ = ("name",)
    __array_ufunc__ = None

    def __init__(self, name: str = "") -> None:
        self.name = name

    def used(self, *_: Any) -> NoReturn:
        """Any use of it."""
        if self.name:
            raise Refused(f"the curator uses {self.name}")
        raise Used

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = used
    __neg__ = __pos__ = __abs__ = __float__ = __int__ = __index__ = __bool__ = __round__ = __floor__ = __ceil__ = used
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __hash__ = __str__ = __repr__ = __format__ = used
    __pow__ = __rpow__ = __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __divmod__ = __rdivmod__ = used
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __invert__ = __trunc__ = __complex__ = used
    __rshift__ = __rrshift__ = __lshift__ = __rlshift__ = used


class Varies(Poison):
    """A plain number that depends only on which arms were played: it is public, but not equal in all runs.

    It is ``base`` plus ``marks[t, arm]`` for the arm that was played in each round t. If all arms have the same mark in
    a round, that mark is part of the base. So the sum of all arms' counts is a plain number again. Such numbers may be
    added. Any other use ends the argument that needs them.
    """

    __slots__ = ("arms", "base", "marks")

    def __init__(self, arms: int, base: int, marks: dict[tuple[int, int], int]) -> None:
        super().__init__()
        self.arms, self.base, self.marks = arms, base, marks

    @classmethod
    def of(cls, arms: int, base: int, marks: dict[tuple[int, int], int], rounds: Iterable[int]) -> Any:
        """The number, as a plain one if it is the same in all runs. The marks may be equal in these ``rounds`` only."""
        for t in rounds:
            first = marks.get((t, 0), 0)
            if first and all(marks.get((t, arm)) == first for arm in range(arms)):
                base += first
                for arm in range(arms):
                    del marks[t, arm]
        return cls(arms, base, marks) if marks else base

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Varies):
            marks = dict(self.marks)
            for place, mark in other.marks.items():
                marks[place] = marks.get(place, 0) + mark
            both = {t for t, _ in self.marks} & {t for t, _ in other.marks}  # only there can all arms have become equal
            marks = {place: m for place, m in marks.items() if m}
            return Varies.of(self.arms, self.base + other.base, marks, both)
        other = other.item() if isinstance(other, np.generic) else bare(other)
        return Varies(self.arms, self.base + other, self.marks) if isinstance(other, int) else self.used()

    __radd__ = __add__
