"""The ASGI app: hot routes first, the rest to the control plane; keys, limits, headers and request ids for all."""

from __future__ import annotations

import asyncio
import ipaddress
import itertools
import os
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

import structlog

from dpbandits.service import access, reference
from dpbandits.service.access import Limiter
from dpbandits.service.control import control
from dpbandits.service.hot import decide, respond
from dpbandits.service.logs import where
from dpbandits.service.origins import Origins
from dpbandits.service.page import BUILT, File, Files
from dpbandits.service.problems import MEDIA_TYPE, Refusal, problem_of
from dpbandits.service.service import Service
from dpbandits.service.settings import ServerSettings
from dpbandits.service.writer import Unavailable

__all__ = ["App", "app"]

log = structlog.get_logger("dpbandits")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

DECISIONS = re.compile(r"/v1/experiments/([^/]+)/decisions")
REFERENCE = "/docs"
OPEN = ("/livez", "/readyz", "/openapi.json", REFERENCE)
REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
HEADERS: list[tuple[bytes, bytes]] = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]
REFERENCE_HEADERS = [*HEADERS[:-1], (b"content-security-policy", reference.POLICY.encode())]
JSON = b"application/json"
#: The most digits of a length that can be meant. Python refuses to read some thousands of them.
LONGEST = 18
#: The values of Sec-Fetch-Site for pages of other origins. Browsers send it also where they send no Origin.
ELSEWHERE = (b"cross-site", b"same-site")
_LOOPBACK = re.compile(rb"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?", re.IGNORECASE)


def app(settings: ServerSettings | None = None, **given: Any) -> App:
    """The service as an ordinary ASGI app, to serve or to mount in another.

    Settings are those of ``dpbandits serve``, by name: ``app(store="sqlite:///shop.db")``. A mounted app that is sent
    no lifespan starts with its first request.
    """
    return App(Service(settings or ServerSettings.read(**given)))


