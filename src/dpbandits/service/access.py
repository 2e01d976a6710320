"""Who may do what: API keys with roles, and how many requests each may send."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dpbandits.checks import known
from dpbandits.errors import InputError
from dpbandits.service.tables import api_keys

__all__ = ["ROLES", "ApiKey", "Limiter", "authenticate", "create", "keys", "revoke"]

#: What each role may do.
ROLES = {"admin": {"admin", "decide", "read"}, "decide": {"decide"}, "read": {"read"}}

_TEXT = re.compile(r"dpb_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")


class ApiKey(NamedTuple):
    """A key as it is stored: its secret is not."""

    id: str
    name: str
    role: str
    digest: str
    created: int
    revoked: int | None


def create(connection: Connection, name: str, role: str) -> str:
    """Make a key; its text, which is shown once and not stored."""
    known("role", role, ROLES)
    if not 0 < len(name) <= 200 or not name.isprintable():
        raise InputError("name", f"must be 1 to 200 printable characters, got {name!r:.80}")
    number, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    row = ApiKey(number, name, role, _digest(secret), int(time.time() * 1000), None)
    connection.execute(sa.insert(api_keys).values(row._asdict()))
    return f"dpb_{number}_{secret}"


def keys(connection: Connection) -> list[ApiKey]:
    """All keys, the oldest first."""
    return [ApiKey(*row) for row in connection.execute(sa.select(api_keys).order_by(api_keys.c.created))]


def revoke(connection: Connection, number: str) -> None:
    """End the validity of a key."""
    now = int(time.time() * 1000)
    live = (api_keys.c.id == number) & api_keys.c.revoked.is_(None)
    if connection.execute(sa.update(api_keys).where(live).values(revoked=now)).rowcount == 0:
        raise InputError("key", f"must be the id of a valid key, as dpbandits key list shows it, got '{number:.80}'")


def authenticate(text: str, valid: dict[str, ApiKey]) -> ApiKey | None:
    """The key with this text. The comparison takes the same time whatever is wrong with it."""
    found = _TEXT.fullmatch(text)
    stored = valid.get(found[1]) if found else None
    digest = _digest(found[2] if found else "")
    same = hmac.compare_digest(digest, stored.digest if stored else _digest("none"))
    return stored if same else None


def _digest(secret: str) -> str:
    """Secrets are 256 random bits, so a plain hash cannot be searched."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Limiter:
    """A limit on the requests a second of each client; twice as many may come at once.

    >>> limiter = Limiter(1.0, clock=lambda: 0.0)
    >>> [limiter.allows("a") for _ in range(3)], limiter.allows("b")
    ([True, True, False], True)
    """

    MOST_CLIENTS = 10_000

    def __init__(self, rate: float, clock: Any = time.monotonic) -> None:
        self.rate, self.clock = rate, clock
        self._left: dict[str, tuple[float, float]] = {}

    def allows(self, client: str) -> bool:
        """Whether a client may send a request now."""
        now = self.clock()
        most = max(2.0 * self.rate, 1.0)
        left, then = self._left.get(client, (most, now))
        left = min(most, left + (now - then) * self.rate)
        self._left.pop(client, None)
        if len(self._left) >= self.MOST_CLIENTS:
            del self._left[next(iter(self._left))]  # the one that was longest silent
        self._left[client] = (max(left - 1.0, 0.0) if left >= 1.0 else left, now)
        return left >= 1.0
