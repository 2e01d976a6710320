"""Numbers and booleans whose results are the same in Python and in NumPy; other operations are refused.

Simulations read memory as numbers of NumPy, and sessions as numbers of Python. In NumPy integers wrap around, booleans
add up to a boolean, 2.675 is rounded to 2.68, and a division by 0 is no error. Where the two would give different
results, the verifier refuses.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from dpbandits.audit.refusals import Refused
from dpbandits.checks import MAX_EXACT_INT

__all__ = ["Count", "Float", "Truth", "bare"]


def _text(*_: Any) -> NoReturn:
    raise Refused("a number is written as text, which NumPy and Python do differently")


def bare(value: Any) -> Any:
    """A number or a boolean of these classes as Python's own; other values as they are."""
    own = _OWN.get(type(value))
    return value if own is None else own(value)


class Truth:
    """The result of a comparison. It may be used in ``if``, stored, and combined with a number, not with a boolean."""

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

    def __eq__(self, other: Any) -> Any:
        return Truth(self.value == bare(other))

    def __ne__(self, other: Any) -> Any:
        return Truth(self.value != bare(other))

    def __and__(self, other: Any) -> Any:
        return Truth(self.value and bool(other)) if _is_truth(other) else Count(self.value) & other

    def __or__(self, other: Any) -> Any:
        return Truth(self.value or bool(other)) if _is_truth(other) else Count(self.value) | other

    def _refuse(self, *_: Any) -> NoReturn:
        raise Refused("booleans are used as numbers, where NumPy and Python give different results")

    __rand__, __ror__ = __and__, __or__
    __repr__ = __str__ = __format__ = _text
    __neg__ = __pos__ = __invert__ = __abs__ = __xor__ = __rxor__ = __index__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __pow__ = __rpow__ = _refuse
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __divmod__ = __rdivmod__ = __round__ = _refuse


def _is_truth(value: Any) -> bool:
    return isinstance(value, Truth | bool | np.bool_)


def _combined(combine: Callable[[Any, Any], Any], turned: bool) -> Callable[[Truth, Any], Any]:
    def method(self: Truth, other: Any) -> Any:
        if _is_truth(other):
            self._refuse()
        return combine(other, Count(self.value)) if turned else combine(Count(self.value), other)

    return method


for _name in ("add", "sub", "mul", "truediv"):
    setattr(Truth, f"__{_name}__", _combined(getattr(operator, _name), turned=False))
    setattr(Truth, f"__r{_name}__", _combined(getattr(operator, _name), turned=True))


class Count:
    """An integer that is refused where an integer of 64 bits would wrap around, as those of NumPy and Numba do.

    It is no ``int``, because Python's floats would not leave arithmetic with it to its methods.
    """

    __slots__ = ("value",)
    __array_ufunc__ = None

    def __init__(self, value: Any) -> None:
        self.value = int(value)

    def __int__(self) -> int:
        return self.value

    __index__ = __trunc__ = __floor__ = __ceil__ = __int__

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return self.value != 0

    def __hash__(self) -> int:
        return hash(self.value)

    def __lshift__(self, other: Any) -> Any:
        return _shifted(self, other)

    def __rlshift__(self, other: Any) -> Any:
        return _shifted(other, self)

    def __rshift__(self, other: Any) -> Any:
        return _count(int(self) >> _shift(other))

    def __rrshift__(self, other: Any) -> Any:
        return _count(int(other) >> _shift(self))

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        return NotImplemented if modulus is not None else _power(self, other)

    def __rpow__(self, other: Any, modulus: Any = None) -> Any:
        return NotImplemented if modulus is not None else _power(other, self)

    def __neg__(self) -> Any:
        return _count(-int(self))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return _count(abs(int(self)))

    def __invert__(self) -> Any:
        return _count(~int(self))

    def __round__(self, *digits: Any) -> Any:
        return _rounded(self, *digits)

    __repr__ = __str__ = __format__ = _text


