"""Policies written a second time, from their formulas alone: what the package's choices are compared with."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dpbandits.curators.rounds import OneByOne
from dpbandits.policies.policy import Policy

History = list[list[float]]  # by arm: the responses so far


def kl(p: float, q: float) -> float:
    """The divergence, without shortcuts."""
    q = min(max(q, 1e-15), 1.0 - 1e-15)
    return sum(a * math.log(a / b) for a, b in ((p, q), (1.0 - p, 1.0 - q)) if a > 0.0)


def bisected(f: Callable[[float], bool], low: float, high: float) -> float:
    """Where ``f``, true at ``low``, becomes false."""
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if f(middle) else (low, middle)
    return low


def local_imed(bits: History, correction: float) -> list[float]:
    """The index of each arm; the least is played."""
    means = [sum(own) / len(own) for own in bits]
    indices = []
    for own, mean in zip(bits, means, strict=True):
        e = len(own) * kl(mean, max(means))
        indices.append(max(0.0, e - correction * math.log(1.0 + e)) + math.log(len(own)))
    return indices


def within(n: int, mean: float, budget: float, q: float) -> bool:
    """Whether n observations of this mean speak against q by at most ``budget``."""
    return n * kl(mean, q) <= budget


def local_kl_ucb(bits: History, t: int) -> list[float]:
    """The index of each arm, with the sign turned: the least is played."""
    indices = []
    for own in bits:
        n, mean = len(own), sum(own) / len(own)
        indices.append(-bisected(partial(within, n, mean, math.log(t)), mean, 1.0))
    return indices


def tied(chosen: int, indices: Sequence[float]) -> bool:
    """Whether ``chosen`` has the least index, up to rounding."""
    return indices[chosen] <= min(indices) + 1e-9 * (1.0 + abs(min(indices)))


def responses(policy: Policy, means: Sequence[float], rounds: int, seed: int) -> Any:
    """Play a policy in plain Python; yields (t, arm, stint, what each arm's devices have sent) before each stint."""
    rng, curator = np.random.default_rng(seed), OneByOne(policy.curator)
    sent: History = [[] for _ in means]
    t = 1
    while t <= rounds:
        arm, stint, _ = policy.agent.act(curator, t, rng)
        yield t, arm, stint, sent
        for _ in range(min(stint, rounds + 1 - t)):
            response = curator.respond(float(rng.random() < means[arm]), 1.0, rng)
            curator.add(arm, response, 1.0, rng)
            sent[arm].append(response)
            t += 1
        curator.close(arm, rng)


def d_eps(x: float, y: float, epsilon: float) -> float:
    """The least of epsilon |z - x| + kl(z, y), by a search for z between x and y."""
    low, high = min(max(min(x, y), 0.0), 1.0), min(max(max(x, y), 0.0), 1.0)
    for _ in range(50):  # a convex function of z
        a, b = low + (high - low) / 3.0, high - (high - low) / 3.0
        smaller = epsilon * abs(a - x) + kl(a, y) < epsilon * abs(b - x) + kl(b, y)
        low, high = (low, b) if smaller else (a, high)
    z = 0.5 * (low + high)
    return epsilon * abs(z - x) + kl(z, y)


Released = list[tuple[int, float]]  # of one arm: the size and the noisy sum of each batch


def dp_klucb(released: list[Released], epsilon: float, t: int) -> list[float]:
    """The index of each arm, with the sign turned."""
    indices = []
    for batches in released:
        n = sum(size for size, _ in batches)
        mean = min(max(sum(total for _, total in batches) / n, 0.0), 1.0)
        largest = bisected(lambda q, n=n, mean=mean: n * d_eps(mean, q, epsilon) <= math.log(t), mean, 1.0)  # type: ignore[misc]
        indices.append(-largest)
    return indices


def dp_imed(released: list[Released], epsilon: float) -> list[float]:
    """The index of each arm."""
    counts = [sum(size for size, _ in batches) for batches in released]
    means = [
        min(max(sum(total for _, total in batches) / n, 0.0), 1.0) for batches, n in zip(released, counts, strict=True)
    ]
    return [n * d_eps(mean, max(means), epsilon) + math.log(n) for n, mean in zip(counts, means, strict=True)]


def dp_glr_imed(released: list[Released], epsilon: float, correction: float) -> list[float]:
    """The index of each arm, the estimates by a search on a convex function."""

    def misfit(batches: Released, q: float) -> float:
        return sum(n * d_eps(total / n, q, epsilon) for n, total in batches)

    means = []
    for batches in released:
        low, high = 0.0, 1.0
        for _ in range(40):
            a, b = low + (high - low) / 3.0, high - (high - low) / 3.0
            low, high = (low, b) if misfit(batches, a) < misfit(batches, b) else (a, high)
        means.append(0.5 * (low + high))
    indices = []
    for batches, mean in zip(released, means, strict=True):
        e = max(misfit(batches, max(means)) - misfit(batches, mean), 0.0)
        n = sum(size for size, _ in batches)
        indices.append(max(0.0, e - correction * math.log(1.0 + e)) + math.log(n))
    return indices
