"""Speed and memory against their targets. All ratios are measured in one run, on one core, on this machine."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpbandits.curators.rounds import one_by_one
from dpbandits.environments import Bernoulli, Mixed, build, parse_arms, parse_levels
from dpbandits.policies import lookup
from dpbandits.privacy.guarantee import Guarantee
from dpbandits.protocols import NO_LINE, Curator, Environment, Floats, Rng
from dpbandits.simulation import compiled, simulate
from dpbandits.simulation.runs import streams

ARMS = "@ren2020-bernoulli"
LEVELS, LEVELED = "choice(0,0.2,1,2,100)", {"epsilon_min": 1.0}
LOCAL = ("ldp-ucb-l", "ldp-ucb-ls", "heldp-ucb-l", "heldp-ucb-b", "heldp-ucb-ls", "heldp-ucb-bs")
COUNTERS = ("dp-ucb-bound", "private-ucb")
STINTS = ("adap-ucb", "adap-klucb", "adap-imed", "adap-moss", "dp-se")


class Row(NamedTuple):
    """One measurement; ``holds`` is None where it could not be made."""

    case: str
    measured: str
    target: str
    holds: bool | None


class Stay(NamedTuple):
    """An agent that plays the first arm for ever."""

    rounds: int

    def act(self, curator: Curator, t: int, rng: Rng) -> tuple[int, int, float]:
        return 0, self.rounds, NO_LINE


class Draws(NamedTuple):
    """A curator that only draws: the reward, and the noise that a round needs, Laplace's or one more uniform number."""

    laplace: bool
    sums: Floats

    def guarantee(self) -> Guarantee:
        return Guarantee.none()

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


def measure(*, quick: bool = False, progress: Callable[[int, int], None] | None = None) -> Iterator[Row]:
    """All measurements; ``quick`` has shorter horizons, which say little."""
    horizon = 10**5 if quick else 10**7
    parts: list[Callable[[], Iterator[Row]]] = [
        *(lambda name=name: _skipping(name, horizon) for name in ("ucb1", "ldp-ucb-b")),
        *(lambda name=name: _local(name, horizon) for name in LOCAL),
        *(lambda name=name: _counter(name, horizon) for name in COUNTERS),
        *(lambda name=name: _stints(name, horizon) for name in STINTS),
        lambda: _kl_ucb(10**4 if quick else 10**5),
        lambda: _river(2_000 if quick else 20_000),
        lambda: _memory(horizon),
        _start,
    ]
    for done, part in enumerate(parts, start=1):
        yield from part()
        if progress is not None:
            progress(done, len(parts))


def _given(name: str) -> dict[str, Any]:
    if name.startswith("heldp"):
        return {"given": LEVELED}
    return {} if name in ("ucb1", "kl-ucb") else {"epsilon": 1.0}


def _environment(name: str, arms: str) -> Bernoulli | Mixed:
    return build(parse_arms(arms), parse_levels(LEVELS) if name.startswith("heldp") else None)


def _seconds(
    environment: Bernoulli | Mixed, parts: Callable[[], tuple[Any, Any]], horizon: int, singly: bool | None
) -> float:
    """The shortest of three runs, after one that compiles."""
    times = []
    for run, rounds in enumerate((1000, horizon, horizon, horizon)):
        curator, agent = parts()
        random = streams(0, run)
        pulls = np.zeros((1, environment.means.size), np.int64)
        started = time.perf_counter()
        marks = np.array([rounds])
        compiled.play(environment, curator, agent, marks, pulls, random.rewards, random.noise, random.choices, singly)
        times.append(time.perf_counter() - started)
    return min(times[1:])


def _run(name: str, horizon: int, *, plain: bool = False, arms: str = ARMS) -> float:
    """Seconds of one run: as users get it, or round by round with every arm's index computed in each."""
    environment = _environment(name, arms)
    count = environment.means.size

    def parts() -> tuple[Any, Any]:
        policy = lookup.make(name, arms=count, horizon=horizon, **_given(name))
        agent: Any = policy.agent
        return policy.curator, agent._replace(skip=False) if plain else agent

    return _seconds(environment, parts, horizon, True if plain else None)


