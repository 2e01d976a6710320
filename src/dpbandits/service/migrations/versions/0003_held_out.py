"""Counts of the users who are held out, which were counted anew for every summary."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

HELD_OUT = 2  # the kind of their decisions


def upgrade() -> None:
    op.create_table(
        "held_out",
        sa.Column("experiment", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("level", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("decisions", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("responses", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("total", sa.Float(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("experiment", "level"),
        sqlite_with_rowid=False,
    )
    # What is not yet folded is counted by its fold.
    op.execute(
        "insert into held_out (experiment, level, decisions, responses, total) "
        "select experiment, level, sum(decisions), sum(responses), sum(total) from ("
        "select experiment, level, sum(items) as decisions, 0 as responses, 0.0 as total from decisions "
        f"where kind = {HELD_OUT} and folded group by experiment, level union all "
        "select experiment, level, 0, count(*), coalesce(sum(cast(response as double precision)), 0.0) from answers "
        f"where kind = {HELD_OUT} and folded and outcome <> 'late' group by experiment, level"
        ") as counted group by experiment, level"
    )


def downgrade() -> None:
    op.drop_table("held_out")
