"""Logs: one line for each event, as JSON or for people. Bodies of requests are never logged, and so no reward is."""

from __future__ import annotations

import logging
import sys
import time
import traceback
from typing import Any

import structlog

__all__ = ["Seldom", "configure", "where"]

SELDOM = 10.0  # seconds between two lines that say the same
MAX_TEXTS = 100  # for so many texts it is known when each was last written


def where(error: BaseException) -> str:
    """The kind of an error and the lines it passed, without its text and without values: those might be rewards."""
    return f"{type(error).__name__}\n{''.join(traceback.format_tb(error.__traceback__))}"


class Seldom:
    """Whether a text that may come with every request is to be written: at most every ten seconds, each.

    >>> seldom = Seldom()
    >>> [seldom.allows(text) for text in ("disk full", "disk full", "no disk", "disk full")]
    [True, False, True, False]
    """

    def __init__(self) -> None:
        self._written: dict[str, float] = {}

    def allows(self, text: str) -> bool:
        """Whether it was not written for a while; it then counts as written."""
        now = time.monotonic()
        if now < self._written.get(text, -SELDOM) + SELDOM:
            return False
        if len(self._written) >= MAX_TEXTS:
            self._written.clear()
        self._written[text] = now
        return True


def configure(kind: str) -> None:
    """Log to standard error, ours and the libraries' alike."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[Any] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if kind == "json"
        else [
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)
        ]
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last]
        )
    )
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger("uvicorn.access").disabled = True
