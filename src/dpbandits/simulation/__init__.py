"""Many rounds, many runs, quickly and exactly."""

from dpbandits.simulation.runs import Interrupted, simulate
from dpbandits.simulation.trace import Trace

__all__ = ["Interrupted", "Trace", "simulate"]
