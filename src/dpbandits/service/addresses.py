"""Addresses of databases: how they are read, what people may see of them, and those that are not what they seem."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from dpbandits.errors import InputError
from dpbandits.service.files import resolved

__all__ = ["driver_words", "read_address", "shown_address"]

HIDDEN = "***"
#: Signs of an address in the name of a user or a database: something is not separated as it should be.
ODD = re.compile("[:&;=?/]")


def read_address(name: str, text: str) -> tuple[URL, Path | None]:
    """The address of a database, with our driver, and the file of one of SQLite that is not in memory.

    ``name`` is that of the setting which a refusal speaks of.
    """
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):  # the text is not repeated: it may hold a password
        raise InputError(name, "must be sqlite:///FILE or postgresql://USER@HOST/NAME, got another text") from None
    _refuse_odd(name, url)
    if url.get_backend_name() == "postgresql":
        return url.set(drivername="postgresql+psycopg"), None
    if url.get_backend_name() != "sqlite":
        raise InputError(name, f"must be sqlite:///FILE or postgresql://..., got '{shown_address(url)}'")
    file = url.database if url.database != ":memory:" else None
    if url.query or (file or "").startswith("file:"):
        rule = "must be sqlite:///FILE with a plain path, without file: and options"
        raise InputError(name, f"{rule}, got '{shown_address(url)}'")
    return url, resolved(name, Path(file)) if file else None


def shown_address(url: URL | str) -> str:
    """An address as people may see it, without the password and the parameters, which may hold a password, too.

    Where another part looks as if a password had got into it, that part is not shown, either.

    >>> shown_address("postgresql://ann:hunter2@db/bandits?sslmode=require")
    'postgresql://ann:***@db/bandits'
    >>> shown_address("postgresql://db/bandits&password=hunter2")
    'postgresql://db/***'
    """
    made = make_url(url).set(query={})
    hidden: dict[str, Any] = dict.fromkeys(_odd_parts(made), HIDDEN)
    return made.set(**hidden).render_as_string().replace(quote(HIDDEN, safe=""), HIDDEN)


def _odd_parts(url: URL) -> list[str]:
    """The parts of an address that may hold more than they should."""
    if url.get_backend_name() == "sqlite":
        return []
    return [part for part in ("username", "database") if ODD.search(getattr(url, part) or "")]


def driver_words(url: URL, error: BaseException | None) -> str:
    """What the driver says, in one line, without such parts."""
    text = " ".join(str(error).split())
    for part in _odd_parts(url):
        text = text.replace(getattr(url, part), HIDDEN)
    return text


def _refuse_odd(name: str, url: URL) -> None:
    """Refuse an address whose parts are not what they seem: an error would show a part of the password."""
    if "@" in (url.host or ""):
        raise InputError(name, "must have one @, before the host: in a user or a password write it as %40")
    if not all(map(str.isprintable, filter(None, (url.username, url.password, url.host, url.database)))):
        raise InputError(name, "must have no characters that cannot be printed, such as %00")
    plain = url.drivername in ("sqlite", "sqlite+pysqlite") and not (url.username or url.password or url.host)
    if url.get_backend_name() == "sqlite" and not plain:
        raise InputError(name, "must be sqlite:///FILE, with three slashes and without a user, a host or a driver")
