"""The fixed set of problems, and the tracks: who is compared with whom, and at which epsilons.

The set has a version. Whatever changes a number of the benchmark is a new version.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources

from dpbandits.environments import Arms

__all__ = ["CHECKPOINTS", "PROBLEMS", "SCALES", "SEED", "SET_VERSION", "TRACKS", "Challenge", "Scale", "Track"]

SET_VERSION = 1
SEED = 2025
CHECKPOINTS = (10**4, 10**5, 10**6)
LOG = "replay(banners.csv)"


@dataclass(frozen=True)
class Challenge:
    """Arms, and why they are in the set."""

    name: str
    text: str
    why: str
    reward_range: tuple[float, float] | None = None

    @cached_property
    def arms(self) -> Arms:
        """The arms; the log is a file of this package."""
        if self.text != LOG:
            return Arms.of(self.text)
        with resources.as_file(resources.files("dpbandits.benchmark").joinpath("banners.csv")) as path:
            return replace(Arms.of(path), text=LOG)


PROBLEMS = (
    Challenge("C1", "@azize2022-c1", "Azize & Basu 2022: four arms just below the best"),
    Challenge("C2", "@azize2022-c2", "Azize & Basu 2022: evenly spread means"),
    Challenge("C4", "@azize2022-c4", "Azize & Basu 2022: one close rival, the others far"),
    Challenge("two", "@tossou2016-two", "Tossou & Dimitrakakis 2016: two arms far apart"),
    Challenge("mixed", "@ren2020-mixed", "Ren et al. 2020: 20 arms of several distributions in [0, 1]"),
    Challenge("close", "0.5,0.49", "two arms 0.01 apart, where sampling noise is largest"),
    Challenge("sure", "1,0.99,0.98", "a best arm that always pays, and close rivals: the hardest for tails"),
    Challenge("fifty", "bernoulli(0.75)+25*bernoulli(0.6)+24*bernoulli(0.4)", "50 arms"),
    Challenge("clicks", "bernoulli(0.036)+4*bernoulli(0.03)", "click rates of 3 %"),
    Challenge("rare", "bernoulli(0.003)+9*bernoulli(0.002)", "click rates of a few per mille"),
    Challenge(
        "revenue",
        "choice(0,0,0,0,30)+choice(0,0,0,0,0,0,0,0,0,50)+choice(0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,100)",
        "revenue in [0, 100], mostly 0",
        (0.0, 100.0),
    ),
    Challenge("log", LOG, "a log of 6000 banner views, replayed"),
)


@dataclass(frozen=True)
class Track:
    """Policies that keep the same kind of promise, and what they are compared at."""

    name: str
    title: str
    trust: str
    epsilons: tuple[float, ...] = ()
    levels: tuple[str, ...] = ()

    @property
    def settings(self) -> tuple[float | str, ...]:
        """Epsilons, or populations of levels."""
        return self.epsilons or self.levels


TRACKS = (
    Track("central", "Central privacy", "central", epsilons=(0.1, 0.5, 2.0)),
    Track("local", "Local privacy, one epsilon for all", "local", epsilons=(0.5, 1.0, 4.0)),
    Track("levels", "Local privacy, a level for each user", "local", levels=("choice(0,0.2,1,2,100)", "normal(1,1)")),
)


@dataclass(frozen=True)
class Scale:
    """How long and how often is played: runs by what a simulated round of the policy costs."""

    horizon: int
    slow_horizon: int  # for policies that work on every arm in every round
    runs: dict[str, int]


SCALES = {
    "quick": Scale(10**5, 10**4, {"stint": 40, "bulk": 10, "divergence": 10, "noise": 4, "counter": 4, "arms": 3}),
    "full": Scale(10**6, 10**5, {"stint": 400, "bulk": 60, "divergence": 60, "noise": 20, "counter": 10, "arms": 10}),
}
