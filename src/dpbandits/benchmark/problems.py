"""The fixed set of problems, and the tracks: who is compared with whom, and at which epsilons.

The set has a version. Whatever changes a number of the benchmark is a new version.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from typing import Any

from dpbandits.environments import Arms

__all__ = [
    "CHECKPOINTS",
    "PROBLEMS",
    "SCALES",
    "SEED",
    "SET_VERSION",
    "TAIL_HORIZON",
    "TRACKS",
    "UNBOUNDED",
    "VARIANTS",
    "Challenge",
    "PrivacySetting",
    "Scale",
    "Track",
]

SET_VERSION = 3
SEED = 2025
CHECKPOINTS = (10**4, 10**5, 10**6)
TAIL_HORIZON = 10**4  # of the many runs in which rare disasters are looked for
LOG = "replay(banners.csv)"

#: What a problem is played at: an epsilon, a population of levels, or nothing where there is no privacy.
PrivacySetting = float | str | None


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
    Challenge("rare", "bernoulli(0.003)+9*bernoulli(0.002)", "click rates of 0.2 to 0.3 %"),
    Challenge(
        "revenue",
        "choice(0,0,0,0,30)+choice(0,0,0,0,0,0,0,0,0,50)+choice(0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,100)",
        "revenue in [0, 100], mostly 0",
        (0.0, 100.0),
    ),
    Challenge("log", LOG, "a made-up log of 6000 banner views, replayed"),
)


UNBOUNDED = (
    Challenge("normal", "@ren2020-gaussian", "Ren et al. 2020: 20 arms, normal rewards of variance 1", (-3.0, 4.0)),
    Challenge("small", "normal(0.1,0.1)+4*normal(0.05,0.1)", "rewards far smaller than 1", (-0.5, 0.5)),
    Challenge("large", "normal(12,4)+4*normal(10,4)", "rewards far larger than 1", (0.0, 32.0)),
    Challenge(
        "apart",
        "normal(2.2,0.5)+normal(0.4,0.5)",
        "two arms far apart: the logistic function takes their means to 0.9 and 0.6, those of the problem two",
        (-1.5, 4.0),
    ),
)

#: Options under which a policy is played once more, beside those of its trait ``practical``: a choice of this set.
VARIANTS: tuple[tuple[str, dict[str, Any]], ...] = (("dp-ucb-int", {"cover_noise": True}),)


@dataclass(frozen=True)
class Track:
    """Policies that keep the same kind of promise and meet in every cell, and what they are compared at."""

    name: str
    title: str
    trust: str
    epsilons: tuple[float, ...] = ()
    levels: tuple[str, ...] = ()
    tails: tuple[tuple[str, PrivacySetting], ...] = ()  # the cells that are played so often that rare disasters show
    problems: tuple[Challenge, ...] = PROBLEMS
    slow_share: float = 1.0  # of the runs for tails, for policies that work on every arm in every round
    any_size: bool = False  # whether rewards may lie outside [0, 1]; policies that do not allow it clip them

    @property
    def settings(self) -> tuple[PrivacySetting, ...]:
        """Epsilons and populations of levels; None alone where there is no privacy."""
        return (*self.epsilons, *self.levels) or (None,)


FIVE_LEVELS = "choice(0,0.2,1,2,100)"
TRACKS = (
    Track(
        "central",
        "Central privacy",
        "central",
        epsilons=(0.1, 0.5, 2.0),
        tails=(("two", 0.5), ("C4", 0.5)),
        slow_share=0.1,
    ),
    Track(
        "local",
        "Local privacy, one epsilon for all",
        "local",
        epsilons=(0.5, 1.0, 4.0),
        tails=(("two", 1.0), ("C2", 1.0)),
    ),
    Track(
        "levels",
        "Local privacy, a level for each user",
        "local",
        levels=(FIVE_LEVELS, "normal(1,1)"),
        tails=(("two", FIVE_LEVELS),),
    ),
    Track(
        "any-size",
        "Local privacy, rewards of any size, one epsilon for all",
        "local",
        epsilons=(1.0, 4.0),
        tails=(("apart", 1.0),),
        problems=UNBOUNDED,
        any_size=True,
    ),
    Track(
        "any-size-levels",
        "Local privacy, rewards of any size, a level for each user",
        "local",
        levels=(FIVE_LEVELS,),
        tails=(("apart", FIVE_LEVELS),),
        problems=UNBOUNDED,
        any_size=True,
    ),
    Track("none", "Without privacy", "none", tails=(("two", None),)),
)


@dataclass(frozen=True)
class Scale:
    """How many rounds and runs are played; the number of runs depends on what a simulated round of the policy costs."""

    horizon: int
    slow_horizon: int  # for policies that work on every arm in every round
    runs: dict[str, int]
    tail_runs: int  # of TAIL_HORIZON rounds, in the cells for tails


SCALES = {
    "quick": Scale(10**5, 10**4, {"stint": 40, "bulk": 10, "divergence": 10, "noise": 4, "counter": 4, "arms": 3}, 100),
    "standing": Scale(
        10**5, 10**5, {"stint": 100, "bulk": 40, "divergence": 20, "noise": 20, "counter": 10, "arms": 6}, 10**4
    ),
    "full": Scale(
        10**6, 10**5, {"stint": 400, "bulk": 60, "divergence": 60, "noise": 20, "counter": 10, "arms": 10}, 10**4
    ),
}
