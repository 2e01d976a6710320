"""The control plane: experiments are made and changed. It describes itself at /docs and /openapi.json."""

from __future__ import annotations

import gzip
from functools import lru_cache
from typing import Annotated, Any, Literal

import structlog
from fastapi import FastAPI, Header, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from dpbandits import __version__
from dpbandits.checks import nearest
from dpbandits.errors import InputError
from dpbandits.policies import lookup
from dpbandits.service import changes
from dpbandits.service.books import LiveRun
from dpbandits.service.describe import described
from dpbandits.service.experiment import Settings, refuse_alike
from dpbandits.service.planner import MOST_ROUNDS
from dpbandits.service.problems import Refusal
from dpbandits.service.reading import ONE, Name, reading
from dpbandits.service.reference import reference
from dpbandits.service.refusals import ERRORS, refuse_in_words
from dpbandits.service.service import Service

__all__ = ["control"]

log = structlog.get_logger("dpbandits")

#: Fields of a change that other parts of the package call otherwise.
CHANGED = {"arms": "add_arm", "arm": "paused_arms"}


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
    reading(api, service)
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
        await service.look_again()
        found = sorted(service.names.values(), key=lambda run: run.experiment.created)
        shown = [run.experiment.to_json() for run in found if archived or run.experiment.status != "archived"]
        return {"experiments": shown}

    @api.get(ONE, summary="One experiment", tags=["experiments"])
    async def one(name: Name) -> dict[str, Any]:
        await service.look_again()
        return service.find(name).experiment.to_json()

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
        for arm in experiment.arms:
            refuse_alike("add_arm", [arm, asked.add_arm])
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


def _choosing(api: FastAPI, service: Service) -> None:
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
        return await service.plans.run(service.planner.ask, {**asked, **private})


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
            "least_level": lookup.traits(name).threshold is not None,
            "horizon": lookup.needs_horizon(name),
            "strong": lookup.traits(name).recommended,
            "caution": lookup.traits(name).caution,
        }
        for name in lookup.names()
    ]


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
        await service.probe.ask()
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


def _who(request: Request) -> str:
    return str(request.scope.get("dpbandits.who", "anonymous"))
