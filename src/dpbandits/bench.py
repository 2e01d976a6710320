"""Speed and memory against their targets. All ratios are measured in one run, on one core, on this machine."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpbandits.agents import skip_ahead
from dpbandits.benchmark.problems import PROBLEMS, VARIANTS
from dpbandits.curators.rounds import OneByOne, one_by_one
from dpbandits.environments import AnyLevels, Arms, Bernoulli, Mixed, parse_levels
from dpbandits.errors import MissingExtraError
from dpbandits.policies import lookup
from dpbandits.policies.policy import SimulationCost
from dpbandits.protocols import NO_LINE, Environment, Releases
from dpbandits.session import Session
from dpbandits.simulation import compiled, simulate
from dpbandits.simulation.runs import streams
from dpbandits.types import Floats, Rng

ARMS = "@ren2020-bernoulli"
CLICKS = "0.036,0.03,0.03,0.03,0.03"
RARE = next(problem.text for problem in PROBLEMS if problem.name == "rare")
LEVELS = parse_levels("choice(0,0.2,1,2,100)")
SPREAD_LEVELS = parse_levels("normal(1,1)")  # no two users have the same level
MANY_LEVELS = 24  # of users, from 1/4 to 6
SKIPPING = ("ucb1", "ldp-ucb-b")  # UCB1 without privacy, and on private bits
DELAYED = ("ldp-ucb-b", "adap-ucb")  # one whose every response changes its release, and one with whole stints


class Row(NamedTuple):
    """One measurement; ``holds`` is None if it could not be made."""

    case: str
    measured: str
    target: str
    holds: bool | None


class Stay(NamedTuple):
    """An agent that always plays the first arm."""

    rounds: int

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        return 0, self.rounds, NO_LINE


class Draws(NamedTuple):
    """A curator that only draws the random numbers of a round: the reward, and Laplace noise or one uniform number."""

    laplace: bool
    sums: Floats

    def respond(self, reward: float, level: float, rng: Rng) -> float:
        return reward + (rng.laplace(0.0, 1.0) if self.laplace else rng.random())

    def add(self, arm: int, response: float, level: float, rng: Rng) -> None:
        self.sums[arm] += response

    def close(self, arm: int, rng: Rng) -> None:
        pass

    def absorb(self, environment: Environment, arm: int, n: int, line: float, rewards: Rng, noise: Rng) -> int:
        return one_by_one(self, environment, arm, n, line, rewards, noise)  # type: ignore[arg-type]

    def mean(self, arm: int) -> float:
        return self.sums[arm]


def _costing(cost: SimulationCost) -> list[str]:
    """The policies whose simulation has this cost."""
    return [name for name in lookup.names() if lookup.traits(name).cost == cost]


def _with_relatives() -> list[tuple[str, str]]:
    """Later policies, each with the nearest older one."""
    return [(name, older) for name in lookup.names() if (older := lookup.traits(name).relative)]


def measure(*, quick: bool = False, progress: Callable[[int, int], None] | None = None) -> Iterator[Row]:
    """All measurements; ``quick`` uses shorter horizons, as a smoke test."""
    horizon = 10**5 if quick else 10**7
    parts: list[Callable[[], Iterator[Row]]] = [
        *(lambda name=name: _skipping(name, horizon) for name in SKIPPING),
        *(lambda name=name: _noisy(name, horizon) for name in _costing("noise")),
        *(lambda name=name: _counter(name, horizon) for name in _costing("counter")),
        *(lambda name=name: _stints(name, horizon) for name in _costing("stint")),
        *(lambda name=name: _divergences(name, 10**4 if quick else 10**5) for name in _costing("divergence")),
        *(lambda pair=pair: _beside(pair[0], pair[1], horizon) for pair in _with_relatives()),
        *(lambda one=one: _variant(one[0], one[1], horizon) for one in VARIANTS),
        *(lambda name=name: _delayed(name, horizon // 100) for name in DELAYED),
        *(lambda name=name: _live(name, 500 if quick else 5000) for name in _local()),
        *(
            lambda name=name, paid=paid: _live(name, 500 if quick else 5000, MANY_LEVELS, paid)
            for name in _with_levels()
            for paid in (None, 0, 1)
        ),
        lambda: _river(2_000 if quick else 20_000),
        lambda: _memory(horizon),
        _start,
    ]
    for done, part in enumerate(parts, start=1):
        yield from part()
        if progress is not None:
            progress(done, len(parts))


def _local() -> list[str]:
    return [name for name in lookup.names() if lookup.sample(name).guarantee.trust == "local"]


def _with_levels() -> list[str]:
    return [name for name in lookup.names() if lookup.traits(name).levels is not None]


def _environment(name: str, arms: str, levels: AnyLevels = LEVELS) -> Bernoulli | Mixed:
    return Arms.of(arms).environment(levels if lookup.traits(name).levels else None)


def _seconds(
    environment: Bernoulli | Mixed, parts: Callable[[], tuple[Any, Any]], horizon: int, runs: int = 3
) -> list[float]:
    """The seconds of each run, after one that compiles."""
    times = []
    for run, rounds in enumerate((1000, *[horizon] * runs)):
        curator, agent = parts()
        random = streams(0, run)
        pulls = np.zeros((1, environment.means.size), np.int64)
        started = time.perf_counter()
        marks = np.array([rounds])
        compiled.play(environment, curator, agent, marks, pulls, random.rewards, random.noise, random.choices)
        times.append(time.perf_counter() - started)
    return times[1:]


def _runs(
    name: str,
    horizon: int,
    *,
    plain: bool = False,
    arms: str = ARMS,
    runs: int = 3,
    levels: AnyLevels = LEVELS,
    options: Mapping[str, Any] | None = None,
) -> list[float]:
    """Seconds of each run: as in ``simulate``, or (``plain``) with every arm's index computed in every round."""
    environment = _environment(name, arms, levels)
    count = environment.means.size

    def parts() -> tuple[Any, Any]:
        policy = lookup.sample(name, arms=count, horizon=horizon, **options or {})
        if plain:
            return OneByOne(policy.curator), policy.agent
        return policy.curator, skip_ahead(policy.agent, policy.curator)

    return _seconds(environment, parts, horizon, runs)


