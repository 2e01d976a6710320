"""Every decision and what became of it, as CSV and as Parquet. A reward is never among it."""

from __future__ import annotations

import csv
import io
import itertools
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import IO, Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dpbandits.errors import MissingExtraError
from dpbandits.service.books import SILENT, LiveRun
from dpbandits.service.experiment import HOLDOUT, POLICY, RANDOM, REPLACED, SHADOW, Experiment
from dpbandits.service.tables import answers, decisions

__all__ = ["as_csv", "as_parquet", "in_pieces", "pages"]

PAGE = 200  # rows of the table of decisions that are read at once; one may be a lease of 1000
MOST_LINES = 10_000  # of a page
GROUP = 50_000  # lines, at least, of a row group of a Parquet file, but for the last
PIECE = 1 << 18  # bytes of a file that are sent at once

KINDS = {POLICY: "policy", RANDOM: "chance", HOLDOUT: "holdout", SHADOW: "shadow", REPLACED: "replaced"}
COLUMNS = ("decision", "arm", "chosen_by", "propensity", "version", "made", "level", "received", "outcome", "response")


def as_csv(pages: Iterable[list[list[Any]]]) -> Generator[bytes, None, None]:
    """As CSV, in pieces."""
    for page in itertools.chain([[list(COLUMNS)]], pages):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(page)
        yield text.getvalue().encode()


def as_parquet(pages: Iterable[list[list[Any]]]) -> IO[bytes]:
    """As Parquet, with the same columns: a file that has no name, and is gone when it is closed.

    Memory holds one row group at a time, however many decisions there are.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("pyarrow", "data") from None
    kinds = [pa.string(), pa.string(), pa.string(), pa.float64(), pa.int64(), pa.float64(), pa.string(), pa.float64(),
             pa.string(), pa.int64()]  # fmt: skip
    schema = pa.schema(list(zip(COLUMNS, kinds, strict=True)))
    file = tempfile.TemporaryFile()  # noqa: SIM115  # whoever sends it closes it
    try:
        with pq.ParquetWriter(file, schema) as writer:
            group: list[Any] = []
            for page in pages:
                columns = zip(*page, strict=True)
                arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
                group.append(pa.table(arrays, schema=schema))
                if sum(map(len, group)) >= GROUP:
                    writer.write_table(pa.concat_tables(group))
                    group = []
            if group:
                writer.write_table(pa.concat_tables(group))
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


def in_pieces(file: IO[bytes]) -> Generator[bytes, None, None]:
    """The content of a file, which is closed at the end."""
    with file:
        while piece := file.read(PIECE):
            yield piece


def pages(
    opened: Callable[[], AbstractContextManager[tuple[Connection, LiveRun]]],
) -> Generator[list[list[Any]], None, None]:
    """The rows, with the values of ``COLUMNS``. Each page is read in a transaction of its own.

    A reader who is slow, or gone, then holds no connection, and does not keep SQLite's log from being overwritten.
    """
    after = ("", -1)
    while True:
        with opened() as (connection, run):
            found, answered = _page(connection, run.experiment.id, after)
        if not found:
            return
        yield [line for row in found for line in _items(run.experiment, row, answered.get(row.decision, {}))]
        after = (found[-1].decision, found[-1].first)


def _page(connection: Connection, number: int, after: tuple[str, int]) -> tuple[list[Any], dict[str, dict[int, Any]]]:
    """The next rows of the table of decisions, and the answers to them by decision and item."""
    place = sa.tuple_(decisions.c.decision, decisions.c.first)
    later = (decisions.c.experiment == number) & (place > sa.tuple_(*map(sa.literal, after)))
    query = sa.select(decisions).where(later).order_by(decisions.c.decision, decisions.c.first).limit(PAGE)
    found = list(connection.execute(query))
    lines = itertools.accumulate(row.items for row in found)
    found = [row for row, line in zip(found, lines, strict=True) if line <= MOST_LINES]
    answered: dict[str, dict[int, Any]] = {}
    if found:
        named = answers.c.decision.between(found[0].decision, found[-1].decision)
        for row in connection.execute(sa.select(answers).where((answers.c.experiment == number) & named)):
            answered.setdefault(row.decision, {})[row.item] = row
    return found, answered


def _items(experiment: Experiment, row: Any, answered: dict[int, Any]) -> Iterator[list[Any]]:
    level = None if row.level <= SILENT or experiment.trust == "none" else str(experiment.costs[row.level])
    for item in range(row.first, row.first + row.items):
        answer = answered.get(item)
        yield [
            row.decision if row.lease == 0 else f"{row.decision}.{item}",
            experiment.arms[row.arm],
            KINDS[row.kind],
            row.propensity,
            row.version,
            row.made / 1000,
            level,
            None if answer is None else answer.received / 1000,
            None if answer is None else answer.outcome,
            None if answer is None else answer.response,
        ]
