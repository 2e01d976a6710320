"""Who talks to whom. Structural: nothing inherits from these. What a class means by its methods it declares.

    environment --reward--> CURATOR --release--> AGENT --(arm, stint, line)--> environment

Every part is a ``typing.NamedTuple`` whose scalars are parameters and whose arrays are memory. The same methods run in
plain Python and compiled, bit for bit, so they keep to scalar arithmetic, ``math`` and plain functions of scalars.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np

from dpbandits.privacy.guarantee import Guarantee
from dpbandits.types import Floats, Integers, Rng

__all__ = [
    "EVIDENCE_MARGIN",
    "FOR_EVER",
    "MARGIN",
    "NO_LINE",
    "Agent",
    "Bounded",
    "Counting",
    "Curator",
    "Environment",
    "Foreseeable",
    "Foresees",
    "InTurns",
    "Likelihood",
    "Population",
    "Releases",
    "Scheduled",
    "Schedules",
    "Stopping",
]

#: The line of a stint that stands whatever is observed.
NO_LINE = -np.inf

#: The stint of an agent that has decided and need not be asked again.
FOR_EVER = 1 << 62

#: Proofs that a choice stands leave this much room for rounding.
MARGIN = 1e-12

#: The same for evidence that a likelihood gives, which may be off by a tenth of this.
EVIDENCE_MARGIN = 1e-8


class Population(Protocol):
    """The privacy levels of the users who come."""

    def level(self, rng: Rng) -> float:
        """The next user's epsilon; 0 is a user who sends no response."""

    def bit_slope(self, least: float, rng: Rng) -> float:
        """The attenuation of a private bit at the next user's epsilon; 0 if that epsilon is below ``least``."""

    def bit_slopes(self, least: float) -> tuple[Floats, float]:
        """The attenuations above 0 that ``bit_slope`` can return, equally likely, and the share of users who have one.

        Empty where the levels are continuous.
        """


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


class Releases(Protocol):
    """What an agent may ask a curator: everything that it has released, and nothing else."""

    def ready(self, arm: int, exponent: float) -> bool:
        """Whether the released mean can be bounded at all so that the bound fails with probability exp(-exponent)."""

    def mean(self, arm: int) -> float:
        """The released mean."""

    def lowest(self, arm: int, ahead: int) -> float:
        """The least that the released mean can be after ``ahead`` more rounds; -inf where nothing is certain."""

    def samples(self, arm: int, ahead: int) -> float:
        """The most rewards that the released mean can stand for after ``ahead`` more rounds.

        The number is effective: a mean of that many noiseless rewards would be as precise. ``ahead=0`` is exact.
        Where whole stints are released, it is the current number, whatever ``ahead`` is.
        """

    def width(self, arm: int, exponent: float, ahead: int) -> float:
        """What the curator's noise adds to a confidence bound: exceeded with probability about exp(-exponent).

        The least over the next ``ahead`` rounds; ``ahead=0`` is exact. It grows with the exponent, at most linearly.
        Where whole stints are released, it is the current width, whatever ``ahead`` is.
        """


class Likelihood(Releases, Protocol):
    """Releases for which the curator also says how well they fit a mean.

    ``samples`` must change whenever the releases do, because until then agents keep what they computed for an arm. In
    heldp-glr-b and heldp-weighted-* it stays the same where rounding loses a weight, such as that of a user at level
    1e-6 in a total of 4096. Such a response is noticed with the next one that has more weight.
    """

    def evidence(self, arm: int, mean: float, top: float) -> float:
        """The evidence against an arm's mean reward being ``top``; ``mean`` is the released mean, at most ``top``.

        It is the logarithm of how many times as likely the releases are if the mean reward is ``mean``. It grows with
        ``top``. A curator may leave out what changes it by less than a tenth of ``EVIDENCE_MARGIN``.
        """

    def reaches(self, arm: int, mean: float) -> bool:
        """Whether the released mean is at least ``mean``; a curator may know that without computing its mean."""


class Foreseeable(Likelihood, Protocol):
    """A likelihood whose changes in later rounds the curator can bound, which makes simulations quicker."""

    def steepness(self, arm: int, mean: float) -> float:
        """An upper bound on the slope of the evidence between the released mean and ``mean``, which is larger."""

    def rise(self, arm: int, mean: float, top: float, evidence: float) -> float:
        """An estimate of what the next response adds to this evidence against ``top``; ``mean`` is the released mean.

        It decides how long a stint is. No proof depends on it.
        """

    def lower(self, arm: int, mean: float, top: float, evidence: float, budget: float, ahead: int) -> float:
        """A line: evidence against ``top`` is at most ``budget`` as long as the released mean is above this number.

        This holds for the next ``ahead`` rounds. ``evidence`` is the evidence now. Infinity if no line is known.
        """


