"""A user's own log: which arm was played and what it paid, one row a round. It is read once."""

from __future__ import annotations

import csv
import hashlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpbandits.environments.distributions import Choice
from dpbandits.errors import InputError, MissingExtraError
from dpbandits.formats import plural
from dpbandits.types import Floats, Integers

__all__ = ["Log", "Logged", "is_frame", "read_log"]

UNREADABLE = "\ufffd"  # in place of bytes that are no UTF-8
NUMBER = re.compile(r"\b\d")  # a number by itself, and not a digit of a name


@dataclass(frozen=True, eq=False, repr=False)
class Logged(Choice):
    """One arm of a log, resampled. It never shows its rewards, and what is computed from it says that it is from a log.

    >>> Logged(np.array([0.25, 1.0])), Logged.from_log
    (replay(a log of 2 rewards), True)
    """

    from_log = True

    def __str__(self) -> str:
        return f"replay(a log of {plural(self.values.size, 'reward')})"

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class Log:
    """The rewards of a log by arm, and on which lines they stand. Messages name lines, never rewards."""

    path: str  # of the file; empty for a data frame
    names: tuple[str, ...]  # numbers in their order, before names in theirs
    rewards: tuple[Floats, ...]  # of each arm
    lines: tuple[Integers, ...]  # of each arm's rewards

    def arms(self) -> list[Logged]:
        """Each arm's rewards, to be resampled."""
        return [Logged(rewards) for rewards in self.rewards]

    @property
    def text(self) -> str:
        """The log as arms are written. A data frame cannot be read back from its text."""
        rows = sum(rewards.size for rewards in self.rewards)
        return f"replay({self.path})" if self.path else f"replay(a data frame of {rows:,} rows)"

    def check(self, low: float, high: float) -> None:
        """Refuse a log with a reward outside [low, high]."""
        outside = [lines[(r < low) | (r > high)] for r, lines in zip(self.rewards, self.lines, strict=True)]
        first = min((int(lines.min()) for lines in outside if lines.size), default=None)
        if first is not None:
            raise InputError(
                "arms",
                f": {_place(self.path, first)}: the reward is outside the range [{low:g},{high:g}]: "
                "reward_range gives another",
            )

    def digest(self) -> str:
        """A hash of what the arms pay."""
        digest = hashlib.sha256(repr(self.names).encode())
        for rewards in self.rewards:
            digest.update(f"{rewards.size} ".encode() + rewards.tobytes())
        return digest.hexdigest()


def is_frame(value: object) -> bool:
    """Whether a value has columns: a data frame of pandas or polars, or a table of Arrow."""
    return hasattr(value, "columns") and hasattr(value, "__getitem__")


def read_log(source: Any) -> Log:
    """The log in a CSV or Parquet file, or in a data frame, with columns ``arm`` and ``reward``."""
    if is_frame(source):
        return _collected("", _frame(source))
    path = str(source)
    file = Path(path)
    if not file.is_file():
        raise InputError("arms", f": '{path}' is a folder, not a file" if file.is_dir() else f": no file '{path}'")
    return _collected(path, _parquet(file) if file.suffix == ".parquet" else _csv(file))


def _collected(path: str, rows: Iterator[tuple[int, str, float]]) -> Log:
    found: dict[str, tuple[list[float], list[int]]] = {}
    for line, arm, reward in rows:
        if not math.isfinite(reward):
            raise InputError("arms", f": {_place(path, line)}: the reward is not a finite number")
        rewards, lines = found.setdefault(arm, ([], []))
        rewards.append(reward)
        lines.append(line)
    names = sorted(found, key=_natural)
    columns = [(np.array(found[name][0]), np.array(found[name][1], np.int64)) for name in names]
    return Log(path, tuple(names), tuple(r for r, _ in columns), tuple(lines for _, lines in columns))


def _place(path: str, line: int) -> str:
    return f"line {line} of '{path}'" if path else f"row {line} of the data frame"


