"""Pages of other origins that may ask for decisions and answer them from a browser (CORS)."""

from __future__ import annotations

import re
from collections.abc import Iterable, MutableMapping
from typing import Any

from dpbandits.errors import InputError

__all__ = ["Origins"]

ORIGIN = re.compile(r"https?://[A-Za-z0-9.-]+(:\d{1,5})?|https?://\[[0-9a-f:.]+\](:\d{1,5})?")

_ALLOWED: list[tuple[bytes, bytes]] = [
    (b"access-control-allow-methods", b"POST"),
    (b"access-control-allow-headers", b"authorization, content-type"),
    (b"access-control-max-age", b"600"),
]


class Origins:
    """The origins that are allowed. Only decisions and answers are for them, never what may be read.

    >>> origins = Origins(["https://shop.example.org"])
    >>> scope = {"method": "POST", "headers": [(b"origin", b"https://shop.example.org")]}
    >>> origins.headers(scope)
    [(b'access-control-allow-origin', b'https://shop.example.org'), (b'vary', b'origin')]
    >>> origins.headers({"method": "POST", "headers": [(b"origin", b"https://other.example.org")]})
    []
    >>> Origins(["*"])
    Traceback (most recent call last):
    dpbandits.errors.InputError: allow_origins must be origins such as https://shop.example.org, got '*'
    """

    def __init__(self, allowed: Iterable[str]) -> None:
        self._allowed = set()
        for origin in allowed:
            if ORIGIN.fullmatch(origin) is None:
                rule = "must be origins such as https://shop.example.org"
                raise InputError("allow_origins", f"{rule}, got {origin!r:.200}")
            self._allowed.add(origin.encode())

    def __bool__(self) -> bool:
        return bool(self._allowed)

    def headers(self, scope: MutableMapping[str, Any]) -> list[tuple[bytes, bytes]]:
        """What a browser must read in the answer to a request; nothing where the request's origin is not allowed."""
        origin = next((value for name, value in scope["headers"] if name == b"origin"), None)
        if origin not in self._allowed:
            return []
        asks_first = scope["method"] == "OPTIONS"
        return [(b"access-control-allow-origin", origin), (b"vary", b"origin"), *(_ALLOWED if asks_first else [])]
