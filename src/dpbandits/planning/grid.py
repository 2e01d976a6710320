"""Every policy that suits a question, played at every epsilon."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import stdtrit

from dpbandits.bounds import Bound
from dpbandits.environments import parse_arms
from dpbandits.errors import InputError
from dpbandits.planning.question import Question
from dpbandits.policies import lookup
from dpbandits.simulation import Trace, simulate
from dpbandits.simulation.thresholds import AUTO

__all__ = ["LeftOut", "Outcome", "Progress", "candidates", "play", "play_all"]

Progress = Callable[[int, int], None]

CHECKPOINTS = 120
SETTLED = 0.9  # of the traffic
PROBES = 4  # of so many runs one is played first, but at least so many, and all by those that may be best
FAR = 1.2  # times the end of the best one's interval, by more than three standard errors: not best

#: Left out unless asked for by name, because they would take longer than all the others together.
SLOW = {
    "dp-ucb": "slow: it feeds the counters of all arms in every round",
    "thompson": "slow: it draws a sample for every arm in every round",
}


@dataclass(frozen=True)
class LeftOut:
    """A policy that was not played, and why."""

    policy: str
    epsilon: float | None
    reason: str


@dataclass(frozen=True)
class Outcome:
    """One policy at one epsilon. Regret and rounds count all users, those who refuse included."""

    policy: str
    trust: str
    epsilon: float | None
    delta: float
    options: dict[str, Any]
    runs: int
    regret: float
    stderr: float
    unlucky: float  # one run in twenty loses more
    settled: int | None  # rounds until the best arm gets 90 % of the traffic, and keeps it
    upper: Bound | None  # the least that is proven, where it says anything
    upper_value: float | None
    rounds: tuple[float, ...]
    curve: tuple[float, ...]  # mean regret at these rounds

    @property
    def error(self) -> float:
        """Half the width of Student's 95 % interval for the mean regret."""
        return self.stderr * float(stdtrit(self.runs - 1, 0.975))

    @property
    def interval(self) -> tuple[float, float]:
        """95 % for the mean regret."""
        return max(self.regret - self.error, 0.0), self.regret + self.error

    def to_json(self, question: Question, free: float | None) -> dict[str, Any]:
        """JSON-ready; ``free`` is the regret without privacy."""
        return {
            "policy": self.policy,
            "trust": self.trust,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "options": self.options,
            "runs": self.runs,
            "regret": self.regret,
            "interval": list(self.interval),
            "unlucky": self.unlucky,
            "loss": question.loss(self.regret),
            "privacy": None if free is None else self.regret - free,
            "settled": self.settled,
            "upper_bound": None if self.upper is None else {"name": self.upper.name, "value": self.upper_value},
        }


def candidates(question: Question) -> tuple[list[str], list[LeftOut]]:
    """The names of the policies to play, private and not, and of those that are left out."""
    chosen, left_out = [], []
    for row in lookup.overview():
        name, trust = row["name"], row["trust"]
        if trust not in ("none", *question.trusts):
            continue
        reason = _unsuitable(name, question)
        if reason is None:
            chosen.append(name)
        else:
            left_out.append(LeftOut(name, None, reason))
    return chosen, left_out


def _unsuitable(name: str, question: Question) -> str | None:
    if question.policies:
        free = "epsilon" not in _parameters(name) and "epsilon_min" not in _parameters(name)
        return None if name in question.policies or (free and name not in SLOW) else "not asked for"
    if name in SLOW:
        return SLOW[name]
    if "epsilon_min" in _parameters(name) and question.refuse == 0:
        return "for users with levels of their own: nobody refuses here"
    if _any_reward(name) and _within_unit(question):
        return "for rewards of any size: these lie in [0, 1]"
    return None


def _parameters(name: str) -> list[str]:
    return list(inspect.signature(lookup.find(name)).parameters)


def _any_reward(name: str) -> bool:
    sample: dict[str, Any] = {"arms": 2, "epsilon": 1.0, "epsilon_min": 1.0, "horizon": 1000}
    return lookup.find(name)(**{k: v for k, v in sample.items() if k in _parameters(name)}).any_reward


def _within_unit(question: Question) -> bool:
    return all(arm.support[0] >= 0.0 and arm.support[1] <= 1.0 for arm in parse_arms(question.arms))


def _options(name: str, question: Question) -> dict[str, Any]:
    """What a careful user would set: the exact schedule with a delta below one user's share; the rule's threshold."""
    if name == "dp-ucb-int":
        return {"schedule": "exact", "delta": min(math.exp(-10), 0.1 / question.horizon)}
    if "epsilon_min" in _parameters(name):
        return {"epsilon_min": AUTO}
    if "sigmoid" in _parameters(name) and not _within_unit(question):
        return {"sigmoid": True}
    return {}


