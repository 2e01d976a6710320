"""Who talks to whom. Structural: nothing inherits from these.

    environment --reward--> CURATOR --release--> AGENT --(arm, stint, line)--> environment

Every part is a ``typing.NamedTuple`` whose scalars are parameters and whose arrays are memory. The same methods run in
plain Python and compiled, bit for bit, so they keep to scalar arithmetic, ``math`` and ``dpbandits.numerics``.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpbandits.privacy.guarantee import Guarantee

Rng = Generator
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: The line of a stint that stands whatever is observed.
NO_LINE = -np.inf

#: Proofs that a choice stands leave this much room for rounding.
MARGIN = 1e-12


class Population(Protocol):
    """The privacy levels of the users who come."""

    def level(self, rng: Rng) -> float:
        """The next user's epsilon; 0 is a user who sends no response."""

    def bit_slope(self, least: float, rng: Rng) -> float:
        """The attenuation of a private bit at the next user's epsilon; 0 if that is below ``least``."""

    def bit_slopes(self, least: float) -> tuple[Floats, float]:
        """All that ``bit_slope`` can be but 0, each as likely, and the share of users who have one; none if many."""


class Environment(Protocol):
    """Pays rewards, to users who each have a privacy level."""

    @property
    def population(self) -> Population:
        """Who comes. Curators with one epsilon for all do not look."""

    @property
    def means(self) -> Floats:
        """Mean reward of each arm, in the user's unit: what regret is measured with."""

    @property
    def unit_means(self) -> Floats:
        """Mean of what a curator for rewards in [0, 1] is given."""

    @property
    def sigmoid_means(self) -> Floats:
        """Mean of the logistic function of the reward."""

    def draw(self, arm: int, rng: Rng) -> float:
        """One reward."""

    def total(self, arm: int, n: int, rng: Rng) -> float:
        """The sum of n rewards, with the law of n calls of ``draw``."""


class Curator(Protocol):
    """Keeps what the devices send; releases only what its guarantee allows.

    Fields named ``raw_`` hold rewards or their sums, and no agent may depend on them.
    """

    def guarantee(self) -> Guarantee:
        """The promise, made from the same numbers as the noise."""

    def respond(self, reward: float, level: float, rng: Rng) -> float:
        """What the user's device sends: in the local model a private response, otherwise the reward."""

    def accepts(self, response: float) -> bool:
        """Whether a device of ours can have sent this."""

    def add(self, arm: int, response: float, level: float, rng: Rng) -> None:
        """Take what a device sent."""

    def close(self, arm: int, rng: Rng) -> None:
        """The stint on ``arm`` is over."""

    def absorb(self, environment: Environment, arm: int, n: int, line: float, rewards: Rng, noise: Rng) -> int:
        """Play ``arm`` n times, or until its released mean is no longer above ``line``; how many rounds that took.

        The law is that of ``one_by_one``; a curator that needs only totals draws them at once.
        """

    def ready(self, arm: int, confidence: float) -> bool:
        """Whether the released mean can be bounded at this confidence at all."""

    def mean(self, arm: int) -> float:
        """The released mean."""

    def lowest(self, arm: int, ahead: int) -> float:
        """The least that the released mean can be after ``ahead`` more rounds; -inf where nothing is certain."""

    def samples(self, arm: int, ahead: int) -> float:
        """The most rewards that the released mean can stand for after ``ahead`` more rounds.

        Effective ones: as many noiseless rewards would give a mean as precise. ``ahead=0`` is exact.
        """

    def width(self, arm: int, confidence: float, ahead: int) -> float:
        """What the curator's noise adds to a confidence bound: exceeded with probability about exp(-confidence).

        The least over the next ``ahead`` rounds; ``ahead=0`` is exact. It grows with confidence, at most linearly.
        """


class Agent(Protocol):
    """Chooses arms from what a curator has released, and from nothing else."""

    def act(self, curator: Curator, t: int, rng: Rng) -> tuple[int, int, float]:
        """(arm, stint, line): play ``arm`` in rounds t .. t+stint-1, as long as its released mean stays above ``line``.

        A stint is either a commitment of the algorithm, or a proof that asking again would give the same answer. Until
        the agent is asked again, no other arm is played.
        """
