"""The summary of an experiment whenever it changes: it is made once for all who watch."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from dpbandits.service.service import Service

__all__ = ["Watched", "stream"]

EVERY = 1.0  # seconds between events
KEPT = 10.0  # a summary is not made again for this many times as long as it took: decisions need the processor
LONGEST = 10.0  # seconds for which one is kept: it may have taken long because it waited for the database


@dataclass
class _Summary:
    content: bytes = b""
    until: float = -math.inf  # when it is old
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Watched:
    """The latest summary of each experiment that somebody watches, as JSON."""

    def __init__(self, make: Callable[[str], Awaitable[bytes]]) -> None:
        self._make = make
        self._summaries: dict[str, _Summary] = {}

    async def latest(self, name: str) -> bytes:
        """The summary of an experiment that exists. Those who ask while it is made get the same one."""
        summary = self._summaries.setdefault(name, _Summary())
        async with summary.lock:
            began = time.monotonic()
            if began >= summary.until:
                summary.content = await self._make(name)
                now = time.monotonic()
                summary.until = now + min(max(EVERY, KEPT * (now - began)), LONGEST)
            return summary.content


async def stream(service: Service, watched: Watched, name: str, key: str | None) -> AsyncIterator[bytes]:
    """The summary whenever it changes, as server-sent events, as long as the key is valid."""
    sent = b""
    while service.ready and not service.stopping and service.admits(key):
        content = await watched.latest(name)
        if content != sent:
            sent = content
            yield b"event: summary\ndata: " + content + b"\n\n"
        else:
            yield b": still here\n\n"
        await asyncio.sleep(EVERY)
