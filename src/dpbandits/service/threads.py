"""Threads by what they do: however much is planned and exported, what must be answered soon does not wait for one."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

__all__ = ["Threads"]

Found = TypeVar("Found")


class Threads:
    """Some threads for one kind of work.

    >>> threads = Threads("sums", 2)
    >>> asyncio.run(threads.run(sum, [1, 2]))
    3
    >>> threads.close()
    """

    def __init__(self, name: str, number: int) -> None:
        self._pool = ThreadPoolExecutor(number, name)

    async def run(self, work: Callable[..., Found], *given: object) -> Found:
        """What ``work`` returns, in one of the threads, as ``asyncio.to_thread`` does it in those that all share."""
        call = partial(contextvars.copy_context().run, work, *given)
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    def close(self) -> None:
        """Wait for what is under way, and begin nothing more."""
        self._pool.shutdown(cancel_futures=True)
