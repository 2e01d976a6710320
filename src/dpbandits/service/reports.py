"""What may be read about an experiment. Under central privacy all of it is made from counts and releases alone."""

from __future__ import annotations

import itertools
import json
import math
import time
from bisect import bisect
from fractions import Fraction
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dpbandits.privacy.composition import group
from dpbandits.privacy.ledger import Ledger
from dpbandits.service import health, timelines
from dpbandits.service.books import SILENT, LiveRun
from dpbandits.service.estimates import estimate, holdout
from dpbandits.service.evidence import converged
from dpbandits.service.experiment import Experiment
from dpbandits.service.rows import COUNTS, MINUTE
from dpbandits.service.tables import answers, audit, decisions, people, releases, traffic

__all__ = ["audit_log", "ledger", "overview", "summary"]

QUANTILES = (0.5, 0.9, 0.99, 1.0)


def summary(connection: Connection, run: LiveRun, now: float | None = None) -> dict[str, Any]:
    """Traffic, rates, estimates from releases, the guarantee in words and numbers, and what users have spent."""
    experiment, state = run.experiment, run.state
    now = time.time() if now is None else now
    counts = _counts(connection, experiment)
    total = {name: sum(row[name] for row in counts) for name in COUNTS}
    known = converged(experiment, state)
    arms = [
        {"arm": name, "paused": arm in experiment.paused}
        | _rates(counts[arm], total["decisions"])
        | {"counts": counts[arm]}
        | {"estimate": estimate(experiment, state, arm)}
        for arm, name in enumerate(experiment.arms)
    ]
    return {
        "experiment": experiment.name,
        "status": experiment.status,
        "policy": experiment.policy.name,
        "mode": experiment.settings.mode,
        "version": state.version,
        "decisions": total["decisions"],
        "responses": _responses(total, waiting(connection, experiment)),
        "arms": arms,
        "holdout": holdout(connection, experiment),
        "guarantee": {**experiment.guarantee.to_json(), "words": in_words(experiment)},
        "users": users(connection, experiment),
        "converged": known,
        "health": findings(connection, run, counts, known, now),
    }


def overview(connection: Connection, run: LiveRun, now: float) -> dict[str, Any]:
    """An experiment at a glance: state, traffic, who leads, and what may be wrong."""
    experiment, state = run.experiment, run.state
    counts = _counts(connection, experiment)
    known = converged(experiment, state)
    decided = sum(row["decisions"] for row in counts)
    recent = timelines.recent(connection, experiment)
    most = max(range(len(counts)), key=lambda arm: (recent[arm], counts[arm]["decisions"]))
    return {
        "name": experiment.name,
        "status": experiment.status,
        "policy": experiment.policy.name,
        "trust": experiment.trust,
        "epsilon": None if experiment.epsilon is None else str(experiment.epsilon),
        "created": experiment.created,
        "arms": len(experiment.arms),
        "decisions": decided,
        "responses": sum(row["used"] + row["apart"] for row in counts),
        "leader": experiment.arms[most] if decided else None,
        "share": recent[most] / sum(recent) if sum(recent) else None,
        "converged": known,
        "health": findings(connection, run, counts, known, now),
    }


def findings(
    connection: Connection, run: LiveRun, counts: list[dict[str, int]], known: dict[str, Any], now: float
) -> list[dict[str, Any]]:
    """What may be wrong, in words."""
    experiment = run.experiment
    before = 0 if math.isinf(experiment.window) else int(1000 * (now - experiment.window)) // MINUTE
    due = timelines.decided(connection, experiment, (traffic.c.decisions - traffic.c.silent), traffic.c.minute < before)
    recent = timelines.recent(connection, experiment)
    return [one._asdict() for one in health.findings(experiment, run.state, counts, due, recent, known)]


def _responses(total: dict[str, int], waits: int) -> dict[str, Any]:
    asked = total["decisions"] - total["silent"]
    came = total["used"] + total["apart"] + total["late"] + waits
    return {
        "accepted": total["used"] + total["apart"] + waits,
        "used": total["used"],
        "apart": total["apart"],
        "waiting": waits,
        "late": total["late"],
        "duplicate": total["duplicate"],
        "refused": total["refused"],
        "missing": max(asked - came, 0),
    }


