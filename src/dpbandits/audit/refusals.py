"""The exceptions that end an attempt at a proof."""

from __future__ import annotations

__all__ = ["Refused", "Used"]


class Refused(BaseException):  # no Exception: the code that is verified cannot swallow it
    """The verifier cannot decide, and the text says why."""


class Used(BaseException):  # as above
    """Memory was used that an argument needs to be untouched, so that the argument does not apply."""
