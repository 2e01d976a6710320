"""Simulate every suitable policy at every epsilon: a few runs of all, and many of those that may be best."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from dpbandits.environments.levels import HIGHEST
from dpbandits.errors import InputError
from dpbandits.planning.question import Question
from dpbandits.policies import lookup
from dpbandits.simulation import Trace, simulate
from dpbandits.simulation.driver import Counted
from dpbandits.simulation.tails import Tail, tail_of
from dpbandits.types import Floats

__all__ = [
    "Candidate",
    "LeftOut",
    "Outcome",
    "candidates",
    "play",
    "play_all",
    "regret_interval",
    "without_privacy",
]


CHECKPOINTS = 120
SETTLED = 0.9  # share of the traffic on the best arm
MISS = 0.025  # probability with which each end of an interval may miss the mean
PILOT = 4  # the pilot has max(runs / 4, 4) runs; only policies that may be best then get more
CONTENDER = 1.3  # a policy may be best if its regret, less 3 standard errors, is at most 1.3 x the best one's end
MOST_CONTENDERS = 3  # at one epsilon in one trust model
PRECISION = 0.1  # of the regret: how far the tail's term may raise the upper end
MOST_RUNS = 400
#: Rounds that may be simulated to make one policy's interval short, by what a round costs. These are rounds and not
#: seconds, so that a plan does not depend on the machine. A rival may be played as often as the policy that is played
#: most, so for more rounds than this.
ROUNDS = {"stint": 1e12, "bulk": 2e8, "divergence": 1e8, "noise": 5e7, "counter": 5e7, "arms": 3e7}
NO_EPSILON = 500.0  # practically no privacy


class Candidate(NamedTuple):
    """A policy with the options to play it with; ``practical`` options are outside the theorem on its regret."""

    name: str
    options: tuple[tuple[str, Any], ...] = ()
    practical: bool = False

    @property
    def label(self) -> str:
        """The name, with the practical options."""
        return f"{self.name} ({', '.join(f'{k}={v:g}' for k, v in self.options)})" if self.practical else self.name


@dataclass(frozen=True)
class LeftOut:
    """A policy that was not played, and why."""

    policy: str
    epsilon: float | None
    reason: str


@dataclass(frozen=True)
class Outcome:
    """One policy at one epsilon. Regret and rounds count all users, those who refuse included."""

    candidate: Candidate
    trust: str
    epsilon: float | None
    delta: float
    options: dict[str, Any]
    runs: int
    regret: float
    stderr: float
    interval: tuple[float, float]
    tail: Tail
    settled: int | None  # rounds after which the best arm always gets 90 % of the traffic
    rounds: tuple[float, ...]
    curve: tuple[float, ...]  # mean regret at these rounds

    @property
    def policy(self) -> str:
        """The policy's name."""
        return self.candidate.name

    @property
    def label(self) -> str:
        """The name, with the practical options."""
        return self.candidate.label

    @property
    def caution(self) -> str:
        """A warning about what goes badly wrong in a small share of the runs, if something is known."""
        return lookup.traits(self.policy).caution

    @property
    def needs_horizon(self) -> bool:
        """Whether the policy must know the horizon before it starts."""
        return lookup.needs_horizon(self.policy, self.options)

    def to_json(self, question: Question) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "policy": self.policy,
            "label": self.label,
            "practical": self.candidate.practical,
            "trust": self.trust,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "options": self.options,
            "needs_horizon": self.needs_horizon,
            "caution": self.caution,
            "runs": self.runs,
            "regret": self.regret,
            "interval": list(self.interval),
            "tail": self.tail.to_json(),
            "loss": question.loss(self.regret),
            "settled": self.settled,
        }


def regret_interval(values: Floats, most: float) -> tuple[float, float]:
    """A 95 % interval for the mean of losses between 0 and ``most`` that holds with heavy tails.

    The lower end is Student's, which is cautious where a few losses are large. The upper end is the empirical Bernstein
    bound of Maurer & Pontil 2009, Theorem 4: it allows for disasters that are too rare to have been seen.

    >>> low, high = regret_interval(np.full(1000, 10.0), 1000.0)
    >>> round(low, 2), round(high, 2)
    (10.0, 20.23)
    """
    n, mean = values.size, float(values.mean())
    spread, log = float(values.std(ddof=1)), math.log(2.0 / MISS)
    low = mean + float(stdtrit(n - 1, MISS)) * spread / math.sqrt(n)
    high = mean + spread * math.sqrt(2.0 * log / n) + 7.0 * most * log / (3.0 * (n - 1))
    return max(low, 0.0), min(high, max(most, mean))