def _rates(row: dict[str, int], decided: int) -> dict[str, Any]:
    asked = row["decisions"] - row["silent"]
    came = row["used"] + row["apart"] + row["late"]
    rate = {
        "response": came - row["late"],
        "late": row["late"],
        "duplicate": row["duplicate"],
        "missing": max(asked - came, 0),
    }
    return {
        "decisions": row["decisions"],
        "share": row["decisions"] / decided if decided else None,
        "responses": row["used"] + row["apart"],
        "rates": {name: count / asked if asked else None for name, count in rate.items()},
    }


def _counts(connection: Connection, experiment: Experiment) -> list[dict[str, int]]:
    """Counts by arm, of everything that is stored. What still waits for a fold is not yet among the traffic."""
    found = connection.execute(
        sa.select(traffic.c.arm, *(sa.func.sum(traffic.c[name]) for name in COUNTS))
        .where(traffic.c.experiment == experiment.id)
        .group_by(traffic.c.arm)
    )
    rows = {arm: dict(zip(COUNTS, map(int, counts), strict=True)) for arm, *counts in found}
    counts = [rows.get(arm, dict.fromkeys(COUNTS, 0)) for arm in range(len(experiment.arms))]
    for arm, level, n in _unfolded(
        connection, experiment, decisions, decisions.c.level, sa.func.sum(decisions.c["items"])
    ):
        counts[arm]["decisions"] += int(n)
        counts[arm]["silent"] += int(n) if level <= SILENT else 0
    for arm, outcome, n in _unfolded(connection, experiment, answers, answers.c.outcome, sa.func.count()):
        if outcome != "waiting":
            counts[arm][outcome] += n
            counts[arm]["silent"] += n if outcome == "refused" else 0
    return counts


def waiting(connection: Connection, experiment: Experiment) -> int:
    """Responses that were accepted and are not yet folded."""
    found = _unfolded(connection, experiment, answers, answers.c.outcome, sa.func.count())
    return sum(int(n) for _, outcome, n in found if outcome == "waiting")


def _unfolded(connection: Connection, experiment: Experiment, table: sa.Table, what: Any, number: Any) -> list[Any]:
    """(arm, what, number) of rows that several workers have stored and none has folded. With SQLite there are none."""
    if connection.dialect.name == "sqlite":
        return []
    known = table.c.arm < len(experiment.arms)  # of others, which a restored copy may lack, nothing is counted
    where = (table.c.experiment == experiment.id) & ~table.c.folded & known
    query = sa.select(table.c.arm, what, number).select_from(table).where(where).group_by(table.c.arm, what)
    return list(connection.execute(query))


def in_words(experiment: Experiment) -> str:
    """The guarantee in one sentence."""
    promise = experiment.guarantee
    if promise.trust == "none":
        return "No privacy is promised: the server sees rewards, and its choices may reveal them."
    each = "at each user's own level" if promise.epsilon is None else f"epsilon = {experiment.epsilon}"
    delta = f", delta = {promise.delta:.3g}" if promise.delta else ""
    if promise.trust == "local":
        return f"Each response is private on the user's device, {each}{delta}: the server never sees a reward."
    return (
        f"The server sees rewards; its choices and releases are private for one reward, {each}{delta}. "
        "A user who gives m rewards loses up to m times this epsilon."
    )


def users(connection: Connection, experiment: Experiment) -> dict[str, Any]:
    """How many users answered, and what they have spent, composed exactly: epsilons add up."""
    found = _spent(connection, experiment)
    count = sum(number for *_, number in found)
    if not count:
        return {"count": 0, "max_responses": experiment.cap, "epsilon": None, "delta": None}
    most = max(responses for _, responses, _ in found)
    delta = experiment.guarantee.delta
    upto = list(itertools.accumulate(number for *_, number in found))  # users who have spent this or less
    return {
        "count": count,
        "max_responses": experiment.cap,
        "epsilon": {str(q): str(found[bisect(upto, min(int(q * count), count - 1))][0]) for q in QUANTILES},
        "delta": group(float(experiment.epsilon or 0), delta, most)[1] if delta else 0.0,
    }


