"""The loop of a simulation whose responses come late or never: it plays the rules of ``live.Desk``, compiled too."""

from __future__ import annotations

import math

import numpy as np

from dpbandits.environments.delays import Delay
from dpbandits.live import Desk
from dpbandits.protocols import Agent, Curator, Environment, Releases
from dpbandits.types import Floats, Integers, Rng

__all__ = ["play_delayed", "room"]

#: The columns of what is on its way: when it comes, the round of its decision, and what ``Desk.receive`` needs.
COMES, ROUND, ARM, STINT, RESPONSE, LEVEL = range(6)
COLUMNS = 6


def room(horizon: int) -> Floats:
    """An array for the responses that are on their way. The system gives memory only to rows that are used."""
    return np.empty((horizon, COLUMNS))


def play_delayed(
    environment: Environment,
    releases: Releases,
    curator: Curator,
    agent: Agent,
    desk: Desk,
    delay: Delay,
    loss: float,
    on_the_way: Floats,
    checkpoints: Integers,
    pulls: Integers,
    rewards: Rng,
    noise: Rng,
    choices: Rng,
    delays: Rng,
) -> None:
    """Play to the last checkpoint; write the pulls of each arm so far at each one, (checkpoints, arms).

    The decision of round t is made at the time t. Its response comes at t plus a delay, and never with probability
    ``loss``. Before each decision, all responses that have come by then are folded, in the order of time. A decision
    whose response does not come in time waits until its window has passed. ``on_the_way`` holds the responses that
    have not come: as many rows as rounds.
    """
    count = mark = 0
    for t in range(1, checkpoints[len(checkpoints) - 1] + 1):
        while count > 0 and on_the_way[0, COMES] < t:
            fold(curator, desk, on_the_way[0], noise)
            count = remove_first(on_the_way, count)
        arm = desk.decide(releases, curator, agent, float(t), noise, choices)
        level = environment.population.level(rewards)
        response = curator.respond(environment.draw(arm, rewards), level, noise)
        comes, expires = t + delay.rounds(delays), t + desk.window
        if math.isnan(response):  # a user at level 0 sends nothing, which is known when the decision is made
            desk.out[arm] -= 1
            comes = math.inf
        elif loss > 0.0 and delays.random() < loss:
            comes, response = expires, math.nan
        elif comes > expires:
            comes, response = expires, math.nan
            desk.late[0] += 1
        if comes < math.inf:
            row = on_the_way[count]
            row[COMES], row[ROUND], row[ARM] = comes, t, arm
            row[STINT], row[RESPONSE], row[LEVEL] = desk.stint[0], response, level
            count = insert_last(on_the_way, count)
        pulls[mark, arm] += 1
        if checkpoints[mark] == t and mark + 1 < len(checkpoints):
            for other in range(pulls.shape[1]):
                pulls[mark + 1, other] = pulls[mark, other]
            mark += 1


def fold(curator: Curator, desk: Desk, row: Floats, noise: Rng) -> None:
    """Receive a response. A row without one is a decision whose window has passed: stop waiting for it."""
    arm = int(row[ARM])
    if math.isnan(row[RESPONSE]):
        desk.out[arm] -= 1
    else:
        desk.tick(curator, row[COMES], noise)
        desk.receive(curator, arm, int(row[STINT]), row[ROUND], row[RESPONSE], row[LEVEL], row[COMES], noise)


def comes_before(heap: Floats, i: int, j: int) -> bool:
    """Whether row i comes before row j; of two at the same time, the one that was decided first."""
    if heap[i, COMES] != heap[j, COMES]:
        return heap[i, COMES] < heap[j, COMES]
    return heap[i, ROUND] < heap[j, ROUND]


def exchange(heap: Floats, i: int, j: int) -> None:
    """Exchange two rows."""
    for column in range(heap.shape[1]):
        heap[i, column], heap[j, column] = heap[j, column], heap[i, column]


def insert_last(heap: Floats, count: int) -> int:
    """Take the row after the first ``count`` into the heap; how many it then has.

    >>> heap = np.array([[3.0, 0.0], [2.0, 0.0], [1.0, 0.0]])
    >>> count = 0
    >>> for _ in range(3):
    ...     count = insert_last(heap, count)
    >>> count, float(heap[0, 0]), remove_first(heap, count), float(heap[0, 0])
    (3, 1.0, 2, 2.0)
    """
    child = count
    while child > 0 and comes_before(heap, child, (child - 1) // 2):
        exchange(heap, child, (child - 1) // 2)
        child = (child - 1) // 2
    return count + 1


def remove_first(heap: Floats, count: int) -> int:
    """Remove the row that comes first; how many are left."""
    count -= 1
    exchange(heap, 0, count)
    parent = 0
    while 2 * parent + 1 < count:
        child = 2 * parent + 1
        if child + 1 < count and comes_before(heap, child + 1, child):
            child += 1
        if not comes_before(heap, child, parent):
            break
        exchange(heap, child, parent)
        parent = child
    return count
