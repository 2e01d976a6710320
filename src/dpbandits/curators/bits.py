"""The local model with a level for each user: how private responses at the users' own levels are made and drawn."""

from __future__ import annotations

import math
from typing import Any

from dpbandits.curators.common import Local
from dpbandits.draws import rounds_within, successes
from dpbandits.mechanisms import attenuate, attenuation, convert_to_bernoulli, laplace
from dpbandits.numerics import GRID, on_grid
from dpbandits.privacy.guarantee import ANY_REAL, IN_RANGE, Guarantee
from dpbandits.protocols import NO_LINE, Environment
from dpbandits.types import Floats, Rng

__all__ = ["MAX_LEVELS", "BitsAtLevels", "LaplaceAtLevels"]

#: Bits are drawn in bulk where that saves time: for more than BLOCK rounds, and if there are at most MAX_LEVELS levels.
BLOCK = 64
MAX_LEVELS = 8
CLOSE = 1e-3  # a slack below this is computed anew, because adding up its changes rounds
ANYBODY = 1e-300  # the least level above 0
OWN_LEVEL = (
    "each user's response is private at that user's own epsilon, which is public "
    "and must not depend on the reward; at level 0 no response is sent"
)


class AtLevels(Local):
    """Each user's response is private at the user's own level; at level 0 there is none."""

    __slots__ = ()

    counts_ahead = False  # how much a response tells depends on its user's level, which is known when it comes

    def guarantee(self: Any) -> Guarantee:
        return Guarantee.local(None, ANY_REAL if self.sigmoid else IN_RANGE).under(OWN_LEVEL)

    def least_level(self) -> float:
        """Responses at lower levels are discarded."""
        return ANYBODY


class LaplaceAtLevels(AtLevels):
    """The reward with Laplace noise at the user's own level."""

    __slots__ = ()

    steps = int(GRID)
    mechanism = "laplace"

    def respond(self: Any, reward: float, level: float, rng: Rng) -> float:
        if level <= 0.0:
            return math.nan
        return laplace(on_grid(self.bounded(reward)), 1.0, level, rng)

    def accepts(self, response: float) -> bool:
        return math.isfinite(response)


