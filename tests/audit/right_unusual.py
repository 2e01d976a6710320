"""Policies that keep a claim of 1 in ways that a strict reader might take for faults: all are proved."""

from __future__ import annotations

from typing import Any, NamedTuple

from broken_central import Pair
from broken_central import start as start_of
from broken_third import Rows

from dpbandits.agents import UCB, Doubling
from dpbandits.curators import LocalBernoulli, confidence
from dpbandits.curators.common import Local
from dpbandits.mechanisms import laplace, truth_probability
from dpbandits.numerics import unit
from dpbandits.policies.policy import Parts, published
from dpbandits.privacy import Guarantee
from dpbandits.protocols import NO_LINE

MADE: dict[str, Any] = {}


def unusual(curator: Any, agent: Any = None) -> None:
    """Declare a policy with this curator, by the name of its class."""
    name = (agent or curator).__name__

    def build(arms: int, *, epsilon: float) -> Parts:
        usual: Any = Doubling.start(arms, UCB.start(arms, alpha=3.1))
        acts: Any = UCB.start(arms) if issubclass(curator, Local) else usual if agent is None else agent(arms)
        return Parts(acts, start_of(curator)(arms, epsilon))

    build.__name__ = name
    MADE[name] = published("right")(build)


class NoiseFirst(Pair):
    def release(self, arm: int, n: int, rng: Any) -> None:
        noise = rng.laplace(0.0, 1.0 / self.epsilon)
        self.means[arm] = (noise + self.raw_sums[arm]) / n


class Doubled(Pair):
    """Twice the sum, under twice the noise."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = (2.0 * self.raw_sums[arm] + rng.laplace(0.0, 2.0 / self.epsilon)) / (2 * n)


class MoreForShortStints(Pair):
    """How much noise there is depends on the length of the stint, which is public."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        scale = 2.0 if n < 3 else 1.0
        self.means[arm] = laplace(self.raw_sums[arm], scale, self.epsilon, rng) / n


class ShownLater(Pair):
    """A noisy sum is kept in raw memory, and shown when the next stint ends."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        self.means[arm] = self.raw_noise[arm]
        self.raw_noise[arm] = self.raw_sums[arm] + rng.laplace(0.0, 1.0 / self.epsilon)


class Promises(Pair):
    """Its promise is that of its parent, with a constant of its class."""

    TIMES = 1.0

    def guarantee(self) -> Guarantee:
        return Guarantee.central(self.TIMES * self.epsilon).under("nothing else")


class Inherits(Promises):
    def guarantee(self) -> Guarantee:
        return super().guarantee()


class WithInterval(Pair):
    """Has an interval of its own, from what it released."""


@confidence.found.register
def _(curator: WithInterval, arm: int, beta: float) -> tuple[float, float]:
    return curator.means[arm] - 1.0, curator.means[arm] + 1.0


class Roots(Pair):
    """Powers, quotients and remainders of counts."""

    def release(self, arm: int, n: int, rng: Any) -> None:
        scale = max(1.0, (n / (n + 1.0)) ** 0.5 + n % 2 // 2)
        self.means[arm] = (self.raw_sums[arm] + rng.laplace(0.0, scale / self.epsilon)) / n


class Wide(NamedTuple):
    """An agent that counts with sums and truths, which are public for it."""

    arms: int

    def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
        ahead = (releases.samples(0, 0) > 1.0) + (releases.samples(1, 0) > 1.0)
        return (t + ahead) % self.arms, 1 + t % 2, NO_LINE


class ThreeAnswers(LocalBernoulli):
    """Says now and then that it does not answer."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        if rng.random() < 0.25:
            return 0.5
        truth = truth_probability(self.epsilon)
        return 1.0 if rng.random() < (1.0 - truth) + unit(reward) * (2.0 * truth - 1.0) else 0.0


class FromAbove(LocalBernoulli):
    """Compares the other end of the uniform number."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        truth = truth_probability(self.epsilon)
        return 0.0 if 1.0 - rng.random() > (1.0 - truth) + unit(reward) * (2.0 * truth - 1.0) else 1.0


class Steps(LocalBernoulli):
    """Rounds the reward to 0, 1/2 or 1 by comparisons, before it is made private."""

    def respond(self, reward: float, level: float, rng: Any) -> float:
        step = 1.0 if reward > 0.75 else 0.5 if reward > 0.25 else 0.0
        truth = truth_probability(self.epsilon)
        return 1.0 if rng.random() < (1.0 - truth) + step * (2.0 * truth - 1.0) else 0.0


for right in (NoiseFirst, Doubled, MoreForShortStints, Promises, Inherits, WithInterval, Rows, Roots, ShownLater):
    unusual(right)
unusual(Pair, Wide)
for at_home in (ThreeAnswers, FromAbove, Steps):
    unusual(at_home)
