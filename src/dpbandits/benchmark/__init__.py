"""A standing benchmark: every private policy on a fixed public set of problems."""

from dpbandits.benchmark.problems import PROBLEMS, TRACKS, Problem, Track
from dpbandits.benchmark.run import benchmark
from dpbandits.benchmark.scores import Scores, scored

__all__ = ["PROBLEMS", "TRACKS", "Problem", "Scores", "Track", "benchmark", "scored"]
