"""The control plane: experiments are made, changed and read. It describes itself at /docs and /openapi.json."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import structlog
from fastapi import FastAPI, Header, Path, Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError
from starlette.convertors import StringConvertor, register_url_convertor

from dpbandits import __version__
from dpbandits.checks import nearest
from dpbandits.errors import InputError
from dpbandits.policies import lookup
from dpbandits.service import changes, reports, timelines
from dpbandits.service.books import LiveRun
from dpbandits.service.describe import described
from dpbandits.service.events import Watched, stream
from dpbandits.service.experiment import NAME, Settings
from dpbandits.service.export import as_csv, as_parquet, in_pieces, pages
from dpbandits.service.logs import where
from dpbandits.service.planner import MOST_ROUNDS, STRONG
from dpbandits.service.problems import Refusal
from dpbandits.service.reference import reference
from dpbandits.service.refusals import ERRORS, refuse_in_words
from dpbandits.service.service import Service
from dpbandits.service.writer import Missing, Unavailable

__all__ = ["control"]

log = structlog.get_logger("dpbandits")

Name = Annotated[str, Path(pattern=f"^{NAME.pattern}$")]
ONE = "/v1/experiments/{name:experiment}"
After = Annotated[int, Query(ge=0, le=2**53)]
Part = TypeVar("Part")
Limit = Annotated[int, Query(ge=1, le=10_000)]


#: Fields of a change that other parts of the package call otherwise.
CHANGED = {"arms": "add_arm", "arm": "paused_arms"}


class _BeforeColon(StringConvertor):
    """The name of an experiment in an address: what follows a colon is what to do with it."""

    regex = "[^/:]+"


register_url_convertor("experiment", _BeforeColon())


class Change(BaseModel):
    """What may change while an experiment runs. What concerns privacy may not."""

    model_config = ConfigDict(extra="forbid")
    status: Literal["running", "paused"] | None = None
    mode: Literal["live", "shadow"] | None = None
    paused_arms: list[str] | None = Field(None, max_length=1000, description="The arms that nobody gets for now.")
    add_arm: str | None = Field(None, min_length=1, max_length=200)


def control(service: Service) -> FastAPI:
    """The control plane of a service."""
    api = FastAPI(
        title="dpbandits",
        version=__version__,
        description="Private bandits, live.",
        responses=ERRORS,
        docs_url=None,  # FastAPI's pages fetch their scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # it would send clients to whatever host they named
    )
    refuse_in_words(api, Change.model_fields)
    _experiments(api, service)
    _reading(api, service)
    _choosing(api, service)
    _operation(api, service)
    describe = api.openapi
    api.openapi = lambda: described(describe())  # type: ignore[method-assign]
    return api


def _experiments(api: FastAPI, service: Service) -> None:
    @api.post("/v1/experiments", status_code=201, summary="Begin an experiment", tags=["experiments"])
    async def create(
        asked: Settings,
        request: Request,
        idempotency_key: Annotated[str | None, Header(min_length=1, max_length=200)] = None,
    ) -> dict[str, Any]:
        return await changes.create(service, asked, _who(request), idempotency_key)

    @api.get("/v1/experiments", summary="All experiments", tags=["experiments"])
    async def all_of_them(archived: bool = False) -> dict[str, Any]:
        if not service.store.embedded:
            await service.look_again()
        found = sorted(service.names.values(), key=lambda run: run.experiment.created)
        shown = [run.experiment.to_json() for run in found if archived or run.experiment.status != "archived"]
        return {"experiments": shown}

    @api.get(ONE, summary="One experiment", tags=["experiments"])
    async def one(name: Name) -> dict[str, Any]:
        return (await service.look_up(name)).experiment.to_json()

    @api.patch(ONE, summary="Pause, resume, pause an arm, add an arm", tags=["experiments"])
    async def change(name: Name, asked: Change, request: Request) -> dict[str, Any]:
        given = asked.model_dump(exclude_none=True)
        if not given:
            raise InputError("body", "must have at least one of status, mode, paused_arms, add_arm")
        try:
            return await changes.change(service, name, _who(request), "change", lambda run: _fields(run, asked, given))
        except InputError as error:
            raise InputError(CHANGED.get(error.parameter, error.parameter), error.text) from None

    @api.post(f"{ONE}:stop", summary="End an experiment", tags=["experiments"])
    async def stop(name: Name, request: Request) -> dict[str, Any]:
        return await changes.change(service, name, _who(request), "stop", lambda run: _moved(run, "stopped"))

    @api.post(f"{ONE}:archive", summary="Put a stopped experiment away", tags=["experiments"])
    async def archive(name: Name, request: Request) -> dict[str, Any]:
        return await changes.change(service, name, _who(request), "archive", lambda run: _moved(run, "archived"))


def _fields(run: LiveRun, asked: Change, given: dict[str, Any]) -> dict[str, Any]:
    """The fields of the experiment's row that change."""
    experiment = run.experiment
    if not experiment.active:
        raise Refusal(409, f"{experiment.name} is {experiment.status}: it cannot change", state=experiment.status)
    fields: dict[str, Any] = {"detail": given}
    if asked.status is not None:
        fields["status"] = asked.status
    if asked.mode is not None:
        fields["settings"] = experiment.settings.model_copy(update={"mode": asked.mode})
    if asked.add_arm is not None:
        if asked.add_arm in experiment.arms:
            raise InputError("add_arm", f"must be a new name, got '{asked.add_arm}', which is an arm already")
        fields["added"] = [*experiment.added, asked.add_arm]
    if asked.paused_arms is not None:
        arms = [*experiment.arms, *fields.get("added", [])[len(experiment.added) :]]
        for arm in asked.paused_arms:
            if arm not in arms:
                raise InputError("paused_arms", f"must be arms of the experiment, got '{arm}': {nearest(arm, arms)}")
        paused = frozenset(arms.index(arm) for arm in asked.paused_arms)
        if len(paused) == len(arms):
            raise InputError("paused_arms", "must leave at least one arm; to stop everything pause the experiment")
        fields["paused"] = paused
    return fields


