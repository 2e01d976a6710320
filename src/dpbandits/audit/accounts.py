"""Privacy accounting: the numbers that were released, the privacy loss of each reward, and symbolic noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Self

from dpbandits.audit.counts import bare
from dpbandits.audit.poison import Poison
from dpbandits.audit.refusals import Refused
from dpbandits.audit.symbols import MARGIN, NOISE, PUBLIC, REWARD, SWALLOWED, Num, Rational, Term, added, ratio, span

__all__ = ["Accounts", "Deviations", "SymbolicNoise", "outcome"]

MOST_BRANCHES = 24  # comparisons with noise, in one step of the code


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


class Deviations(float):
    """A cost under normal noise: by how many standard deviations it moves."""

    __slots__ = ()


class Accounts:
    """The numbers that are public, and the privacy loss of each reward.

    ``shift[j][i]`` says by how much noise j must move, for a unit of reward i, so that everything that is public stays
    the same. It is found form by form: the new noise of a form makes up for the change that the other noises leave. If
    a form has no new noise, nothing may be left, or it reveals the reward. Along every path the map from noise to
    shifted noise has Jacobian 1. So the loss of reward i is at most the sum of |shift[j][i]| / scale_j, also if later
    steps depend on releases. Where every form has one new noise, the sum is reached. For normal noise the quotients are
    standard deviations, and half the sum of their squares is the loss in zCDP (Bun & Steinke 2016), which is additive.
    """

    strict = True  # numbers that are not finite are refused

    def __init__(self) -> None:
        self.scales: list[float] = []
        self.normal: set[int] = set()  # which noises are normal; the others are Laplace noises
        self.shift: dict[int, dict[Term, Rational]] = {}
        self.costs: dict[int, tuple[float, ...]] = {}  # by the number of the reward
        self.peaks: list[float] = []  # of the public numbers
        self.leak: str | None = None
        self.tight = True  # whether the costs are reached
        self.on_grid = (
            True  # whether exact noise hides as much: it is added to integer multiples of rewards, on its grid
        )
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
        """A reward about which nothing is assumed."""
        return Num(self, 0.0, 1, {(REWARD, number, ()): 1}, 1.0, grid=False)

    def noise(self, scale: float, normal: bool = False) -> Num:
        """A new Laplace noise, or a normal one."""
        self.scales.append(scale)
        if normal:
            self.normal.add(len(self.scales) - 1)
        return Num(self, 0.0, 1, {(NOISE, len(self.scales) - 1): 1}, scale, noisy=True)

    def release(self, form: Num, seen: bool = True) -> Num:
        """Make ``form`` public, and return it as a public number. ``seen`` is whether all of it is seen, or a part."""
        need: dict[Term, Rational] = {}
        fresh: list[tuple[int, Rational]] = []
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
            self._reveal("a public number has no noise of its own to hide", need)
        self.peaks.append(form.peak)
        return Num(self, 0.0, 1, {(PUBLIC, len(self.peaks) - 1): 1}, form.peak, grid=form.grid)

    def _hide(self, form: Num, need: dict[Term, Rational], fresh: list[tuple[int, Rational]]) -> None:
        """Shift the largest new noise of the form, so that the form stays the same when a reward changes."""
        pivot, factor = max(fresh, key=lambda found: abs(found[1]) * self.scales[found[0]])
        scale = self.scales[pivot]
        if form.peak > SWALLOWED * float(abs(form.factor * factor)) * scale:
            raise Refused(f"{self.where}: a number is so large that rounding can swallow its noise")
        for j, _ in fresh:
            self.shift[j] = {}
        self.shift[pivot] = {term: -c if factor == 1 else ratio(-c, factor) for term, c in need.items()}
        together: dict[int, Rational] = {}  # several functions of a reward may move at once
        for term, moved in self.shift[pivot].items():
            if form.off or not isinstance(moved, int):
                self.on_grid = False
            if not term[2]:
                self._reveal("there is no clamp on", {term: 1})
            together[term[1]] = together.get(term[1], 0) + abs(moved)
        for reward, moved in together.items():
            cost = float(moved) / scale
            self.costs[reward] = (*self.costs.get(reward, ()), Deviations(cost) if pivot in self.normal else cost)

    def _reveal(self, what: str, need: Mapping[Term, Rational]) -> None:
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
        """One of two answers. The step is run again with the other one."""
        place = len(self.taken)
        if place >= MOST_BRANCHES:
            raise Refused(f"{self.where}: the code branches on its noise again and again")
        self.taken.append(self.forced[place] if place < len(self.forced) else False)
        return self.taken[-1]

    def number(self, form: Num, how: str) -> float:
        """Refuse code that needs a plain number and is given a private one."""
        what = "a noisy number" if form.has(NOISE) else "a reward" if form.has(REWARD) else "a released number"
        raise Refused(f"{self.where}: {what} is turned into a plain one ({how}) inside the curator")


class SymbolicNoise:
    """Replaces a curator's source of noise. It only draws Laplace or normal noise, one number at a time."""

    def __init__(self, log: Accounts, shared: list[Accounts] | None = None) -> None:
        self.shared = [log] if shared is None else shared

    @property
    def log(self) -> Any:
        """What is known of the noise that is drawn."""
        return self.shared[0]

    @log.setter
    def log(self, log: Any) -> None:
        self.shared[0] = log

    def another(self) -> Self:
        """A source of the same kind that is another object, as two sources of exact noise are."""
        return type(self)(self.log, self.shared)

    def _refuse(self, *_: Any) -> NoReturn:
        raise Refused("a source of noise is used for something else than to draw from it")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __str__ = _refuse
    __hash__ = None  # type: ignore[assignment]

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Laplace noise of this scale around 0."""
        return self.log.noise(_scale(loc, scale, size))

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Normal noise of this standard deviation around 0."""
        return self.log.noise(_scale(loc, scale, size), normal=True)

    def __getattr__(self, name: str) -> NoReturn:
        raise Refused(f"the curator's noise is not Laplace or normal noise, but {name}")


def _scale(loc: Any, scale: Any, size: Any) -> float:
    """The scale of a noise that can be followed."""
    if isinstance(loc, Num | Poison) or bare(loc) != 0:
        raise Refused("noise is drawn around another number than 0, which exact noise refuses: add the number to it")
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
