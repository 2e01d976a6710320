"""Where chance enters the choices of a session, and how probable the chosen arms were."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpbandits.agents import propensities
from dpbandits.changing import SomeArms
from dpbandits.draws import WatchedGenerator
from dpbandits.live import Live
from dpbandits.types import Floats

__all__ = ["SessionChance", "probabilities"]


class SessionChance:
    """The generator for the choices of a policy, and the probability of the arm that was chosen last.

    A choice stands for a whole stint, so its probability is kept with the number of the stint.
    """

    __slots__ = ("propensity", "stint", "watched")  # not on ``WatchedGenerator``: its attributes take longer to read

    def __init__(self, generator: np.random.Generator, propensity: float | None) -> None:
        self.watched = WatchedGenerator(generator)
        self.stint, self.propensity = 0, propensity  # None: unknown

    def began(self, stint: int, arm: int, chances: Floats | None) -> None:
        """Keep the probability of the arm of a new stint: 1 where no chance was used."""
        self.stint = stint
        self.propensity = (None if chances is None else float(chances[arm])) if self.watched.used else 1.0


def probabilities(live: Live, now: float, noise: Any) -> Floats | None:
    """The probability of each arm if the policy is asked now; None if it is not asked, or if they are unknown."""
    live.tick(now, noise)
    if live.desk.asked[0] > 0:
        return None
    agent, t = live.agent, live.desk.decisions[0] + 1
    if not isinstance(agent, SomeArms):
        return propensities(agent, live.releases, t)
    some, spread = propensities(agent.agent, agent.seen(live.releases), t), np.zeros(len(live.pulls))
    if some is None:
        return None
    spread[list(agent.numbers)] = some
    return spread
