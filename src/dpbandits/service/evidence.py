"""How sure one can be of an arm: means with their errors, and whether the best arm is known. From releases alone."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from dpbandits.curators import Batch, LocalBernoulli, interval
from dpbandits.errors import InputError
from dpbandits.mechanisms import attenuation, debias
from dpbandits.service.experiment import Experiment
from dpbandits.service.state import State

__all__ = ["ERROR", "Measured", "converged", "measured", "stitched"]

#: The probability with which ``converged`` may ever name an arm that is not best.
ERROR = 0.05

#: The constants of the stitched bound: how fast its epochs grow, and how fast the error that they get shrinks.
GROWTH, SHRINKING = 2.04, 1.4
ZETA = 3.10555  # Riemann's zeta at SHRINKING, rounded up


class Measured(NamedTuple):
    """The mean of an arm, mapped to [0, 1], with two errors: that of a mean of n rewards, and that of the noise."""

    mean: float
    sampling: float
    noise: float
    responses: float
    stated: bool  # whether the curator says how large its noise can be

    @property
    def low(self) -> float:
        return self.mean - self.sampling - self.noise

    @property
    def high(self) -> float:
        return self.mean + self.sampling + self.noise


def measured(experiment: Experiment, state: State, arm: int, confidence: float) -> Measured | None:
    """An arm's mean; each error is exceeded with probability at most 2 exp(-confidence). None where nothing is known.

    The first error is Hoeffding's (1963), for n bounded rewards. The second is what the curator's ``width`` states.
    """
    curator = state.curator
    if not curator.ready(arm, 0.0):
        return None
    n = curator.samples(arm, 0)
    mean, sampling = curator.mean(arm), math.sqrt(confidence / (2.0 * n))
    noise = curator.width(arm, confidence, 0)
    stated = experiment.trust != "central" or noise > 0.0
    if isinstance(curator, LocalBernoulli):
        slope = attenuation(curator.epsilon)
        mean, sampling = debias(mean, slope), sampling / slope
    return Measured(mean, sampling, noise, n, stated)


def stitched(n: float, error: float) -> float:
    """How far a mean of n rewards in [0, 1] is ever above theirs: exceeded at any n with probability at most ``error``.

    Howard, Ramdas, McAuliffe & Sekhon 2021, Theorem 1, for increments that are sub-Gaussian with variance 1/4.

    >>> round(stitched(1000, 0.05), 4), round(stitched(100_000, 0.05), 4)
    (0.062, 0.0065)
    """
    k = (GROWTH**0.25 + GROWTH**-0.25) ** 2 / 2.0
    epochs = SHRINKING * math.log(math.log(GROWTH * max(n, 1.0)))
    return 0.5 * math.sqrt(k * (epochs + math.log(ZETA / (error * math.log(GROWTH) ** SHRINKING))) / n)


def converged(experiment: Experiment, state: State) -> dict[str, Any]:
    """Whether the best arm is known with error at most ``ERROR``, whenever one looks and however often.

    A policy that stops says so itself. Otherwise an arm is named if the lower end of its interval is above the upper
    ends of all others. The intervals hold at all times (``curators.interval``), and the arms share the error.
    """
    agent: Any = state.parts["agent"]
    if experiment.policy.traits.stops and agent.named.any():
        return _known(experiment.arms[int(agent.named.argmax())], float(agent.beta))
    arms = len(experiment.arms)
    for arm in range(arms):
        if not state.curator.ready(arm, 0.0):
            return _open(f"Too early to say: nothing is known yet about {experiment.arms[arm]}.")
    try:
        ends = [_always(experiment, state, arm, ERROR / arms) for arm in range(arms)]
    except InputError:
        return _open(
            f"This page cannot say when {experiment.policy.name} has found the best arm: no interval is known for it "
            "that holds at every look."
        )
    best = max(range(arms), key=lambda arm: (ends[arm][0], sum(ends[arm])))
    rivals = sorted((arm for arm in range(arms) if arm != best), key=lambda arm: -ends[arm][1])
    name = experiment.arms[best]
    undecided = [experiment.arms[arm] for arm in rivals if ends[arm][1] >= ends[best][0]]
    evidence = {
        "leader": name,
        "at_least": _in_units(experiment, ends[best][0]),
        "rival": experiment.arms[rivals[0]],
        "at_most": _in_units(experiment, ends[rivals[0]][1]),
        "undecided": undecided,
    }
    if undecided:
        return {**_open(f"Not yet: {name} leads, and {_listed(undecided)} may still be better."), **evidence}
    return {**_known(name, ERROR), **evidence}


def _always(experiment: Experiment, state: State, arm: int, error: float) -> tuple[float, float]:
    """The ends of an arm's interval at all times.

    A stint may close at a deadline with any number of responses. So where the mean is that of the last stint alone, the
    error is divided among releases 1, 2, ... in proportion to 1/(m (m + 1)), which sums to 1.
    """
    curator = state.curator
    if experiment.trust == "none":
        radius = stitched(curator.samples(arm, 0), error / 2.0)
        return max(curator.mean(arm) - radius, 0.0), min(curator.mean(arm) + radius, 1.0)
    if isinstance(curator, Batch):
        error /= max(state.version, 1) * (max(state.version, 1) + 1.0)
    return interval(curator, arm, error)


def _open(words: str) -> dict[str, Any]:
    return {"converged": False, "arm": None, "error": ERROR, "words": words}


def _known(arm: str, error: float) -> dict[str, Any]:
    words = f"Stop now: {arm} is best, with error at most {100 * error:g} %."
    return {"converged": True, "arm": arm, "error": error, "words": words}


def _in_units(experiment: Experiment, value: float) -> float:
    low, high = (0.0, 1.0) if experiment.range is None else experiment.range
    return low + (high - low) * value


def _listed(names: list[str]) -> str:
    shown = names[:3] if len(names) <= 3 else [*names[:2], f"{len(names) - 2} others"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"
