"""One run of a simulation: its random numbers, its parts, and the loop that plays them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from platform import python_version
from typing import Any, NamedTuple

import numpy as np

from dpbandits import __version__
from dpbandits.agents import skip_ahead
from dpbandits.checks import known
from dpbandits.errors import ChoiceError, InputError
from dpbandits.live import Desk, seen
from dpbandits.parts import copied
from dpbandits.protocols import Stopping
from dpbandits.simulation import delayed, loop
from dpbandits.simulation.complaints import misplayed, refused
from dpbandits.simulation.reach import reach
from dpbandits.simulation.settings import Simulation, settings
from dpbandits.types import Integers, Rng

__all__ = ["ENGINES", "Player", "Streams", "result_key", "streams"]

ENGINES = ("compiled", "python")

#: The settings that are seen in the parts of a run, or in its checkpoints. The key of a result names all others, so
#: that a new setting is part of it.
IN_PARTS = {
    "arms",
    "horizon",
    "epsilon",
    "options",
    "levels",
    "reward_range",
    "checkpoints",
    "delay",
    "window",
    "rewards_per_user",
    "user_delta",
}


class Streams(NamedTuple):
    """The random numbers of one run, a stream for each purpose."""

    order: Rng
    rewards: Rng
    noise: Rng
    choices: Rng
    delays: Rng


def streams(seed: int, run: int) -> Streams:
    """The streams of run number ``run``: they depend on nothing else."""
    children = np.random.SeedSequence(seed, spawn_key=(run,)).spawn(5)
    return Streams(*(np.random.default_rng(child) for child in children))


@dataclass(frozen=True, eq=False)
class Player:
    """A simulation that is ready to be played: any run can be played anywhere, in any order, by any thread.

    >>> player = Player.of(Simulation.of("ucb1", arms="0.9,0.6", horizon=1000))
    >>> int(player.play(7)[-1].sum())
    1000
    """

    simulation: Simulation
    engine: str
    loop: Callable[..., None]

    @classmethod
    def of(cls, simulation: Simulation, engine: str = "compiled") -> Player:
        """Ready to be played, compiled where the engine asks for it."""
        plain = _loop(simulation)
        if known("engine", engine, ENGINES) == "python":
            return cls(simulation, engine, plain)
        from dpbandits.simulation import compiled  # Numba takes half a second to import

        parts = _parts(simulation)
        # One round is played here, so that it is compiled in this thread: a worker might wait for an import of it.
        try:
            player = cls(simulation, engine, compiled.compiled(plain, *parts))
            with compiled.uninterrupted():
                player._play(0, np.ones(1, np.int64))
        except Exception as error:
            raise refused(error, simulation.policy.name, parts) from None
        return player

    def play(self, run: int) -> Integers:
        """What run number ``run`` leaves, with the shape ``Simulation.shape``."""
        return self._play(run, self.simulation.marks)

    def _play(self, run: int, marks: Integers) -> Integers:
        simulation = self.simulation
        given = () if simulation.delay is None else (simulation.loss, delayed.room(simulation.horizon))
        shuffled = simulation.arm_order == "shuffled"
        parts, random = _parts(simulation), streams(simulation.seed, run)
        try:
            return play_once(self.loop, parts, given, marks, shuffled, random, _named(simulation, parts))
        except ChoiceError as error:
            agent = type(simulation.policy.agent).__name__
            raise InputError("policy", f"{simulation.policy.name}: {agent}.{error}") from None
        except (AttributeError, TypeError, ValueError) as error:
            if self.engine != "python":
                raise
            raise misplayed(error, simulation.policy.name, parts) from None


def play_once(
    loop: Callable[..., None],
    parts: tuple[Any, ...],
    given: tuple[Any, ...],
    marks: Integers,
    shuffled: bool,
    random: Streams,
    named: Integers | None = None,
) -> Integers:
    """(checkpoints, arms): the pulls of one run, whose arms are put in an order of their own if ``shuffled``.

    ``named`` is where a policy that stops writes which arm it has named, and when; it becomes a last row.
    """
    environment, *rest = parts
    order = np.arange(len(environment.means))
    if shuffled:
        random.order.shuffle(order)
    played = np.zeros((len(marks), len(order)), np.int64)
    loop(environment.reorder(order), *rest, *given, marks, played, *random[1 : 5 if given else 4])
    left = played if named is None else np.vstack([played, named])
    pulls = np.zeros_like(left)
    pulls[:, order] = left
    return pulls


def _loop(simulation: Simulation) -> Callable[..., None]:
    """The loop that plays a simulation. With delays, stints are open one at a time, and no arms take turns."""
    if simulation.delay is not None:
        return delayed.play_delayed
    return loop.play_in_turns if simulation.policy.traits.in_turns else loop.play


def _parts(simulation: Simulation) -> tuple[Any, ...]:
    """The environment, and fresh parts of the policy, as the loop takes them."""
    policy, environment = simulation.policy, simulation.environment
    curator = copied(policy.curator)
    if simulation.delay is None:
        return environment, curator, copied(skip_ahead(policy.agent, curator))
    desk = Desk.start(policy.arms, by_stint=curator.by_stint, window=simulation.window or math.inf)
    releases = seen(policy, curator, desk)
    return environment, releases, curator, copied(policy.agent), desk, simulation.delay


def _named(simulation: Simulation, parts: tuple[Any, ...]) -> Integers | None:
    """Where the agent among these parts writes which arm it has named; None where it does not stop."""
    if not simulation.policy.traits.stops:
        return None
    agent: Stopping = parts[2 if simulation.delay is None else 3]
    return agent.named


def result_key(simulation: Simulation) -> str:
    """A hash of all that decides the numbers of each run: the parts and their values, the code, and the versions."""
    others = tuple((name, str(getattr(simulation, name))) for name in settings() if name not in IN_PARTS)
    versions = (np.__version__, metadata.version("numba"), metadata.version("scipy"), python_version(), __version__)
    values = (*_parts(simulation), simulation.marks, *others, *versions)
    found = reach((_loop(simulation), play_once, streams), values=values)
    if found.digest is None:
        unknown = ", ".join(found.unknown)
        raise InputError(
            "policy",
            f"{simulation.policy.name} uses things whose changes cannot be seen ({unknown}): nothing is stored",
        )
    return found.digest[:32]
