"""A session as text: what it holds, and how it is checked when it is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from dpbandits.checks import at_least
from dpbandits.errors import InputError

__all__ = ["FORMAT", "SECRET", "SECRET_STATE", "checksum", "read_saved", "stint_of"]

FORMAT = 2

#: What a saved session says about itself.
SECRET = "it holds open sums of rewards: whoever reads it must be allowed to see them"
SECRET_STATE = "it holds the state of the noise, from which past rewards follow: it is as secret as the rewards"

#: What a saved session must hold.
SCHEMA: dict[str, type | tuple[type, ...]] = {
    "policy": str,
    "settings": dict,
    "arms": list,
    "epsilon": (str, type(None)),
    "window": (int, float, type(None)),
    "noise": str,
    "live": dict,
}


def checksum(record: Mapping[str, Any]) -> str:
    """The checksum of everything else in the text."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def read_saved(text: str) -> dict[str, Any]:
    """A saved session, whose checksum fits."""
    try:
        record = json.loads(text)
        kept = record.pop("checksum", None)
    except (AttributeError, TypeError, ValueError, RecursionError):
        raise InputError("text", "must be a saved session; this is not one") from None
    if record.get("format") != FORMAT:
        raise InputError("text", f"must be a saved session of format {FORMAT}, got {record.get('format')}")
    if kept != checksum(record):
        raise InputError("text", "was changed after it was saved: its checksum does not fit")
    for name, kind in SCHEMA.items():
        if name not in record or not isinstance(record[name], kind):
            raise InputError("text", f"must be a saved session; this one is damaged: {name} is missing or invalid")
    return dict(record)


def stint_of(saved: Any) -> tuple[int, float | None]:
    """The number of the open stint and the propensity of its arm, as they were saved."""
    try:
        number, propensity = saved
        chance = None if propensity is None else float(propensity)
        if chance is not None and not 0.0 <= chance <= 1.0:
            raise ValueError("no probability")
        return at_least("stint", number, 0), chance
    except (TypeError, ValueError, OverflowError):
        raise InputError("text", "must be a saved session; this one is damaged: stint is invalid") from None
