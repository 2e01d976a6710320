"""Statements over many rows at once, for SQLite and for PostgreSQL.

A driver gives other threads a turn at every statement, and ``executemany`` is one statement for each row: under load a
row then waits for its turn longer than it takes. So rows go in few statements: SQLite gets lists of values of a few
lengths, whose statements it has prepared before; PostgreSQL gets one array for each column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any

import sqlalchemy as sa

from dpbandits.service.tables import METADATA

__all__ = ["Insert", "Lookup"]

#: Rows in one statement of SQLite, which takes 32 766 values: whole lists of the most that a request may send, the rest
#: in powers of two.
SIZES = (2000, 1000, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1)

_KINDS = {
    sa.BigInteger: "bigint",
    sa.Integer: "int",
    sa.Text: "text",
    sa.LargeBinary: "bytea",
    sa.Float: "float8",
    sa.Boolean: "bool",
}


def _pieces(rows: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """The rows in pieces that have these sizes.

    >>> [list(piece) for piece in _pieces("abcdefg")]
    [['a', 'b', 'c', 'd'], ['e', 'f'], ['g']]
    """
    start = 0
    for size in SIZES:
        while len(rows) - start >= size:
            yield rows[start : start + size]
            start += size


def _arrays(table: str, columns: Sequence[str]) -> str:
    """The parameters of PostgreSQL's ``unnest``."""
    found = METADATA.tables[table].columns
    return ", ".join(f"%s::{_KINDS[type(found[name].type)]}[]" for name in columns)


def _columns(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


class Insert:
    """Insert rows into these columns of a table.

    >>> Insert("releases", ("arm", "mean")).sqlite(2)
    'insert into releases (arm, mean) values (?, ?), (?, ?)'
    >>> Insert("releases", ("arm", "mean"), "on conflict do nothing").postgresql
    'insert into releases (arm, mean) select * from unnest(%s::int[], %s::float8[]) on conflict do nothing'

    In SQLite, all rows may have the same values in the columns ``shared``, which are sent once:

    >>> Insert("releases", ("arm",), shared=("at",)).sqlite(2)
    'insert into releases (at, arm) select ?1, * from (values (?), (?)) where true'
    """

    def __init__(
        self,
        table: str,
        columns: Sequence[str],
        otherwise: str = "",
        shared: Sequence[str] = (),
        *,
        planned_anew: bool = False,
    ) -> None:
        self._into, self._width = f"insert into {table} ({', '.join([*shared, *columns])})", len(columns)
        self._otherwise = f" {otherwise}" if otherwise else ""
        self._shared = "".join(f"?{number}, " for number in range(1, len(shared) + 1))
        self.postgresql = f"{self._into} select * from unnest({_arrays(table, columns)}){self._otherwise}"
        self._prepare = False if planned_anew else None  # None: PostgreSQL keeps the plan of what is run often
        self.sqlite = cache(self._sqlite)

    def _sqlite(self, rows: int) -> str:
        row = f"({', '.join('?' * self._width)})"
        values = f"values {', '.join([row] * rows)}"
        if self._shared:
            values = f"select {self._shared}* from ({values}) where true"
        return f"{self._into} {values}{self._otherwise}"

    def run(self, cursor: Any, rows: Sequence[Sequence[Any]], *, embedded: bool, shared: Sequence[Any] = ()) -> int:
        """Insert the rows; how many were inserted or changed."""
        if not rows:
            return 0
        if not embedded:
            cursor.execute(self.postgresql, _columns(rows), prepare=self._prepare)
            return int(cursor.rowcount)
        stored = 0
        for piece in _pieces(rows):
            cursor.execute(self.sqlite(len(piece)), [*shared, *chain.from_iterable(piece)])
            stored += cursor.rowcount
        return stored


class Lookup:
    """Read columns of the rows of a table that have one of many keys.

    >>> Lookup("people", ("person",), ("level",)).sqlite(2)
    'with k(k0) as (values (?), (?)) select t.level from k cross join people t on person = k0'

    ``on`` is for rows that have the first key and are found by more than equality; a column ``k.k1`` is the second key:

    >>> Lookup("people", ("person", "level"), ("person", "k.k1"), on="person = k0 and level < k1").sqlite(1)
    'with k(k0, k1) as (values (?, ?)) select t.person, k.k1 from k cross join people t on person = k0 and level < k1'
    """

    def __init__(
        self, table: str, keys: Sequence[str], columns: Sequence[str], more: str = "", *, on: str | None = None
    ) -> None:
        names = [f"k{number}" for number in range(len(keys))]
        same = on or " and ".join(f"{key} = {name}" for key, name in zip(keys, names, strict=True))
        shown = ", ".join(column if "." in column else f"t.{column}" for column in columns)
        self._width, self._names = len(keys), ", ".join(names)
        self._select = f"select {shown} from k cross join {table} t on {same}{f' {more}' if more else ''}"
        self.postgresql = (
            f"select {shown} from unnest({_arrays(table, keys)}) as k({self._names}) join {table} t on {same}"
            f"{f' {more}' if more else ''}"
        )
        self.sqlite = cache(self._sqlite)

    def _sqlite(self, rows: int) -> str:
        row = f"({', '.join('?' * self._width)})"
        return f"with k({self._names}) as (values {', '.join([row] * rows)}) {self._select}"

    def run(self, cursor: Any, keys: Sequence[Sequence[Any]], *, embedded: bool) -> list[tuple[Any, ...]]:
        """The rows that are there."""
        if not keys:
            return []
        if not embedded:
            cursor.execute(self.postgresql, _columns(keys))
            return list(cursor.fetchall())
        found: list[tuple[Any, ...]] = []
        for piece in _pieces(keys):
            cursor.execute(self.sqlite(len(piece)), list(chain.from_iterable(piece)))
            found += cursor.fetchall()
        return found