def candidates(question: Question) -> tuple[list[Candidate], list[LeftOut]]:
    """The policies to simulate, private and non-private, and those left out."""
    chosen: list[Candidate] = []
    left_out = []
    own = [name for name in question.policies if name not in lookup.names()]
    for name in [*lookup.names(), *own]:
        if lookup.sample(name).guarantee.trust not in ("none", *question.trusts):
            continue
        reason = _unsuitable(name, question)
        if reason is not None:
            left_out.append(LeftOut(name, None, reason))
            continue
        options, practical = _options(name, question), lookup.traits(name).practical
        chosen.append(Candidate(name, tuple(options.items())))
        if practical:
            chosen.append(Candidate(name, tuple({**options, **practical}.items()), practical=True))
    return chosen, left_out


def _unsuitable(name: str, question: Question) -> str | None:
    traits = lookup.traits(name)
    asked = name in question.policies
    bounded = question.arms.within(*(question.reward_range or (0.0, 1.0)))
    if question.policies and not asked and (traits.private or traits.slow):
        return "not asked for"
    if not bounded and not traits.any_reward and not (traits.unbounded and not isinstance(traits.unbounded, str)):
        return f"needs rewards in [0, 1], and these are outside or unbounded: use --reward-range {_reach(question)}"
    if question.policies:
        return None
    if not traits.low_regret:
        return "made to name the best arm soon, and not for low regret"
    if traits.slow:
        return "slow to simulate: it works on every arm in every round"
    if traits.levels is not None and question.refuse == 0:
        return "meant for users who each have a level of their own, and in this plan all users report (see --refuse)"
    if traits.any_reward and bounded:
        return "meant for unbounded rewards, and these are bounded"
    return None


def _reach(question: Question) -> str:
    """The range of the rewards, as --reward-range takes it. The ends of a log are single rewards, and are not shown."""
    if any(arm.from_log for arm in question.arms):
        return "LOW,HIGH"
    low = min((arm.support[0] for arm in question.arms), default=-math.inf)
    high = max((arm.support[1] for arm in question.arms), default=math.inf)
    return f"{low:g},{high:g}" if math.isfinite(low) and math.isfinite(high) else "LOW,HIGH"


def _options(name: str, question: Question) -> dict[str, Any]:
    """The recommended options of this policy."""
    traits = lookup.traits(name)
    options = {} if traits.advised is None else dict(traits.advised(question.horizon))
    bounded = question.arms.within(*(question.reward_range or (0.0, 1.0)))
    if not isinstance(traits.unbounded, str) and not bounded:
        options |= traits.unbounded
    return options


