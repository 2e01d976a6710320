"""A server with moods: it decides and takes answers, or does what servers do on bad days. And a clock set by hand."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from dpbandits.client import Client

BLOCK: dict[str, Any] = {
    "mechanism": "bernoulli",
    "epsilon": "1/2",
    "range": [0.0, 1.0],
    "sigmoid": False,
    "steps": 1,
    "respond_within": 100.0,
    "respond_by": "2026-01-01T00:00:00.000+00:00",
}


class Moody:
    """What the server does, and what it has seen."""

    def __init__(self) -> None:
        self.mood = "well"  # or drip, hang, garbled, cut, an HTTP status, or what becomes of every answer
        self.curator: dict[str, Any] | None = BLOCK
        self.change: dict[str, Any] = {}  # of the answer to a request for a decision
        self.paths: list[str] = []
        self.asked: list[dict[str, Any]] = []
        self.sent: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.known: dict[str, Any] = {}
        self.url = ""

    def answer(self, path: str, body: bytes) -> tuple[int, bytes]:
        self.paths.append(path)
        deciding = path.endswith("/decisions")
        if not deciding:
            self.sent.append(body)
        if self.mood.isdigit():
            return int(self.mood), json.dumps({"status": int(self.mood), "detail": "as asked"}).encode()
        if self.mood == "garbled":
            return 200, b"<html>\xff"
        read = json.loads(body)
        if deciding:
            self.asked.append(read)
            token = None if self.curator is None else f"token-{read['decision']}"
            made = {"decision": read["decision"], "arm": "green", "curator": self.curator, "token": token}
            return 200, json.dumps({**made, **self.change}).encode()
        if self.mood != "well":
            return 410, json.dumps({"status": self.mood}).encode()
        content = {name: value for name, value in read.items() if name != "token"}
        before = self.known.setdefault(read["token"], content)
        fresh = list(self.known.values()).count(content) == 1 and self.sent.count(body) == 1
        status = "accepted" if fresh else "duplicate" if before == content else "conflict"
        return 200, json.dumps({"status": status}).encode()


@contextmanager
def moody() -> Iterator[Moody]:
    """A server on a port of its own."""
    world = Moody()
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            world.headers.append(dict(self.headers))
            if world.mood == "hang":
                over.wait(30)
            if world.mood in ("hang", "cut"):
                self.close_connection = True
                return
            if world.mood == "drip":
                self.drip()
                return
            status, content = world.answer(self.path, body)
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def drip(self) -> None:
            self.close_connection = True
            try:
                for letter in b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + b" " * 1000:
                    if over.wait(0.05):
                        return
                    self.wfile.write(bytes([letter]))
                    self.wfile.flush()
            except OSError:
                return

        def log_message(self, format: str, *arguments: Any) -> None:
            return

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            return

    server = Quiet(("127.0.0.1", 0), Handler)
    world.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield world
    finally:
        over.set()
        server.shutdown()
        thread.join()
        server.server_close()


class Still(Client):
    """A client without a thread: tests say when things are sent."""

    def _run(self) -> None:
        return


class Hand:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def until(true: Any, seconds: float = 60.0) -> None:
    """Wait until something is true."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
