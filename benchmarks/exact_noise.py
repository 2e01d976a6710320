"""Microseconds for one response of each exact curator: the least of five timings of 20,000.

python benchmarks/exact_noise.py
"""

from __future__ import annotations

import timeit

from dpbandits.exact import BernoulliCurator, LaplaceCurator, LocalCurator, RandomisedResponse, SigmoidCurator

CALLS = 20_000

CURATORS: dict[str, LocalCurator] = {
    "randomised response": RandomisedResponse("1"),
    "Bernoulli": BernoulliCurator("1"),
    "Bernoulli, sigmoid": SigmoidCurator(BernoulliCurator("1")),
    "Laplace": LaplaceCurator("1"),
    "Laplace, sigmoid": SigmoidCurator(LaplaceCurator("1")),
    "Laplace, epsilon 0.1": LaplaceCurator("0.1"),
    "Laplace, epsilon 0.000001": LaplaceCurator("0.000001"),
}


def microseconds(curator: LocalCurator) -> float:
    """For one response."""
    return min(timeit.repeat(lambda: curator.respond(0.3), number=CALLS, repeat=5)) / CALLS * 1e6


if __name__ == "__main__":
    for name, curator in CURATORS.items():
        print(f"{name:28}{microseconds(curator):6.1f}")
