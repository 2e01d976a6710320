"""Tables that fit the width of the terminal. A name is never broken: lines are broken between words only."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence

__all__ = ["layout", "width"]

GAP = "  "
#: Spaces at which a line is broken only where the table would not fit otherwise: within numbers with an error or unit.
TIED = {" ±": "\0±", "± ": "±\0", " %": "\0%"}


def width() -> int:
    """The width of the terminal, or COLUMNS; 80 if there is neither, as in a pipe."""
    return max(shutil.get_terminal_size((80, 24)).columns, 20)


def layout(columns: Sequence[str], rows: Sequence[Sequence[str]], columns_wide: int) -> list[str]:
    """The lines of a table that is at most so wide; where the columns do not fit side by side, one entry a row.

    >>> layout(["policy", "regret"], [["ldp-ucb-b", "1,905 ± 12"]], 80)
    ['policy     regret', 'ldp-ucb-b  1,905 ± 12']
    >>> layout(["policy", "regret"], [["ldp-ucb-b", "1,905 ± 12"]], 14)
    ['ldp-ucb-b', '  regret:', '    1,905 ± 12']
    """
    for tied in (True, False):
        table = [[_tie(cell) if tied else cell for cell in row] for row in (columns, *rows)]
        widths = _widths(table, columns_wide)
        if widths is not None:
            return [line.replace("\0", " ") for row in table for line in _row(row, widths)]
    return [line for row in rows for line in _entry(columns, row, columns_wide)]


def _tie(cell: str) -> str:
    for loose, tied in TIED.items():
        cell = cell.replace(loose, tied)
    return cell


def _widths(table: Sequence[Sequence[str]], wide: int) -> list[int] | None:
    """The width of each column: as it is if all fit, else the widest are narrowed; None if words would be broken."""
    columns = list(zip(*table, strict=True))
    natural = [max(len(cell) for cell in column) for column in columns]
    least = [max((len(word) for cell in column for word in cell.split(" ")), default=0) for column in columns]
    room = wide - len(GAP) * (len(columns) - 1)
    if sum(least) > room:
        return None
    while sum(natural) > room:
        widest = max(range(len(natural)), key=lambda at: natural[at] - least[at])
        natural[widest] -= 1
    return natural


def _row(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    wrapped = [_wrap(cell, wide) for cell, wide in zip(cells, widths, strict=True)]
    lines = []
    for number in range(max(len(lines) for lines in wrapped)):
        parts = [
            (part[number] if number < len(part) else "").ljust(wide) for part, wide in zip(wrapped, widths, strict=True)
        ]
        lines.append(GAP.join(parts).rstrip())
    return lines


def _entry(columns: Sequence[str], row: Sequence[str], wide: int) -> list[str]:
    lines = [row[0]]
    for column, cell in zip(columns[1:], row[1:], strict=True):
        text = f"{column}: {cell}"
        if not cell:
            continue
        if len(text) + 2 <= wide:
            lines.append(f"  {text}")
        else:
            lines += [f"  {column}:", *(f"    {part}" for part in _wrap(cell, max(wide - 4, 1)))]
    return lines


def _wrap(text: str, wide: int) -> list[str]:
    return textwrap.wrap(text, max(wide, 1), break_long_words=False, break_on_hyphens=False) or [""]
