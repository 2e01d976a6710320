"""Traffic by arm over time."""

from __future__ import annotations

import math
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dpbandits.service.books import LiveRun
from dpbandits.service.experiment import Experiment
from dpbandits.service.rows import COUNTS, MINUTE
from dpbandits.service.tables import decisions, traffic

__all__ = ["decided", "recent", "series", "shares"]

RECENT = 2  # minutes, the last one included
SECOND = 1000  # milliseconds
FINE = 200_000  # decisions that may be counted one by one, for steps shorter than a minute


def decided(connection: Connection, experiment: Experiment, what: Any, when: Any) -> list[int]:
    found = connection.execute(
        sa.select(traffic.c.arm, sa.func.sum(what))
        .where((traffic.c.experiment == experiment.id) & when)
        .group_by(traffic.c.arm)
    )
    rows = {arm: int(count) for arm, count in found}
    return [rows.get(arm, 0) for arm in range(len(experiment.arms))]


def recent(connection: Connection, experiment: Experiment) -> list[int]:
    """Decisions by arm in the last minutes in which there were any."""
    where = traffic.c.experiment == experiment.id
    last = connection.execute(sa.select(sa.func.max(traffic.c.minute)).where(where)).scalar() or 0
    return decided(connection, experiment, traffic.c.decisions, traffic.c.minute >= last - RECENT + 1)


def series(connection: Connection, run: LiveRun, points: int) -> dict[str, Any]:
    """Counts by arm over time, in at most this many steps of whole minutes."""
    experiment = run.experiment
    where = traffic.c.experiment == experiment.id
    first, last = connection.execute(
        sa.select(sa.func.min(traffic.c.minute), sa.func.max(traffic.c.minute)).where(where)
    ).one()
    if first is None:
        return {"experiment": experiment.name, "step_seconds": 60, "points": []}
    step = max(1, math.ceil((last - first + 1) / points))
    slot = (
        (traffic.c.minute - first) / step
        if connection.dialect.name == "sqlite"
        else sa.func.div(traffic.c.minute - first, step)
    )
    slot = sa.cast(slot, sa.Integer)
    found = connection.execute(
        sa.select(slot.label("slot"), traffic.c.arm, *(sa.func.sum(traffic.c[name]) for name in COUNTS))
        .where(where)
        .group_by("slot", traffic.c.arm)
        .order_by("slot", traffic.c.arm)
    ).all()
    rows: dict[int, dict[str, Any]] = {}
    for number, arm, *counts in found:
        at = 60 * (first + int(number) * step)
        point = rows.setdefault(int(number), {"time": at, "arms": {}})
        point["arms"][experiment.arms[arm]] = dict(zip(COUNTS, map(int, counts), strict=True))
    for point in rows.values():
        total = sum(one["decisions"] for one in point["arms"].values())
        for one in point["arms"].values():
            one["share"] = one["decisions"] / total if total else None
    return {"experiment": experiment.name, "step_seconds": 60 * step, "points": list(rows.values())}


def shares(connection: Connection, run: LiveRun, points: int) -> dict[str, Any]:
    """Decisions by arm over time, in columns: in steps of whole seconds while there are few, then of whole minutes."""
    experiment = run.experiment
    few = sum(decided(connection, experiment, traffic.c.decisions, sa.true())) <= FINE
    table, at, count, unit = (
        (decisions, decisions.c.made, decisions.c["items"], SECOND)
        if few
        else (traffic, traffic.c.minute * MINUTE, traffic.c.decisions, MINUTE)
    )
    where = table.c.experiment == experiment.id
    first, last = connection.execute(sa.select(sa.func.min(at) // unit, sa.func.max(at) // unit).where(where)).one()
    step = 1 if first is None else max(1, math.ceil((int(last) - int(first) + 1) / points))
    slot = ((at // unit - first) // step).label("slot")
    found: dict[int, list[int]] = {}
    for number, arm, n in connection.execute(
        sa.select(slot, table.c.arm, sa.func.sum(count)).where(where).group_by("slot", table.c.arm)
    ):
        found.setdefault(int(number), [0] * len(experiment.arms))[arm] = int(n)
    slots = sorted(found)
    return {
        "experiment": experiment.name,
        "arms": list(experiment.arms),
        "step_seconds": step * unit // 1000,
        "time": [(int(first) + number * step) * unit / 1000 for number in slots],
        "decisions": [[found[number][arm] for number in slots] for arm in range(len(experiment.arms))],
    }
