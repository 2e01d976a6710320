"""Simulate every suitable policy at every epsilon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import stdtrit

from dpbandits.bounds import Bound
from dpbandits.errors import InputError
from dpbandits.planning.question import Question
from dpbandits.policies import lookup
from dpbandits.simulation import Trace, simulate

__all__ = ["LeftOut", "Outcome", "Progress", "candidates", "play", "play_all"]

Progress = Callable[[int, int], None]

CHECKPOINTS = 120
SETTLED = 0.9  # share of the traffic on the best arm
PILOT = 4  # the pilot has max(runs / 4, 4) runs; only policies that may be best then get all runs
CONTENDER = 1.2  # a policy may be best if its regret, less 3 standard errors, is at most 1.2 x the best interval's end


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
    unlucky: float  # 95 % quantile of regret
    settled: int | None  # rounds after which the best arm always gets 90 % of the traffic
    upper: Bound | None  # the smallest proven upper bound, unless it is vacuous
    upper_value: float | None
    rounds: tuple[float, ...]
    curve: tuple[float, ...]  # mean regret at these rounds

    @property
    def error(self) -> float:
        """Half the width of Student's 95 % interval for the mean regret."""
        return self.stderr * float(stdtrit(self.runs - 1, 0.975))

    @property
    def interval(self) -> tuple[float, float]:
        """Student's 95 % interval for the mean regret, cut off at 0."""
        return max(self.regret - self.error, 0.0), self.regret + self.error

    def to_json(self, question: Question, free: float | None) -> dict[str, Any]:
        """JSON-ready; ``free`` is the regret of the best non-private policy."""
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
    """The policies to simulate, private and non-private, and those left out."""
    chosen, left_out = [], []
    own = [name for name in question.policies if name not in lookup.names()]
    for name in [*lookup.names(), *own]:
        trust = lookup.sample(name).guarantee.trust
        if trust not in ("none", *question.trusts):
            continue
        reason = _unsuitable(name, question)
        if reason is None:
            chosen.append(name)
        else:
            left_out.append(LeftOut(name, None, reason))
    return chosen, left_out


def _unsuitable(name: str, question: Question) -> str | None:
    traits = lookup.traits(name)
    if question.policies:
        free = not lookup.takes(name, "epsilon") and traits.levels is None
        return None if name in question.policies or (free and not traits.slow) else "not asked for"
    if traits.slow:
        return "slow: it works on every arm in every round"
    if traits.levels is not None and question.refuse == 0:
        return "meant for users with their own levels, and here nobody refuses"
    if traits.any_reward and question.arms.within(0.0, 1.0):
        return "meant for unbounded rewards, and these lie in [0, 1]"
    return None


def _options(name: str, question: Question) -> dict[str, Any]:
    """The recommended options of this policy."""
    traits = lookup.traits(name)
    options = {} if traits.advised is None else dict(traits.advised(question.horizon))
    if not isinstance(traits.unbounded, str) and not question.arms.within(0.0, 1.0):
        options |= traits.unbounded
    return options


def play(
    question: Question,
    name: str,
    epsilon: float | None,
    refuse: Fraction,
    workers: int | None = None,
    runs: int | None = None,
) -> Outcome:
    """Simulate one policy at one epsilon, where a share ``refuse`` of the users do not report their reward.

    A policy with one epsilon for all users learns nothing from a refusal, and keeps its choice until a user reports. So
    only the rounds of users who report are simulated, and each of them stands for 1/(1 - refuse) rounds. A policy with
    levels is simulated with a population in which a share ``refuse`` of the users have level 0.
    """
    leveled = lookup.traits(name).levels is not None
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
    """The smallest upper bound with a proof, if it is below the regret of always playing the worst arm."""
    try:
        bounds = trace.bounds()
    except InputError:  # no theorem covers these arms
        return None
    worst = question.horizon * (max(question.arms.means) - min(question.arms.means))
    uppers = [b for b in bounds if b.kind == "upper" and b.checked and scale * (b.value or 0.0) < worst]
    return min(uppers, key=lambda bound: bound.value or 0.0, default=None)


def _settled(trace: Trace) -> int | None:
    """The first checkpoint after which the best arm gets 90 % of the traffic in every interval, averaged over runs."""
    best = trace.means == trace.means.max()
    pulls = trace.pulls[:, :, best].sum(axis=(0, 2)) / trace.runs
    shares = np.diff(pulls) / np.diff(trace.checkpoints)
    short = np.flatnonzero(shares < SETTLED)
    first = 0 if short.size == 0 else int(short[-1]) + 1
    return int(trace.checkpoints[first]) if first < shares.size else None


def play_all(
    question: Question, progress: Progress | None = None, workers: int | None = None
) -> tuple[list[Outcome], list[LeftOut]]:
    """Simulate all suitable policies at all epsilons: a pilot first, then all runs for those that may be best."""
    names, left_out = candidates(question)
    cells = list(_cells(names, question.epsilons))
    probes: list[Outcome] = []
    few = min(max(question.runs // PILOT, PILOT), question.runs)
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
    """The share of users who refuse; 0 for non-private policies, which are the baseline and see every reward."""
    return question.refuse if epsilon is not None else Fraction(0)


def _may_be_best(probe: Outcome, probes: list[Outcome]) -> bool:
    rivals = [other.interval[1] for other in probes if (other.epsilon, other.trust) == (probe.epsilon, probe.trust)]
    return probe.regret - 3.0 * probe.stderr <= CONTENDER * min(rivals)


def _cells(names: list[str], epsilons: tuple[float, ...]) -> Iterator[tuple[str, float | None]]:
    for name in names:
        private = lookup.takes(name, "epsilon") or lookup.traits(name).levels is not None
        yield from ((name, epsilon) for epsilon in epsilons) if private else ((name, None),)
