"""Numbers that remember which rewards and which noises are in them.

A ``Num`` is ``const + factor * sum(coefficient * term)`` with exact rational coefficients. Its terms are rewards,
noises, and numbers that are public. Arithmetic with plain numbers gives such a form again. Every operation that would
turn it into a plain number (a comparison, ``float``, ``int``, ``hash``, ``str`` ..) goes to its ``Accounts``, which
answer, follow both answers, or refuse.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from dpbandits.audit.counts import Truth, bare
from dpbandits.audit.poison import Poison
from dpbandits.audit.refusals import Refused
from dpbandits.numerics import GRID

if TYPE_CHECKING:
    from dpbandits.audit.accounts import Accounts

__all__ = ["Num", "added", "exact", "is_on_grid", "plain", "ratio", "span"]

#: ("reward", number, what brought it into [0, 1], "" if nothing did), ("noise", number) or ("public", number).
Term: TypeAlias = tuple[Any, ...]
Rational: TypeAlias = Any  # an integer or a fraction

REWARD, NOISE, PUBLIC = "reward", "noise", "public"

#: What was done to a reward, one after the other: the third part of its term. Nothing was done to a bare reward.
UNIT, SIGMOID, ON_GRID = "unit", "sigmoid", "grid"
Steps: TypeAlias = tuple[str, ...]

FINE = 4.0  # times the scales of noise: above this it was added to something larger
SWALLOWED = 1e8  # numbers that are this many times as large as their noise: floats would round the noise
SMALLEST, LARGEST = 1e-100, 1e100  # coefficients: beyond, floats become 0 or infinite
LARGEST_ON_GRID = 2.0**36  # up to here floats hold every multiple of the grid
MARGIN = 1e-9  # relative: a comparison of sums that floats round is certain only with this much room


def exact(x: Any) -> Rational:
    """A plain, finite number as an integer or a fraction."""
    if isinstance(x, Fraction):
        return x
    x = plain(x)
    if isinstance(x, int):
        return int(x)
    if not isinstance(x, float) or not math.isfinite(x):
        raise Refused("a private number is combined with one that is not finite")
    return int(x) if x.is_integer() else Fraction(x)


def plain(x: Any) -> Any:
    """A number of NumPy as Python's own; other numbers as they are."""
    if type(x) is float or type(x) is int:
        return x
    if isinstance(x, np.ndarray):
        raise Refused("a private number is combined with a whole array")
    x = bare(x)
    return int(x) if isinstance(x, bool) else x.item() if isinstance(x, np.generic) else x


def is_on_grid(x: Any) -> bool:
    """Whether a plain number is a multiple of the grid of exact noise, and so are sums with it in floats."""
    return bool(abs(x) < LARGEST_ON_GRID and (x * GRID) % 1.0 == 0.0)


def sized(coefficient: Rational) -> Rational:
    """A coefficient that floats can hold."""
    if coefficient and not SMALLEST < abs(coefficient) < LARGEST:
        raise Refused("a private number is multiplied until it is very small or very large, which floats cannot hold")
    return coefficient


def ratio(a: Rational, b: Rational) -> Rational:
    """a / b, as an integer where it is one."""
    quotient = Fraction(a) / b
    return quotient.numerator if quotient.denominator == 1 else quotient


def added(one: Mapping[Term, Rational], two: Mapping[Term, Rational], factor: Rational) -> dict[Term, Rational]:
    """one + factor * two, without terms of 0."""
    total = dict(one)
    for term, coefficient in two.items():
        value = total.get(term, 0) + factor * coefficient
        if value:
            total[term] = value
        else:
            total.pop(term, None)
    return total


