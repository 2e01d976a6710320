"""Many runs of one simulation: each has its own seeds, so how they are spread over workers changes nothing."""

from __future__ import annotations

import inspect
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from decimal import Decimal
from typing import Any

import numpy as np

from dpbandits.checks import at_least, nearest, workers_of
from dpbandits.environments import AnyLevels
from dpbandits.environments.delays import Delay
from dpbandits.environments.numbers import read_number
from dpbandits.errors import InputError
from dpbandits.policies import lookup
from dpbandits.policies.policy import Policy
from dpbandits.simulation.runs import Player
from dpbandits.simulation.settings import Simulation, settings
from dpbandits.simulation.trace import Trace
from dpbandits.types import Floats

__all__ = ["Interrupted", "simulate", "simulate_all"]

LARGEST = 10**9  # numbers that a trace may hold
PIECES = 64  # a thread gets its runs in at least this many pieces, so that all threads end at nearly the same time

Counted = Callable[[int, int], None]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C: ``trace`` holds the runs that were finished, or is None if there were none."""

    def __init__(self, trace: Trace | None) -> None:
        super().__init__("interrupted")
        self.trace = trace


def simulate(
    policy: str | lookup.Factory | Policy,
    *,
    arms: object,
    horizon: int | float | str,
    epsilon: float | str | Decimal | None = None,
    options: Mapping[str, Any] | None = None,
    levels: str | Sequence[float] | Floats | AnyLevels | None = None,
    seed: int | None = 0,
    reward_range: str | Sequence[float] | None = None,
    arm_order: str = "shuffled",
    checkpoints: int | Sequence[int] = 100,
    delay: str | Delay | None = None,
    loss: float | str = 0.0,
    window: float | str | None = None,
    rewards_per_user: int | str | None = None,
    user_delta: float | str | None = None,
    runs: int = 20,
    workers: int | None = None,
    engine: str = "compiled",
    progress: Counted | None = None,
    **more: Any,
) -> Trace:
    """Play ``policy`` on ``arms`` for ``horizon`` rounds, ``runs`` times.

    ``policy`` is a name in any spelling, ``module:function``, a function that makes a policy, or a policy; its options
    are keywords (``alpha=2``) or a mapping. ``arms`` are means, distributions, a mapping of names to them, a data frame
    or file to replay, or a text as on the command line, and ``levels`` a list or a text. The option
    ``epsilon_min="auto"`` is chosen by the HeLDP paper's rule for these levels. ``checkpoints`` is their number, spaced
    evenly in the logarithm of t, or a list. With a ``delay``, a share of ``loss`` or a ``window`` the responses come
    late or never, and the rules of ``dpbandits.live`` are played. With ``rewards_per_user`` epsilon is the promise for
    a user who gives at most this many rewards, and each reward gets a share of it; with ``user_delta`` the responses of
    a user of a local policy compose to (epsilon, user_delta). The same seed gives the same numbers, whatever the number
    of workers; ``seed=None`` draws one, which the trace shows. ``engine="python"`` plays without the compiler.
    ``progress`` is called with the number of finished runs and of all.

    >>> trace = simulate("ucb1", arms={"red": 0.9, "green": 0.6}, horizon=1000, runs=10, seed=0)
    >>> trace
    Trace: UCB1 on 0.9,0.6, 1,000 rounds, 10 runs, seed 0
      regret 22.2 ± 1.3 (standard error), at most 28.2
      95 % of the runs lose at most 27.8 (95 % interval 26.7 or more); 0 % of the runs lost more than 10 times the ...
      the best arm is red, played most in 10 of 10 runs; it got 92.6 % of the rounds
      not private
    """
    given = locals()
    asked = {name: given[name] for name in settings()}
    simulation = Simulation.of(policy, **{**asked, "options": _options(policy, options, more)})
    return simulate_all(simulation, runs=runs, workers=workers, engine=engine, progress=progress)


def simulate_all(
    simulation: Simulation,
    *,
    runs: int = 20,
    workers: int | None = None,
    engine: str = "compiled",
    progress: Counted | None = None,
) -> Trace:
    """Play the first ``runs`` runs of a simulation."""
    runs, workers = at_least("runs", read_number("runs", runs), 1), workers_of(read_number("workers", workers))
    if progress is not None and not callable(progress):
        raise InputError("progress", f"must be a function of the finished runs and of all, got {progress!r:.80}")
    shape = (runs, *simulation.shape)
    if math.prod(shape) > LARGEST:
        raise InputError("runs", f"must be fewer: {runs} of them need {8 * math.prod(shape) / 1e9:.0f} GB, got {runs}")
    started = time.perf_counter()  # compiling is part of the time that a user waits
    player = Player.of(simulation, engine)
    left = np.zeros(shape, np.int64)
    finished: list[int] = []

    def one(run: int) -> None:
        left[run] = player.play(run)
        finished.append(run)

    def trace() -> Trace:
        return Trace.of(simulation, left, time.perf_counter() - started, engine)

    try:
        _spread(one, runs, workers, progress)
    except KeyboardInterrupt:
        kept = np.array(sorted(finished), np.int64)
        raise Interrupted(trace().only(kept) if len(kept) else None) from None
    return trace()


def _options(policy: Any, options: Mapping[str, Any] | None, more: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a policy. A keyword that is neither an option nor a parameter of ``simulate`` is refused."""
    if more and not isinstance(policy, Policy):
        allowed = lookup.options(policy)
        for name in more:
            if name not in allowed:
                hint = nearest(name, [*allowed, *inspect.signature(simulate).parameters][:-1])
                label = lookup.written(lookup.find(policy))
                raise InputError(name, f"is neither a setting of a simulation nor an option of {label}: {hint}")
    return lookup.merged(options, more)


def _spread(one: Callable[[int], None], runs: int, workers: int, progress: Counted | None) -> None:
    """Do all runs on ``workers`` threads: compiled code releases the interpreter lock.

    A thread is given several runs at a time where there are many: to hand over a short run takes as long as to play it.
    """
    stop = threading.Event()
    size = max(runs // (PIECES * workers), 1)

    def some(first: int) -> int:
        last = min(first + size, runs)
        for run in range(first, last):
            if stop.is_set():
                break
            one(run)
        return last - first

    pool, done = ThreadPoolExecutor(min(workers, runs)), 0
    try:
        for future in as_completed([pool.submit(some, first) for first in range(0, runs, size)]):
            done += future.result()
            if progress is not None:
                progress(done, runs)
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)  # a run that is under way is not waited for