class App:
    """One process of the server, as an ASGI app."""

    def __init__(self, service: Service, *, served: bool = False) -> None:
        self.service = service
        self._served = served  # by ``dpbandits serve``, and not mounted in an app that has its own rules
        if served and not service.settings.loopback:
            service.guarded = True  # others can reach it, whatever they write into their requests
        self.control = control(service)
        self.files = Files(BUILT, demo=service.settings.demo)
        rate = service.settings.rate_limit
        self._origins = Origins(service.settings.allow_origins)
        self._limiter = None if rate is None else Limiter(rate)
        self._worker, self._numbers = os.urandom(4).hex(), itertools.count()
        self._starting: asyncio.Lock | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            raise RuntimeError(f"this app does not speak {scope['type']}")

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.service.start()
        except Exception as error:
            log.error("cannot start", reason=str(error))
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            raise  # a server has been told and prints nothing more; a test client fails, instead of waiting
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.service.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def _start_late(self) -> None:
        """A mounted app gets no lifespan: it starts with its first request."""
        if self._starting is None:
            self._starting = asyncio.Lock()
        async with self._starting:
            if not self.service.ready:
                try:
                    await self.service.start()
                except Exception as error:
                    log.error("cannot start", reason=str(error))
                    raise Unavailable("the server cannot start") from None

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        root = scope.get("root_path", "")
        path: str = scope["path"]
        if root and path.startswith(root):
            path = path[len(root) :]
        began = time.perf_counter()
        file = self.files.find(path) if scope["method"] in ("GET", "HEAD") else None
        if file is not None:
            await _send_file(file, scope, send)
            return
        request_id = self._request_id(scope["headers"])
        headers = REFERENCE_HEADERS if path == REFERENCE else HEADERS
        shared = self._origins.headers(scope) if self._origins and _needed(scope["method"], path) == "decide" else []
        answered = _Answered(send, request_id, [*headers, *shared] if shared else headers, scope["method"] == "HEAD")
        if shared and scope["method"] == "OPTIONS":  # a browser asks first, without the key
            await answered.answer(204, b"", JSON)
            return
        with suppress(_Gone, _Headed):
            await self._answer(scope, path, receive, answered, began)
        if self.service.settings.access_log or answered.code >= 500:
            log.info(
                "request", method=scope["method"], path=path, code=answered.code, request_id=request_id.decode(),
                ms=round(1000 * (time.perf_counter() - began), 2),
            )  # fmt: skip

    async def _answer(self, scope: Scope, path: str, receive: Receive, send: _Answered, began: float) -> None:
        """Answer a request that is not for a file of the page, by a problem where something is wrong."""
        try:
            if not self.service.ready:
                await self._start_late()
            self._admit(scope, path)
            route = await self._hot(scope, path, receive, send, began)
            if route is None:
                await self._control(scope, receive, send)
        except (_Gone, _Headed):
            raise
        except Exception as error:
            problem = problem_of(_first(error) if send.started else error)
            about = {"path": path, "request_id": send.request_id.decode()}
            if problem.status == 500:
                log.error("failed", **about, where=where(error))
            elif send.started:
                log.warning("broken off", **about, reason=problem.detail)
            if not send.started:
                await send.problem(problem)

    async def _control(self, scope: Scope, receive: Receive, send: _Answered) -> None:
        """Hand a request to the control plane: HEAD as GET, others with all of their body, which may be too large."""
        scope["dpbandits.request"] = send.request_id.decode()
        if scope["method"] in ("GET", "HEAD"):
            await self.control({**scope, "method": "GET"}, receive, send)
            return
        body = await _body(receive, self.service.settings.max_body, scope)
        came = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return came.pop() if came else await receive()

        await self.control(scope, again, send)

    def _request_id(self, headers: list[tuple[bytes, bytes]]) -> bytes:
        for name, value in headers:
            if name == b"x-request-id" and REQUEST_ID.fullmatch(value):
                return value
        return f"{self._worker}{next(self._numbers):08x}".encode()

    def _admit(self, scope: Scope, path: str) -> None:
        """Let those in who have a key with the right role, as long as they do not send too much."""
        guarded = self.service.guarded
        key = None
        if guarded:
            scheme, _, text = _header(scope, b"authorization").decode("latin-1").partition(" ")
            key = access.authenticate(text.lstrip() if scheme.lower() == "bearer" else scheme, self.service.valid)
            scope["dpbandits.key"] = None if key is None else key.id
            scope["dpbandits.who"] = "anonymous" if key is None else f"{key.name} ({key.id})"
        elif path not in OPEN:
            self._admit_without_key(scope, path)
        if path not in OPEN and guarded:
            need = _needed(scope["method"], path)
            if key is None:
                none = "" if self.service.valid else ", and the database has none"
                text = f"a valid API key is needed{none}: Authorization: Bearer KEY; dpbandits key create makes one"
                raise Refusal(401, text, headers={"www-authenticate": "Bearer"})
            if need not in access.ROLES[key.role]:
                raise Refusal(403, f"a key with the role {need} is needed; this one has the role {key.role}")
        if self._limiter is not None and path not in OPEN:
            address = (scope.get("client") or ("unknown",))[0]
            whole = key is not None and key.role != "decide"  # many visitors of a page share a key for decisions
            if not self._limiter.allows(key.id if key and whole else f"{key.id if key else ''} {address}"):
                raise Refusal(429, f"more than {self._limiter.rate:g} requests a second", headers={"retry-after": "1"})

    def _admit_without_key(self, scope: Scope, path: str) -> None:
        """No key was ever made: only this machine may ask, and no page that a browser shows from elsewhere."""
        host = _header(scope, b"host")
        if self._served and not (_is_loopback(host) and _is_here(str((scope.get("client") or ("",))[0]))):
            raise Refusal(403, "without an API key only this machine is served: dpbandits key create makes one")
        origin = _header(scope, b"origin")
        own = origin.partition(b"://")[2] == host if origin else _header(scope, b"sec-fetch-site") not in ELSEWHERE
        if own:
            return
        if _needed(scope["method"], path) != "decide" or not self._origins.headers(scope):
            raise Refusal(403, "pages of another origin are not served: --allow-origin, or an API key")

    async def _hot(self, scope: Scope, path: str, receive: Receive, send: _Answered, began: float) -> str | None:
        """Answer one of the hot routes; its name, or None where it is another one."""
        found = None
        if path not in ("/v1/responses", "/v1/rewards"):
            found = DECISIONS.fullmatch(path)
            if found is None:
                return None
        route = "decide" if found else "respond"
        try:
            if scope["method"] != "POST":
                detail = f"{path:.200} does not take {scope['method']}; allowed: POST"
                raise Refusal(405, detail, headers={"allow": "POST"})
            body = await _body(receive, self.service.settings.max_body, scope)
            if found:
                code, content = 200, await decide(self.service, found[1], body)
            else:
                code, content = await respond(self.service, body, rewards=path == "/v1/rewards")
            await send.answer(code, content, JSON)
        except _Gone:
            return route
        except Exception as error:
            problem = problem_of(error)
            if problem.status == 500:
                log.error("failed", path=path, request_id=send.request_id.decode(), where=where(error))
            code = problem.status
            await send.problem(problem)
        self.service.metrics.observe(route, code, time.perf_counter() - began)
        return route


