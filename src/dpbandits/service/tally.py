"""A tally outside the database: how often noise was drawn. It tells a restored backup from the latest state."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from dpbandits.service.store import Database

__all__ = ["Tally"]

METADATA = sa.MetaData()
draws = sa.Table(
    "dpbandits_draws",
    METADATA,
    sa.Column("experiment", sa.Text, primary_key=True),
    sa.Column("draws", sa.BigInteger, nullable=False),
)


class Tally:
    """A small table elsewhere: a file by default, or a database of the operator's choice.

    It is written after the commit of a draw and before anything that depends on the draw is shown. So the database may
    be ahead of it after a crash, and is behind it only if it is an old copy.
    """

    def __init__(self, url: str) -> None:
        self._store = Database(url)
        with self._store.opened() as connection, connection.begin():
            METADATA.create_all(connection)
        self._connection: sa.Connection | None = None

    def seen(self) -> dict[str, int]:
        """The number of draws of each experiment, by its name and number."""
        with self._store.opened() as connection, connection.begin():
            return {row.experiment: row.draws for row in connection.execute(sa.select(draws))}

    def record(self, counts: Mapping[str, int]) -> None:
        """Store these numbers, on disk."""
        mark = ":n" if self._store.embedded else "%(n)s"
        count = ":d" if self._store.embedded else "%(d)s"
        statement = (
            f"insert into dpbandits_draws (experiment, draws) values ({mark}, {count}) "
            "on conflict (experiment) do update set draws = excluded.draws where dpbandits_draws.draws < excluded.draws"
        )
        if self._connection is None:
            self._connection = self._store.engine.connect()
        with self._connection.begin():
            self._connection.exec_driver_sql(statement, [{"n": name, "d": n} for name, n in counts.items()])

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
        self._store.close()
