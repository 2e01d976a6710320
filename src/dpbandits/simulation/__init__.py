"""Many rounds, many runs, quickly and exactly."""

from dpbandits.simulation.runs import Interrupted, Setup, simulate
from dpbandits.simulation.trace import Trace

__all__ = ["Interrupted", "Setup", "Trace", "simulate"]
