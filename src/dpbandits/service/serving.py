"""Serving: what is checked before, and how the processes are started."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import stat
from contextlib import closing
from types import FrameType
from typing import Any

import sqlalchemy as sa
import structlog
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.supervisors import Multiprocess

from dpbandits.errors import InputError, MissingExtraError
from dpbandits.service import access, tally
from dpbandits.service.app import App
from dpbandits.service.experiment import Experiment
from dpbandits.service.files import refuse_unwritable
from dpbandits.service.keyring import Keyring
from dpbandits.service.logs import configure
from dpbandits.service.remarks import Remark
from dpbandits.service.sealing import fit, not_lost
from dpbandits.service.service import Service
from dpbandits.service.settings import ServerSettings, mistyped
from dpbandits.service.starting import read_experiments, refuse_shared_files, refuse_unkept
from dpbandits.service.store import Database

__all__ = ["check", "serve", "traced", "worker"]

log = structlog.get_logger("dpbandits")

SETTINGS = "DPBANDITS_SERVING"  # how the processes of a server are told their settings
GRACE = 10  # seconds that open connections get when the server stops
MOST_PARTS = 16  # that wait to be sent together
PATIENCE = 60  # seconds after which a worker that does not answer is replaced; on a busy machine it starts slowly


def check(settings: ServerSettings) -> list[Remark]:
    """Problems and notes, in one line each; nothing is started."""
    found = [Remark("note", line) for line in mistyped()]
    try:
        with closing(Database(settings.store, synchronous=settings.synchronous, journal=None)) as store:
            found += _check_stored(settings, store)
    except InputError as error:
        found.append(Remark("problem", str(error)))
    except OSError as error:
        found.append(Remark("problem", f"{error.filename or 'a file'!s:.80} cannot be used: {error.strerror}"))
    if settings.telemetry:
        try:
            _tracing()
        except MissingExtraError as error:
            found.append(Remark("problem", f"telemetry: {error}"))
    if os.path.isfile(settings.keys) and settings.keys.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        found.append(Remark("problem", f"keys is readable by others: chmod 600 {settings.keys}"))
    if settings.port:
        with socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((settings.host, settings.port))
            except OSError as error:
                text = f"port {settings.port} of {settings.host} cannot be used: {error.strerror}"
                found.append(Remark("problem", text))
    return found


def _check_stored(settings: ServerSettings, store: Database) -> list[Remark]:
    """What is found of the database, and of the files that belong to it."""
    found: list[Remark] = []
    refuse_unwritable("keys", settings.keys)
    refuse_shared_files(settings, store)
    secrets = Keyring.open(settings.keys, create=False) if settings.keys.exists() else None
    store.file.unused()
    store.reached()
    made: list[access.ApiKey] = []
    stored: list[Experiment] = []
    lossy = ""
    if store.path is None or store.path.exists():
        with store.opened() as connection:
            store.outdated(connection)  # it refuses what is too new
            tables = sa.inspect(connection)
            if tables.has_table("api_keys"):
                made = access.keys(connection)
            if tables.has_table("states"):
                not_lost(settings.keys, connection)
                if secrets is not None:
                    fit(secrets, connection)
                    stored = read_experiments(connection, settings, secrets)
        lossy = store.durable
    lossy = tally.check(settings.tally, store) or lossy
    refuse_unkept(stored, lossy)
    if lossy:
        found.append(Remark("note", f"central experiments will be refused: {lossy}"))
    if settings.workers > 1 and store.embedded:
        text = f"workers must be 1 with SQLite, got {settings.workers}: use --store postgresql://..."
        found.append(Remark("problem", text))
    if all(key.revoked is not None for key in made):
        how = "make one with dpbandits key create --role admin NAME"
        if not settings.loopback:
            text = f"host is {settings.host}, which others can reach, and there is no API key: {how}"
            found.append(Remark("problem", text))
        elif made or (secrets is not None and secrets.guarded):
            text = f"every request will be answered with 401: an API key was made once, and no valid one is left: {how}"
            found.append(Remark("note", text))
    return found


class _Joined:
    """A transport that sends what is written in one turn of the loop by one system call, not head and body apart."""

    __slots__ = ("_loop", "_parts", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self._send)
        self._parts.append(data)
        if len(self._parts) > MOST_PARTS:
            self._send()

    def _send(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():  # the client may have gone
            self._transport.write(b"".join(parts))

    def close(self) -> None:
        self._send()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class JoinedHttp(HttpToolsProtocol):
    """Uvicorn's HTTP over such a transport."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(_Joined(transport, self.loop))  # type: ignore[arg-type]


