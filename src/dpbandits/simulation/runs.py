"""Many runs of one policy: each has its own seeds, so how they are spread over workers changes nothing."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpbandits import __version__
from dpbandits.environments import Bernoulli, Levels, Mixed, NormalLevels, build, parse_arms, parse_levels
from dpbandits.environments.distributions import Distribution
from dpbandits.environments.log import check_log
from dpbandits.environments.text import replayed
from dpbandits.errors import InputError, at_least, known
from dpbandits.policies import lookup
from dpbandits.policies.policy import Policy
from dpbandits.privacy.guarantee import Guarantee
from dpbandits.protocols import Integers, Rng
from dpbandits.simulation import loop
from dpbandits.simulation.thresholds import choose_epsilon_min
from dpbandits.simulation.trace import Trace

Play = Callable[..., None]

LARGEST = 10**9  # numbers that a trace may hold


class Interrupted(KeyboardInterrupt):
    """Ctrl-C: ``trace`` holds the runs that were finished, or is None if there were none."""

    def __init__(self, trace: Trace | None) -> None:
        super().__init__("interrupted")
        self.trace = trace


class Streams(NamedTuple):
    """The random numbers of one run, a stream for each purpose."""

    order: Rng
    rewards: Rng
    noise: Rng
    choices: Rng


def streams(seed: int, run: int) -> Streams:
    """The streams of run number ``run``."""
    children = np.random.SeedSequence(seed, spawn_key=(run,)).spawn(4)
    return Streams(*(np.random.default_rng(child) for child in children))


def simulate(
    policy: str | lookup.Factory,
    *,
    arms: str,
    horizon: int | float,
    epsilon: float | None = None,
    options: Mapping[str, Any] | None = None,
    levels: str | None = None,
    runs: int = 20,
    seed: int = 0,
    reward_range: tuple[float, float] | None = None,
    arm_order: str = "shuffled",
    workers: int | None = None,
    checkpoints: int | Sequence[int] = 100,
    engine: str = "compiled",
    progress: Callable[[int, int], None] | None = None,
) -> Trace:
    """Play ``policy`` on ``arms`` for ``horizon`` rounds, ``runs`` times.

    ``policy`` is a name or a function that makes a policy; ``arms`` and ``levels`` are texts as on the command line.
    The option ``epsilon_min="auto"`` is chosen by the HeLDP paper's rule for these levels.
    ``checkpoints`` is how many, spaced evenly in the logarithm of t, or which. The same seed gives the same numbers,
    whatever the number of workers. ``progress`` is called with the number of finished runs and of all.

    >>> trace = simulate("ucb1", arms="0.9,0.6", horizon=1000, runs=10, seed=0)
    >>> trace.pulls[:, -1].sum(axis=1).tolist() == [1000] * 10
    True
    """
    runs = at_least("runs", runs, 1)
    workers = at_least("workers", (os.cpu_count() or 1) if workers is None else workers, 1)
    setup = Setup.of(
        policy,
        arms=arms,
        horizon=horizon,
        epsilon=epsilon,
        options=options,
        levels=levels,
        seed=seed,
        reward_range=reward_range,
        arm_order=arm_order,
        checkpoints=checkpoints,
        engine=engine,
    )
    shape = (runs, setup.marks.size, setup.problem.policy.arms)
    if math.prod(shape) > LARGEST:
        raise InputError(f"runs must be fewer: {runs} of them need {8 * math.prod(shape) / 1e9:.0f} GB, got {runs}")
    pulls = np.zeros(shape, np.int64)
    started = time.perf_counter()

    def one(run: int) -> int:
        pulls[run] = setup.play(run)
        return run

    finished = _spread(one, runs, workers, progress)
    trace = setup.trace(pulls, time.perf_counter() - started)
    if len(finished) < runs:
        raise Interrupted(trace.only(np.array(sorted(finished), np.int64)) if finished else None)
    return trace


class Problem(NamedTuple):
    """A policy and what it is played on."""

    policy: Policy
    environment: Bernoulli | Mixed
    horizon: int
    reward_range: tuple[float, float] | None

    @property
    def guarantee(self) -> Guarantee:
        """The policy's guarantee, with what the range adds to it."""
        if self.reward_range is None:
            return self.policy.guarantee
        low, high = self.reward_range
        return self.policy.guarantee.under(f"rewards are first clipped to [{low:g}, {high:g}] and mapped to [0, 1]")


