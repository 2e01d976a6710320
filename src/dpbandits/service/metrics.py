"""Numbers for Prometheus: counts and times, never anything made from a reward."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import accumulate

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from dpbandits.service.books import LiveRun
from dpbandits.service.rows import COUNTS, Rows

__all__ = ["Metrics"]

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Requests(Collector):
    """Requests to the hot routes, counted with as little work as possible."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, int], int] = {}
        self._buckets: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}

    def observe(self, route: str, code: int, seconds: float) -> None:
        """Count one."""
        self._codes[route, code] = self._codes.get((route, code), 0) + 1
        buckets = self._buckets.get(route)
        if buckets is None:
            buckets = self._buckets[route] = [0] * (len(SECONDS) + 1)
            self._seconds[route] = 0.0
        buckets[bisect_left(SECONDS, seconds)] += 1
        self._seconds[route] += seconds

    def collect(self) -> Iterator[Metric]:
        """The counts, as Prometheus wants them."""
        codes = CounterMetricFamily("dpbandits_requests", "Requests.", labels=["route", "code"])
        for (route, code), count in list(self._codes.items()):
            codes.add_metric([route, str(code)], count)
        yield codes
        times = HistogramMetricFamily("dpbandits_request_seconds", "Until the answer.", labels=["route"])
        for route, buckets in list(self._buckets.items()):
            bounds = [*map(str, SECONDS), "+Inf"]
            times.add_metric([route], list(zip(bounds, accumulate(buckets), strict=True)), self._seconds[route])
        yield times


class Metrics:
    """The numbers of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._events = Counter(
            "dpbandits_events_total",
            "Decisions that were made, and what became of responses.",
            ["experiment", "arm", "event"],
            registry=self.registry,
        )
        self._jobs = Histogram(
            "dpbandits_commit_rows", "Rows in a commit.", buckets=[2**n for n in range(12)], registry=self.registry
        )
        self._requests = Requests()
        self.registry.register(self._requests)
        self.observe = self._requests.observe
        self.waiting = Gauge("dpbandits_waiting", "Requests that wait for the disk.", registry=self.registry)
        self.failures = Counter("dpbandits_failures_total", "Commits that failed.", registry=self.registry)
        self.leading = Gauge("dpbandits_leading", "Experiments that this worker folds.", registry=self.registry)

    def count(self, rows: Rows, runs: Mapping[int, LiveRun]) -> None:
        """Count what a transaction has stored."""
        for (number, _, arm), counts in rows.traffic.items():
            experiment = runs[number].experiment
            for name, n in zip(COUNTS, counts, strict=True):
                if n:
                    self._events.labels(experiment.name, experiment.arms[arm], name).inc(n)
        self._jobs.observe(len(rows.decisions) + rows.answered)

    def text(self) -> bytes:
        """As Prometheus reads it."""
        return generate_latest(self.registry)
