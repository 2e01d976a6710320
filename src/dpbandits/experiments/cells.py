"""One cell of an experiment: the settings of one simulation, which name its results."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dpbandits
from dpbandits.simulation import Setup

#: The folders and files of the package that decide what a run's numbers are.
CODE = ("agents", "curators", "environments", "mechanisms", "policies", "privacy", "simulation", "numerics.py")


@dataclass(frozen=True)
class Cell:
    """A policy on a problem: what ``simulate`` takes.

    >>> cell = Cell("ucb1", arms="0.9,0.6", horizon=1000, runs=5)
    >>> cell.key() == Cell("ucb1", arms="0.9,0.6", horizon=1000, runs=50, label="UCB").key()
    True
    """

    policy: str
    arms: str
    horizon: int
    runs: int
    epsilon: float | None = None
    options: dict[str, Any] = field(default_factory=dict)
    levels: str | None = None
    seed: int = 0
    reward_range: tuple[float, float] | None = None
    arm_order: str = "shuffled"
    checkpoints: int = 60
    label: str = ""

    def settings(self) -> dict[str, Any]:
        """What decides the numbers of each run: everything but how many there are, and the label."""
        return {
            "policy": self.policy,
            "arms": self.arms,
            "horizon": self.horizon,
            "epsilon": self.epsilon,
            "options": self.options,
            "levels": self.levels,
            "seed": self.seed,
            "reward_range": self.reward_range,
            "arm_order": self.arm_order,
            "checkpoints": self.checkpoints,
        }

    def key(self) -> str:
        """A hash of the settings, of the log that the arms come from, and of the code that plays them."""
        record = {**self.settings(), "code": code_digest(), "log": _log_digest(self.arms)}
        return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:32]

    def setup(self) -> Setup:
        """The cell, read, checked and ready to play."""
        return Setup.of(**self.settings())

    @property
    def name(self) -> str:
        """The label, or the policy with its epsilon."""
        if self.label:
            return self.label
        return self.policy if self.epsilon is None else f"{self.policy}, ε = {self.epsilon:g}"


@functools.cache
def code_digest() -> str:
    """A hash of the sources that decide numbers: results of other code are not taken for results of this one."""
    digest = hashlib.sha256(dpbandits.__version__.encode())
    root = Path(dpbandits.__file__).parent
    for part in CODE:
        for path in sorted((root / part).rglob("*.py")) if (root / part).is_dir() else [root / part]:
            digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def _log_digest(arms: str) -> str | None:
    log = re.fullmatch(r"\s*replay\((.+)\)\s*", arms)
    return None if log is None else hashlib.sha256(Path(log[1].strip()).read_bytes()).hexdigest()
