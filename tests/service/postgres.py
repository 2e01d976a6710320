"""A PostgreSQL server of its own for tests: Debian's, on a private port and in a private folder."""

from __future__ import annotations

import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg


def binaries() -> Path | None:
    """The folder of PostgreSQL's programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return None if on_path is None else Path(on_path).resolve().parent


def free_port() -> int:
    """A port that nobody listens on, below those that the system gives to clients: one of them might take it.

    Nobody else is given it while this process lives: not between this look and the start of a server, nor while a
    server that was killed starts again. What keeps it is a name of Linux's that is no file and ends with its process.
    """
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind(f"\0dpbandits-tests-{port}")
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            name.close()
        else:
            name.detach()  # it stays open
            return port


class Postgres:
    """A server in a folder of its own, which ``close`` removes.

    PostgreSQL does not run as root: there it runs as another user. Its folder is not one of pytest, which are closed to
    other users whenever another session of pytest begins.
    """

    def __init__(self, **settings: str) -> None:
        found = binaries()
        assert found is not None, "the tests of the service need Debian's postgresql: make test installs it"
        self.root = Path(tempfile.mkdtemp(prefix="dpbandits-postgres-"))
        self.programs, self.folder, self.port = found, self.root / "data", free_port()
        self.settings = {"fsync": "on", "max_connections": "60", **settings}
        self._user: dict[str, int] = {}
        self.folder.mkdir(mode=0o700)
        if os.geteuid() == 0:
            name = next(name for name in ("postgres", "nobody") if _exists(name))
            entry = pwd.getpwnam(name)
            self._user = {"user": entry.pw_uid, "group": entry.pw_gid}
            for path in (self.root, self.folder):
                os.chown(path, entry.pw_uid, entry.pw_gid)
        command = [found / "initdb", "-D", self.folder, "-U", "test", "--auth=trust", "-E", "UTF8", "--no-sync"]
        subprocess.run(command, check=True, capture_output=True, cwd="/", **self._user)  # type: ignore[call-overload]
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://test@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = [f"-c{name}={value}" for name, value in self.settings.items()]
        listen = ["-h", "127.0.0.1"]
        log = open(self.root / "postgres.log", "ab")  # noqa: SIM115
        self.process = subprocess.Popen(
            [self.programs / "postgres", "-D", self.folder, "-p", str(self.port), "-k", "", *listen, *options],
            stdout=log, stderr=log, cwd="/", **self._user,
        )  # type: ignore[call-overload]  # fmt: skip
        log.close()
        deadline = time.monotonic() + 180  # on a busy machine it recovers slowly
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                psycopg.connect(self.url).close()
                return
            except psycopg.OperationalError:
                time.sleep(0.1)
        raise RuntimeError(f"PostgreSQL does not start: {(self.root / 'postgres.log').read_text()}")

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)  # fast: clients are disconnected
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.send_signal(signal.SIGQUIT)  # at once: the next start recovers
                self.process.wait(60)
            self.process = None

    def close(self) -> None:
        """End it at once, and remove everything: nothing need be written any more."""
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(60)
            self.process = None
        shutil.rmtree(self.root, ignore_errors=True)

    def database(self) -> str:
        """The address of a new, empty database."""
        name = f"d{time.time_ns()}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"create database {name} template template0")  # nobody connects to that one
        return f"{self.url.rpartition('/')[0]}/{name}"


def _exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
