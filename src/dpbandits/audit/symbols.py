"""Numbers that remember which rewards and which noises are in them.

A ``Num`` is ``const + factor * sum(coefficient * term)`` with exact rational coefficients. Its terms are rewards,
noises, and numbers that are public. Arithmetic with plain numbers keeps it so. Whatever would turn it into a plain
number (a comparison, ``float``, ``int``, ``hash``, ``str`` ..) goes to its ``Accounts``. They answer, follow both
answers, or refuse. Nothing is answered silently.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any, NoReturn, TypeAlias

import numpy as np

__all__ = [
    "Accounts",
    "Count",
    "Num",
    "Poison",
    "Refused",
    "SymbolicNoise",
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


class Refused(BaseException):  # no Exception: the code that is verified cannot swallow it
    """The verifier does not know, and the text says why."""


class Used(BaseException):  # as above
    """Memory was used that an argument needs to be untouched, so that the argument does not apply."""


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
    return x.item() if isinstance(x, np.generic) else x


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

    __radd__, __rmul__, __rand__, __ror__, __rxor__ = __add__, __mul__, __and__, __or__, __xor__


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


class Num:
    """An affine form.

    ``peak`` bounds all numbers that were added up on the way, as far as rewards are in [0, 1]. ``late`` is whether
    rewards were added when there was noise already: exact noise is on a grid, and hides only what it is added to.
    """

    __slots__ = ("const", "factor", "late", "log", "noisy", "peak", "terms")
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
        late: bool = False,
    ) -> None:
        self.log, self.const, self.factor, self.terms, self.peak = log, const, factor, terms, peak
        self.noisy, self.late = noisy, late

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
            return Num(self.log, const, self.factor, self.terms, peak, self.noisy, self.late)
        met = self.terms.keys() & other.terms.keys()
        if any(term[0] == REWARD and not term[2] for term in met):
            raise Refused("a reward that is not clamped meets itself: it may be NaN, which does not cancel")
        if self.factor == other.factor:
            factor, terms = self.factor, added(self.terms, other.terms, sign)
        else:
            own = {term: self.factor * c for term, c in self.terms.items()}
            factor, terms = 1, added(own, other.terms, sign * other.factor)
        const = self.const + sign * other.const
        if self is not other and any(term not in terms for term in met if term[0] != PUBLIC):
            raise Refused("a private number is taken away from itself: floats leave a rest, which may tell what it was")
        if not terms:
            return const
        for noise, rest in ((self, other), (other, self)):
            if rest.has(REWARD) and noise.coarse():
                raise Refused("noise is added to another number before the reward: floats round it to a coarser grid")
        late = self.late or other.late or self.hidden_by(other) or other.hidden_by(self)
        return Num(self.log, const, factor, terms, self.peak + other.peak, self.noisy or other.noisy, late)

    def coarse(self) -> bool:
        """Whether this is noise, without rewards, that was added to something larger than itself."""
        if not self.noisy or self.has(REWARD):
            return False
        sizes = (float(abs(c)) * self.log.scales[term[1]] for term, c in self.of(NOISE).items())
        return self.peak > FINE * math.fsum(sizes)

    def hidden_by(self, other: Num) -> bool:
        """Whether this brings rewards to a number that has noise already, and is more than that noise."""
        bare = len(other.terms) == 1 and other.const == 0.0
        return other.noisy and not bare and self.has(REWARD)

    def times(self, by: Any) -> Any:
        """self * by."""
        if isinstance(by, Poison):
            return by.used()
        if isinstance(by, Num):
            raise Refused("two private numbers are multiplied or divided")
        by = exact(by)
        if by == 0:
            if not self.bounded:
                raise Refused("a reward that is not clamped is multiplied by 0: it may be infinite")
            return 0.0
        if not 1e-100 < abs(by) < 1e100:
            raise Refused("a private number is multiplied by one that is very small or very large")
        size = float(by)
        const, peak = self.const * size, self.peak * abs(size)
        return Num(self.log, const, self.factor * by, self.terms, peak, self.noisy, self.late)

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
        return self

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

    def __gt__(self, other: Any) -> bool:
        return self.log.compare(self - other, ">")

    def __lt__(self, other: Any) -> bool:
        return self.log.compare(self - other, "<")

    def __ge__(self, other: Any) -> bool:
        return self.log.compare(self - other, ">=")

    def __le__(self, other: Any) -> bool:
        return self.log.compare(self - other, "<=")

    def __eq__(self, other: Any) -> bool:
        return self.log.compare(self - other, "==")

    def __ne__(self, other: Any) -> bool:
        return not self.log.compare(self - other, "==")

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


class Poison:
    """In the place of memory that must not be used. It may be overwritten, and nothing else."""

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
    """A plain number that depends on which arms were played, and on nothing else: public, but not equal in all runs.

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
        other = plain(other)
        return Varies(self.arms, self.base + other, self.marks) if isinstance(other, int) else self.used()

    __radd__ = __add__


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


