"""Whether the best arm is known, from releases alone."""

from __future__ import annotations

from typing import Any

from dpbandits.curators.confidence import interval_of_any_stint
from dpbandits.errors import InputError
from dpbandits.service.estimates import unit_of
from dpbandits.service.experiment import Experiment
from dpbandits.service.state import LiveState

__all__ = ["ERROR", "converged"]

#: The probability with which ``converged`` may ever name an arm that is not best.
ERROR = 0.05


def converged(experiment: Experiment, state: LiveState) -> dict[str, Any]:
    """Whether the best arm is known with error at most ``ERROR``, whenever one looks and however often.

    A policy that stops says so itself. Otherwise an arm is named if the lower end of its interval is above the upper
    ends of all others. The intervals hold at all times (``curators.interval``), and the arms share the error.
    """
    agent: Any = state.parts["agent"]
    if experiment.policy.traits.stops and agent.named.any():
        return _known(experiment, experiment.arms[int(agent.named.argmax())], float(agent.beta))
    curator, arms = state.curator, range(len(experiment.arms))
    unknown = [experiment.arms[arm] for arm in arms if not curator.ready(arm, 0.0)]
    if unknown:
        return _open(f"Too early to say: nothing is known yet about {_listed(unknown)}.")
    try:
        ends = [interval_of_any_stint(curator, arm, ERROR / len(arms), state.version) for arm in arms]
    except InputError:
        return _open(
            f"This page cannot say when {experiment.policy.name} has found the best arm: no bound on its error is "
            "known that holds at every look."
        )
    best = max(arms, key=curator.mean)
    rivals = sorted((arm for arm in arms if arm != best), key=lambda arm: -ends[arm][1])
    rival, name = rivals[0], experiment.arms[best]
    undecided = [experiment.arms[arm] for arm in rivals if ends[arm][1] >= ends[best][0]]
    evidence = {
        "leader": name,
        "at_least": _in_units(experiment, ends[best][0]),
        "rival": experiment.arms[rival],
        "at_most": _in_units(experiment, ends[rival][1]),
        "undecided": undecided,
    }
    if undecided:
        return {**_open(f"Not yet: {name} leads, and {_listed(undecided)} may still be better."), **evidence}
    return {**_known(experiment, name, ERROR), **evidence}


def _open(words: str) -> dict[str, Any]:
    return {"converged": False, "arm": None, "error": ERROR, "words": words}


def _known(experiment: Experiment, arm: str, error: float) -> dict[str, Any]:
    of = f" by the mean of {unit_of(experiment)[2]}" if experiment.policy.any_reward else ""
    words = f"Stop now: {arm} is best{of}, with error at most {100 * error:g} %."
    return {"converged": True, "arm": arm, "error": error, "words": words}


def _in_units(experiment: Experiment, value: float) -> float:
    """A bound on a mean, in the unit of the estimates."""
    low, high, _ = unit_of(experiment)
    return low + (high - low) * value


def _listed(names: list[str]) -> str:
    shown = names[:3] if len(names) <= 3 else [*names[:2], f"{len(names) - 2} others"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"