def _run(name: str, horizon: int, *, plain: bool = False, arms: str = ARMS) -> float:
    """Seconds of the shortest run."""
    return min(_runs(name, horizon, plain=plain, arms=arms))


def _floor(name: str, horizon: int) -> float:
    """Seconds to only draw the random numbers of a run (levels, rewards and noise), without a policy."""
    laplace = lookup.sample(name).curator.steps > 1 or lookup.traits(name).cost == "counter"
    return min(_seconds(_environment(name, ARMS), lambda: (Draws(laplace, np.zeros(1)), Stay(horizon)), horizon))


def _skipping(name: str, horizon: int) -> Iterator[Row]:
    seconds, plain = _run(name, horizon), _run(name, horizon, plain=True)
    rate = f"{horizon / seconds / 1e6:.0f} M rounds/s"
    yield Row(
        f"{name}, T={horizon:.0e}: speed-up over the plain loop",
        f"{plain / seconds:.1f} ({rate})",
        ">= 8",
        plain / seconds >= 8,
    )
    growth = _run(name, 10 * horizon) / _run(name, horizon // 10)
    yield Row(f"{name}: time at 10T over time at T/10", f"{growth:.1f}", "<= 8", growth <= 8)


def _noisy(name: str, horizon: int) -> Iterator[Row]:
    seconds, plain, floor = _run(name, horizon), _run(name, horizon // 10, plain=True) * 10, _floor(name, horizon)
    rate = f"{horizon / seconds / 1e6:.0f} M rounds/s"
    yield Row(
        f"{name}, T={horizon:.0e}: speed-up over the plain loop",
        f"{plain / seconds:.1f} ({rate})",
        ">= 2.5",
        plain / seconds >= 2.5,
    )
    yield Row(
        f"{name}: speed relative to only drawing the noise", f"{floor / seconds:.2f}", ">= 0.5", floor / seconds >= 0.5
    )


def _counter(name: str, horizon: int) -> Iterator[Row]:
    share = _floor(name, horizon) / _run(name, horizon)
    yield Row(
        f"{name}, T={horizon:.0e}: speed relative to only drawing the noise", f"{share:.2f}", ">= 0.3", share >= 0.3
    )


def _stints(name: str, horizon: int) -> Iterator[Row]:
    runs = 50
    simulate(name, arms=ARMS, horizon=1000, runs=1, epsilon=1.0)
    trace = simulate(name, arms=ARMS, horizon=horizon, runs=runs, epsilon=1.0, workers=1)
    rate = runs * horizon / trace.seconds
    yield Row(f"{name}, T={horizon:.0e}, through simulate()", f"{rate:.1e} rounds/s", ">= 1e9 rounds/s", rate >= 1e9)


def _divergences(name: str, horizon: int) -> Iterator[Row]:
    arms = "@azize2022-c1"
    rate, plain = (horizon / _run(name, horizon, plain=plain, arms=arms) for plain in (False, True))
    yield Row(
        f"{name}, 5 arms, T={horizon:.0e} (plain loop: {plain / 1e6:.1f} M)",
        f"{rate / 1e6:.1f} M rounds/s",
        ">= 4 M rounds/s",
        rate >= 4e6,
    )


def _beside(name: str, relative: str, horizon: int) -> Iterator[Row]:
    """The time over that of the relative: 20 arms at T and T/10, and arms that stay close for the whole run.

    Some runs take several times as long as others, so their mean time is compared.
    """
    cases = [("", ARMS, horizon, 3), ("", ARMS, horizon // 10, 10), ("click rates, ", CLICKS, horizon // 10, 100)]
    slow = lookup.traits(name).slow or lookup.traits(relative).slow
    for what, arms, rounds, runs in [("", ARMS, horizon // 10, 3)] if slow else cases:
        ratio = sum(_runs(name, rounds, arms=arms, runs=runs)) / sum(_runs(relative, rounds, arms=arms, runs=runs))
        yield Row(f"{name}, {what}T={rounds:.0e}: time over that of {relative}", f"{ratio:.2f}", "<= 2", ratio <= 2.0)
    if lookup.traits(name).levels is not None:
        for what, arms, rounds in (
            ("", ARMS, horizon // 10),
            ("click rates, ", CLICKS, horizon // 10),
            ("click rates, ", CLICKS, horizon // 100),
            ("rare rewards, ", RARE, horizon // 10),
        ):
            both = [sum(_runs(one, rounds, arms=arms, runs=10, levels=SPREAD_LEVELS)) for one in (name, relative)]
            case = f"{name}, {what}levels {SPREAD_LEVELS}, T={rounds:.0e}: time over that of {relative}"
            yield Row(case, f"{both[0] / both[1]:.2f}", "<= 2", both[0] <= 2.0 * both[1])


def _variant(name: str, options: Mapping[str, Any], horizon: int) -> Iterator[Row]:
    """A policy with options that change how it is simulated, beside itself without them."""
    ratio = sum(_runs(name, horizon, options=options)) / sum(_runs(name, horizon))
    said = ", ".join(f"{option}={value}" for option, value in options.items())
    case = f"{name} ({said}), T={horizon:.0e}: time over that without"
    yield Row(case, f"{ratio:.2f}", "<= 2", ratio <= 2.0)


def _delayed(name: str, horizon: int) -> Iterator[Row]:
    simulate(name, arms=ARMS, horizon=1000, runs=1, epsilon=1.0, delay="exponential(100)")
    trace = simulate(name, arms=ARMS, horizon=horizon, runs=3, epsilon=1.0, delay="exponential(100)", workers=1)
    rate = trace.runs * horizon / trace.seconds
    case = f"{name}, T={horizon:.0e}, with delays of 100 rounds"
    yield Row(case, f"{rate / 1e6:.1f} M rounds/s", ">= 1 M rounds/s", rate >= 1e6)


def _live(name: str, rounds: int, levels: int = 1, paid: int | None = None) -> Iterator[Row]:
    """The first rounds of a session of 5 arms in plain Python: ask, the device's response with exact noise, tell.

    All arms pay the same, so that no arm is known to be the best one, and likelihoods must be computed in every round.
    They pay 0 and 1 in turns, or ``paid`` alone. Processor time is measured, in which other work on the machine does
    not count, and of several sessions the quickest counts.
    """
    own = lookup.traits(name).levels is not None
    each = [f"{k}/4" for k in range(1, levels + 1)] if levels > 1 else ["1" if own else None]
    times = []
    for _ in range(5):
        session = Session(lookup.sample(name, arms=5))
        devices = [session.device(level=level) for level in each]
        started = time.process_time()
        for number in range(rounds):
            decision, reward = session.ask(), number % 2 if paid is None else paid
            session.tell(decision, devices[number // 2 % levels].respond(decision, reward))
        times.append((time.process_time() - started) / rounds)
    users = f", users with {levels} levels" if levels > 1 else ""
    users += "" if paid is None else f", every reward {paid}"
    case = f"{name}, live: a decision and its response, exact noise{users}"
    yield Row(case, f"{1e6 * min(times):.1f} us", "<= 20 us", min(times) <= 20e-6)


def _river(horizon: int) -> Iterator[Row]:
    case, target = "ucb1 through simulate(), speed-up over river's bandit.evaluate", ">= 500"
    try:
        import gymnasium
        from river import bandit
    except ImportError:
        yield Row(case, str(MissingExtraError("river", "bench")), target, None)
        return
    means = Arms.of(ARMS).means

    class TheirArms(gymnasium.Env):
        """The same arms for river."""

        action_space = gymnasium.spaces.Discrete(len(means))
        observation_space = gymnasium.spaces.Discrete(1)

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
            super().reset(seed=seed)
            self.rounds = 0
            return 0, {}

        def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
            self.rounds += 1
            reward = float(self.np_random.random() < means[action])
            return 0, reward, False, self.rounds >= horizon, {}

    started = time.perf_counter()
    for _ in bandit.evaluate([bandit.UCB(delta=1, seed=0)], TheirArms(), n_episodes=1, seed=0):
        pass
    theirs = horizon / (time.perf_counter() - started)
    simulate("ucb1", arms=ARMS, horizon=1000, runs=1)
    trace = simulate("ucb1", arms=ARMS, horizon=10**7, runs=3, workers=1)
    ours = trace.runs * trace.horizon / trace.seconds
    yield Row(case, f"{ours / theirs:.0f} (river: {theirs / 1e3:.0f} k rounds/s)", target, ours / theirs >= 500)


def _memory(horizon: int) -> Iterator[Row]:
    code = (
        "import dpbandits as dp;"
        f"dp.simulate('adap-klucb', arms='{ARMS}', epsilon=1, horizon={horizon}, runs=1000);"
        "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    )
    case, target = f"memory, 1000 runs of 20 arms at T={horizon:.0e}", "< 500 MB"
    if not Path("/proc/self/status").exists():  # getrusage would include the parent's memory at the fork
        yield Row(case, "needs Linux's /proc", target, None)
        return
    peak = int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) / 1024
    yield Row(case, f"{peak:.0f} MB", target, peak < 500)


def _start() -> Iterator[Row]:
    command = [sys.executable, "-m", "dpbandits"]
    simulation = [*command, "simulate", "ucb1", "--arms", "0.9,0.8", "--horizon", "1e5"]
    for case, words, limit in (
        ("dpbandits --help", [*command, "--help"], 0.5),
        ("a second simulate in a new process", simulation, 3.0),
    ):
        times = []
        for _ in range(3):
            started = time.perf_counter()
            subprocess.run(words, capture_output=True, check=True)
            times.append(time.perf_counter() - started)
        yield Row(case, f"{min(times):.2f} s", f"< {limit} s", min(times) < limit)
