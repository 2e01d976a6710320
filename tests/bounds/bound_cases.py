"""Problems on which the tests of the theorems agree."""

from __future__ import annotations

import math

import numpy as np

from dpbandits.bounds import Bound, LinearProblem, Problem
from dpbandits.environments import Levels

LOG = math.log(10**6)
PI2 = math.pi**2
TWO = Problem.bernoulli([0.9, 0.6], 10**6, epsilon=2.0)
C2 = [0.75, 0.625, 0.5, 0.375, 0.25]
FIG_3 = [0.8, 0.1, 0.1, 0.1, 0.1]
FIVE = Levels.of([0, 0.2, 1, 2, 100])


def value(bound: Bound) -> float:
    assert bound.value is not None, bound.holds
    return bound.value


def basis(parameter: tuple[float, ...], epsilon: float) -> LinearProblem:
    d = len(parameter)
    return LinearProblem(tuple(tuple(map(float, row)) for row in np.eye(d)), parameter, 10**6, epsilon)
