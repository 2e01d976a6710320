"""Digests of the rewards of the last hour, by which a contradiction is recognised after a restart."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("answers", sa.Column("digest", sa.LargeBinary(), nullable=True))