class Accounts:
    """What is public, and what each reward has paid for it.

    ``shift[j][i]`` says by how much noise j must move, for a unit of reward i, so that everything that is public stays
    the same. It is found form by form: the form's own new noise takes up what the other noises leave. If a form has no
    new noise, it must come out even, or it reveals the reward. Along every path the map from noise to shifted noise has
    Jacobian 1. So the loss of reward i is at most the sum of |shift[j][i]| / scale_j, also if later steps depend on
    what is public. Where every form has one new noise, the sum is reached.
    """

    def __init__(self) -> None:
        self.scales: list[float] = []
        self.shift: dict[int, dict[Term, Exact]] = {}
        self.costs: dict[Term, tuple[float, ...]] = {}
        self.peaks: list[float] = []  # of the public numbers
        self.leak: str | None = None
        self.tight = True  # whether the costs are reached
        self.on_grid = True  # whether exact noise hides the same: what was added late is a multiple of its grid
        self.forced: list[bool] = []
        self.taken: list[bool] = []
        self.where = ""

    def copy(self) -> Accounts:
        """The same knowledge, for another path."""
        other = Accounts()
        other.scales, other.shift, other.costs = list(self.scales), dict(self.shift), dict(self.costs)
        other.peaks, other.leak = list(self.peaks), self.leak
        other.tight, other.on_grid = self.tight, self.on_grid
        return other

    def reward(self, number: int) -> Num:
        """A reward of which nothing is known."""
        return Num(self, 0.0, 1, {(REWARD, number, ""): 1}, 1.0)

    def noise(self, scale: float) -> Num:
        """A new Laplace noise."""
        self.scales.append(scale)
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
        return Num(self, 0.0, 1, {(PUBLIC, len(self.peaks) - 1): 1}, form.peak)

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
            if form.late and (not isinstance(moved, int) or term[2].startswith("sigmoid")):
                self.on_grid = False
            if not term[2]:
                self._reveal("there is no clamp on", {term: 1})
            self.costs[term] = (*self.costs.get(term, ()), float(abs(moved)) / scale)

    def _reveal(self, what: str, need: Mapping[Term, Exact]) -> None:
        if self.leak is None:
            rounds = ", ".join(str(term[1] + 1) for term in list(need)[:4])
            self.leak = f"{self.where}: {what} reward {rounds}"

    def compare(self, form: Any, kind: str) -> bool:
        """A comparison of ``form`` with 0. Where it is not certain it must be public, and both answers are followed."""
        if not isinstance(form, Num):
            return outcome(kind, form)
        if math.isinf(form.const) and form.bounded:
            return outcome(kind, form.const)
        if form.has(NOISE):
            self.release(form, seen=False)
            return self.fork()
        if not form.has(REWARD):
            return self.fork()  # it is public
        if not form.has(PUBLIC):
            low, high = span(form)
            answers = {outcome(kind, low), outcome(kind, high)}
            if not (kind == "==" and low <= 0 <= high) and len(answers) == 1:
                return answers.pop()
        rounds = ", ".join(str(term[1] + 1) for term in list(form.of(REWARD))[:4])
        raise Refused(f"{self.where}: the code branches on reward {rounds}, with no noise over it")

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
    """In the place of a curator's source of noise: Laplace noise, one number at a time, and nothing else."""

    def __init__(self, log: Accounts) -> None:
        self.log = log

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Noise of this scale around ``loc``."""
        if size is not None:
            raise Refused("noise is drawn as an array")
        if isinstance(scale, Num):
            raise Refused("the scale of the noise depends on rewards, on noise or on what was released")
        if isinstance(scale, Poison):
            scale.used()
        scale = float(scale)
        if not 0.0 < scale < math.inf:
            raise Refused(f"the scale of the noise is {scale:g}")
        return self.log.noise(scale) + loc

    def __getattr__(self, name: str) -> NoReturn:
        raise Refused(f"the curator's noise is not Laplace noise, but {name}")
