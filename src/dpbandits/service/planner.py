"""The planner beside a form: a few simulations in a process of their own, which is ended when it takes too long."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any

from dpbandits.errors import InputError
from dpbandits.service.problems import Refusal

__all__ = ["MOST_ROUNDS", "Planner"]

LIMIT = 60.0  # seconds for an answer; on a new machine the policies are compiled first, and what is compiled is kept
WAITING = 4  # requests that may wait for it
MOST_ROUNDS = 10_000_000


class Planner:
    """Asks the other process, one question at a time."""

    def __init__(self, limit: float = LIMIT) -> None:
        self.limit = limit
        self._lock, self._waiting = threading.Lock(), threading.Semaphore(WAITING)
        self._process: subprocess.Popen[str] | None = None
        self._closed = False

    def ask(self, given: dict[str, Any]) -> dict[str, Any]:
        """The answer, or a problem: which field is wrong, or that it takes too long."""
        if not self._waiting.acquire(blocking=False):
            raise Refusal(503, "the planner is busy: try again", headers={"retry-after": "1"})
        try:
            with self._lock:
                line = self._said(json.dumps(given))
        finally:
            self._waiting.release()
        if not line:
            detail = (
                f"the planner was ended, or took longer than {self.limit:g} s: try again, or ask about less traffic"
            )
            raise Refusal(503, detail, headers={"retry-after": "1"})
        found: dict[str, Any] = json.loads(line)
        if "refused" in found:
            raise InputError(*found["refused"])
        return found

    def _said(self, question: str) -> str:
        """What the process answers; nothing where it was ended."""
        if self._closed:
            return ""
        if self._process is not None and self._process.poll() is not None:
            self._end()
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "dpbandits.service.forecast"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        end = threading.Timer(self.limit, process.kill)
        end.start()
        try:
            process.stdin.write(question + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        finally:
            end.cancel()
        if not line:
            self._end()  # and wait until it has ended: the next question starts another one
        return line

    def close(self) -> None:
        """End the process, and start no other."""
        self._closed = True
        self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            with suppress(OSError):  # what could not be written to it
                self._process.communicate()
            self._process = None
