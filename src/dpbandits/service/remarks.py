"""What is found when something is looked at: how grave it is, and a text for people, which no program reads."""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["Remark", "Severity"]

#: A problem prevents the start of a server. A warning says that an experiment may be going wrong. A note does neither.
Severity = Literal["problem", "warning", "note"]


class Remark(NamedTuple):
    """Something that was found; of an experiment also what it is about, and which arm, if it is one."""

    level: Severity
    text: str
    about: str = ""
    arm: str | None = None
