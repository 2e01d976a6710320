"""Alembic's entry point; the connection is given by ``store.migrate``."""

from __future__ import annotations

from alembic import context

from dpbandits.service.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
with context.begin_transaction():
    context.run_migrations()
