"""What may be read of experiments over HTTP: summaries, books, exports and a stream of events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import closing, contextmanager
from typing import Annotated, Any, TypeVar

import msgspec
import structlog
from fastapi import FastAPI, Path, Query, Request
from fastapi.responses import Response, StreamingResponse
from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError
from starlette.convertors import StringConvertor, register_url_convertor

from dpbandits import __version__
from dpbandits.checks import MAX_EXACT_INT
from dpbandits.service import reports, timelines
from dpbandits.service.books import LiveRun
from dpbandits.service.events import Watched, stream
from dpbandits.service.experiment import NAME
from dpbandits.service.export import as_csv, as_parquet, in_pieces, pages
from dpbandits.service.logs import where
from dpbandits.service.problems import Refusal
from dpbandits.service.service import Service
from dpbandits.service.writer import Missing, Unavailable

__all__ = ["ONE", "Name", "reading"]

log = structlog.get_logger("dpbandits")

Name = Annotated[str, Path(pattern=f"^{NAME.pattern}$")]
ONE = "/v1/experiments/{name:experiment}"
After = Annotated[int, Query(ge=0, le=MAX_EXACT_INT)]
Points = Annotated[int, Query(ge=1, le=10_000)]
Limit = Annotated[int, Query(ge=1, le=10_000)]
Part = TypeVar("Part")


class _BeforeColon(StringConvertor):
    """The name of an experiment in an address: what follows a colon is what to do with it."""

    regex = "[^/:]+"


register_url_convertor("experiment", _BeforeColon())


def reading(api: FastAPI, service: Service) -> None:
    """The addresses at which something is read."""
    _overviews(api, service)
    _results(api, service)
    _exports(api, service)
    _events(api, service)


def _overviews(api: FastAPI, service: Service) -> None:
    @api.get("/v1/overview", summary="All experiments at a glance, with leader and health", tags=["results"])
    async def overview(archived: bool = False) -> dict[str, Any]:
        await service.look_again()
        numbers = {
            run.experiment.name: run.experiment.id
            for run in sorted(service.names.values(), key=lambda run: -run.experiment.created)
            if archived or run.experiment.status != "archived"
        }
        shown = await asyncio.to_thread(_overview, service, numbers)
        return {"version": __version__, "demo": service.settings.demo, "experiments": shown}


def _results(api: FastAPI, service: Service) -> None:
    @api.get(f"{ONE}/summary", summary="Traffic, estimates, guarantee, spending", tags=["results"])
    async def summary(name: Name) -> dict[str, Any]:
        return await _read_named(service, name, reports.summary, service.clock())

    @api.get(f"{ONE}/shares", summary="Decisions by arm over time, in columns", tags=["results"])
    async def shares(name: Name, points: Points = 500) -> dict[str, Any]:
        return await _read_named(service, name, timelines.shares, points)

    @api.get(f"{ONE}/series", summary="Counts by arm over time", tags=["results"])
    async def series(name: Name, points: Points = 500) -> dict[str, Any]:
        return await _read_named(service, name, timelines.series, points)

    @api.get(f"{ONE}/ledger", summary="Every release and its cost", tags=["results"])
    async def ledger(name: Name, after: After = 0, limit: Limit = 1000) -> dict[str, Any]:
        return await _read_named(service, name, reports.ledger, after, limit)

    @api.get(f"{ONE}/audit-log", summary="Who changed what", tags=["results"])
    async def audit_log(name: Name, after: After = 0, limit: Limit = 1000) -> dict[str, Any]:
        return await _read_named(service, name, reports.audit_log, after, limit)


def _exports(api: FastAPI, service: Service) -> None:
    @api.get(f"{ONE}/export.csv", summary="Every decision, as CSV", **_file("text/csv"))
    async def export_csv(name: Name, request: Request) -> StreamingResponse:
        run = await _read_named(service, name, _itself)  # first: an answer that has begun can no longer be a refusal
        return StreamingResponse(_csv(service, run.experiment.id, _key(request)), media_type="text/csv; charset=utf-8")

    parquet = "application/vnd.apache.parquet"

    @api.get(f"{ONE}/export.parquet", summary="Every decision, as Parquet", **_file(parquet, format="binary"))
    async def export_parquet(name: Name, request: Request) -> Response:
        number, key = (await service.look_up(name)).experiment.id, _key(request)
        async with service.exporting:
            if await request.is_disconnected():  # while it waited: nobody would read it
                return Response(status_code=400)
            lines = _admitted(service, key, pages(lambda: _shown(service, number)))
            file = await service.exports.run(as_parquet, lines)
        pieces = _admitted(service, key, in_pieces(file))
        return StreamingResponse(pieces, media_type=parquet)


def _events(api: FastAPI, service: Service) -> None:
    async def encoded(name: str) -> bytes:
        return msgspec.json.encode(await _read_named(service, name, reports.summary, service.clock()))

    watched = Watched(encoded)
    said = "The summary whenever it changes, as server-sent events"

    @api.get(f"{ONE}/events", summary=said, **_file("text/event-stream"))
    async def events(name: Name, request: Request) -> StreamingResponse:
        await service.look_up(name)
        await watched.latest(name)  # first: once an answer has begun, it can no longer be a refusal
        return StreamingResponse(stream(service, watched, name, _key(request)), media_type="text/event-stream")


def _file(media_type: str, **schema: str) -> dict[str, Any]:
    """How the description of the API shows an answer that is no JSON."""
    return {
        "tags": ["results"],
        "response_class": Response,
        "responses": {200: {"content": {media_type: {"schema": {"type": "string", **schema}}}}},
    }


def _overview(service: Service, numbers: dict[str, int]) -> list[dict[str, Any]]:
    """Those that can be read: one whose stored state is damaged must not hide the others."""
    now, shown = service.clock(), []
    for name, number in numbers.items():
        try:
            shown.append(_read(service, number, reports.overview, now))
        except Exception as error:
            away = isinstance(error, (SQLAlchemyError, OSError, Unavailable)) and not isinstance(error, Missing)
            if away:
                raise
            log.error("cannot read", experiment=name, where=where(error))
    return shown


async def _read_named(service: Service, name: str, make: Callable[..., Any], *more: Any) -> Any:
    run = await service.look_up(name)
    return await asyncio.to_thread(_read, service, run.experiment.id, make, *more)


def _read(service: Service, number: int, make: Callable[..., Any], *more: Any) -> Any:
    """Read in a transaction of a connection that cannot write."""
    with _shown(service, number) as (connection, run):
        return make(connection, run, *more)


@contextmanager
def _shown(service: Service, number: int) -> Iterator[tuple[Connection, LiveRun]]:
    """A connection that cannot write, and the run as it is stored: what this process holds may be a little behind.

    What is read with this connection may be shown: all draws that it knows of are counted.
    """
    known = service.runs.get(number)
    if known is None:
        raise Missing("the database no longer has the experiment")
    before = service.tally.counted(known)
    with service.store.reading() as connection:
        run = service.stored(connection, number)
        restored = run.experiment.active and run.draws < before
        if not restored:
            service.tally.count(run)
            yield connection, run
    if restored:
        if not service.store.embedded:
            service.halt_restored(number)
        raise Unavailable("an old copy of the database was restored")


async def _csv(service: Service, number: int, key: str | None) -> AsyncIterator[bytes]:
    """Every decision, as CSV. A reader who is slow keeps nobody else from reading."""
    pieces = _admitted(service, key, as_csv(pages(lambda: _shown(service, number))))
    while True:
        async with service.sending:
            piece = await service.exports.run(next, pieces, None)
        if piece is None:
            return
        yield piece


def _admitted(service: Service, key: str | None, parts: Generator[Part, None, None]) -> Iterator[Part]:
    """The parts, as long as the key is valid. Then the answer breaks off: nobody must take what came for the whole."""
    with closing(parts):
        while service.admits(key):
            if not service.ready:
                raise Unavailable("the server stops")
            part = next(parts, None)
            if part is None:
                return
            yield part
    raise Refusal(401, "the API key was revoked meanwhile", headers={"www-authenticate": "Bearer"})


def _itself(_: Connection, run: LiveRun) -> LiveRun:
    return run


def _key(request: Request) -> str | None:
    """The API key that the request came with."""
    return request.scope.get("dpbandits.key")