class Float(float):
    """A float of Python or of NumPy. An operation that only one of them has is refused."""

    __slots__ = ()

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        return NotImplemented if modulus is not None else _float_power(self, other)

    def __rpow__(self, other: Any, modulus: Any = None) -> Any:
        return NotImplemented if modulus is not None else _float_power(other, self)

    def __neg__(self) -> Any:
        return Float(-float(self))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return Float(abs(float(self)))

    def __round__(self, *digits: Any) -> Any:
        return _rounded(self, *digits)

    __hash__ = float.__hash__
    __repr__ = __str__ = __format__ = _text


def _known(value: Any) -> bool:
    return isinstance(value, int | float | Truth | Count | np.integer)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | Truth | Count | np.integer)


def _as_float(value: Any) -> float:
    """A number as a float, which holds it exactly."""
    if _is_whole(value) and abs(int(value)) >= MAX_EXACT_INT:
        raise Refused("an integer is so large that a float rounds it, at one time in NumPy, and at another in Python")
    return float(value)


def _arithmetic(name: str, turned: bool = False) -> Callable[[Any, Any], Any]:
    """A method for an operator, whose two numbers may be turned around."""
    combine, divides = getattr(operator, name), name in ("truediv", "floordiv", "mod")

    def method(self: Any, other: Any) -> Any:
        if not _known(other):
            return NotImplemented
        one, two = (other, self) if turned else (self, other)
        if divides and bare(two) == 0:
            raise Refused("a number is divided by 0: NumPy goes on, and Python does not")
        if _is_whole(one) and _is_whole(two) and name != "truediv":
            return _count(combine(int(one), int(two)))
        a, b = _as_float(one), _as_float(two)
        if divides and name != "truediv" and not (math.isfinite(a) and math.isfinite(b)):
            raise Refused("a remainder of numbers that are not finite, which NumPy and Python compute differently")
        return Float(combine(a, b))

    return method


def _bitwise(combine: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: _count(combine(int(self), int(other))) if _is_whole(other) else NotImplemented


def _comparison(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if not _known(other):
            return NotImplemented
        if _is_whole(self) and _is_whole(other):
            return Truth(compare(int(self), int(other)))
        return Truth(compare(_as_float(self), _as_float(other)))

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod"):
    for _kind in (Count, Float):
        setattr(_kind, f"__{_name}__", _arithmetic(_name))
        setattr(_kind, f"__r{_name}__", _arithmetic(_name, turned=True))
for _name in ("and_", "or_", "xor"):
    for _place in ("", "r"):
        setattr(Count, f"__{_place}{_name.rstrip('_')}__", _bitwise(getattr(operator, _name)))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    for _kind in (Count, Float):
        setattr(_kind, f"__{_name}__", _comparison(getattr(operator, _name)))


def _rounded(value: Any, *digits: Any) -> int:
    if digits:
        raise Refused("a number is rounded to some digits, which NumPy and Python do differently")
    return round(bare(value))


def _count(value: int) -> Count:
    if not -(2**62) < value < 2**62:
        raise Refused("an integer is so large that one of 64 bits would wrap around")
    return Count(value)


def _shift(by: Any) -> int:
    if not _is_whole(by) or not 0 <= int(by) < 63:
        raise Refused("an integer is shifted by more bits than it has")
    return int(by)


def _shifted(value: Any, by: Any) -> Count:
    return _count(int(value) << _shift(by))


def _power(base: Any, exponent: Any) -> Any:
    if not (_is_whole(base) and _is_whole(exponent)):
        return _float_power(base, exponent)
    if not 0 <= int(exponent) < 63:
        raise Refused("an integer is raised to a power that one of 64 bits cannot hold")
    return _count(int(base) ** int(exponent))


def _float_power(base: Any, exponent: Any) -> Any:
    if not (_known(base) and _known(exponent)):
        return NotImplemented
    a, b = _as_float(base), _as_float(exponent)
    if (a < 0.0 and not b.is_integer()) or (a == 0.0 and b < 0.0):
        raise Refused("a root of a negative number, or a negative power of 0: Python and NumPy differ")
    try:
        return Float(a**b)
    except OverflowError:
        raise Refused("a power that overflows: NumPy goes on, and Python does not") from None


_OWN: dict[type, Callable[[Any], Any]] = {Truth: bool, Count: int, Float: float}
