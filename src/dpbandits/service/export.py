"""Every decision and what became of it, as CSV and as Parquet. A reward is never among it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dpbandits.errors import MissingExtraError
from dpbandits.service.books import SILENT, LiveRun
from dpbandits.service.experiment import HOLDOUT, POLICY, RANDOM, REPLACED, SHADOW, Experiment
from dpbandits.service.tables import answers, decisions

__all__ = ["as_csv", "as_parquet"]

KINDS = {POLICY: "policy", RANDOM: "chance", HOLDOUT: "holdout", SHADOW: "shadow", REPLACED: "replaced"}
COLUMNS = ("decision", "arm", "chosen_by", "propensity", "version", "made", "level", "received", "outcome", "response")


def as_csv(connection: Connection, run: LiveRun) -> Iterator[bytes]:
    """As CSV, in pieces."""
    yield _line(list(COLUMNS))
    for row in _rows(connection, run):
        yield _line(row)


def _line(row: list[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(row)
    return text.getvalue().encode()


def as_parquet(connection: Connection, run: LiveRun) -> bytes:
    """As Parquet, with the same columns."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("pyarrow", "data") from None
    columns: list[list[Any]] = [[] for _ in COLUMNS]
    for row in _rows(connection, run):
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    kinds = [pa.string(), pa.string(), pa.string(), pa.float64(), pa.int64(), pa.float64(), pa.string(), pa.float64(),
             pa.string(), pa.int64()]  # fmt: skip
    table = pa.table([pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], names=list(COLUMNS))
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def _rows(connection: Connection, run: LiveRun) -> Iterator[list[Any]]:
    """The rows, with the values of ``COLUMNS``."""
    experiment = run.experiment
    join = sa.and_(
        answers.c.experiment == decisions.c.experiment,
        answers.c.decision == decisions.c.decision,
        answers.c.item >= decisions.c.first,
        answers.c.item < decisions.c.first + decisions.c["items"],
    )
    query = (
        sa.select(decisions, answers.c.item, answers.c.received, answers.c.outcome, answers.c.response)
        .select_from(decisions.outerjoin(answers, join))
        .where(decisions.c.experiment == experiment.id)
        .order_by(decisions.c.decision, decisions.c.first, answers.c.item)
    )
    current: tuple[Any, Any] | None = None
    answered: dict[int, Any] = {}
    last: Any = None
    for row in connection.execution_options(yield_per=1000).execute(query):
        if (row.decision, row.first) != current:
            if last is not None:
                yield from _items(experiment, last, answered)
            current, answered, last = (row.decision, row.first), {}, row
        if row.item is not None:
            answered[row.item] = row
    if last is not None:
        yield from _items(experiment, last, answered)


def _items(experiment: Experiment, row: Any, answered: dict[int, Any]) -> Iterator[list[Any]]:
    level = None if row.level == SILENT or experiment.trust == "none" else str(experiment.costs[row.level])
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