def prepare(
    policy: str | lookup.Factory,
    arms: str,
    horizon: float,
    epsilon: float | None = None,
    options: Mapping[str, Any] | None = None,
    levels: str | None = None,
    reward_range: tuple[float, float] | None = None,
) -> Problem:
    """Read and check everything before the first round is played."""
    population = None if levels is None else parse_levels(levels)
    distributions = parse_arms(arms)
    options = choose_epsilon_min(policy, options, population)
    horizon = at_least("horizon", horizon, len(distributions))
    made = lookup.make(policy, arms=len(distributions), epsilon=epsilon, horizon=horizon, given=options)
    _check_levels(made, levels, population)
    _check_rewards(made, arms, distributions, reward_range)
    return Problem(made, build(distributions, population, reward_range), horizon, reward_range)


@dataclass(frozen=True)
class Setup:
    """Everything that the runs of a simulation share: any of them can be played anywhere, in any order.

    >>> setup = Setup.of("ucb1", arms="0.9,0.6", horizon=1000)
    >>> third = setup.trace(np.stack([setup.play(run) for run in (0, 1, 2)])).final_regret[2]
    >>> bool(third == simulate("ucb1", arms="0.9,0.6", horizon=1000, runs=3).final_regret[2])
    True
    """

    problem: Problem
    arms: str
    levels: str | None
    seed: int
    arm_order: str
    marks: Integers
    engine: str
    loop: Play

    @classmethod
    def of(
        cls,
        policy: str | lookup.Factory,
        *,
        arms: str,
        horizon: int | float,
        epsilon: float | None = None,
        options: Mapping[str, Any] | None = None,
        levels: str | None = None,
        seed: int = 0,
        reward_range: tuple[float, float] | None = None,
        arm_order: str = "shuffled",
        checkpoints: int | Sequence[int] = 100,
        engine: str = "compiled",
    ) -> Setup:
        """Read and check the settings of ``simulate``."""
        seed = at_least("seed", seed, 0)
        known("arm_order", arm_order, ("shuffled", "given"))
        known("engine", engine, ("compiled", "python"))
        problem = prepare(policy, arms, horizon, epsilon, options, levels, reward_range)
        marks = _marks(checkpoints, problem.horizon)
        play = loop.play if engine == "python" else _compiled(problem)
        return cls(problem, arms, levels, seed, arm_order, marks, engine, play)

    def play(self, run: int) -> Integers:
        """(checkpoints, arms): the pulls of run number ``run``."""
        random, policy = streams(self.seed, run), self.problem.policy.fresh()
        order = np.arange(policy.arms)
        if self.arm_order == "shuffled":
            random.order.shuffle(order)
        played, pulls = np.zeros((2, self.marks.size, policy.arms), np.int64)
        environment = self.problem.environment.reorder(order)
        parts = (environment, policy.curator, policy.agent, self.marks, played)
        self.loop(*parts, random.rewards, random.noise, random.choices, None)
        pulls[:, order] = played
        return pulls

    def trace(self, pulls: Integers, seconds: float = 0.0) -> Trace:
        """The trace of runs whose pulls, (runs, checkpoints, arms), were played in ``seconds``."""
        policy = self.problem.policy
        return Trace(
            policy=policy.name,
            options={name: value for name, value in policy.settings.items() if name not in ("arms", "horizon")},
            arms=self.arms,
            horizon=self.problem.horizon,
            seed=self.seed,
            guarantee=self.problem.guarantee,
            checkpoints=self.marks,
            pulls=pulls,
            means=self.problem.environment.means,
            levels=self.levels,
            reward_range=self.problem.reward_range,
            arm_order=self.arm_order,
            seconds=seconds,
            version=__version__,
            engine=self.engine,
        )