def play(
    question: Question,
    candidate: Candidate | str,
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
    if isinstance(candidate, str):
        candidate = Candidate(candidate, tuple(_options(candidate, question).items()))
    leveled = lookup.traits(candidate.name).levels is not None
    stands_for = 1.0 if leveled else 1.0 / (1.0 - float(refuse))
    trace = simulate(
        candidate.name,
        arms=question.arms,
        horizon=question.horizon if leveled else round(question.horizon * (1 - refuse)),
        epsilon=None if leveled else epsilon,
        levels=question.levels(epsilon, refuse) if leveled and epsilon is not None else None,
        options=dict(candidate.options),
        runs=runs or question.runs,
        seed=question.seed,
        checkpoints=CHECKPOINTS,
        reward_range=question.reward_range,
        **({} if epsilon is None else question.users(candidate.name)),
        workers=workers,
    )
    settled, final = _settled(trace), stands_for * trace.final_regret
    return Outcome(
        candidate,
        trace.guarantee.trust,
        epsilon,
        trace.guarantee.delta,
        {key: value for key, value in trace.options.items() if key in dict(candidate.options)},
        trace.runs,
        float(final.mean()),
        stands_for * float(trace.stderr[-1]),
        regret_interval(final, question.worst),
        tail_of(final, question.worst),
        None if settled is None else round(stands_for * settled),
        tuple((stands_for * trace.checkpoints).tolist()),
        tuple((stands_for * trace.regret.mean(axis=0)).tolist()),
    )


def _settled(trace: Trace) -> int | None:
    """The first checkpoint after which the best arm gets 90 % of the traffic in every interval, averaged over runs."""
    best = trace.means == trace.means.max()
    pulls = trace.pulls[:, :, best].sum(axis=(0, 2)) / trace.runs
    shares = np.diff(pulls) / np.diff(trace.checkpoints)
    short = np.flatnonzero(shares < SETTLED)
    first = 0 if short.size == 0 else int(short[-1]) + 1
    return int(trace.checkpoints[first]) if first < shares.size else None


def play_all(
    question: Question, progress: Counted | None = None, workers: int | None = None
) -> tuple[list[Outcome], list[LeftOut]]:
    """Simulate all suitable policies at all epsilons: a pilot first, then many runs of those that may be best."""
    chosen, left_out = candidates(question)
    cells = list(_cells(chosen, question.epsilons))
    probes: list[Outcome] = []
    few = min(max(question.runs // PILOT, PILOT), question.runs)
    for done, (candidate, epsilon) in enumerate(cells, start=1):
        try:
            probes.append(play(question, candidate, epsilon, _refusing(question, epsilon), workers, few))
        except InputError as error:
            left_out.append(LeftOut(candidate.label, epsilon, str(error)))
        if progress is not None:
            progress(done, 2 * len(cells))
    outcomes = []
    contenders = [probe for probe in probes if _may_be_best(probe, probes)]
    for done, probe in enumerate(probes, start=1):
        if probe in contenders:
            refuse, runs = _refusing(question, probe.epsilon), _runs_of_all(question, _rivals(probe, contenders))
            outcomes.append(play(question, probe.candidate, probe.epsilon, refuse, workers, runs))
        else:
            outcomes.append(probe)
        if progress is not None:
            progress(2 * len(cells) - len(probes) + done, 2 * len(cells))
    return outcomes, left_out


def enough_runs(question: Question, probe: Outcome) -> int:
    """The number of runs that makes the interval's term for the tail small against the regret, within a time limit."""
    wanted = 7.0 * question.worst * math.log(2.0 / MISS) / (3.0 * PRECISION * max(probe.regret, 1e-3 * question.worst))
    affordable = ROUNDS[lookup.traits(probe.policy).cost] / question.horizon
    return max(question.runs, math.ceil(min(wanted, affordable, MOST_RUNS)))


def _runs_of_all(question: Question, contenders: list[Outcome]) -> int:
    """The number of runs for each of these: the same one, since an interval of more runs has a lower upper end."""
    return max(enough_runs(question, contender) for contender in contenders)


def without_privacy(question: Question, outcome: Outcome, workers: int | None = None) -> Outcome:
    """The same policy with practically no privacy."""
    leveled = lookup.traits(outcome.policy).levels is not None
    epsilon = (HIGHEST if leveled else NO_EPSILON) * (question.rewards_per_user or 1)
    question = replace(question, user_delta=None)  # each reward then has this share of epsilon, and no search is needed
    return play(question, outcome.candidate, epsilon, question.refuse, workers, outcome.runs)


def _refusing(question: Question, epsilon: float | None) -> Fraction:
    """The share of users who refuse; 0 for non-private policies, which are the baseline and see every reward."""
    return question.refuse if epsilon is not None else Fraction(0)


def _rivals(probe: Outcome, probes: list[Outcome]) -> list[Outcome]:
    """Those at the same epsilon in the same trust model, itself included."""
    return [other for other in probes if (other.epsilon, other.trust) == (probe.epsilon, probe.trust)]


def _may_be_best(probe: Outcome, probes: list[Outcome]) -> bool:
    rivals = _rivals(probe, probes)
    best = sorted(rivals, key=lambda other: other.regret)
    least = min(other.regret + 3.0 * other.stderr for other in rivals)
    return probe in best[:MOST_CONTENDERS] and probe.regret - 3.0 * probe.stderr <= CONTENDER * least


def _cells(chosen: list[Candidate], epsilons: tuple[float, ...]) -> Iterator[tuple[Candidate, float | None]]:
    for candidate in chosen:
        name = candidate.name
        scaled = lookup.takes(name, "epsilon") or lookup.traits(name).levels is not None  # users' levels are, too
        yield from ((candidate, epsilon) for epsilon in epsilons) if scaled else ((candidate, None),)
