"""The tables of the service. Times are integers in milliseconds; epsilons are exact, as text."""

from __future__ import annotations

import sqlalchemy as sa

__all__ = ["METADATA"]

METADATA = sa.MetaData()
_big = sa.BigInteger
NOT_FOLDED = sa.text("not folded")


def _counts(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, _big, nullable=False, server_default="0") for name in names]


def _decided() -> list[sa.Column[int]]:
    """What was decided, and when: a decision has it, and so has its answer, from the token."""
    return [
        sa.Column("arm", sa.Integer, nullable=False),
        sa.Column("stint", _big, nullable=False),
        sa.Column("kind", sa.Integer, nullable=False),
        sa.Column("level", sa.Integer, nullable=False),  # below 0: no response is taken
        sa.Column("made", _big, nullable=False),
    ]


experiments = sa.Table(
    "experiments",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("settings", sa.Text, nullable=False),  # JSON, as asked for
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("added", sa.Text, nullable=False),  # JSON: names of arms that came later
    sa.Column("paused", sa.Text, nullable=False),  # JSON: numbers of arms
    sa.Column("revision", _big, nullable=False),  # grows with every change of this row
    sa.Column("created", _big, nullable=False),
)

states = sa.Table(
    "states",
    METADATA,
    sa.Column("experiment", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("epoch", _big, nullable=False),  # of the process that may write it
    sa.Column("version", _big, nullable=False),
    sa.Column("draws", _big, nullable=False),  # how often noise was drawn and stored
    sa.Column("changed", _big, nullable=False),  # grows with every write
    sa.Column("at", _big, nullable=False),
    sa.Column("state", sa.LargeBinary, nullable=False),  # sealed: it holds the sums of open stints
)

decisions = sa.Table(
    "decisions",
    METADATA,
    sa.Column("experiment", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("decision", sa.Text, primary_key=True),
    sa.Column("first", sa.Integer, primary_key=True, autoincrement=False),  # of the items of a lease in this row
    sa.Column("items", sa.Integer, nullable=False),
    sa.Column("lease", sa.Integer, nullable=False),  # items asked for; 0 is a single decision
    *_decided(),
    sa.Column("version", _big, nullable=False),
    sa.Column("propensity", sa.Float),
    sa.Column("person", sa.LargeBinary),  # the pseudonym of the user
    sa.Column("folded", sa.Boolean, nullable=False),
    sa.Index("decisions_to_fold", "experiment", postgresql_where=NOT_FOLDED, sqlite_where=NOT_FOLDED),
    sqlite_with_rowid=False,
)  # fmt: skip

answers = sa.Table(
    "answers",
    METADATA,
    sa.Column("experiment", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("decision", sa.Text, primary_key=True),
    sa.Column("item", sa.Integer, primary_key=True, autoincrement=False),
    *_decided(),
    sa.Column("received", _big, nullable=False),
    sa.Column("outcome", sa.Text, nullable=False),  # used, apart, late, refused; waiting until it is folded
    sa.Column("response", _big),  # what a device sent; never a reward
    sa.Column("digest", sa.LargeBinary),  # of a reward: it tells nothing once its key is erased
    sa.Column("sealed", sa.LargeBinary),  # a reward that waits to be folded, sealed; erased by the fold
    sa.Column("folded", sa.Boolean, nullable=False),
    sa.Index("answers_to_fold", "experiment", postgresql_where=NOT_FOLDED, sqlite_where=NOT_FOLDED),
    sqlite_with_rowid=False,
)  # fmt: skip

people = sa.Table(
    "people",
    METADATA,
    sa.Column("experiment", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("person", sa.LargeBinary, primary_key=True),
    sa.Column("level", sa.Integer, primary_key=True, autoincrement=False),
    *_counts("responses"),
    sqlite_with_rowid=False,
)

traffic = sa.Table(
    "traffic",
    METADATA,
    sa.Column("experiment", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("minute", _big, primary_key=True, autoincrement=False),
    sa.Column("arm", sa.Integer, primary_key=True, autoincrement=False),
    *_counts("decisions", "silent", "used", "apart", "late", "duplicate", "refused"),
    sqlite_with_rowid=False,
)

held_out = sa.Table(
    "held_out",
    METADATA,
    sa.Column("experiment", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("level", sa.Integer, primary_key=True, autoincrement=False),
    *_counts("decisions", "responses"),
    sa.Column("total", sa.Float, nullable=False, server_default="0"),  # of what devices sent; never of rewards
    sqlite_with_rowid=False,
)

releases = sa.Table(
    "releases",
    METADATA,
    sa.Column("experiment", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("number", _big, primary_key=True, autoincrement=False),  # of the stint, or of the last response in it
    sa.Column("arm", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("responses", _big, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("at", _big, nullable=False),
    sa.Column("mean", sa.Float, nullable=False),
    sa.Column("epsilon", sa.Text, nullable=False),
)

audit = sa.Table(
    "audit",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("experiment", sa.Integer, nullable=False, index=True),
    sa.Column("at", _big, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("detail", sa.Text, nullable=False),  # JSON
)

api_keys = sa.Table(
    "api_keys",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("created", _big, nullable=False),
    sa.Column("revoked", _big),
)

requests = sa.Table(
    "requests",
    METADATA,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("answer", sa.Text, nullable=False),
    sa.Column("at", _big, nullable=False),
)
