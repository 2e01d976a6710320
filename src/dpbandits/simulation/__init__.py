"""Many rounds, many runs, quickly and exactly."""

from dpbandits.simulation.driver import Interrupted, simulate, simulate_all
from dpbandits.simulation.settings import Simulation
from dpbandits.simulation.trace import Trace
from dpbandits.simulation.traces import Traces

__all__ = ["Interrupted", "Simulation", "Trace", "Traces", "simulate", "simulate_all"]
