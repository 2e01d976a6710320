"""A user's own log as arms: each arm's rewards, resampled."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dpbandits.environments.distributions import Choice, Distribution
from dpbandits.errors import InputError, MissingExtraError


def read_log(path: str) -> list[Distribution]:
    """The arms of a CSV or Parquet file with columns ``arm`` and ``reward``, in the order of their names.

    Rewards are not shown in messages, only where they stand.
    """
    rewards: dict[str, list[float]] = {}
    for line, arm, reward in _rows(path):
        if not math.isfinite(reward):
            raise InputError(f"arms: line {line} of '{path}': the reward is not a finite number")
        rewards.setdefault(arm, []).append(reward)
    return [Choice(np.array(rewards[arm]), f"replay of '{arm}'") for arm in sorted(rewards, key=_natural)]


def check_log(path: str, low: float, high: float) -> None:
    """Refuse a log with a reward outside [low, high]."""
    for line, _, reward in _rows(path):
        if not low <= reward <= high:
            raise InputError(f"arms: line {line} of '{path}': the reward is outside the range [{low:g},{high:g}]")


def _rows(path: str) -> Iterator[tuple[int, str, float]]:
    file = Path(path)
    if not file.is_file():
        raise InputError(f"arms: no file '{path}'")
    return _parquet(file) if file.suffix == ".parquet" else _csv(file)


def _name(path: Path, line: int, arm: object) -> str:
    name = str(arm).strip()
    if arm is None or not name:
        raise InputError(f"arms: line {line} of '{path}': the arm has no name")
    return name


def _natural(name: str) -> tuple[int, float, str]:
    """Numbers in their order, before names in theirs."""
    try:
        return (0, float(name), name)
    except ValueError:
        return (1, 0.0, name)


def _columns(path: Path, names: list[str]) -> None:
    missing = [name for name in ("arm", "reward") if name not in names]
    if missing:
        raise InputError(
            f"arms: line 1 of '{path}': no column {' and no column '.join(missing)}, got {', '.join(names)}"
        )


def _csv(path: Path) -> Iterator[tuple[int, str, float]]:
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as stream:
        rows = csv.DictReader(stream)
        _columns(path, list(rows.fieldnames or []))
        for row in rows:
            try:
                yield rows.line_num, _name(path, rows.line_num, row["arm"]), float(row["reward"])
            except InputError:
                raise
            except (TypeError, ValueError):
                raise InputError(f"arms: line {rows.line_num} of '{path}': the reward is not a number") from None


def _parquet(path: Path) -> Iterator[tuple[int, str, float]]:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "data") from None
    try:
        schema = parquet.read_schema(path)
    except pyarrow.ArrowInvalid:
        raise InputError(f"arms: '{path}' is not a Parquet file") from None
    _columns(path, list(schema.names))
    table = parquet.read_table(path, columns=["arm", "reward"])
    for line, (arm, reward) in enumerate(
        zip(*(table.column(name).to_pylist() for name in ("arm", "reward")), strict=True), start=1
    ):
        if not isinstance(reward, int | float):
            raise InputError(f"arms: line {line} of '{path}': the reward is not a number")
        yield line, _name(path, line, arm), float(reward)
