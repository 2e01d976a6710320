"""The cap of an experiment: how many responses a user may send."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dpbandits.service.books import Ask, LiveRun
from dpbandits.service.experiment import Experiment
from dpbandits.service.responses import CONFLICT, Item, ItemAnswer, spends
from dpbandits.service.rows import SENT, Rows
from dpbandits.service.tokens import Lease

__all__ = ["SentByUsers"]


class SentByUsers:
    """How many responses users with a cap have sent, with those of the transaction that is under way."""

    def __init__(self, runs: Mapping[int, LiveRun], asks: Iterable[Ask], items: Iterable[Item]) -> None:
        capped = {number for number, run in runs.items() if run.experiment.cap is not None}
        self.people: set[tuple[int, bytes]] = set()  # those who are to be counted, by experiment
        if capped:
            self.people |= {(ask.experiment, ask.person) for ask in asks if ask.person and ask.experiment in capped}
            told = (item.token.lease for item in items)
            self.people |= {(one.experiment, one.user) for one in told if one.user and one.experiment in capped}
        self._responses: dict[tuple[int, bytes], int] = {}

    def read(self, cursor: Any, *, embedded: bool) -> None:
        """Read what is stored."""
        for number, person, responses in SENT.run(cursor, list(self.people), embedded=embedded):
            self._add(number, bytes(person), responses)

    def full(self, experiment: Experiment, person: bytes) -> bool:
        """Whether nothing more is taken from a user."""
        cap = experiment.cap
        return cap is not None and person != b"" and self._responses.get((experiment.id, person), 0) >= cap

    def charge(self, rows: Rows, experiment: Experiment, lease: Lease, outcome: str) -> None:
        """Count an answer, where it costs its user something."""
        if lease.user and spends(experiment, outcome):
            rows.charge(experiment.id, lease.user, lease.level)
            self._add(experiment.id, lease.user, 1)

    def charge_again(self, rows: Rows, experiment: Experiment, lease: Lease, said: ItemAnswer) -> None:
        """Count an answer to an answered decision: a device that sends another one has drawn noise a second time."""
        if said == CONFLICT and experiment.local:
            self.charge(rows, experiment, lease, "refused")

    def _add(self, number: int, person: bytes, responses: int) -> None:
        self._responses[number, person] = self._responses.get((number, person), 0) + responses
