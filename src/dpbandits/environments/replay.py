"""A user's own log: which arm was played and what it paid, one row a round. It is read once."""

from __future__ import annotations

import csv
import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpbandits.environments.distributions import Choice
from dpbandits.errors import InputError, MissingExtraError
from dpbandits.types import Floats, Integers

__all__ = ["Log", "read_log"]


@dataclass(frozen=True, eq=False)
class Log:
    """The rewards of a log by arm, and on which lines they stand. Messages name lines, never rewards."""

    path: str
    names: tuple[str, ...]  # numbers in their order, before names in theirs
    rewards: tuple[Floats, ...]  # of each arm
    lines: tuple[Integers, ...]  # of each arm's rewards

    def arms(self) -> list[Choice]:
        """Each arm's rewards, to be resampled."""
        return [Choice(rewards) for rewards in self.rewards]

    def check(self, low: float, high: float) -> None:
        """Refuse a log with a reward outside [low, high]."""
        outside = [lines[(r < low) | (r > high)] for r, lines in zip(self.rewards, self.lines, strict=True)]
        first = min((int(lines.min()) for lines in outside if lines.size), default=None)
        if first is not None:
            raise InputError(
                "arms", f": line {first} of '{self.path}': the reward is outside the range [{low:g},{high:g}]"
            )

    def digest(self) -> str:
        """A hash of what the arms pay."""
        digest = hashlib.sha256(repr(self.names).encode())
        for rewards in self.rewards:
            digest.update(f"{rewards.size} ".encode() + rewards.tobytes())
        return digest.hexdigest()


def read_log(path: str) -> Log:
    """The log in a CSV or Parquet file with columns ``arm`` and ``reward``."""
    file = Path(path)
    if not file.is_file():
        raise InputError("arms", f": no file '{path}'")
    found: dict[str, tuple[list[float], list[int]]] = {}
    for line, arm, reward in _parquet(file) if file.suffix == ".parquet" else _csv(file):
        if not math.isfinite(reward):
            raise InputError("arms", f": line {line} of '{path}': the reward is not a finite number")
        rewards, lines = found.setdefault(arm, ([], []))
        rewards.append(reward)
        lines.append(line)
    names = sorted(found, key=_natural)
    columns = [(np.array(found[name][0]), np.array(found[name][1], np.int64)) for name in names]
    return Log(path, tuple(names), tuple(r for r, _ in columns), tuple(lines for _, lines in columns))


def _name(path: Path, line: int, arm: object) -> str:
    name = str(arm).strip()
    if arm is None or not name:
        raise InputError("arms", f": line {line} of '{path}': the arm has no name")
    return name


def _natural(name: str) -> tuple[int, float, str]:
    """Numbers in their order, before names in theirs."""
    try:
        return (0, float(name), name)
    except ValueError:
        return (1, 0.0, name)


def _columns(path: Path, names: list[str]) -> tuple[int, int]:
    missing = [name for name in ("arm", "reward") if name not in names]
    if missing:
        raise InputError(
            "arms", f": line 1 of '{path}': no column {' and no column '.join(missing)}, got {', '.join(names)}"
        )
    return names.index("arm"), names.index("reward")


def _csv(path: Path) -> Iterator[tuple[int, str, float]]:
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as stream:
        rows = csv.reader(stream)
        arm, reward = _columns(path, next(rows, []))
        for row in rows:
            if not row:
                continue
            name = _name(path, rows.line_num, row[arm] if arm < len(row) else None)
            try:
                value = float(row[reward])
            except (IndexError, ValueError):
                raise InputError("arms", f": line {rows.line_num} of '{path}': the reward is not a number") from None
            yield rows.line_num, name, value


def _parquet(path: Path) -> Iterator[tuple[int, str, float]]:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "data") from None
    try:
        schema = parquet.read_schema(path)
    except pyarrow.ArrowInvalid:
        raise InputError("arms", f": '{path}' is not a Parquet file") from None
    _columns(path, list(schema.names))
    table = parquet.read_table(path, columns=["arm", "reward"])
    for line, (arm, reward) in enumerate(
        zip(*(table.column(name).to_pylist() for name in ("arm", "reward")), strict=True), start=1
    ):
        if not isinstance(reward, int | float):
            raise InputError("arms", f": line {line} of '{path}': the reward is not a number")
        yield line, _name(path, line, arm), float(reward)
