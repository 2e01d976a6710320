"""Where runs are simulated: in threads, in processes, or on a Dask cluster, all through joblib."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

from dpbandits.checks import at_least
from dpbandits.errors import InputError, MissingExtraError

R = TypeVar("R")

CONNECT_SECONDS = 3
MOST_WORKERS = 1024
LOCAL_BACKENDS = {"threads": "threading", "processes": "loky"}


class WorkerLostError(RuntimeError):
    """A worker process ended during its work. Finished chunks are kept."""


class Engine:
    """A joblib backend, its settings, and its number of workers."""

    def __init__(self, backend: str, workers: int, **settings: Any) -> None:
        self.backend = backend
        self.workers = workers
        self.settings = settings

    def map(self, function: Callable[..., R], arguments: Iterable[tuple[Any, ...]]) -> Iterator[R]:
        """Call ``function`` on each tuple of arguments. Results come as they are ready; few calls are queued ahead."""
        joblib = _joblib()
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        with joblib.parallel_config(backend=self.backend, n_jobs=self.workers, **self.settings):
            parallel = joblib.Parallel(batch_size=1, pre_dispatch="2*n_jobs", return_as="generator_unordered")
        try:
            yield from parallel(joblib.delayed(function)(*each) for each in arguments)
        except TerminatedWorkerError:
            raise WorkerLostError("a worker process ended before its work was done") from None


@contextmanager
def engine(cluster: str | None = None, workers: int | None = None) -> Iterator[Engine]:
    """The engine that ``--cluster`` names: threads (the default), processes, local, or a Dask scheduler's address."""
    cores = at_least("workers", (os.cpu_count() or 1) if workers is None else workers, 1)
    if cores > MOST_WORKERS:
        raise InputError("workers", f"must be at most {MOST_WORKERS}, got {cores}")
    _joblib()
    if cluster is None or cluster in LOCAL_BACKENDS:
        yield Engine(LOCAL_BACKENDS[cluster or "threads"], cores)
        return
    if cluster != "local" and "://" not in cluster:
        raise InputError(
            "cluster", f"must be threads, processes, local or a scheduler's tcp://host:port, got '{cluster}'"
        )
    with _dask(cluster, cores) as client:
        yield Engine("dask", sum(client.ncores().values()), client=client)


def _joblib() -> Any:
    try:
        import joblib
    except ImportError:
        raise MissingExtraError("joblib", "reproduce") from None
    return joblib


@contextmanager
def _dask(cluster: str, workers: int) -> Iterator[Any]:
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise MissingExtraError("distributed", "cluster") from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # lost workers are handled and reported here
    if cluster == "local":
        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as here,
            Client(here) as client,
        ):
            yield client
        return
    try:
        _try_connection(cluster)
        client = Client(cluster, timeout=CONNECT_SECONDS)
    except (OSError, TimeoutError, ValueError):
        raise InputError("cluster", f": no Dask scheduler answers at '{cluster}'") from None
    with client:
        if not client.ncores():
            raise InputError("cluster", f": the scheduler at '{cluster}' has no workers")
        yield client


def _try_connection(cluster: str) -> None:
    """Try to connect once. Dask itself would retry until its timeout."""
    address = urlsplit(cluster)
    if address.scheme in ("tcp", "tls"):
        socket.create_connection((address.hostname or "", address.port or 0), timeout=CONNECT_SECONDS).close()
