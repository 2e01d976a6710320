"""A standing benchmark: every private policy on a fixed public set of problems."""

from dpbandits.benchmark.problems import PROBLEMS, TRACKS, Challenge, Track
from dpbandits.benchmark.run import benchmark
from dpbandits.benchmark.scores import Scores, scored

__all__ = ["PROBLEMS", "TRACKS", "Challenge", "Scores", "Track", "benchmark", "scored"]
