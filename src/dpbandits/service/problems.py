"""Errors as problem documents (RFC 9457): what is wrong, which field, what is allowed."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from pydantic_core import PydanticSerializationError
from sqlalchemy.exc import IntegrityError, InterfaceError, OperationalError, ProgrammingError, TimeoutError

from dpbandits.errors import InputError
from dpbandits.service.experiment import Experiment
from dpbandits.service.files import LostFileError
from dpbandits.service.writer import Missing, Overloaded, Unavailable, Untallied

__all__ = ["AWAY", "MEDIA_TYPE", "Refusal", "not_loaded", "not_running", "problem_of"]

MEDIA_TYPE = "application/problem+json"

#: What is raised where the database does not answer, is not ours any more, or lacks its tables while it is restored.
AWAY = (OperationalError, InterfaceError, ProgrammingError, TimeoutError, LostFileError)


class Refusal(Exception):  # noqa: N818  # an answer, and no failure
    """An answer that is an error.

    >>> Refusal(404, "there is no experiment 'shop'").document()["title"]
    'Not Found'
    """

    def __init__(self, status: int, detail: str, *, headers: dict[str, str] | None = None, **more: Any) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers, self.more = status, detail, headers or {}, more

    def document(self) -> dict[str, Any]:
        """The document."""
        title = HTTPStatus(self.status).phrase
        return {"type": "about:blank", "title": title, "status": self.status, "detail": self.detail, **self.more}

    def body(self) -> bytes:
        """The document as JSON."""
        return json.dumps(self.document(), separators=(",", ":")).encode()  # also what is no Unicode


def not_running(experiment: Experiment) -> Refusal:
    """The answer to a request for a decision of an experiment that makes none."""
    return Refusal(409, f"{experiment.name} is {experiment.status}: it makes no decisions", state=experiment.status)


def not_loaded(name: str) -> Refusal:
    """The answer to all requests about an experiment that was set aside. Who sends a response must send it again."""
    return Refusal(
        503,
        f"nothing was stored: {name} cannot be loaded, and the server's log says why; fix that and restart the server",
        headers={"retry-after": "60"},
    )


def problem_of(error: Exception) -> Refusal:
    """The problem that an error of ours is."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, InputError):
        return Refusal(422, str(error), parameter=error.parameter)
    if isinstance(error, Overloaded):
        return Refusal(503, str(error), headers={"retry-after": "1"})
    if isinstance(error, Untallied):
        text = "the tally cannot be written, so nothing is shown of what was stored; try again"
        return Refusal(503, text, headers={"retry-after": "5"})
    if isinstance(error, Missing):
        text = "nothing was stored: the database lacks this experiment, or its state is damaged; try again"
        return Refusal(503, text, headers={"retry-after": "5"})
    if isinstance(error, Unavailable):
        return Refusal(
            503, "nothing was stored: the database cannot be written; try again", headers={"retry-after": "5"}
        )
    if isinstance(error, AWAY):
        return Refusal(
            503, "the database cannot be reached, or its tables are not there; try again", headers={"retry-after": "5"}
        )
    if isinstance(error, IntegrityError):
        return Refusal(409, "nothing was stored: another request has just stored the same; look at what is there")
    if isinstance(error, UnicodeEncodeError | PydanticSerializationError):
        return Refusal(400, "texts must be Unicode, without single surrogates")
    return Refusal(500, "an error of ours: the log has more under this request's id")