def _check_levels(policy: Policy, text: str | None, population: Levels | NormalLevels | None) -> None:
    least = policy.settings.get("epsilon_min")
    if least is None:
        if population is not None:
            raise InputError(f"levels is not a parameter of {policy.name} (one epsilon holds for all), got '{text}'")
        return
    if population is None:
        raise InputError(f"levels is required by {policy.name}, got none")
    if population.share_of_at_least(least) == 0.0:
        raise InputError(f"epsilon_min must be a level that users have; none of {text} reaches it, got {least:g}")


def _check_rewards(
    policy: Policy, text: str, arms: list[Distribution], reward_range: tuple[float, float] | None
) -> None:
    """Rewards must lie in [0, 1], unless the policy takes any, or a range says how to get them there."""
    if reward_range is not None and not -np.inf < reward_range[0] < reward_range[1] < np.inf:
        raise InputError(f"reward_range must be low < high, both finite, got {reward_range[0]:g},{reward_range[1]:g}")
    log = replayed(text)
    if log is not None and not (policy.any_reward and reward_range is None):
        check_log(log, *(reward_range or (0.0, 1.0)))
    if policy.any_reward or reward_range is not None:
        return
    for arm in arms:
        low, high = arm.support
        if low < 0.0 or high > 1.0:
            if np.isfinite([low, high]).all():
                remedy = f"pays in [{low:g},{high:g}]: use --reward-range {low:g},{high:g}"
            else:
                remedy = f"is unbounded: use {_for_any_reward(policy)}"
            raise InputError(f"{policy.name} needs rewards in [0,1]; {arm} {remedy}")


def _for_any_reward(policy: Policy) -> str:
    if "sigmoid" in policy.settings:
        return "--option sigmoid=true"
    return f"{policy.name}s" if f"{policy.name}s" in lookup.names() else "--reward-range to clip its rewards"


def _marks(checkpoints: int | Sequence[int], horizon: int) -> Integers:
    if isinstance(checkpoints, int | float):
        count = at_least("checkpoints", checkpoints, 1)
        marks = (
            np.unique(np.round(np.geomspace(1, horizon, count)).astype(np.int64)) if count > 1 else np.array([horizon])
        )
    else:
        marks = np.unique([*(at_least("checkpoints", mark, 1) for mark in checkpoints), horizon]).astype(np.int64)
        if marks[-1] > horizon:
            raise InputError(f"checkpoints must be at most the horizon {horizon}, got {marks[-1]}")
    return marks.astype(np.int64)


def _compiled(problem: Problem) -> Play:
    from dpbandits.simulation import compiled  # Numba takes half a second to import

    policy, random = problem.policy.fresh(), streams(0, 0)
    play = compiled.loop_for(problem.environment, policy.curator, policy.agent)
    # One round here, so that it is compiled here: a worker that compiles may wait for an import of the caller's.
    pulls = np.zeros((1, policy.arms), np.int64)
    parts = (problem.environment, policy.curator, policy.agent, np.ones(1, np.int64), pulls)
    with compiled.uninterrupted():
        play(*parts, random.rewards, random.noise, random.choices, None)
    return play


def _spread(
    one: Callable[[int], int], runs: int, workers: int, progress: Callable[[int, int], None] | None
) -> list[int]:
    """Do all runs on ``workers`` threads (compiled code does not hold the interpreter); the runs that were finished."""
    finished: list[int] = []
    stop = threading.Event()

    def unless_stopped(run: int) -> int | None:
        return None if stop.is_set() else one(run)

    pool = ThreadPoolExecutor(min(workers, runs))
    try:
        for future in as_completed([pool.submit(unless_stopped, run) for run in range(runs)]):
            run = future.result()
            if run is not None:
                finished.append(run)
            if progress is not None:
                progress(len(finished), runs)
    except KeyboardInterrupt:
        stop.set()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # a run that is under way is not waited for
    return finished
