"""Means of arms with their intervals, from what was released or sent by devices, and from nothing else."""

from __future__ import annotations

from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dpbandits.curators import LocalBernoulli
from dpbandits.curators.confidence import interval_of_any_stint, noise, spread
from dpbandits.errors import InputError
from dpbandits.exact import rational, window_width
from dpbandits.mechanisms import attenuation, debias, piecewise_mean, window_probability
from dpbandits.numerics import GRID, unit
from dpbandits.service.experiment import Experiment
from dpbandits.service.state import LiveState
from dpbandits.service.tables import held_out

__all__ = ["estimate", "holdout", "unit_of"]

#: The intervals miss the mean of an arm with at most this probability, each on its own.
MISSED = 0.05

NO_INTERVAL = "no interval is proved for this policy's estimate"
NOT_KEPT = "rewards of users who are held out are counted and not kept, so nothing of them is released"


def estimate(experiment: Experiment, state: LiveState, arm: int) -> dict[str, Any] | None:
    """An arm's mean with an interval, in the unit of the reward, from what was released; None where nothing was."""
    curator = state.curator
    if not curator.ready(arm, 0.0):
        return None
    mean = curator.mean(arm)
    if isinstance(curator, LocalBernoulli):
        mean = debias(mean, attenuation(curator.epsilon))
    try:
        ends: tuple[float, float] | None = interval_of_any_stint(curator, arm, MISSED, state.version)
    except InputError:
        ends = None
    return _estimated(experiment, mean, ends, curator.samples(arm, 0))


def _estimated(experiment: Experiment, mean: float, ends: tuple[float, float] | None, n: float) -> dict[str, Any]:
    """In the unit of the reward. Noise may bring the mean out of its range; the interval is made to hold it, too.

    Rewards are rounded to a grid, which may move an end by as much.
    """
    low, high, of = unit_of(experiment)
    span = high - low
    both = None
    if ends is not None:
        below, above = min(ends[0], mean) - 1.0 / GRID, max(ends[1], mean) + 1.0 / GRID
        both = [below if mean < 0.0 else unit(below), above if mean > 1.0 else unit(above)]
    said: dict[str, Any] = {
        "mean": low + span * mean,
        "interval": None if both is None else [low + span * end for end in both],
        "confidence": 1.0 - MISSED,
        "of": of,
        "responses": n,
    }
    return said if both is not None else said | {"note": NO_INTERVAL}


def unit_of(experiment: Experiment) -> tuple[float, float, str]:
    """What a mean of 0 and of 1 stand for, and whose mean it is.

    A policy for any reward learns the logistic function of the reward. Where there is a range, that is of the reward
    after it was mapped to [0, 1].
    """
    if not experiment.policy.any_reward:
        return (*(experiment.range or (0.0, 1.0)), "the reward")
    of = "the logistic function of the reward"
    return 0.0, 1.0, of if experiment.range is None else f"{of}, after its range was mapped to [0, 1]"


def holdout(connection: Connection, experiment: Experiment) -> dict[str, Any] | None:
    """The users who always get the baseline, to compare with; None where nobody is held out."""
    if not experiment.holdout or experiment.baseline is None:
        return None
    rows = connection.execute(sa.select(held_out).where(held_out.c.experiment == experiment.id)).all()
    found = {
        "share": experiment.holdout,
        "arm": experiment.arms[experiment.baseline],
        "decisions": sum(row.decisions for row in rows),
        "responses": sum(row.responses for row in rows),
        "estimate": None,
    }
    if not experiment.local:
        return found | {"note": NOT_KEPT}
    of_levels = [(experiment.level_values[row.level], row.responses, row.total) for row in rows if row.responses]
    return found | {"estimate": _of_held_out(experiment, of_levels) if of_levels else None}


class _Law(NamedTuple):
    """The responses of a level: their mean is ``offset + slope r`` if the mean reward is r."""

    offset: float
    slope: float
    reach: float  # a response divided by the slope is in a range of this width, but for Laplace noise
    noise: float = 0.0  # the scale of Laplace noise

    @property
    def weight(self) -> float:
        """What one response tells: 1 over a bound of its variance; the reach stands for it where nothing is added."""
        return 1.0 / (0.25 + 2.0 * self.noise**2) if self.noise else 1.0 / self.reach**2


def _law(mechanism: str, level: float) -> _Law:
    if mechanism == "laplace":
        return _Law(0.0, 1.0, 1.0, 1.0 / level)
    if mechanism == "bernoulli":
        slope = attenuation(level)
        return _Law(0.5 * (1.0 - slope), slope, 1.0 / slope)
    assert mechanism == "piecewise", mechanism
    window = float(window_width(rational("epsilon", level)))
    offset, slope = piecewise_mean(window, window_probability(window, level))
    return _Law(offset, slope, (1.0 + window / GRID) / slope)


def _of_held_out(experiment: Experiment, groups: list[tuple[float, int, float]]) -> dict[str, Any]:
    """The mean of their responses, those of each level with the weight of what one of them tells.

    ``groups`` has the level, the number and the sum of the responses. A bit, and a response of the piecewise mechanism,
    has no other error than its own chance.
    """
    count, weight, total, variance, squares, largest = 0, 0.0, 0.0, 0.0, 0.0, 0.0
    for level, n, summed in groups:
        law = _law(experiment.mechanism, level)
        each = law.weight
        count, weight = count + n, weight + n * each
        total += n * each * (summed / (n * experiment.steps) - law.offset) / law.slope
        variance += n * (each * law.reach) ** 2 / 4.0
        squares, largest = squares + n * (each * law.noise) ** 2, max(largest, each * law.noise)
    if largest:
        half = spread(variance, MISSED / 2.0) + noise(count, squares, largest, MISSED / 2.0)
    else:
        half = spread(variance, MISSED)
    mean = total / weight
    return _estimated(
        experiment, mean, (unit(mean - half / weight), unit(mean + half / weight)), sum(n for _, n, _ in groups)
    )
