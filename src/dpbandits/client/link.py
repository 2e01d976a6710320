"""Requests to a server with the standard library: each ends by its deadline, and none raises."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from dpbandits.errors import InputError

__all__ = ["Link"]

#: The longest answer that is read, in bytes.
MOST_BYTES = 1_000_000


class Link:
    """The way to one server."""

    def __init__(self, url: str, key: str | None) -> None:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except (AttributeError, TypeError, ValueError):
            parts, host, port = urlsplit(""), None, None
        if parts.scheme not in ("http", "https") or not host:
            raise InputError("url", f"must be like http://host:port or https://host, got {url!r:.200}")
        self._make = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._host, self._port, self.base = host, port, parts.path.rstrip("/")
        if key is not None and not (isinstance(key, str) and key.isascii() and key.isprintable()):
            raise InputError("key", "must be a key as dpbandits key create shows it; this is not one")
        self._headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})

    def post(self, path: str, body: bytes, timeout: float) -> tuple[int, Any]:
        """(status, JSON) of one request; status 0 is no answer in time, and None is no JSON."""
        connection = self._make(self._host, self._port, timeout=timeout)
        watch: threading.Timer | None = None
        try:
            connection.connect()
            watch = threading.Timer(timeout, _hang_up, [connection.sock])  # a server may send a byte now and then
            watch.daemon = True
            watch.start()
            connection.request("POST", self.base + path, body, self._headers)
            answer = connection.getresponse()
            content = answer.read(MOST_BYTES)
        except (OSError, http.client.HTTPException, ValueError):
            return 0, None
        finally:
            if watch is not None:
                watch.cancel()
            connection.close()
        try:
            return answer.status, json.loads(content)
        except (ValueError, RecursionError):
            return answer.status, None


def _hang_up(sock: socket.socket) -> None:
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
