"""Many runs of one policy: each has its own seeds, so how they are spread over workers changes nothing."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpbandits import __version__
from dpbandits.curators import HeterogeneousBernoulli, HeterogeneousLaplace
from dpbandits.environments import Bernoulli, Levels, Mixed, NormalLevels, build, parse_arms, parse_levels
from dpbandits.environments.distributions import Distribution
from dpbandits.errors import InputError, at_least, known
from dpbandits.policies import lookup
from dpbandits.policies.policy import Policy
from dpbandits.protocols import Integers, Rng
from dpbandits.simulation import loop
from dpbandits.simulation.trace import Trace

if TYPE_CHECKING:
    from dpbandits.bounds.levels import Mechanism

Play = Callable[..., None]

#: The value of ``epsilon_min`` that lets the population's levels choose it.
AUTO = "auto"

#: How the curators that discard responses make them private: what a response costs at each level follows from it.
MECHANISMS: dict[type, Mechanism] = {HeterogeneousLaplace: "laplace", HeterogeneousBernoulli: "bernoulli"}


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
    runs, seed = at_least("runs", runs, 1), at_least("seed", seed, 0)
    workers = at_least("workers", workers or os.cpu_count() or 1, 1)
    known("arm_order", arm_order, ("shuffled", "given"))
    known("engine", engine, ("compiled", "python"))
    problem = prepare(policy, arms, horizon, epsilon, options, levels, reward_range)
    marks = _marks(checkpoints, problem.horizon)
    play = loop.play if engine == "python" else _compiled(problem)
    pulls = np.zeros((runs, marks.size, problem.policy.arms), np.int64)
    started = time.perf_counter()

    def one(run: int) -> int:
        _play_run(play, problem, marks, pulls[run], streams(seed, run), arm_order == "shuffled")
        return run

    finished = _spread(one, runs, workers, progress)
    settings = {name: value for name, value in problem.policy.settings.items() if name not in ("arms", "horizon")}
    trace = Trace(
        policy=problem.policy.name,
        options=settings,
        arms=arms,
        horizon=problem.horizon,
        seed=seed,
        guarantee=problem.guarantee,
        checkpoints=marks,
        pulls=pulls,
        means=problem.environment.means,
        levels=levels,
        reward_range=reward_range,
        arm_order=arm_order,
        seconds=time.perf_counter() - started,
        version=__version__,
        engine=engine,
    )
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
    def guarantee(self) -> Any:
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
    if reward_range is not None and not -np.inf < reward_range[0] < reward_range[1] < np.inf:
        raise InputError(f"reward_range must be low < high, both finite, got {reward_range[0]:g},{reward_range[1]:g}")
    population = None if levels is None else parse_levels(levels)
    distributions = parse_arms(arms)
    if (options or {}).get("epsilon_min") == AUTO:
        options = {**(options or {}), "epsilon_min": _chosen_epsilon_min(policy, options or {}, population)}
    made = lookup.make(
        policy,
        arms=len(distributions),
        epsilon=epsilon,
        horizon=at_least("horizon", horizon, len(distributions)),  # type: ignore[arg-type]
        given=options,
    )
    epsilon_min = made.settings.get("epsilon_min")
    if epsilon_min is None and population is not None:
        raise InputError(f"levels is not a parameter of {made.name} (one epsilon holds for all users), got '{levels}'")
    if epsilon_min is not None:
        if population is None:
            raise InputError(f"levels is required by {made.name}, got none")
        if population.share_of_at_least(epsilon_min) == 0.0:
            highest = population.highest()
            raise InputError(
                f"epsilon_min must be reached by a user: the highest of {levels} is {highest:g}, got {epsilon_min:g}"
            )
    if not made.any_reward and reward_range is None:
        _check_unit(made, distributions)
    return Problem(made, build(distributions, population, reward_range), int(horizon), reward_range)


def _chosen_epsilon_min(
    policy: str | lookup.Factory, options: Mapping[str, Any], population: Levels | NormalLevels | None
) -> float:
    """The threshold at which this population's responses cost least: the V_L or V_B rule of the HeLDP paper."""
    from dpbandits.bounds.levels import best_epsilon_min  # SciPy, which few runs need
    from dpbandits.bounds.text import population as users

    any_threshold = lookup.make(policy, arms=2, given={**options, "epsilon_min": 1.0})
    mechanism = MECHANISMS.get(type(any_threshold.curator))
    if mechanism is None:
        raise InputError(f"epsilon_min of {any_threshold.name} must be a number: no rule chooses it, got {AUTO}")
    if population is None:
        raise InputError(f"levels is required by epsilon_min={AUTO}, got none")
    return best_epsilon_min(users(population), mechanism)


def _check_unit(policy: Policy, arms: list[Distribution]) -> None:
    for arm in arms:
        low, high = arm.support
        if low < 0.0 or high > 1.0:
            if np.isinf(low) or np.isinf(high):
                sigmoid = f"{policy.name}s" if f"{policy.name}s" in lookup.names() else "option sigmoid=true"
                if policy.name != "ucb1" and not sigmoid.startswith(policy.name):
                    sigmoid = "--reward-range to clip them"
                raise InputError(f"{policy.name} needs rewards in [0,1]; {arm} is unbounded: use {sigmoid}")
            fits = f"{low:g},{high:g}"
            raise InputError(f"{policy.name} needs rewards in [0,1]; {arm} pays in [{fits}]: use --reward-range {fits}")


def _marks(checkpoints: int | Sequence[int], horizon: int) -> Integers:
    if isinstance(checkpoints, int | float):
        count = at_least("checkpoints", checkpoints, 1)
        marks = (
            np.unique(np.round(np.geomspace(1, horizon, count)).astype(np.int64)) if count > 1 else np.array([horizon])
        )
    else:
        marks = np.unique(np.array([*checkpoints, horizon], np.int64))
        if marks[0] < 1 or marks[-1] > horizon:
            raise InputError(f"checkpoints must be in 1..{horizon}, got {marks[0] if marks[0] < 1 else marks[-1]}")
    return marks.astype(np.int64)


def _compiled(problem: Problem) -> Play:
    from dpbandits.simulation import compiled  # Numba takes half a second to import

    return compiled.loop_for(problem.environment, problem.policy.curator, problem.policy.agent)


def _play_run(play: Play, problem: Problem, marks: Integers, pulls: Integers, random: Streams, shuffled: bool) -> None:
    policy = problem.policy.fresh()
    order = np.arange(policy.arms)
    if shuffled:
        random.order.shuffle(order)
    played = np.zeros(pulls.shape, np.int64)
    environment = problem.environment.reorder(order)
    play(environment, policy.curator, policy.agent, marks, played, random.rewards, random.noise, random.choices, None)
    pulls[:, order] = played


def _spread(
    one: Callable[[int], int], runs: int, workers: int, progress: Callable[[int, int], None] | None
) -> list[int]:
    """Do all runs on ``workers`` threads (compiled code does not hold the interpreter); the runs that were finished."""
    finished: list[int] = []
    stop = threading.Event()

    def unless_stopped(run: int) -> int | None:
        return None if stop.is_set() else one(run)

    with ThreadPoolExecutor(min(workers, runs)) as pool:
        try:
            for future in as_completed([pool.submit(unless_stopped, run) for run in range(runs)]):
                run = future.result()
                if run is not None:
                    finished.append(run)
                if progress is not None:
                    progress(len(finished), runs)
        except KeyboardInterrupt:
            stop.set()
    return finished