class Num:
    """An affine form.

    ``peak`` bounds all numbers that were added up on the way, as far as rewards are in [0, 1]. ``grid`` is whether all
    of them are on the grid of exact noise, if rewards are. ``off`` is whether noise met rewards where that was not so:
    exact noise hides only what is on its grid.
    """

    __slots__ = ("const", "factor", "grid", "log", "noisy", "off", "peak", "terms")
    __array_ufunc__ = None  # NumPy leaves arithmetic with this to us
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        log: Accounts,
        const: float,
        factor: Rational,
        terms: dict[Term, Rational],
        peak: float,
        noisy: bool = False,
        grid: bool = True,
        off: bool = False,
    ) -> None:
        if log.strict and not math.isfinite(const):
            raise Refused("a private number is combined with one that is not finite")
        self.log, self.const, self.factor, self.terms, self.peak = log, const, factor, terms, peak
        self.noisy, self.grid, self.off = noisy, grid, off

    def again(self, log: Accounts | None = None) -> Num:
        """The same number as another object, which may be of another path."""
        form = (self.const, self.factor, self.terms, self.peak, self.noisy, self.grid, self.off)
        return Num(self.log if log is None else log, *form)

    def of(self, kind: str) -> dict[Term, Rational]:
        """The terms of one kind, each with its whole coefficient."""
        return {term: self.factor * c for term, c in self.terms.items() if term[0] == kind}

    def has(self, kind: str) -> bool:
        """Whether there is a term of this kind."""
        return any(term[0] == kind for term in self.terms)

    @property
    def bounded(self) -> bool:
        """Whether all its rewards are known to be in [0, 1]."""
        return all(term[2] for term in self.terms if term[0] == REWARD)

    def plus(self, other: Any, sign: int) -> Any:
        """self + sign * other."""
        if isinstance(other, Poison):
            return other.used()
        if not isinstance(other, Num):
            other = plain(other)
            const, peak = self.const + sign * other, self.peak + abs(other)
            grid = self.grid and is_on_grid(other) and peak < LARGEST_ON_GRID
            return Num(self.log, const, self.factor, self.terms, peak, self.noisy, grid, self.off)
        met = self.terms.keys() & other.terms.keys()
        if any(term[0] == REWARD and not term[2] for term in met):
            raise Refused("a reward that is not clamped meets itself: it may be NaN, which does not cancel")
        if self.factor == other.factor:
            factor, terms = self.factor, added(self.terms, other.terms, sign)
        else:
            own = {term: sized(self.factor * c) for term, c in self.terms.items()}
            factor, terms = 1, added(own, other.terms, sign * other.factor)
        gone = [term for term in met if term not in terms]
        if any(term[0] == PUBLIC for term in gone):
            raise Refused("a released number is taken away from itself: it may have become infinite")
        if gone and self is not other:
            raise Refused("a private number is taken away from itself: the rounding error that is left may reveal it")
        const = self.const + sign * other.const
        if not terms:
            return const
        for noise, rest in ((self, other), (other, self)):
            if rest.has(REWARD) and noise.coarse():
                raise Refused("noise is added to another number before the reward: floats round it to a coarser grid")
        peak = self.peak + other.peak
        grid = self.grid and other.grid and peak < LARGEST_ON_GRID
        off = self.off or other.off or (not grid and self.meets(other))
        return Num(self.log, const, factor, terms, peak, self.noisy or other.noisy, grid, off)

    def coarse(self) -> bool:
        """Whether this is noise, without rewards, that was added to something larger than itself."""
        if not self.noisy or self.has(REWARD):
            return False
        sizes = (float(abs(c)) * self.log.scales[term[1]] for term, c in self.of(NOISE).items())
        return self.peak > FINE * math.fsum(sizes)

    def meets(self, other: Num) -> bool:
        """Whether one of the two brings noise to rewards of the other."""
        return (self.has(REWARD) and other.has(NOISE)) or (self.has(NOISE) and other.has(REWARD))

    def times(self, by: Any) -> Any:
        """self * by."""
        if isinstance(by, Poison):
            return by.used()
        if isinstance(by, Num):
            raise Refused("two private numbers are multiplied or divided")
        by = exact(by)
        if by == 0:
            raise Refused("a private number is multiplied by 0: the sign of 0 tells whether it was negative")
        size, factor = float(sized(by)), sized(self.factor * by)
        const, peak = self.const * size, self.peak * abs(size)
        grid = self.grid and isinstance(by, int) and peak < LARGEST_ON_GRID
        return Num(self.log, const, factor, self.terms, peak, self.noisy, grid, self.off)

    def asked(self, other: Any, kind: str) -> Any:
        """How the comparison with another number comes out."""
        if not isinstance(other, Num | Poison) and not math.isfinite(plain(other)):
            return Truth(self.log.against_infinity(self, -plain(other), kind))
        return Truth(self.log.compare(self - other, kind))

    def __add__(self, other: Any) -> Any:
        return self.plus(other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self.plus(other, -1)

    def __rsub__(self, other: Any) -> Any:
        return self.times(-1).plus(other, 1)

    def __neg__(self) -> Any:
        return self.times(-1)

    def __pos__(self) -> Any:
        return self.again()

    def __mul__(self, other: Any) -> Any:
        return self.times(other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Num | Poison):
            return self.times(other)
        by = exact(other)
        if by == 0:
            raise Refused("a private number is divided by zero")
        return self.times(Fraction(1) / by)

    def __gt__(self, other: Any) -> Any:
        return self.asked(other, ">")

    def __lt__(self, other: Any) -> Any:
        return self.asked(other, "<")

    def __ge__(self, other: Any) -> Any:
        return self.asked(other, ">=")

    def __le__(self, other: Any) -> Any:
        return self.asked(other, "<=")

    def __eq__(self, other: Any) -> Any:
        return self.asked(other, "==")

    def __ne__(self, other: Any) -> Any:
        return Truth(not self.asked(other, "=="))

    def __bool__(self) -> bool:
        return not self.log.compare(self, "==")

    def __abs__(self) -> Any:
        return self if self > 0.0 else -self

    def __float__(self) -> float:
        return self.log.number(self, "float")

    def __int__(self) -> int:
        return int(self.log.number(self, "int"))

    def __floor__(self) -> int:
        return math.floor(self.log.number(self, "floor"))

    def __ceil__(self) -> int:
        return math.ceil(self.log.number(self, "ceil"))

    def __round__(self, *digits: int) -> Any:
        return round(self.log.number(self, "round"), *digits)

    def _refuse(self, *_: Any) -> NoReturn:
        raise Refused("a private number is used in a way that is not followed (power, remainder, hash, text ..)")

    __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = _refuse
    __index__ = __trunc__ = __str__ = __repr__ = __format__ = __reduce_ex__ = __complex__ = _refuse
    __divmod__ = __rdivmod__ = __copy__ = __deepcopy__ = _refuse


def span(form: Num) -> tuple[float, float]:
    """The least and the largest value of a form of rewards alone, over all rewards."""
    if not form.bounded:
        return -math.inf, math.inf
    coefficients = form.of(REWARD).values()
    low = form.const + float(sum(c for c in coefficients if c < 0))
    return low, form.const + float(sum(c for c in coefficients if c > 0))
