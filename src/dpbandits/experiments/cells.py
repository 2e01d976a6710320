"""One cell of an experiment: a simulation, its number of runs, and its label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dpbandits.simulation import Simulation
from dpbandits.simulation.runs import result_key

CHECKPOINTS = 60


@dataclass(frozen=True, eq=False)
class Cell:
    """A simulation with a number of runs.

    >>> cell = Cell.of("ucb1", "0.9,0.6", 1000, runs=5)
    >>> cell.key == Cell.of("ucb1", [0.9, 0.6], "1e3", runs=50, label="UCB").key
    True
    """

    simulation: Simulation
    runs: int
    label: str = ""
    engine: str = "compiled"  # the numbers do not depend on it

    @classmethod
    def of(
        cls,
        policy: Any,
        arms: Any,
        horizon: Any,
        runs: int,
        epsilon: float | None = None,
        options: Mapping[str, Any] | None = None,
        *,
        label: str = "",
        **settings: Any,
    ) -> Cell:
        """A cell from the arguments of ``simulate``."""
        given = {"epsilon": epsilon, "options": options, "checkpoints": CHECKPOINTS, **settings}
        return cls(Simulation.of(policy, arms=arms, horizon=horizon, **given), runs, label)

    @cached_property
    def key(self) -> str:
        """The key of its results: a hash of all that determines a single run. The number of runs is not part of it."""
        return result_key(self.simulation)

    @property
    def name(self) -> str:
        """The label, or the policy with its epsilon."""
        if self.label:
            return self.label
        policy, epsilon = self.simulation.policy.name, self.simulation.epsilon
        return policy if epsilon is None else f"{policy}, ε = {epsilon:g}"

    def to_json(self) -> dict[str, Any]:
        """JSON-ready."""
        return {**self.simulation.to_json(), "runs": self.runs}
