"""How the control plane refuses: every error is a problem document that names the field and what is allowed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from dpbandits.checks import nearest
from dpbandits.errors import InputError, MissingExtraError
from dpbandits.service.experiment import Reward, Settings
from dpbandits.service.files import LostFileError
from dpbandits.service.logs import Seldom
from dpbandits.service.problems import AWAY, MEDIA_TYPE, Refusal, problem_of
from dpbandits.service.settings import rule_of

__all__ = ["ERRORS", "refuse_in_words"]

log = structlog.get_logger("dpbandits")


class ProblemDocument(BaseModel):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    parameter: str | None = None
    request: str | None = None


_problem = {"model": ProblemDocument, "content": {MEDIA_TYPE: {}}}
ERRORS: dict[int | str, dict[str, Any]] = {
    400: {**_problem, "description": "Not JSON"},
    401: {**_problem, "description": "No valid API key"},
    403: {**_problem, "description": "The key's role does not allow it"},
    404: {**_problem, "description": "No such experiment"},
    409: {**_problem, "description": "It is in another state"},
    413: {**_problem, "description": "Too large"},
    422: {**_problem, "description": "A field is wrong: which, and what is allowed"},
    429: {**_problem, "description": "Too many requests"},
    503: {**_problem, "description": "Nothing was stored: try again"},
}


def refuse_in_words(api: FastAPI, changeable: Collection[str]) -> None:
    """Answer every error of an API with a problem document. ``changeable`` are fields that may change later."""

    async def invalid(request: Request, error: Exception) -> Response:
        return _answer(request, _invalid(error, changeable if request.method == "PATCH" else None))

    seldom = Seldom()

    async def away(request: Request, error: Exception) -> Response:
        if isinstance(error, AWAY) and seldom.allows(reason := _why(error)):
            log.error("cannot read", path=request.url.path[:200], reason=reason)
        return await _error(request, error)

    api.add_exception_handler(RequestValidationError, invalid)
    api.add_exception_handler(HTTPException, _http)
    for kind in (InputError, Refusal, MissingExtraError, RuntimeError):
        api.add_exception_handler(kind, _error)
    api.add_exception_handler(SQLAlchemyError, away)
    api.add_exception_handler(LostFileError, away)
    api.add_exception_handler(Exception, _fault)


def _answer(request: Request, problem: Refusal) -> Response:
    problem.more.setdefault("request", request.scope.get("dpbandits.request"))
    return Response(problem.body(), problem.status, problem.headers, MEDIA_TYPE)


async def _error(request: Request, error: Exception) -> Response:
    if isinstance(error, MissingExtraError):
        return _answer(request, Refusal(501, str(error)))
    problem = problem_of(error)
    if problem.status == 500:
        raise error
    return _answer(request, problem)


def _why(error: Exception) -> str:
    """Why the database cannot be read: in our own words, or the kind of a driver's error, whose text may hold more."""
    if isinstance(error, LostFileError):
        return str(error)
    return type(error.orig if isinstance(error, DBAPIError) else error).__name__


async def _fault(request: Request, error: Exception) -> Response:
    return _answer(request, problem_of(error))  # it is raised on, and logged


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path, detail, headers = request.url.path[:200], str(error.detail), dict(error.headers or {})
    more: dict[str, Any] = {}
    if error.status_code == 404:
        detail = f"there is nothing at {path}: /docs lists all addresses"
    elif error.status_code == 405:
        here = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
        allowed = ", ".join(sorted({method for route in here for method in getattr(route, "methods", None) or ()}))
        detail, headers = f"{path} does not take {request.method}; allowed: {allowed}", {"allow": allowed}
    elif error.status_code == 400:  # FastAPI's, for a body that is not even wrong JSON
        deep = isinstance(error.__cause__, RecursionError)
        detail = f"body must be JSON{' that is not nested so deeply' if deep else ', in UTF-8'}"
        more = {"parameter": "body"}
    return _answer(request, Refusal(error.status_code, detail, headers=headers, **more))


def _invalid(error: Exception, changeable: Collection[str] | None) -> Refusal:
    """Which field, what is allowed. What was sent is not repeated."""
    assert isinstance(error, RequestValidationError)
    found = [_wrong(one, changeable) for one in error.errors()]
    status = 400 if error.errors()[0]["type"] == "json_invalid" else 422
    first = found[0]
    more: dict[str, Any] = {} if len(found) == 1 else {"errors": found}
    return Refusal(status, f"{first['parameter']}: {first['detail']}", parameter=first["parameter"], **more)


def _wrong(one: dict[str, Any], changeable: Collection[str] | None) -> dict[str, str]:
    """The field, and what is wrong with it."""
    where = [str(part) for part in one["loc"] if part not in ("body", "query", "path", "header")]
    text = rule_of(one["msg"])
    if one["type"] == "json_invalid":
        where, text = [], f"must be JSON: {one.get('ctx', {}).get('error', 'it is not')}"
    elif not where:
        text = "must be a JSON object, sent with the header content-type: application/json"
    elif one["type"] == "missing":
        text = "is required"
    elif one["type"] == "extra_forbidden":
        text = _unknown(where, changeable)
    return {"parameter": ".".join(where) or "body", "detail": text}


def _unknown(where: list[str], changeable: Collection[str] | None) -> str:
    if changeable is not None and where[-1] in Settings.model_fields:
        return f"cannot change after the start; these can: {', '.join(changeable)}"
    fields = changeable or (Reward.model_fields if len(where) > 1 else Settings.model_fields)
    return f"is not a setting: {nearest(where[-1], fields)}"
