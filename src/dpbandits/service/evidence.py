"""How sure one can be of an arm: means with their errors, and whether the best arm is known. From releases alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from dpbandits.curators import LocalBernoulli
from dpbandits.mechanisms import attenuation, debias
from dpbandits.service.experiment import Experiment
from dpbandits.service.state import LiveState

__all__ = ["ERROR", "Measured", "converged", "fixed", "measured", "stitched"]

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


def fixed(n: float, confidence: float) -> float:
    """How far a mean of n rewards in [0, 1] is from theirs: exceeded with probability exp(-confidence) on each side.

    Hoeffding 1963, Theorem 2.
    """
    return math.sqrt(confidence / (2.0 * n))


def stitched(n: float, error: float) -> float:
    """The same for all n at once: exceeded at any n, on one side, with probability at most ``error``.

    Howard, Ramdas, McAuliffe & Sekhon 2021, Theorem 1, for increments that are sub-Gaussian with variance 1/4.

    >>> round(stitched(1000, 0.05), 4), round(fixed(1000, math.log(1 / 0.05)), 4)
    (0.062, 0.0387)
    """
    k = (GROWTH**0.25 + GROWTH**-0.25) ** 2 / 2.0
    epochs = SHRINKING * math.log(math.log(GROWTH * max(n, 1.0)))
    return 0.5 * math.sqrt(k * (epochs + math.log(ZETA / (error * math.log(GROWTH) ** SHRINKING))) / n)


def measured(
    experiment: Experiment, state: LiveState, arm: int, sampling: Callable[[float], float], confidence: float
) -> Measured | None:
    """An arm's mean; ``sampling`` is the error of n rewards, ``confidence`` that of the noise. None: nothing is known.

    The noise is as the curator's ``width`` states it, exceeded with probability exp(-confidence) on each side.
    """
    curator = state.curator
    if not curator.ready(arm, 0.0):
        return None
    n = curator.samples(arm, 0)
    mean, error = curator.mean(arm), sampling(n)
    noise = curator.width(arm, confidence, 0)
    stated = experiment.trust != "central" or noise > 0.0
    if isinstance(curator, LocalBernoulli):
        slope = attenuation(curator.epsilon)
        mean, error = debias(mean, slope), error / slope
    return Measured(mean, error, noise, n, stated)


def converged(experiment: Experiment, state: LiveState) -> dict[str, Any]:
    """Whether the best arm is known with error at most ``ERROR``, whenever one looks and however often.

    An arm is named if its lower end is above the upper ends of all others. That is wrong only if the lower end of one
    of the others fails, or the upper end of the best arm: as many one-sided failures as there are arms, which share
    the error. Every end must hold at all times. A mean of all responses to an arm has the stitched bound. A mean of
    one stint has Hoeffding's, with the error divided among releases 1, 2, ... in proportion to 1/(m (m + 1)), which
    sums to 1. The noise has half of the error, divided in the same way.
    """
    arms = len(experiment.arms)
    found: list[Measured] = []
    for arm in range(arms):
        one, confidence = _always(experiment, state, arm)
        if one is None:
            return _open(f"Too early to say: nothing is known yet about {experiment.arms[arm]}.")
        if not _holds(experiment, state, arm, confidence, one):
            return _open(
                f"This page cannot say when {experiment.policy.name} has found the best arm: no bound on its noise is "
                "known that holds at every look."
            )
        found.append(one)
    best = max(range(arms), key=lambda arm: found[arm].mean)
    rivals = sorted((arm for arm in range(arms) if arm != best), key=lambda arm: -found[arm].high)
    rival, name = rivals[0], experiment.arms[best]
    undecided = [experiment.arms[arm] for arm in rivals if found[arm].high >= found[best].low]
    evidence = {
        "leader": name,
        "at_least": _in_units(experiment, found[best].low),
        "rival": experiment.arms[rival],
        "at_most": _in_units(experiment, found[rival].high),
        "undecided": undecided,
    }
    if undecided:
        return {**_open(f"Not yet: {name} leads, and {_listed(undecided)} may still be better."), **evidence}
    words = f"Stop now: {name} is best, with error at most {100 * ERROR:g} %."
    return {"converged": True, "arm": name, "error": ERROR, "words": words, **evidence}


def _always(experiment: Experiment, state: LiveState, arm: int) -> tuple[Measured | None, float]:
    """An arm's mean with errors that hold at all times, and the confidence of the noise."""
    arms, releases = len(experiment.arms), max(state.version, 1)
    drawn = state.curator.ready(arm, 0.0) and state.curator.width(arm, 1.0, 0) > 0.0
    error = ERROR / 2.0 if drawn else ERROR

    def sampling(n: float) -> float:
        radius = stitched(n, error / arms)
        return max(radius, fixed(n, math.log(releases * (releases + 1) / error))) if experiment.by_stint else radius

    n = state.curator.samples(arm, 0) if drawn else 1.0
    m = max(float(releases), n)
    confidence = math.log(2.0 * arms * m * (m + 1.0) / ERROR)
    return measured(experiment, state, arm, sampling, confidence), confidence


def _holds(experiment: Experiment, state: LiveState, arm: int, confidence: float, one: Measured) -> bool:
    """Whether the errors hold at this confidence.

    A curator may state its noise for one confidence only, or not at all. The mean of n Laplace draws has the tail that
    ``width`` states for n >= confidence alone. Where users have levels, their draws differ, and no bound is known here.
    """
    if not one.stated or experiment.levels is not None:
        return False
    if one.noise > 0.0 and state.curator.width(arm, 2.0 * confidence, 0) <= one.noise:
        return False
    return not experiment.local or one.noise == 0.0 or one.responses >= confidence


def _open(words: str) -> dict[str, Any]:
    return {"converged": False, "arm": None, "error": ERROR, "words": words}


def _in_units(experiment: Experiment, value: float) -> float:
    """A bound on a mean, in the unit of the reward and within its range."""
    low, high = (0.0, 1.0) if experiment.range is None else experiment.range
    return low + (high - low) * min(max(value, 0.0), 1.0)


def _listed(names: list[str]) -> str:
    shown = names[:3] if len(names) <= 3 else [*names[:2], f"{len(names) - 2} others"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"
