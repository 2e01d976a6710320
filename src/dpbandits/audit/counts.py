"""Whole numbers and truths that behave like Python's and like NumPy's at once, or are refused.

Memory is read as numbers of NumPy, and constants are numbers of Python. Integers of NumPy wrap around, and its truths
add up to a truth. Where the two kinds would give different results, the verifier does not guess which one it is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from dpbandits.audit.refusals import Refused

__all__ = ["Count", "Truth"]


class Truth:
    """The answer to a comparison. It may be asked, stored, and combined with a number, but not with another truth."""

    __slots__ = ("value",)
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any) -> None:
        self.value = bool(value)

    def __bool__(self) -> bool:
        return self.value

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __repr__(self) -> str:
        return repr(self.value)

    def __eq__(self, other: Any) -> Any:
        return Truth(self.value == _bare(other))

    def __ne__(self, other: Any) -> Any:
        return Truth(self.value != _bare(other))

    def __and__(self, other: Any) -> Any:
        return Truth(self.value and bool(other)) if _is_truth(other) else int(self.value) & other

    def __or__(self, other: Any) -> Any:
        return Truth(self.value or bool(other)) if _is_truth(other) else int(self.value) | other

    def _refuse(self, *_: Any) -> NoReturn:
        raise Refused("truths are added, turned or counted as numbers, which NumPy and Python do differently")

    __rand__, __ror__ = __and__, __or__
    __neg__ = __pos__ = __invert__ = __abs__ = __xor__ = __rxor__ = __index__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __pow__ = __rpow__ = _refuse
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __divmod__ = __rdivmod__ = __round__ = _refuse


def _is_truth(value: Any) -> bool:
    return isinstance(value, Truth | bool | np.bool_)


def _bare(value: Any) -> Any:
    return value.value if isinstance(value, Truth) else value


def _combined(combine: Callable[[Any, Any], Any], turned: bool) -> Callable[[Truth, Any], Any]:
    def method(self: Truth, other: Any) -> Any:
        if _is_truth(other):
            self._refuse()
        return combine(other, int(self.value)) if turned else combine(int(self.value), other)

    return method


for _name in ("add", "sub", "mul", "truediv"):
    setattr(Truth, f"__{_name}__", _combined(getattr(operator, _name), turned=False))
    setattr(Truth, f"__r{_name}__", _combined(getattr(operator, _name), turned=True))


class Count(int):
    """An integer that is refused where an integer of 64 bits would wrap around, as those of NumPy and Numba do."""

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return _count(int.__add__(self, other)) if isinstance(other, int) else NotImplemented

    def __sub__(self, other: Any) -> Any:
        return _count(int.__sub__(self, other)) if isinstance(other, int) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return _count(int.__rsub__(self, other)) if isinstance(other, int) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        return _count(int.__mul__(self, other)) if isinstance(other, int) else NotImplemented

    def __floordiv__(self, other: Any) -> Any:
        return _count(int.__floordiv__(self, other)) if isinstance(other, int) else NotImplemented

    def __rfloordiv__(self, other: Any) -> Any:
        return _count(int.__rfloordiv__(self, other)) if isinstance(other, int) else NotImplemented

    def __mod__(self, other: Any) -> Any:
        return _count(int.__mod__(self, other)) if isinstance(other, int) else NotImplemented

    def __rmod__(self, other: Any) -> Any:
        return _count(int.__rmod__(self, other)) if isinstance(other, int) else NotImplemented

    def __lshift__(self, other: Any) -> Any:
        return _shifted(self, other)

    def __rlshift__(self, other: Any) -> Any:
        return _shifted(other, self)

    def __rshift__(self, other: Any) -> Any:
        return _count(int(self) >> _shift(other))

    def __rrshift__(self, other: Any) -> Any:
        return _count(int(other) >> _shift(self))

    def __and__(self, other: Any) -> Any:
        return _count(int.__and__(self, other)) if isinstance(other, int) else NotImplemented

    def __or__(self, other: Any) -> Any:
        return _count(int.__or__(self, other)) if isinstance(other, int) else NotImplemented

    def __xor__(self, other: Any) -> Any:
        return _count(int.__xor__(self, other)) if isinstance(other, int) else NotImplemented

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        return _power(self, other) if isinstance(other, int) and modulus is None else NotImplemented

    def __rpow__(self, other: Any, modulus: Any = None) -> Any:
        return _power(other, self) if isinstance(other, int) and modulus is None else NotImplemented

    def __neg__(self) -> Any:
        return _count(-int(self))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return _count(abs(int(self)))

    def __invert__(self) -> Any:
        return _count(~int(self))

    def __lt__(self, other: Any) -> Any:
        return _asked(operator.lt, self, other)

    def __le__(self, other: Any) -> Any:
        return _asked(operator.le, self, other)

    def __gt__(self, other: Any) -> Any:
        return _asked(operator.gt, self, other)

    def __ge__(self, other: Any) -> Any:
        return _asked(operator.ge, self, other)

    def __eq__(self, other: Any) -> Any:
        return _asked(operator.eq, self, other)

    def __ne__(self, other: Any) -> Any:
        return _asked(operator.ne, self, other)

    __hash__ = int.__hash__
    __radd__, __rmul__, __rand__, __ror__, __rxor__ = __add__, __mul__, __and__, __or__, __xor__


def _asked(compare: Callable[[Any, Any], Any], one: Count, two: Any) -> Any:
    if isinstance(two, Truth):
        two = two.value
    return Truth(compare(int(one), two)) if isinstance(two, int | float | np.generic) else NotImplemented


def _count(value: int) -> Count:
    if not -(2**62) < value < 2**62:
        raise Refused("an integer is so large that one of 64 bits would wrap around")
    return Count(value)


def _shift(by: Any) -> int:
    if not isinstance(by, int) or not 0 <= by < 63:
        raise Refused("an integer is shifted by more bits than it has")
    return int(by)


def _shifted(value: Any, by: Any) -> Count:
    return _count(int(value) << _shift(by))


def _power(base: int, exponent: int) -> Count:
    if not 0 <= exponent < 63:
        raise Refused("an integer is raised to a power that one of 64 bits cannot hold")
    return _count(int(base) ** int(exponent))
