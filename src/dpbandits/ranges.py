"""A range for rewards of unknown size, found privately in the local model, from one bit of each user.

A policy for rewards in [0, 1] plays any rewards if a range is chosen: they are clipped to it and mapped to [0, 1]
(``reward_range`` of ``simulate``, ``plan`` and ``Session``). A range that is far too wide drowns the differences
between arms in noise, and one that is too narrow clips them away. Where nobody knows a good range, this module finds
one: each of the first users says privately whether the reward is above a public threshold, and bisection finds the two
quantiles at which rewards are then clipped.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpbandits.checks import at_least, fraction, positive, seed_of
from dpbandits.environments import Arms
from dpbandits.errors import InputError
from dpbandits.exact import Exactly, ThresholdCurator, rational
from dpbandits.mechanisms import attenuation, convert_to_bernoulli, debias
from dpbandits.privacy.guarantee import ANY_REWARD, Guarantee

__all__ = ["FoundRange", "RangeFinder", "find_range"]

TAIL = 0.02
SMALLEST, LARGEST = 2.0**-10, 2.0**20
DEVIATIONS = 2.0  # of the noise, by which an estimated share may exceed the tail
MISSED = 0.05  # probability with which more than ``most_outside`` may be outside


class RangeFinder:
    """Finds a range [low, high] with few rewards above it, and few below: a share ``tail``, as far as noise can tell.

    ``ask`` is the threshold for the next user, whose device answers with ``ThresholdCurator(epsilon, threshold)``;
    ``tell`` takes the answer. After ``users`` answers ``range`` is known. Its ends are 0 or a power of two, from
    ``smallest`` to ``largest`` in size, of either sign. Each answer is epsilon-private on its own (local, pure). A user
    who gives a reward to a policy as well has given two.

    >>> finder = RangeFinder("8", users=4000)
    >>> while not finder.done:
    ...     threshold = finder.ask()
    ...     finder.tell(finder.device().respond(100.0))
    >>> finder.range
    (64.0, 128.0)
    """

    def __init__(
        self,
        epsilon: Exactly,
        *,
        users: int,
        tail: float = TAIL,
        smallest: float = SMALLEST,
        largest: float = LARGEST,
    ) -> None:
        self.epsilon = rational("epsilon", epsilon)
        self.tail = fraction("tail", tail)
        if self.tail >= 0.5:
            raise InputError("tail", f"must be below 1/2, got {tail}")
        if not positive("smallest", smallest) <= positive("largest", largest):
            raise InputError("largest", f"must be at least smallest, {smallest:g}, got {largest:g}")
        sizes = [float(smallest)]
        while sizes[-1] < largest:
            sizes.append(2.0 * sizes[-1])
        self.thresholds = (*(-size for size in reversed(sizes)), 0.0, *sizes)
        self.steps = 2 * math.ceil(math.log2(len(self.thresholds)))  # halvings for both ends
        self.of_step = at_least("users", users, self.steps) // self.steps
        self._slope = attenuation(float(self.epsilon))
        self._allowed = self.tail + DEVIATIONS * 0.5 / (self._slope * math.sqrt(self.of_step))
        self._ends = list[int]()  # places of the ends that are found: the upper one first
        self._beyond = False  # whether no threshold was found beyond which there are few rewards
        self._answers, self._ones = 0, 0
        self._bracket = (0, len(self.thresholds) - 1)
        self._settle()

    @property
    def done(self) -> bool:
        """Whether the range is known."""
        return len(self._ends) == 2

    @property
    def most_outside(self) -> float:
        """A bound on the share of rewards above the range, and on the share below, right with probability 95 %.

        A threshold is taken if the estimated share beyond it is at most ``tail`` plus two standard deviations of the
        noise; each estimate is off by no more than Hoeffding's bound (1963), for all of them together. If rewards seem
        to be larger than ``largest``, nothing is known of how many are, and the bound is 1.

        >>> find_range("2*normal(5e6,1000)", epsilon=4, users=20_000).most_outside
        1.0
        """
        if self._beyond:
            return 1.0
        error = math.sqrt(math.log(self.steps / MISSED) / (2.0 * self.of_step)) / self._slope
        return min(self._allowed + error, 1.0)

    @property
    def range(self) -> tuple[float, float]:
        """The range, once it is known."""
        if not self.done:
            raise InputError("range", "is not known yet: it needs more answers")
        high, low = self._ends
        if low >= high:  # nearly all rewards are between two neighbouring thresholds, or on one
            low, high = max(high - 1, 0), min(max(low, high) + (low > high), len(self.thresholds) - 1)
        if low == high:
            low, high = max(low - 1, 0), min(high + 1, len(self.thresholds) - 1)
        return self.thresholds[low], self.thresholds[high]

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to each user who answers."""
        return Guarantee.local(float(self.epsilon), ANY_REWARD)

    def ask(self) -> float:
        """The threshold for the next user."""
        if self.done:
            raise InputError("range", "is known: nobody needs to be asked")
        low, high = self._bracket
        return self.thresholds[(low + high) // 2]

    def device(self) -> ThresholdCurator:
        """The curator for the next user's device."""
        return ThresholdCurator(self.epsilon, self.ask())

    def tell(self, answer: int) -> None:
        """Take the answer to ``ask``: 0 or 1, as the device made it."""
        if self.done or answer not in (0, 1):
            raise InputError("answer", "must be 0 or 1, while the range is not known")
        self._answers += 1
        self._ones += int(answer)
        if self._answers == self.of_step:
            self._halve()

    def _halve(self) -> None:
        """Move the bracket of the end that is sought: the lowest threshold with at most this many rewards above it."""
        low, high = self._bracket
        middle = (low + high) // 2
        above = debias(self._ones / self._answers, self._slope)
        if not self._ends:
            self._bracket = (low, middle) if above <= self._allowed else (middle + 1, high)
        else:
            self._bracket = (middle + 1, high) if above >= 1.0 - self._allowed else (low, middle)
        self._answers, self._ones = 0, 0
        self._settle()

    def _settle(self) -> None:
        """Note an end that is found, and begin with the other one."""
        low, high = self._bracket
        if low < high:
            return
        # The lower end is the highest threshold that nearly all rewards are above: the one before the first that fails.
        self._beyond |= low == (len(self.thresholds) - 1 if not self._ends else 0)
        self._ends.append(low if not self._ends else max(low - 1, 0))
        self._bracket = (0, len(self.thresholds) - 1)


class FoundRange(NamedTuple):
    """A range that was found in a simulation, and how many users it took."""

    low: float
    high: float
    users: int
    most_outside: float  # a 95 % upper bound on the share of rewards above it, and on the share below

    @property
    def range(self) -> tuple[float, float]:
        """As ``reward_range`` takes it."""
        return self.low, self.high


def find_range(
    arms: object, *, epsilon: float, users: int, tail: float = TAIL, seed: int | None = 0, **sizes: float
) -> FoundRange:
    """Play a ``RangeFinder`` on simulated users, who get the arms in turn: the range that it finds, and its cost.

    >>> found = find_range("normal(20,3)+normal(22,3)", epsilon=1, users=20_000, seed=0)
    >>> found.range
    (16.0, 32.0)
    """
    environment = Arms.of(arms).environment(None, None)
    finder = RangeFinder(epsilon, users=users, tail=tail, **sizes)
    streams = np.random.SeedSequence(seed_of(seed)).spawn(2)
    rewards, noise = (np.random.default_rng(stream) for stream in streams)
    asked = 0
    while not finder.done:
        reward = environment.draw(asked % len(environment.means), rewards)
        bit = 1.0 if reward > finder.ask() else 0.0
        finder.tell(int(convert_to_bernoulli(bit, float(finder.epsilon), noise)))
        asked += 1
    return FoundRange(*finder.range, asked, finder.most_outside)