def _floor(name: str, horizon: int) -> float:
    """Seconds of only drawing the random numbers of a run: levels, rewards and noise, with nobody choosing."""
    laplace = not name.endswith(("-b", "-bs"))
    return _seconds(_environment(name, ARMS), lambda: (Draws(laplace, np.zeros(1)), Stay(horizon)), horizon, None)


def _skipping(name: str, horizon: int) -> Iterator[Row]:
    seconds, plain = _run(name, horizon), _run(name, horizon, plain=True)
    rate = f"{horizon / seconds / 1e6:.0f} M rounds/s"
    yield Row(
        f"{name}, T={horizon:.0e}: times the plain loop",
        f"{plain / seconds:.1f} ({rate})",
        ">= 8",
        plain / seconds >= 8,
    )
    growth = _run(name, 10 * horizon) / _run(name, horizon // 10)
    yield Row(f"{name}: time at 10T over time at T/10", f"{growth:.1f}", "<= 8", growth <= 8)


def _local(name: str, horizon: int) -> Iterator[Row]:
    seconds, plain, floor = _run(name, horizon), _run(name, horizon // 10, plain=True) * 10, _floor(name, horizon)
    rate = f"{horizon / seconds / 1e6:.0f} M rounds/s"
    yield Row(
        f"{name}, T={horizon:.0e}: times the plain loop",
        f"{plain / seconds:.1f} ({rate})",
        ">= 2.5",
        plain / seconds >= 2.5,
    )
    yield Row(f"{name}: share of the noise floor's speed", f"{floor / seconds:.2f}", ">= 0.5", floor / seconds >= 0.5)


def _counter(name: str, horizon: int) -> Iterator[Row]:
    share = _floor(name, horizon) / _run(name, horizon)
    yield Row(f"{name}, T={horizon:.0e}: share of the noise floor's speed", f"{share:.2f}", ">= 0.3", share >= 0.3)


def _stints(name: str, horizon: int) -> Iterator[Row]:
    runs = 50
    simulate(name, arms=ARMS, horizon=1000, runs=1, epsilon=1.0)
    trace = simulate(name, arms=ARMS, horizon=horizon, runs=runs, epsilon=1.0, workers=1)
    rate = runs * horizon / trace.seconds
    yield Row(f"{name}, T={horizon:.0e}, through simulate()", f"{rate:.1e} rounds/s", ">= 1e9 rounds/s", rate >= 1e9)


def _kl_ucb(horizon: int) -> Iterator[Row]:
    arms = "@azize2022-c1"
    rate, plain = (horizon / _run("kl-ucb", horizon, plain=plain, arms=arms) for plain in (False, True))
    yield Row(
        f"kl-ucb, 5 arms, T={horizon:.0e} (asked every round: {plain / 1e6:.1f} M)",
        f"{rate / 1e6:.1f} M rounds/s",
        ">= 4 M rounds/s",
        rate >= 4e6,
    )


def _river(horizon: int) -> Iterator[Row]:
    case, target = "ucb1 through simulate(), times river's bandit.evaluate", ">= 500"
    try:
        import gymnasium
        from river import bandit
    except ImportError:
        yield Row(case, "pip install 'dpbandits[bench]'", target, None)
        return
    means = build(parse_arms(ARMS)).means

    class Arms(gymnasium.Env):
        """The same arms for river."""

        action_space = gymnasium.spaces.Discrete(means.size)
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
    for _ in bandit.evaluate([bandit.UCB(delta=1, seed=0)], Arms(), n_episodes=1, seed=0):
        pass
    theirs = horizon / (time.perf_counter() - started)
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
    if not Path("/proc/self/status").exists():  # getrusage would count what the parent held when it forked
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