def _moved(run: LiveRun, status: str) -> dict[str, Any]:
    allowed = ("running", "paused", "halted") if status == "stopped" else ("stopped", "halted")
    if run.experiment.status not in allowed:
        raise Refusal(
            409, f"{run.experiment.name} is {run.experiment.status}, and must be {' or '.join(allowed)}",
            state=run.experiment.status,
        )  # fmt: skip
    return {"status": status, "detail": {}}


def _reading(api: FastAPI, service: Service) -> None:
    async def read(name: str, make: Callable[..., Any], *more: Any) -> Any:
        run = await service.look_up(name)
        return await asyncio.to_thread(_read, service, run.experiment.id, make, *more)

    async def encoded(name: str) -> bytes:
        return msgspec.json.encode(await read(name, reports.summary, service.clock()))

    watched = Watched(encoded)

    @api.get(f"{ONE}/summary", summary="Traffic, estimates, guarantee, spending", tags=["results"])
    async def summary(name: Name) -> dict[str, Any]:
        return await read(name, reports.summary, service.clock())

    @api.get(f"{ONE}/shares", summary="Decisions by arm over time, in columns", tags=["results"])
    async def shares(name: Name, points: Annotated[int, Query(ge=1, le=10_000)] = 500) -> dict[str, Any]:
        return await read(name, timelines.shares, points)

    @api.get(f"{ONE}/series", summary="Counts by arm over time", tags=["results"])
    async def series(name: Name, points: Annotated[int, Query(ge=1, le=10_000)] = 500) -> dict[str, Any]:
        return await read(name, timelines.series, points)

    @api.get(f"{ONE}/ledger", summary="Every release and its cost", tags=["results"])
    async def ledger(name: Name, after: After = 0, limit: Limit = 1000) -> dict[str, Any]:
        return await read(name, reports.ledger, after, limit)

    @api.get(f"{ONE}/audit-log", summary="Who changed what", tags=["results"])
    async def audit_log(name: Name, after: After = 0, limit: Limit = 1000) -> dict[str, Any]:
        return await read(name, reports.audit_log, after, limit)

    @api.get(
        f"{ONE}/export.csv",
        summary="Every decision, as CSV",
        tags=["results"],
        response_class=Response,
        responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
    )
    async def export_csv(name: Name, request: Request) -> StreamingResponse:
        run = await read(name, lambda _, run: run)  # first: once an answer has begun, it can no longer be a refusal
        return StreamingResponse(_csv(service, run.experiment.id, _key(request)), media_type="text/csv; charset=utf-8")

    @api.get(
        f"{ONE}/export.parquet",
        summary="Every decision, as Parquet",
        tags=["results"],
        response_class=Response,
        responses={
            200: {"content": {"application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}}}}
        },
    )
    async def export_parquet(name: Name, request: Request) -> Response:
        number, key = (await service.look_up(name)).experiment.id, _key(request)
        async with service.exporting:
            if await request.is_disconnected():  # while it waited: nobody would read it
                return Response(status_code=400)
            lines = _admitted(service, key, pages(lambda: _shown(service, number)))
            file = await asyncio.to_thread(as_parquet, lines)
        pieces = _admitted(service, key, in_pieces(file))
        return StreamingResponse(pieces, media_type="application/vnd.apache.parquet")

    @api.get(
        f"{ONE}/events",
        summary="The summary whenever it changes, as server-sent events",
        tags=["results"],
        response_class=Response,
        responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
    )
    async def events(name: Name, request: Request) -> StreamingResponse:
        await service.look_up(name)
        await watched.latest(name)  # first: once an answer has begun, it can no longer be a refusal
        return StreamingResponse(stream(service, watched, name, _key(request)), media_type="text/event-stream")


def _choosing(api: FastAPI, service: Service) -> None:
    @api.get("/v1/overview", summary="All experiments at a glance, with leader and health", tags=["results"])
    async def overview(archived: bool = False) -> dict[str, Any]:
        if not service.store.embedded:
            await service.look_again()
        numbers = {
            run.experiment.name: run.experiment.id
            for run in sorted(service.names.values(), key=lambda run: -run.experiment.created)
            if archived or run.experiment.status != "archived"
        }
        shown = await asyncio.to_thread(_overview, service, numbers)
        return {"version": __version__, "demo": service.settings.demo, "experiments": shown}

    @api.get("/v1/policies", summary="Which policies there are", tags=["planning"])
    async def policies() -> dict[str, Any]:
        return {"policies": _policies()}

    @api.get("/v1/plan", summary="What an experiment would lose, by a few simulations", tags=["planning"])
    async def plan(
        policy: Annotated[str, Query(max_length=200)],
        arms: Annotated[int, Query(ge=2, le=50)],
        best: Annotated[float, Query(gt=0, le=1, description="A plausible mean of the best arm.")],
        gap: Annotated[float, Query(gt=0, le=1, description="By how much the other means are lower.")],
        traffic: Annotated[float, Query(gt=0, le=MOST_ROUNDS, description="Decisions per day.")],
        days: Annotated[float, Query(gt=0, le=3660)],
        epsilon: Annotated[float | None, Query(gt=0, le=100)] = None,
        levels: Annotated[
            list[str] | None, Query(max_length=50, description="Users' levels, each as likely as the others.")
        ] = None,
    ) -> dict[str, Any]:
        if ":" in policy:
            raise InputError("policy", "must be one of the package's own here: dpbandits plan takes yours")
        if gap > best:
            raise InputError("gap", f"must be at most best, {best:g}, got {gap:g}")
        if traffic * days > MOST_ROUNDS:
            raise InputError("days", f"must make at most {MOST_ROUNDS:,} decisions here: dpbandits plan takes more")
        if round(traffic * days) < arms:
            raise InputError("days", f"must make at least {arms} decisions, one for each arm, got {traffic * days:g}")
        asked = {"arms": arms, "best": best, "gap": gap, "traffic": traffic, "days": days}
        private = {"policy": policy, "epsilon": epsilon, "levels": levels}
        return await asyncio.to_thread(service.planner.ask, {**asked, **private})


@lru_cache
def _policies() -> list[dict[str, Any]]:
    """What a form needs to know about each policy."""
    return [
        {
            "name": name,
            "trust": lookup.sample(name).guarantee.trust,
            "paper": lookup.traits(name).paper,
            "epsilon": lookup.takes(name, "epsilon"),
            "levels": lookup.traits(name).levels is not None,
            "least_level": lookup.takes(name, "epsilon_min"),
            "horizon": lookup.needs_horizon(name),
            "strong": name in STRONG.values(),
            "caution": lookup.traits(name).caution,
        }
        for name in lookup.names()
    ]


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
            piece = await asyncio.to_thread(next, pieces, None)
        if piece is None:
            return
        yield piece


def _admitted(service: Service, key: str | None, parts: Iterator[Part]) -> Iterator[Part]:
    """The parts, as long as the key is valid. Then the answer breaks off: nobody must take what came for the whole."""
    while service.admits(key):
        part = next(parts, None)
        if part is None:
            return
        yield part
    raise Refusal(401, "the API key was revoked meanwhile", headers={"www-authenticate": "Bearer"})


def _operation(api: FastAPI, service: Service) -> None:
    @api.get("/docs", include_in_schema=False)
    async def docs(accept_encoding: Annotated[str, Header()] = "") -> Response:
        content, headers = reference(api.openapi()).encode(), {"vary": "accept-encoding"}
        if "gzip" in accept_encoding:
            content, headers = gzip.compress(content), {**headers, "content-encoding": "gzip"}
        return Response(content, headers=headers, media_type="text/html; charset=utf-8")

    @api.get("/livez", summary="The process runs", tags=["operation"])
    async def livez() -> dict[str, str]:
        return {"status": "live"}

    @api.get("/readyz", summary="It can store what it is given", tags=["operation"])
    async def readyz() -> dict[str, str]:
        await service.probe()
        return {"status": "ready"}

    @api.get(
        "/metrics",
        summary="For Prometheus",
        tags=["operation"],
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    async def metrics() -> Response:
        service.metrics.waiting.set(service.writer.waiting)
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _key(request: Request) -> str | None:
    """The API key that the request came with."""
    return request.scope.get("dpbandits.key")


def _who(request: Request) -> str:
    return str(request.scope.get("dpbandits.who", "anonymous"))
