"""Servers in processes of their own, that can be killed."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest
from postgres import free_port

#: Seconds that servers get to start. A worker imports everything, which takes long on a busy machine.
STARTING = 180


class Zygote:
    """The process from which servers are forked."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("zygote.py")
        self.process = subprocess.Popen(
            [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def start(self, **settings: Any) -> int:
        """The process id of a new server."""
        return self._say(settings)

    def wait(self, process: int) -> None:
        """Wait until a server has ended, with all its threads."""
        self._say(process)

    def _say(self, command: Any) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def stop(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


class Server:
    """One server: it can be killed and started again, on the same port and with the same files."""

    def __init__(self, zygote: Zygote, folder: Path, store: str, name: str = "server", **settings: Any) -> None:
        self.zygote, self.port = zygote, free_port()
        self.log = folder / f"{name}.log"
        self.settings = {
            "store": store,
            "keys": str(folder / "keys"),
            "tally": f"sqlite:///{folder}/tally",
            "port": self.port,
            "log_format": "json",
            "log": str(self.log),
            **settings,
        }
        self.process = 0

    def start(self, wait: float = STARTING) -> None:
        self.process = self.zygote.start(**self.settings)
        deadline = time.monotonic() + wait
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.call("GET", "/livez")[0] == 200:
                    return
            time.sleep(0.01)
        raise AssertionError(f"the server does not start: {self.log.read_text()[-2000:]}")

    def kill(self) -> None:
        os.kill(self.process, signal.SIGKILL)
        self.zygote.wait(self.process)
        self.process = 0

    def stop(self) -> None:
        if self.process:
            os.kill(self.process, signal.SIGTERM)
            self.zygote.wait(self.process)
            self.process = 0

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """(status, JSON) of one request."""
        return call(self.port, method, path, body)


#: ``dpbandits``, with other constants of its module ``serving``.
CHANGED = "from dpbandits.cli import main; from dpbandits.service import serving; vars(serving).update({}); main()"


class Workers:
    """``dpbandits serve`` as it is typed, with two workers on one PostgreSQL.

    ``waits`` are other values, in seconds, for ``GRACE`` and ``PATIENCE`` of ``serving``.
    """

    def __init__(self, folder: Path, store: str, **waits: int) -> None:
        self.port, self.folder = free_port(), folder
        words = ["serve", "--store", store, "--workers", "2", "--port", str(self.port)]
        program = ["-c", CHANGED.format(waits)] if waits else ["-m", "dpbandits"]
        with open(folder / "workers.log", "w") as log:
            command = [sys.executable, *program, *words]
            self.process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)

    def __enter__(self) -> Self:
        deadline = time.monotonic() + STARTING
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.call("GET", "/readyz")[0] == 200 and len(self.started) == 2:
                    return self
            time.sleep(0.05)
        raise AssertionError(f"the workers do not start: {(self.folder / 'workers.log').read_text()[-2000:]}")

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    @property
    def started(self) -> list[int]:
        """The process ids of the workers that have started, those that have ended since among them."""
        text = (self.folder / "workers.log").read_text()
        return [int(number) for number in re.findall(r"Started server process \[(\d+)\]", text)]

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """(status, JSON) of one request."""
        return call(self.port, method, path, body)


def call(port: int, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """(status, JSON) of one request to a server on this machine."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, {"content-type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        kind = answer.headers.get("content-type", "")
        return answer.status, json.loads(text) if "json" in kind else text.decode(errors="replace")
    finally:
        connection.close()


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    """For the ``conftest`` of each folder that starts servers."""
    made = Zygote()
    yield made
    made.stop()


@pytest.fixture
def server(zygote: Zygote, tmp_path: Path) -> Iterator[Server]:
    """A server on an empty SQLite database, for a test."""
    made = Server(zygote, tmp_path, f"sqlite:///{tmp_path}/test.db")
    made.start()
    yield made
    made.stop()
