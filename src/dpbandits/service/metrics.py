"""Numbers for Prometheus: counts and times, never anything made from a reward."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from dpbandits.service.batch import COUNTS, Batch
from dpbandits.service.books import Run

__all__ = ["Metrics"]

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


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
        self.requests = Counter("dpbandits_requests_total", "Requests.", ["route", "code"], registry=self.registry)
        self.seconds = Histogram(
            "dpbandits_request_seconds", "Until the answer.", ["route"], buckets=SECONDS, registry=self.registry
        )
        self.waiting = Gauge("dpbandits_waiting", "Requests that wait for the disk.", registry=self.registry)
        self.failures = Counter("dpbandits_failures_total", "Commits that failed.", registry=self.registry)
        self.leading = Gauge("dpbandits_leading", "Experiments that this worker folds.", registry=self.registry)

    def count(self, batch: Batch, runs: Mapping[int, Run]) -> None:
        """Count what a transaction has stored."""
        for (number, _, arm), counts in batch.traffic.items():
            experiment = runs[number].experiment
            for name, n in zip(COUNTS, counts, strict=True):
                if n:
                    self._events.labels(experiment.name, experiment.arms[arm], name).inc(n)
        self._jobs.observe(len(batch.decisions) + len(batch.answers))

    def text(self) -> bytes:
        """As Prometheus reads it."""
        return generate_latest(self.registry)
