"""The tables of the first version."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "answers",
        sa.Column("experiment", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("decision", sa.Text(), nullable=False),
        sa.Column("item", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("arm", sa.Integer(), nullable=False),
        sa.Column("stint", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Integer(), nullable=False),
        sa.Column("level", sa.Integer(), nullable=False),
        sa.Column("made", sa.BigInteger(), nullable=False),
        sa.Column("received", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("response", sa.BigInteger(), nullable=True),
        sa.Column("sealed", sa.LargeBinary(), nullable=True),
        sa.Column("folded", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("experiment", "decision", "item"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "answers_to_fold",
        "answers",
        ["experiment"],
        unique=False,
        postgresql_where=sa.text("not folded"),
        sqlite_where=sa.text("not folded"),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("revoked", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("experiment", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_audit_experiment"), "audit", ["experiment"], unique=False)
    op.create_table(
        "decisions",
        sa.Column("experiment", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("decision", sa.Text(), nullable=False),
        sa.Column("first", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("items", sa.Integer(), nullable=False),
        sa.Column("lease", sa.Integer(), nullable=False),
        sa.Column("arm", sa.Integer(), nullable=False),
        sa.Column("stint", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Integer(), nullable=False),
        sa.Column("level", sa.Integer(), nullable=False),
        sa.Column("made", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("propensity", sa.Float(), nullable=True),
        sa.Column("person", sa.LargeBinary(), nullable=True),
        sa.Column("folded", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("experiment", "decision", "first"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "decisions_to_fold",
        "decisions",
        ["experiment"],
        unique=False,
        postgresql_where=sa.text("not folded"),
        sqlite_where=sa.text("not folded"),
    )
    op.create_table(
        "experiments",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("added", sa.Text(), nullable=False),
        sa.Column("paused", sa.Text(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "people",
        sa.Column("experiment", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("person", sa.LargeBinary(), nullable=False),
        sa.Column("level", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("responses", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("experiment", "person", "level"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "releases",
        sa.Column("experiment", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("arm", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("responses", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("mean", sa.Float(), nullable=False),
        sa.Column("epsilon", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("experiment", "number", "arm"),
    )
    op.create_table(
        "requests",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_table(
        "states",
        sa.Column("experiment", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("draws", sa.BigInteger(), nullable=False),
        sa.Column("changed", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("experiment"),
    )
    op.create_table(
        "traffic",
        sa.Column("experiment", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("minute", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("arm", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("decisions", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("silent", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("used", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("apart", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("late", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("duplicate", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("refused", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("experiment", "minute", "arm"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("traffic")
    op.drop_table("states")
    op.drop_table("requests")
    op.drop_table("releases")
    op.drop_table("people")
    op.drop_table("experiments")
    op.drop_index(
        "decisions_to_fold",
        table_name="decisions",
        postgresql_where=sa.text("not folded"),
        sqlite_where=sa.text("not folded"),
    )
    op.drop_table("decisions")
    op.drop_index(op.f("ix_audit_experiment"), table_name="audit")
    op.drop_table("audit")
    op.drop_table("api_keys")
    op.drop_index(
        "answers_to_fold",
        table_name="answers",
        postgresql_where=sa.text("not folded"),
        sqlite_where=sa.text("not folded"),
    )
    op.drop_table("answers")