class Foresees(ABC):  # noqa: B024  # it is a declaration, and asks for no method
    """The curators that are ``Foreseeable``: ``@Foresees.register``, for a class and those that inherit from it.

    It is declared, because methods of the same names may do something else in a curator that is not.
    """


class Scheduled(Releases, Protocol):
    """Releases of an arm that change only when its rewards reach a number that is known before."""

    def due(self, arm: int) -> int:
        """How many more rewards of the arm, at least 1, its next release takes.

        Until then its mean, its samples and its width at every exponent are what they are now.
        """


class Schedules(ABC):  # noqa: B024  # it is a declaration, and asks for no method
    """The curators that are ``Scheduled``: ``@Schedules.register``, for a class and those that inherit from it."""


class Bounded(Releases, Protocol):
    """Releases for which the curator also computes an upper confidence bound."""

    def upper(self, arm: int, budget: float) -> float:
        """The largest mean against which the evidence is at most ``budget``."""


class Curator(Releases, Protocol):
    """Keeps what the devices send; releases only what its guarantee allows.

    Fields named ``raw_`` hold rewards or their sums, and no agent may depend on them.
    """

    @property
    def by_stint(self) -> bool:
        """Whether a stint is released as a whole when it closes. Otherwise every response may change the release."""

    @property
    def others_stand(self) -> bool:
        """Whether the releases of all other arms stay the same while one arm is played."""

    @property
    def counts_ahead(self) -> bool:
        """Whether ``samples`` and ``width`` can say what they will be once ``ahead`` more responses have come.

        If so, decisions that wait for a response count in the index of a live run, as if their responses had the mean
        of the earlier ones. A curator that computes a likelihood or an upper bound says no: how much a response tells
        is known only when it comes.
        """

    @property
    def steps(self) -> int:
        """In the local model, devices with exact noise send an integer, in units of 1/steps."""

    @property
    def mechanism(self) -> str:
        """In the local model, what devices do with a reward: ``bernoulli``, ``laplace``, ``piecewise``.

        Clients are told this word. It is ``none`` where devices send the reward itself.
        """

    def guarantee(self) -> Guarantee:
        """The promise, made from the same numbers as the noise."""

    def respond(self, reward: float, level: float, rng: Rng) -> float:
        """What the user's device sends: in the local model a private response, otherwise the reward."""

    def accepts(self, response: float) -> bool:
        """Whether this is a value that the package's devices send."""

    def add(self, arm: int, response: float, level: float, rng: Rng) -> None:
        """Take a response that a device sent."""

    def close(self, arm: int, rng: Rng) -> None:
        """End the stint on ``arm``. At least one response has been added since its last stint ended."""

    def absorb(self, environment: Environment, arm: int, n: int, line: float, rewards: Rng, noise: Rng) -> int:
        """Play ``arm`` n times, or until its released mean is no longer above ``line``; return how many rounds it took.

        The results have the distribution of ``one_by_one``; a curator that needs only totals draws them at once.
        """


class Agent(Protocol):
    """Chooses arms from what a curator has released, and from nothing else."""

    def act(self, releases: Any, t: int, rng: Rng) -> tuple[int, int, float]:
        """(arm, stint, line): play ``arm`` in rounds t .. t+stint-1, as long as its released mean stays above ``line``.

        A stint is a commitment of the algorithm, or a proof that asking again would give the same answer. An agent that
        draws its choices may also draw how long the next one is repeated. Until the agent is asked again, no other arm
        is played.

        Each agent says in its own signature what it asks of the curator: ``Releases``, or a protocol that adds releases
        to it. So a type checker refuses an agent that asks for anything else, such as ``add``.
        """


class Counting(ABC):
    """The agents that count the rounds of a stint when they ask for it: ``@Counting.register``.

    They are told of the rounds that are not played.
    """

    @abstractmethod
    def unplayed(self, arm: int, rounds: int) -> None:
        """The last stint, on ``arm``, was ended early: this many of the rounds that it asked for are not played."""


class InTurns(Agent, Protocol):
    """An agent whose stints come in epochs, in each of which several arms are played in turns."""

    def turns(self) -> int:
        """How many arms are played in this epoch, once its first arm was asked for."""


class Stopping(Agent, Protocol):
    """An agent that stops when it knows the best arm: it writes down when, and plays that arm for ever."""

    @property
    def beta(self) -> float:
        """The probability with which it names a wrong arm is at most this."""

    @property
    def named(self) -> Integers:
        """(arms,): the rounds after which the arm was named the best one; 0 for every arm that was not."""
