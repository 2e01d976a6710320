"""One way through a device's ``respond``: where the reward is on it, and where each uniform number is."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

from dpbandits import numerics
from dpbandits.audit.accounts import Accounts, SymbolicNoise, outcome
from dpbandits.audit.refusals import Refused
from dpbandits.audit.symbols import NOISE, ON_GRID, REWARD, SIGMOID, Num, Steps, exact

__all__ = ["ZERO", "Affine", "DeviceNoise", "End", "Path"]

MOST_BRANCHES = 40
COARSE = 1e4  # times a uniform number
STEP = 2.0**-52  # two steps of a uniform number: one because it has 53 bits, and one because its threshold is rounded
SUMMED = 1.0 + 1e-12  # relative: floats add the same numbers in another order
GRID = int(numerics.GRID)

End = Fraction | float  # of an interval: a fraction, or an infinity


class Affine(NamedTuple):
    """value + slope * reward."""

    value: Fraction
    slope: Fraction

    def at(self, reward: End) -> End:
        """The value at a reward, which may be infinite."""
        return self.value + self.slope * reward if self.slope else self.value


ZERO, ONE = Affine(Fraction(0), Fraction(0)), Affine(Fraction(1), Fraction(0))


class Path(Accounts):
    """One way through ``respond``: where the reward is on it, and where each uniform number is."""

    strict = False  # infinite rewards are tried as they are

    def __init__(self, forced: list[bool]) -> None:
        super().__init__()
        self.forced = forced
        self.low: End = -math.inf
        self.high: End = math.inf
        self.without: set[End] = set()  # the ends that are not in the interval
        self.steps: Steps = ()  # the function of the reward that intervals are about
        self.uniform: dict[int, tuple[Affine, Affine]] = {}
        self.error = STEP  # by how much floats may move the probability of this way
        self.impossible = False
        self.where = "respond"

    def draw(self) -> Num:
        """A uniform number in [0, 1)."""
        self.scales.append(1.0)
        self.uniform[len(self.scales) - 1] = (ZERO, ONE)
        return Num(self, 0.0, 1, {(NOISE, len(self.scales) - 1): 1}, 1.0, noisy=True, grid=False)

    def decide(self) -> bool:
        """One answer now; the other one is followed later."""
        place = len(self.taken)
        if place >= MOST_BRANCHES:
            raise Refused("respond branches again and again")
        self.taken.append(self.forced[place] if place < len(self.forced) else False)
        return self.taken[-1]

    def reward_in(self, form: Num) -> Fraction:
        """The coefficient of the reward. From the first use of a function of it on, that function stands for it."""
        rewards = form.of(REWARD)
        if len(rewards) > 1:
            raise Refused("respond combines a reward with a function of it")
        for (_, _, steps), c in rewards.items():
            if steps != self.steps:
                self._now(steps)
            return Fraction(c)
        return Fraction(0)

    def _now(self, steps: Steps) -> None:
        if steps[: len(self.steps)] != self.steps:
            raise Refused("respond uses a reward after it has used a function of it")
        if steps[0] == SIGMOID and not self.steps:
            if (self.low, self.high) != (-math.inf, math.inf):
                raise Refused("respond compares a reward, and uses its logistic function too")
            self.low, self.high = Fraction(0), Fraction(1)
        if steps[-1] == ON_GRID:
            cuts = [Fraction(end) * GRID for end in (self.low, self.high) if math.isfinite(end)]
            if any(cut.denominator != 1 for cut in cuts) or not 0 <= self.low <= self.high <= 1:
                raise Refused("respond puts a reward on the grid after it was cut off the grid")
        self.steps = steps

    def compare(self, form: Any, kind: str) -> bool:
        if not isinstance(form, Num):
            return outcome(kind, form)
        if not math.isfinite(form.const):
            return outcome(kind, form.const)
        slope, const = self.reward_in(form), Fraction(exact(form.const))
        noises = form.of(NOISE)
        if len(noises) > 1 or any(j not in self.uniform for _, j in noises):
            raise Refused("respond compares noise that is not one uniform number")
        if not noises:
            size = float(abs(slope))
            if slope and (math.frexp(size)[0] != 0.5 or form.peak != size + abs(form.const)):
                raise Refused("respond compares a reward after arithmetic that rounds it: floats may answer otherwise")
            return self.cut(Affine(const, slope), kind)
        [((_, j), f)] = noises.items()
        if kind == "==":
            raise Refused("respond asks whether a uniform number equals another: unlikely, and not impossible")
        if form.peak > COARSE * float(abs(f)):
            raise Refused("a uniform number is added to one so large that floats round it")
        size = float(abs(f))
        added = form.peak > (size + abs(form.const) + float(abs(slope))) * SUMMED
        if added or math.frexp(size)[0] != 0.5:  # a power of two rounds nothing
            self.error = max(self.error, 4.0 * STEP * form.peak / size)  # it was rounded before it is compared
        answer = self.decide()
        border = Affine(-const / f, -slope / f)  # the uniform number is above it, or below
        low, high = self.uniform[j]
        if answer == ((kind in (">", ">=")) == (f > 0)):
            low = border if self.ordered(low, border) else low
        else:
            high = high if self.ordered(high, border) else border
        self.uniform[j] = (low, high)
        self.impossible = self.impossible or not self.ordered(low, high)
        return answer

    def against_infinity(self, form: Num, other: float, kind: str) -> bool:
        return outcome(kind, other)

    def cut(self, form: Affine, kind: str) -> bool:
        """A comparison of the reward itself: its interval is cut where the form is 0."""
        ends = (form.at(self.low), form.at(self.high))
        if kind != "==" and (min(ends) > 0 or max(ends) < 0):
            return outcome(kind, float(ends[0]))
        if not form.slope:
            return outcome(kind, float(form.value))
        at = -form.value / form.slope
        answer = self.decide()
        if kind == "==":
            if answer:
                self.narrow(at, at)
        else:
            if answer != outcome(kind, 0.0):
                self.without.add(at)
            above = answer == ((kind in (">", ">=")) == (form.slope > 0))
            self.narrow(*((at, math.inf) if above else (-math.inf, at)))
        return answer

    def narrow(self, low: End, high: End) -> None:
        """On this path the reward is between these as well."""
        self.low, self.high = max(self.low, low), min(self.high, high)
        empty = self.low > self.high or (self.low == self.high and self.low in self.without)
        self.impossible = self.impossible or empty

    def ordered(self, one: Affine, two: Affine) -> bool:
        """Whether one <= two for all rewards of this path, which is cut where they cross."""
        if self.impossible:
            return True
        gaps = [Affine(two.value - one.value, two.slope - one.slope).at(end) for end in (self.low, self.high)]
        if min(gaps) >= 0:
            return True
        if max(gaps) <= 0:
            return False
        cross = (one.value - two.value) / (two.slope - one.slope)
        self.narrow(*((cross, math.inf) if self.decide() else (-math.inf, cross)))
        return self.ordered(one, two)

    def number(self, form: Num, how: str) -> float:
        raise Refused(f"respond turns a private number into a plain one ({how})")

    def chance(self) -> Affine:
        """The probability of this path."""
        total = ONE
        for low, high in self.uniform.values():
            size = Affine(high.value - low.value, high.slope - low.slope)
            if size.slope and total.slope:
                raise Refused("the probability of a response is no affine function of the reward")
            slope = total.slope * size.value + size.slope * total.value
            total = Affine(total.value * size.value, slope)
        return total


class DeviceNoise(SymbolicNoise):
    """The source of noise of a device: uniform numbers and Laplace noise."""

    log: Path

    def random(self, size: Any = None) -> Num:
        """A uniform number."""
        if size is not None:
            raise Refused("uniform numbers are drawn as an array")
        return self.log.draw()

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        raise Refused("respond draws normal noise, which is not followed")

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """A uniform number between two others."""
        return self.random(size) * (high - low) + low