def _end_streams(service: Service) -> None:
    """When the process is told to stop, tell the service first, so that streams of events end. Uvicorn waits for them.

    Uvicorn has set its own handlers when it loads the app, in one process as in several.
    """

    def told(number: int, frame: FrameType | None) -> None:
        service.stopping = True
        before = handlers[number]
        if callable(before):
            before(number, frame)

    handlers: dict[int, Any] = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in handlers:
        signal.signal(number, told)


class Workers(Multiprocess):
    """Uvicorn's supervisor of several processes, which replaces one that died at once.

    Uvicorn asks each process through a pipe whether it answers, and keeps both ends of the pipe. So a process that is
    killed while it is asked would be missed only after ``PATIENCE``.
    """

    def keep_subprocess_alive(self) -> None:
        for process in self.processes:
            process.child_conn.close()
        super().keep_subprocess_alive()


def serve(settings: ServerSettings) -> None:
    """Serve until the process is told to stop."""
    found = check(settings)
    for one in found:
        if one.level == "problem":
            raise InputError("serve", f": {one.text}")
    configure(settings.log_format)
    for one in found:
        log.warning(one.text)
    options: dict[str, Any] = {
        "host": settings.host,
        "port": settings.port,
        "loop": "uvloop",
        "http": "dpbandits.service.serving:JoinedHttp",
        "ws": "none",
        "access_log": False,
        "log_config": None,
        "server_header": False,
        "timeout_graceful_shutdown": GRACE,
        "timeout_worker_healthcheck": PATIENCE,
    }
    if settings.workers > 1:
        os.environ[SETTINGS] = settings.model_dump_json()
        config = uvicorn.Config("dpbandits.service.serving:worker", factory=True, workers=settings.workers, **options)
        Workers(config, sockets=[config.bind_socket()]).run()
        return
    service = Service(settings)
    service.open()
    _settle()
    shop = {"shop": f"http://{settings.host}:{settings.port}/demo"} if settings.demo else {}
    log.info("serving", page=f"http://{settings.host}:{settings.port}/", **shop)
    uvicorn.run(lambda: _told(service), factory=True, **options)


def worker() -> ASGIApp:
    """One of several processes."""
    settings = ServerSettings.model_validate_json(os.environ[SETTINGS])
    configure(settings.log_format)
    _settle()
    return _told(Service(settings))


def _told(service: Service) -> ASGIApp:
    _end_streams(service)
    app = App(service, served=True)
    return traced(app) if service.settings.telemetry else app


def traced(app: App) -> ASGIApp:
    """The app with a span for every request: its route and its status, and no body. Only this imports OpenTelemetry.

    Where spans go is set by OpenTelemetry's own ``OTEL_*`` variables, as with ``opentelemetry-instrument``.
    """
    wrapped: ASGIApp = _tracing()(app, exclude_spans=["receive", "send"])
    return wrapped


def _tracing() -> Any:
    try:
        from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
    except ImportError:
        raise MissingExtraError("opentelemetry-instrumentation-asgi", "telemetry") from None
    return OpenTelemetryMiddleware


def _settle() -> None:
    """What was loaded stays for good: the collector of garbage need not look at it again.

    Requests leave no cycles behind, so it may look less often: that is a tenth of the time of a request.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