class BitsAtLevels(AtLevels):
    """One private bit at each user's own level.

    A bit with attenuation s is 1 with probability 1/2 + (mean - 1/2) s. Each subclass decides what it keeps of the bits
    and which mean it releases. It has ``take`` (count bits of one attenuation), ``slack`` (positive while the released
    mean is above a line), ``change`` (by how much a bit changes the slack), and ``heard`` (whether the arm has a mean).
    """

    __slots__ = ()

    mechanism = "bernoulli"

    def respond(self: Any, reward: float, level: float, rng: Rng) -> float:
        if level <= 0.0:
            return math.nan
        return convert_to_bernoulli(self.bounded(reward), level, rng)

    def accepts(self, response: float) -> bool:
        return response in (0.0, 1.0)

    def add(self: Any, arm: int, response: float, level: float, rng: Rng) -> None:
        if level >= self.least_level():
            self.take(arm, response, 1.0 - response, attenuation(level))
            self.settle(arm)

    def settle(self, arm: int) -> None:
        """Compute what is kept of an arm besides its bits, now that they have changed."""

    def meet(self, slopes: Floats) -> None:
        """Note which attenuations the population's bits have; ``slopes`` is empty if they vary continuously."""

    def separate(self, slopes: Floats) -> bool:
        """Whether the slack changes as ``change`` says, for bits of these attenuations."""
        return True

    def taken(self: Any, arm: int, bit: float, slope: float, line: float) -> float:
        """Take a bit, and return by how much it changed the slack."""
        self.take(arm, bit, 1.0 - bit, slope)
        return self.change(line, slope, bit)

    def given_mean(self: Any, environment: Environment, arm: int) -> float:
        """The mean of the numbers in [0, 1] that the devices turn into bits."""
        return environment.sigmoid_means[arm] if self.sigmoid else environment.unit_means[arm]

    def absorb(self: Any, environment: Environment, arm: int, n: int, line: float, rewards: Rng, noise: Rng) -> int:
        """Play as ``one_by_one`` does, in distribution. A bit depends on the reward only through the arm's mean.

        Responses that would be discarded are not drawn. Where there are few levels, many rounds are drawn at once: so
        many that the mean rarely comes down to the line.
        """
        self.meet(environment.population.bit_slopes(self.least_level())[0])
        played = 0
        while played < n:
            step = self.safe_rounds(environment, arm, n - played, line) if n - played > BLOCK else 0
            if step > BLOCK:
                done = self.add_many(environment, arm, step, line, noise)
            else:
                step = min(BLOCK, n - played)
                done = self.add_few(environment, arm, step, line, rewards, noise)
            played += done
            if done < step:
                break
            if played < n and line > NO_LINE and self.heard(arm) and self.slack(arm, line) <= 0.0:
                break
        self.settle(arm)
        return played

    def safe_rounds(self: Any, environment: Environment, arm: int, most: int, line: float) -> int:
        """A number of rounds in which the mean rarely falls to ``line``, in any order of the bits; 0 if unknown."""
        slopes, share = environment.population.bit_slopes(self.least_level())
        if len(slopes) == 0 or len(slopes) > MAX_LEVELS or not self.separate(slopes):
            return 0
        if line <= NO_LINE:
            return most
        mean, drift, variance = self.given_mean(environment, arm), 0.0, 0.0
        for j in range(len(slopes)):
            one = share / len(slopes) * attenuate(mean, slopes[j])
            zero = share / len(slopes) - one
            loss_of_one, loss_of_zero = self.bit_losses(line, slopes[j])
            drift += one * loss_of_one + zero * loss_of_zero
            variance += one * loss_of_one * loss_of_one + zero * loss_of_zero * loss_of_zero
        slack = self.slack(arm, line) if self.heard(arm) else 0.0
        if slack <= 0.0 or slack == math.inf or variance <= 0.0:
            return 0 if slack <= 0.0 else most
        return int(min(rounds_within(slack, drift, variance), float(most)))

    def bit_losses(self: Any, line: float, slope: float) -> tuple[float, float]:
        """How far a 1, and a 0, at this attenuation bring the mean nearer to the line; 0 if they move it away."""
        return max(-self.change(line, slope, 1.0), 0.0), max(-self.change(line, slope, 0.0), 0.0)

    def add_few(self: Any, environment: Environment, arm: int, n: int, line: float, rewards: Rng, noise: Rng) -> int:
        """Play up to n rounds, until the mean is no longer above ``line``; how many that took."""
        mean = self.given_mean(environment, arm)
        watched = line > NO_LINE
        slack = self.slack(arm, line) if watched and self.heard(arm) else -math.inf
        for played in range(1, n + 1):
            slope = environment.population.bit_slope(self.least_level(), rewards)
            one = 1.0 if noise.random() < attenuate(mean, slope) else 0.0
            if slope > 0.0:
                if watched:
                    slack += self.taken(arm, one, slope, line)
                else:
                    self.take(arm, one, 1.0 - one, slope)
            if watched and slack < CLOSE and self.heard(arm):
                slack = self.slack(arm, line)
                if slack <= 0.0:
                    return played
        return n

    def add_many(self: Any, environment: Environment, arm: int, n: int, line: float, rng: Rng) -> int:
        """``add_few``, drawn at once: the users at each level, then their bits, and the order only if it can matter."""
        mean, (slopes, share) = self.given_mean(environment, arm), environment.population.bit_slopes(self.least_level())
        ones, zeros = self.scratch[0], self.scratch[1]
        left, loss = successes(n, share, rng), 0.0
        for j in range(len(slopes)):
            here = successes(int(left), 1.0 / (len(slopes) - j), rng)
            left -= here
            ones[j] = successes(int(here), attenuate(mean, slopes[j]), rng)
            zeros[j] = here - ones[j]
            if line > NO_LINE:
                loss_of_one, loss_of_zero = self.bit_losses(line, slopes[j])
                loss += ones[j] * loss_of_one + zeros[j] * loss_of_zero
        if line <= NO_LINE or loss < self.slack(arm, line) * (1.0 - 1e-9):
            for j in range(len(slopes)):
                self.take(arm, ones[j], zeros[j], slopes[j])
            return n
        for played in range(1, n + 1):
            place = rng.random() * (n - played + 1)
            for j in range(len(slopes)):
                if place < ones[j]:
                    ones[j] -= 1.0
                    self.take(arm, 1.0, 0.0, slopes[j])
                    break
                place -= ones[j]
                if place < zeros[j]:
                    zeros[j] -= 1.0
                    self.take(arm, 0.0, 1.0, slopes[j])
                    break
                place -= zeros[j]
            if self.slack(arm, line) <= 0.0:
                return played
        return n
