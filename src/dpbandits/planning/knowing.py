"""How many users it takes to know the best arm: the policies that stop, played until most runs have stopped."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dpbandits.bounds import DoesNotHold, Problem
from dpbandits.bounds.identification import rounds_to_know, rounds_to_know_from_bits
from dpbandits.errors import InputError
from dpbandits.planning.question import Question
from dpbandits.policies import lookup
from dpbandits.simulation import simulate
from dpbandits.simulation.stops import Stops

__all__ = ["Knowing", "know"]

TESTS = 100  # runs, at least, where rewards are drawn in bulk
SHARE = 0.95  # of the tests that end within the number of users that is said
LONGER = 10  # each time that too few tests have ended, they are played this many times as long
BULK, ONE_BY_ONE = 10**12, 3 * 10**7  # rounds of all runs: drawn in bulk, and not


@dataclass(frozen=True)
class Knowing:
    """A test that ends when the best arm is known, at one epsilon. Users count whether they report a reward or not.

    A user who gives several rewards counts once for each of them.
    """

    policy: str
    trust: str
    epsilon: float
    confidence: float
    runs: int
    users: float | None  # by which 95 % of the tests have ended; None where they had not within ``played``
    mean: float | None  # of the tests that ended
    ended: int
    wrong: int
    played: float  # users of each test, at most
    at_least: float | None  # the least average number of users of any such test, where a theorem gives it

    def to_json(self) -> dict[str, Any]:
        """JSON-ready."""
        return dict(vars(self))


def know(question: Question, trust: str, epsilon: float, workers: int | None = None) -> Knowing | None:
    """The test that needs the fewest users with this trust and epsilon; None where no policy that stops can be played.

    >>> from dpbandits.planning import ask
    >>> found = know(ask("0.9,0.6", horizon=1000, runs=10), "central", 1.0)
    >>> found.policy, found.users, found.wrong
    ('dp-tt', 675.0, 0)
    """
    tests = []
    for name in lookup.names():
        if lookup.traits(name).stops and lookup.sample(name).guarantee.trust == trust:
            try:
                tests.append(_test(question, name, trust, epsilon, workers))
            except InputError:  # these rewards are not for it
                continue
    return min(tests, key=lambda one: (math.inf if one.users is None else one.users, -one.ended), default=None)


def _test(question: Question, name: str, trust: str, epsilon: float, workers: int | None) -> Knowing:
    stands_for = 1.0 / (1.0 - float(question.refuse))  # users, for each who reports
    mapped = question.reward_range not in (None, (0.0, 1.0))  # to numbers other than 0 and 1, which are drawn singly
    bulk = (question.arms.binary and not mapped) or trust == "local"
    runs = max(question.runs, TESTS) if bulk else question.runs
    most = (BULK if bulk else ONE_BY_ONE) // runs
    horizon = most if bulk else min(max(question.told, len(question.arms)), most)
    while True:
        stops = _stops(question, name, epsilon, horizon, runs, workers)
        late = stops.quantile(SHARE)
        if late is not None or horizon >= most:
            break
        horizon = min(LONGER * horizon, most)
    return Knowing(
        name,
        trust,
        epsilon,
        question.confidence,
        runs,
        None if late is None else stands_for * late,
        stands_for * float(stops.rounds.mean()) if stops.stopped else None,
        stops.stopped,
        stops.wrong,
        stands_for * horizon,
        _least(question, trust, epsilon, stands_for),
    )


def _stops(question: Question, name: str, epsilon: float, horizon: int, runs: int, workers: int | None) -> Stops:
    trace = simulate(
        name,
        arms=question.arms,
        horizon=horizon,
        epsilon=epsilon,
        options={"beta": 1.0 - question.confidence},
        runs=runs,
        seed=question.seed,
        checkpoints=1,
        reward_range=question.reward_range,
        **question.users(name),
        workers=workers,
    )
    assert trace.stops is not None
    return trace.stops


def _least(question: Question, trust: str, epsilon: float, stands_for: float) -> float | None:
    """The rounds that any epsilon-private policy needs on average; in the local model, any that sees private bits."""
    theorem = rounds_to_know if trust == "central" else rounds_to_know_from_bits
    try:
        problem = Problem.on(question.arms, question.horizon, epsilon=epsilon, reward_range=question.reward_range)
        return stands_for * theorem(problem, 1.0 - question.confidence)
    except (DoesNotHold, InputError):
        return None
