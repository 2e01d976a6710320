"""Numbers that remember which rewards and which noises are in them.

A ``Num`` is ``const + factor * sum(coefficient * term)`` with exact rational coefficients. Its terms are rewards,
noises, and numbers that are public. Arithmetic with plain numbers keeps it so. Whatever would turn it into a plain
number (a comparison, ``float``, ``int``, ``hash``, ``str`` ..) goes to its ``Accounts``. They answer, follow both
answers, or refuse. Nothing is answered silently.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NoReturn, TypeAlias

import numpy as np

from dpbandits.audit.counts import Count, Truth
from dpbandits.audit.poison import Poison, Varies
from dpbandits.audit.refusals import Refused, Used

__all__ = [
    "Accounts",
    "Count",
    "Deviations",
    "Num",
    "Poison",
    "Refused",
    "SymbolicNoise",
    "Truth",
    "Used",
    "Varies",
    "exact",
    "outcome",
    "span",
]

#: ("reward", number, what brought it into [0, 1], "" if nothing did), ("noise", number) or ("public", number).
Term: TypeAlias = tuple[Any, ...]
Exact: TypeAlias = Any  # an integer or a fraction

REWARD, NOISE, PUBLIC = "reward", "noise", "public"

MOST_BRANCHES = 24  # on noise, in one step
FINE = 4.0  # times the scales of noise: above this it was added to something larger
SWALLOWED = 1e8  # numbers that are this many times as large as their noise: floats would round the noise
SMALLEST, LARGEST = 1e-100, 1e100  # coefficients: beyond, floats become 0 or infinite
GRID = 65536.0  # steps of exact noise in a unit
LARGEST_ON_GRID = 2.0**36  # up to here floats hold every multiple of the grid
MARGIN = 1e-9  # relative: a comparison of sums that floats round is certain only with this much room


def exact(x: Any) -> Exact:
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
    if isinstance(x, np.ndarray):
        raise Refused("a private number is combined with a whole array")
    return int(x) if isinstance(x, Truth) else x.item() if isinstance(x, np.generic) else x


def on_grid(x: Any) -> bool:
    """Whether a plain number is a multiple of the grid of exact noise, and so are sums with it in floats."""
    return bool(abs(x) < LARGEST_ON_GRID and (x * GRID) % 1.0 == 0.0)


def sized(coefficient: Exact) -> Exact:
    """A coefficient that floats can hold."""
    if coefficient and not SMALLEST < abs(coefficient) < LARGEST:
        raise Refused("a private number is multiplied until it is very small or very large, which floats cannot hold")
    return coefficient


def ratio(a: Exact, b: Exact) -> Exact:
    """a / b, as an integer where it is one."""
    quotient = Fraction(a) / b
    return quotient.numerator if quotient.denominator == 1 else quotient


def added(one: Mapping[Term, Exact], two: Mapping[Term, Exact], factor: Exact) -> dict[Term, Exact]:
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
        factor: Exact,
        terms: dict[Term, Exact],
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

    def of(self, kind: str) -> dict[Term, Exact]:
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
            grid = self.grid and on_grid(other) and peak < LARGEST_ON_GRID
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
            raise Refused("a private number is taken away from itself: floats leave a rest, which may tell what it was")
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
            if not self.bounded or self.has(PUBLIC):
                raise Refused(
                    "a number that may be infinite is multiplied by 0: a reward without a clamp, or a release"
                )
            return 0.0
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


def outcome(kind: str, value: float) -> bool:
    """How a comparison of ``value`` with 0 comes out."""
    answers: dict[str, Callable[[float], bool]] = {
        ">": lambda v: v > 0,
        "<": lambda v: v < 0,
        ">=": lambda v: v >= 0,
        "<=": lambda v: v <= 0,
        "==": lambda v: v == 0,
    }
    return answers[kind](value)


def span(form: Num) -> tuple[float, float]:
    """The least and the largest value of a form of rewards alone, over all rewards."""
    if not form.bounded:
        return -math.inf, math.inf
    coefficients = form.of(REWARD).values()
    low = form.const + float(sum(c for c in coefficients if c < 0))
    return low, form.const + float(sum(c for c in coefficients if c > 0))


class Deviations(float):
    """A cost under normal noise: by how many standard deviations it moves."""

    __slots__ = ()


class Accounts:
    """What is public, and what each reward has paid for it.

    ``shift[j][i]`` says by how much noise j must move, for a unit of reward i, so that everything that is public stays
    the same. It is found form by form: the form's own new noise takes up what the other noises leave. If a form has no
    new noise, it must come out even, or it reveals the reward. Along every path the map from noise to shifted noise has
    Jacobian 1. So the loss of reward i is at most the sum of |shift[j][i]| / scale_j, also if later steps depend on
    what is public. Where every form has one new noise, the sum is reached. For normal noise the same quotients are
    standard deviations, and half the sum of their squares is the loss in zCDP (Bun & Steinke 2016), which is additive.
    """

    strict = True  # numbers that are not finite are refused

    def __init__(self) -> None:
        self.scales: list[float] = []
        self.normal: set[int] = set()  # which noises are normal; the others are Laplace noises
        self.shift: dict[int, dict[Term, Exact]] = {}
        self.costs: dict[Term, tuple[float, ...]] = {}
        self.peaks: list[float] = []  # of the public numbers
        self.leak: str | None = None
        self.tight = True  # whether the costs are reached
        self.on_grid = True  # whether exact noise hides the same: it meets whole multiples of rewards, on its grid
        self.forced: list[bool] = []
        self.taken: list[bool] = []
        self.where = ""

    def copy(self) -> Accounts:
        """The same knowledge, for another path."""
        other = Accounts()
        other.scales, other.normal = list(self.scales), set(self.normal)
        other.shift, other.costs = dict(self.shift), dict(self.costs)
        other.peaks, other.leak = list(self.peaks), self.leak
        other.tight, other.on_grid = self.tight, self.on_grid
        return other

    def reward(self, number: int) -> Num:
        """A reward of which nothing is known."""
        return Num(self, 0.0, 1, {(REWARD, number, ""): 1}, 1.0, grid=False)

    def noise(self, scale: float, normal: bool = False) -> Num:
        """A new Laplace noise, or a normal one."""
        self.scales.append(scale)
        if normal:
            self.normal.add(len(self.scales) - 1)
        return Num(self, 0.0, 1, {(NOISE, len(self.scales) - 1): 1}, scale, noisy=True)

    def release(self, form: Num, seen: bool = True) -> Num:
        """``form`` becomes public; returns it as a public number. ``seen`` is whether all of it is, or a part."""
        need: dict[Term, Exact] = {}
        fresh: list[tuple[int, Exact]] = []
        for term, c in form.terms.items():
            if term[0] == REWARD:
                need[term] = need.get(term, 0) + c
            elif term[0] == NOISE and term[1] in self.shift:
                need = added(need, self.shift[term[1]], c)
            elif term[0] == NOISE:
                fresh.append((term[1], c))
        need = {term: c for term, c in need.items() if c}
        if not seen or len(fresh) > 1:
            self.tight = False
        if fresh:
            self._hide(form, need, fresh)
        elif need:
            self._reveal("a number is public that has no noise of its own over", need)
        self.peaks.append(form.peak)
        return Num(self, 0.0, 1, {(PUBLIC, len(self.peaks) - 1): 1}, form.peak, grid=form.grid)

    def _hide(self, form: Num, need: dict[Term, Exact], fresh: list[tuple[int, Exact]]) -> None:
        """The largest new noise of the form takes up what the change of a reward needs."""
        pivot, factor = max(fresh, key=lambda found: abs(found[1]) * self.scales[found[0]])
        scale = self.scales[pivot]
        if form.peak > SWALLOWED * float(abs(form.factor * factor)) * scale:
            raise Refused(f"{self.where}: a number is so large that rounding can swallow its noise")
        for j, _ in fresh:
            self.shift[j] = {}
        self.shift[pivot] = {term: -c if factor == 1 else ratio(-c, factor) for term, c in need.items()}
        for term, moved in self.shift[pivot].items():
            if form.off or not isinstance(moved, int):
                self.on_grid = False
            if not term[2]:
                self._reveal("there is no clamp on", {term: 1})
            cost = float(abs(moved)) / scale
            self.costs[term] = (*self.costs.get(term, ()), Deviations(cost) if pivot in self.normal else cost)

    def _reveal(self, what: str, need: Mapping[Term, Exact]) -> None:
        if self.leak is None:
            rounds = ", ".join(str(term[1] + 1) for term in list(need)[:4])
            self.leak = f"{self.where}: {what} reward {rounds}"

    def compare(self, form: Any, kind: str) -> bool:
        """A comparison of ``form`` with 0. Where it is not certain it must be public, and both answers are followed."""
        if not isinstance(form, Num):
            return outcome(kind, form)
        if form.has(NOISE):
            self.release(form, seen=False)
            return self.fork()
        if not form.has(REWARD):
            return self.fork()  # it is public
        if not form.has(PUBLIC):
            low, high = span(form)
            room = 0.0 if form.grid else MARGIN * form.peak  # bounds on the grid are exact in floats, too
            answers = {outcome(kind, low), outcome(kind, high)}
            apart = low > room or high < -room
            if len(answers) == 1 and (apart or (form.grid and kind != "==")):
                return answers.pop()
        rounds = ", ".join(str(term[1] + 1) for term in list(form.of(REWARD))[:4])
        raise Refused(f"{self.where}: the code branches on reward {rounds}, with no noise over it")

    def against_infinity(self, form: Num, other: float, kind: str) -> bool:
        """A comparison of ``form`` plus an infinity, or NaN, with 0."""
        if not form.bounded:
            raise Refused(f"{self.where}: the code branches on a reward, with no noise over it")
        return self.fork() if form.has(PUBLIC) else outcome(kind, other)

    def fork(self) -> bool:
        """One answer now; the step is run again for the other."""
        place = len(self.taken)
        if place >= MOST_BRANCHES:
            raise Refused(f"{self.where}: the code branches on its noise again and again")
        self.taken.append(self.forced[place] if place < len(self.forced) else False)
        return self.taken[-1]

    def number(self, form: Num, how: str) -> float:
        """A private number where a plain one is needed."""
        what = "a noisy number" if form.has(NOISE) else "a reward" if form.has(REWARD) else "a released number"
        raise Refused(f"{self.where}: {what} is turned into a plain one ({how}) inside the curator")


class SymbolicNoise:
    """In the place of a curator's source of noise: Laplace or normal noise, one number at a time, and nothing else."""

    def __init__(self, log: Accounts) -> None:
        self.log = log

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Laplace noise of this scale around ``loc``."""
        return self.log.noise(_scale(scale, size)) + loc

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Normal noise of this standard deviation around ``loc``."""
        return self.log.noise(_scale(scale, size), normal=True) + loc

    def __getattr__(self, name: str) -> NoReturn:
        raise Refused(f"the curator's noise is not Laplace or normal noise, but {name}")


def _scale(scale: Any, size: Any) -> float:
    if size is not None:
        raise Refused("noise is drawn as an array")
    if isinstance(scale, Num):
        raise Refused("the scale of the noise depends on rewards, on noise or on what was released")
    if isinstance(scale, Poison):
        scale.used()
    scale = float(scale)
    if not 0.0 < scale < math.inf:
        raise Refused(f"the scale of the noise is {scale:g}")
    return scale