async def _send_file(file: File, scope: Scope, send: Send) -> None:
    """Send a file of the page, which everybody may read, compressed for those who can read that."""
    accepted = next((value for name, value in scope["headers"] if name == b"accept-encoding"), b"")
    zipped = b"gzip" in accepted
    await send({"type": "http.response.start", "status": file.code, "headers": file.headers(zipped)})
    content = b"" if scope["method"] == "HEAD" else file.small if zipped else file.content
    await send({"type": "http.response.body", "body": content})


def _header(scope: Scope, name: bytes) -> bytes:
    for other, value in scope["headers"]:
        if other == name:
            return bytes(value)
    return b""


@lru_cache(100)
def _is_loopback(host: bytes) -> bool:
    return _LOOPBACK.fullmatch(host) is not None


def _first(error: Exception) -> Exception:
    """Why an answer broke off: Starlette raises errors of its own from it."""
    while isinstance(error.__cause__, Exception):
        error = error.__cause__
    return error


@lru_cache(100)
def _is_here(address: str) -> bool:
    """Whether a client is on this machine; through a proxy that is believed, whether the client of the proxy is."""
    with suppress(ValueError):
        return ipaddress.ip_address(address).is_loopback
    return False


def _needed(method: str, path: str) -> str:
    """The role that a request needs."""
    if path in ("/v1/responses", "/v1/rewards") or DECISIONS.fullmatch(path):
        return "decide"
    return "read" if method in ("GET", "HEAD") else "admin"


class _Answered:
    """``send`` with the headers that every answer has. To HEAD nothing else is sent, and the answer ends there."""

    __slots__ = ("_head", "_headers", "_send", "code", "request_id", "started")

    def __init__(self, send: Send, request_id: bytes, headers: list[tuple[bytes, bytes]], head: bool) -> None:
        self._send, self.request_id, self._headers, self._head = send, request_id, headers, head
        self.started, self.code = False, 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started, self.code = True, message["status"]
            message = {
                **message,
                "headers": [*message.get("headers", ()), *self._headers, (b"x-request-id", self.request_id)],
            }
        await self._send(message)
        if self._head:
            await self._send({"type": "http.response.body", "body": b""})
            raise _Headed  # a stream would go on

    async def answer(self, code: int, content: bytes, media_type: bytes) -> None:
        self.started, self.code = True, code
        headers = [
            (b"content-type", media_type),
            (b"content-length", b"%d" % len(content)),
            *self._headers,
            (b"x-request-id", self.request_id),
        ]
        await self._send({"type": "http.response.start", "status": code, "headers": headers})
        await self._send({"type": "http.response.body", "body": content})

    async def problem(self, problem: Refusal) -> None:
        problem.more.setdefault("request", self.request_id.decode())
        headers = [(name.encode(), value.encode()) for name, value in problem.headers.items()]
        content = problem.body()
        start = {
            "type": "http.response.start",
            "status": problem.status,
            "headers": [
                (b"content-type", MEDIA_TYPE.encode()),
                (b"content-length", b"%d" % len(content)),
                *headers,
            ],
        }
        await self(start)
        await self._send({"type": "http.response.body", "body": content})


class _Gone(Exception):  # noqa: N818  # it is caught, and no error
    """The client disconnected before its whole request had arrived. The request is discarded."""


class _Headed(Exception):  # noqa: N818  # it is caught, and no error
    """A request for the head alone has been answered."""


async def _body(receive: Receive, most: int, scope: Scope) -> bytes:
    """All of a request's body, unless it is too large."""
    length = _header(scope, b"content-length").lstrip(b"0")
    if length.isdigit() and (len(length) > LONGEST or int(length) > most):
        raise _too_large(most)
    body, more = b"", True
    while more and len(body) <= most:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        body += message.get("body", b"")
        more = message.get("more_body", False)
    if len(body) > most:
        raise _too_large(most)
    return body


def _too_large(most: int) -> Refusal:
    return Refusal(413, f"a request may have at most {most} bytes")