def play(
    question: Question,
    name: str,
    epsilon: float | None,
    refuse: Fraction,
    workers: int | None = None,
    runs: int | None = None,
) -> Outcome:
    """One policy at one epsilon, where a share of the users refuses to tell their reward.

    A refusal tells a policy with one epsilon for all nothing and changes nothing, so the arm that it would play stands
    until a user shares: it learns in the rounds of those who share, and each of these rounds stands for 1/(1 - share)
    of all. The policies with levels are played with a population in which the share has level 0.
    """
    leveled = "epsilon_min" in _parameters(name)
    scale = 1.0 if leveled else 1.0 / (1.0 - float(refuse))
    trace = simulate(
        name,
        arms=question.arms,
        horizon=question.horizon if leveled else round(question.horizon * (1 - refuse)),
        epsilon=None if leveled else epsilon,
        levels=question.levels(epsilon, refuse) if leveled and epsilon is not None else None,
        options=_options(name, question),
        runs=runs or question.runs,
        seed=question.seed,
        checkpoints=CHECKPOINTS,
        workers=workers,
    )
    upper = _proven(trace, question, scale)
    settled = _settled(trace)
    return Outcome(
        name,
        trace.guarantee.trust,
        epsilon,
        trace.guarantee.delta,
        {key: value for key, value in trace.options.items() if key in _options(name, question)},
        trace.runs,
        scale * float(trace.final_regret.mean()),
        scale * float(trace.stderr[-1]),
        scale * float(np.quantile(trace.final_regret, 0.95)),
        None if settled is None else round(scale * settled),
        upper,
        None if upper is None or upper.value is None else scale * upper.value,
        tuple((scale * trace.checkpoints).tolist()),
        tuple((scale * trace.regret.mean(axis=0)).tolist()),
    )


def _proven(trace: Trace, question: Question, scale: float) -> Bound | None:
    """The least upper bound with a proof, if it is below what playing the worst arm would cost."""
    try:
        bounds = trace.bounds()
    except InputError:  # no theorem speaks about such arms
        return None
    worst = question.horizon * (max(question.means) - min(question.means))
    uppers = [b for b in bounds if b.kind == "upper" and b.checked and scale * (b.value or 0.0) < worst]
    return min(uppers, key=lambda bound: bound.value or 0.0, default=None)


def _settled(trace: Trace) -> int | None:
    """The first checkpoint from which on the best arm gets 90 % of the traffic between any two, over all runs."""
    best = trace.means == trace.means.max()
    pulls = trace.pulls[:, :, best].sum(axis=(0, 2)) / trace.runs
    shares = np.diff(pulls) / np.diff(trace.checkpoints)
    short = np.flatnonzero(shares < SETTLED)
    first = 0 if short.size == 0 else int(short[-1]) + 1
    return int(trace.checkpoints[first]) if first < shares.size else None


def play_all(
    question: Question, progress: Progress | None = None, workers: int | None = None
) -> tuple[list[Outcome], list[LeftOut]]:
    """All policies that suit, at all epsilons: each for a quarter of the runs, and for all where it may be best."""
    names, left_out = candidates(question)
    cells = list(_cells(names, question.epsilons))
    probes: list[Outcome] = []
    few = min(max(question.runs // PROBES, PROBES), question.runs)
    for done, (name, epsilon) in enumerate(cells, start=1):
        try:
            probes.append(play(question, name, epsilon, _refusing(question, epsilon), workers, few))
        except InputError as error:
            left_out.append(LeftOut(name, epsilon, str(error)))
        if progress is not None:
            progress(done, 2 * len(cells))
    outcomes = []
    for done, probe in enumerate(probes, start=1):
        if question.runs > few and _may_be_best(probe, probes):
            refuse = _refusing(question, probe.epsilon)
            outcomes.append(play(question, probe.policy, probe.epsilon, refuse, workers))
        else:
            outcomes.append(probe)
        if progress is not None:
            progress(2 * len(cells) - len(probes) + done, 2 * len(cells))
    return outcomes, left_out


def _refusing(question: Question, epsilon: float | None) -> Fraction:
    """What privacy costs is against a policy to which all users tell all."""
    return question.refuse if epsilon is not None else Fraction(0)


def _may_be_best(probe: Outcome, probes: list[Outcome]) -> bool:
    rivals = [other.interval[1] for other in probes if (other.epsilon, other.trust) == (probe.epsilon, probe.trust)]
    return probe.regret - 3.0 * probe.stderr <= FAR * min(rivals)


def _cells(names: list[str], epsilons: tuple[float, ...]) -> Iterator[tuple[str, float | None]]:
    for name in names:
        private = {"epsilon", "epsilon_min"} & {*_parameters(name)}
        yield from ((name, epsilon) for epsilon in epsilons) if private else ((name, None),)