def _spent(connection: Connection, experiment: Experiment) -> list[tuple[Fraction, int, int]]:
    """(epsilon, responses, number of users), the least epsilon first. The database counts users who sent alike."""
    sent = sa.cast(people.c.level, sa.String) + ":" + sa.cast(people.c.responses, sa.String)
    mine = people.c.experiment == experiment.id
    if experiment.levels is None:  # each user has one row
        each = sa.select(sent.label("sent")).where(mine).subquery()
    else:
        joined = sa.func.aggregate_strings(sent, ",")
        each = sa.select(joined.label("sent")).where(mine).group_by(people.c.person).subquery()
    found = []
    for text, number in connection.execute(sa.select(each.c.sent, sa.func.count()).group_by(each.c.sent)):
        pairs = [tuple(map(int, pair.split(":"))) for pair in text.split(",")]
        epsilon = sum((responses * experiment.costs[level] for level, responses in pairs), Fraction(0))
        found.append((epsilon, sum(responses for _, responses in pairs), number))
    return sorted(found)


def ledger(connection: Connection, run: LiveRun, after: int, limit: int) -> dict[str, Any]:
    """Every release and what it cost. Stints share no reward: each reward loses what the release of its stint cost.

    Several arms may be released with one number, and ``after`` is a number. So a page never ends within one: it has
    ``limit`` entries, and those that have the number of the last.
    """
    experiment = run.experiment
    later = (releases.c.experiment == experiment.id) & (releases.c.number > after)
    page = sa.select(releases.c.number).where(later).order_by(releases.c.number).limit(limit).subquery()
    last = sa.select(sa.func.max(page.c.number)).scalar_subquery()
    rows = sa.select(releases).where(later & (releases.c.number <= last))
    found = connection.execute(rows.order_by(releases.c.number, releases.c.arm)).all()
    entries = [
        {
            "release": row.number,
            "arm": experiment.arms[row.arm],
            "responses": row.responses,
            "closed_by": row.reason,
            "time": row.at / 1000,
            "mean": row.mean,
            "epsilon": row.epsilon,
        }
        for row in found
    ]
    return {
        "experiment": experiment.name,
        "guarantee": experiment.guarantee.to_json(),
        "unit": "one reward",
        "releases": run.state.version,
        "worst_reward": _worst(connection, experiment),
        "entries": entries,
        "next": entries[-1]["release"] if len(entries) >= limit else None,
        "users": users(connection, experiment),
    }


def _worst(connection: Connection, experiment: Experiment) -> str | None:
    """The largest epsilon that any reward has lost so far, checked by the ledger where stints are released."""
    if experiment.trust == "none":
        return None
    if experiment.trust == "local":
        used = sa.select(answers.c.level).where(answers.c.experiment == experiment.id).distinct()
        used = used.limit(len(experiment.costs))  # SQLite looks no further once it has met them all
        return str(max((experiment.costs[level] for (level,) in connection.execute(used)), default=Fraction(0)))
    if not experiment.by_stint:  # the curator's own composition keeps every reward within the claim
        any_ = connection.execute(
            sa.select(releases.c.number).where(releases.c.experiment == experiment.id).limit(1)
        ).first()
        return str(experiment.epsilon) if any_ else "0"
    book = Ledger(experiment.epsilon or Fraction(1))
    rows = sa.select(releases.c.number, releases.c.epsilon).where(releases.c.experiment == experiment.id)
    for number, cost in connection.execute(rows):
        book.enter(f"release {number}", {f"rewards of stint {number}": cost})
    return str(book.worst())


def audit_log(connection: Connection, run: LiveRun, after: int, limit: int) -> dict[str, Any]:
    """Who changed what, and when."""
    found = connection.execute(
        sa.select(audit)
        .where((audit.c.experiment == run.experiment.id) & (audit.c.id > after))
        .order_by(audit.c.id)
        .limit(limit)
    ).all()
    entries = [
        {"id": row.id, "time": row.at / 1000, "who": row.who, "action": row.action, "detail": json.loads(row.detail)}
        for row in found
    ]
    return {
        "experiment": run.experiment.name,
        "entries": entries,
        "next": entries[-1]["id"] if len(entries) == limit else None,
    }