def _is_missing(value: object) -> bool:
    """Whether a cell is empty: None, NaN, or what pandas has in their place."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _name(path: str, line: int, arm: object) -> str:
    name = "" if _is_missing(arm) else str(arm).strip()
    if not name:
        raise InputError("arms", f": {_place(path, line)}: the arm has no name")
    return name


def _natural(name: str) -> tuple[int, float, str]:
    """Numbers in their order, before names in theirs."""
    try:
        return (0, float(name), name)
    except ValueError:
        return (1, 0.0, name)


def _columns(where: str, names: list[str], *, may_be_rewards: bool = False) -> tuple[int, int]:
    """Where the two columns are. A first line that may hold a reward is not shown."""
    missing = [name for name in ("arm", "reward") if name not in names]
    if missing:
        shown = f"{', '.join(names)!a:.200}"
        if may_be_rewards and any(NUMBER.search(name) for name in names):
            shown = "a line with numbers: are the names of the columns missing?"
        if may_be_rewards and len(names) == 1:
            shown += " (columns are separated by commas)"
        raise InputError("arms", f": {where}: no column {' and no column '.join(missing)}, got {shown}")
    for name in ("arm", "reward"):
        if names.count(name) > 1:
            raise InputError("arms", f": {where}: must have one column {name}, got {names.count(name)}")
    return names.index("arm"), names.index("reward")


def _csv(path: Path) -> Iterator[tuple[int, str, float]]:
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as stream:
        rows = csv.reader(stream)
        try:
            yield from _csv_rows(str(path), rows)
        except csv.Error:
            raise InputError(
                "arms", f": line {rows.line_num} of '{path}' cannot be read: is a quotation mark not closed?"
            ) from None


def _csv_rows(path: str, rows: Any) -> Iterator[tuple[int, str, float]]:
    head: list[str] = next(rows, [])
    arm, reward = _columns(f"line 1 of '{path}'", head, may_be_rewards=True)
    for row in rows:
        if not row:
            continue
        line = f"line {rows.line_num} of '{path}'"
        if any(cell.strip() for cell in row[len(head) :]):
            fields = f"{len(row)} fields, and line 1 has {len(head)}"
            raise InputError(
                "arms", f": {line} has {fields}: is there a comma in a decimal, or in a text without quotes?"
            )
        name = _name(path, rows.line_num, row[arm] if arm < len(row) else None)
        if UNREADABLE in name:  # two arms could become one
            raise InputError("arms", f": {line}: the name of the arm is no text in UTF-8: save the file as UTF-8")
        try:
            value = float(row[reward])
        except (IndexError, ValueError):
            raise InputError("arms", f": {line}: the reward is not a number") from None
        yield rows.line_num, name, value


def _frame(frame: Any) -> Iterator[tuple[int, str, float]]:
    names = getattr(frame, "column_names", None) or list(frame.columns)
    _columns("the data frame", [str(name) for name in names])
    arms, rewards = (_values(frame[name]) for name in ("arm", "reward"))
    for row, (arm, reward) in enumerate(zip(arms, rewards, strict=True), start=1):
        if isinstance(reward, str | bytes) or not hasattr(reward, "__float__"):
            raise InputError("arms", f": {_place('', row)}: the reward is not a number")
        yield row, _name("", row, arm), float(reward)


def _values(column: Any) -> list[Any]:
    return column.to_pylist() if hasattr(column, "to_pylist") else list(column)


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
    _columns(f"the columns of '{path}'", list(schema.names))
    table = parquet.read_table(path, columns=["arm", "reward"])
    for line, (arm, reward) in enumerate(
        zip(*(table.column(name).to_pylist() for name in ("arm", "reward")), strict=True), start=1
    ):
        if not isinstance(reward, int | float):
            raise InputError("arms", f": line {line} of '{path}': the reward is not a number")
        yield line, _name(str(path), line, arm), float(reward)
