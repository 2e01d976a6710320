"""What may be read about an experiment. Under central privacy all of it is made from counts and releases alone."""

from __future__ import annotations

import csv
import io
import json
import math
import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from dpbandits.curators import LocalBernoulli, interval
from dpbandits.curators.intervals import noise, spread
from dpbandits.errors import InputError
from dpbandits.mechanisms import attenuation, debias
from dpbandits.numerics import GRID, unit
from dpbandits.privacy.composition import group
from dpbandits.privacy.ledger import Ledger
from dpbandits.service import health
from dpbandits.service.books import SILENT, LiveRun
from dpbandits.service.evidence import converged
from dpbandits.service.experiment import HOLDOUT, POLICY, RANDOM, REPLACED, SHADOW, Experiment
from dpbandits.service.rows import COUNTS, MINUTE
from dpbandits.service.state import LiveState
from dpbandits.service.tables import answers, audit, decisions, people, releases, traffic

__all__ = ["COLUMNS", "audit_log", "export", "ledger", "overview", "series", "shares", "summary"]

#: The intervals of the summary miss the mean of an arm with at most this probability, each on its own.
MISSED = 0.05

NO_INTERVAL = "no interval is proved for this policy's estimate"
NOT_KEPT = "rewards of users who are held out are counted and not kept, so nothing of them is released"
QUANTILES = (0.5, 0.9, 0.99, 1.0)
RECENT = 2  # minutes, the last one included
SECOND = 1000  # milliseconds
FINE = 200_000  # decisions that may be counted one by one, for steps shorter than a minute
KINDS = {POLICY: "policy", RANDOM: "chance", HOLDOUT: "holdout", SHADOW: "shadow", REPLACED: "replaced"}
COLUMNS = ("decision", "arm", "chosen_by", "propensity", "version", "made", "level", "received", "outcome", "response")


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
    recent = _recent(connection, experiment)
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
    due = _decided(connection, experiment, (traffic.c.decisions - traffic.c.silent), traffic.c.minute < before)
    recent = _recent(connection, experiment)
    return health.findings(experiment, run.state, counts, due, recent, known)


def _recent(connection: Connection, experiment: Experiment) -> list[int]:
    """Decisions by arm in the last minutes in which there were any."""
    where = traffic.c.experiment == experiment.id
    last = connection.execute(sa.select(sa.func.max(traffic.c.minute)).where(where)).scalar() or 0
    return _decided(connection, experiment, traffic.c.decisions, traffic.c.minute >= last - RECENT + 1)


def _decided(connection: Connection, experiment: Experiment, what: Any, when: Any) -> list[int]:
    found = connection.execute(
        sa.select(traffic.c.arm, sa.func.sum(what))
        .where((traffic.c.experiment == experiment.id) & when)
        .group_by(traffic.c.arm)
    )
    rows = {arm: int(count) for arm, count in found}
    return [rows.get(arm, 0) for arm in range(len(experiment.arms))]


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
    found = connection.execute(
        sa.select(traffic.c.arm, *(sa.func.sum(traffic.c[name]) for name in COUNTS))
        .where(traffic.c.experiment == experiment.id)
        .group_by(traffic.c.arm)
    )
    rows = {arm: dict(zip(COUNTS, map(int, counts), strict=True)) for arm, *counts in found}
    return [rows.get(arm, dict.fromkeys(COUNTS, 0)) for arm in range(len(experiment.arms))]


def waiting(connection: Connection, experiment: Experiment) -> int:
    """Responses that are stored and not yet folded."""
    where = (answers.c.experiment == experiment.id) & ~answers.c.folded
    return int(connection.execute(sa.select(sa.func.count()).select_from(answers).where(where)).scalar_one())


def estimate(experiment: Experiment, state: LiveState, arm: int) -> dict[str, Any] | None:
    """An arm's mean with an interval, in the unit of the reward, from what was released; None where nothing was."""
    curator = state.curator
    if not curator.ready(arm, 0.0):
        return None
    mean = curator.mean(arm)
    if isinstance(curator, LocalBernoulli):
        mean = debias(mean, attenuation(curator.epsilon))
    try:
        ends: tuple[float, float] | None = interval(curator, arm, MISSED)
    except InputError:
        ends = None
    return _estimated(experiment, mean, ends, curator.samples(arm, 0))


def _estimated(experiment: Experiment, mean: float, ends: tuple[float, float] | None, n: float) -> dict[str, Any]:
    """In the unit of the reward. Noise may bring the mean out of its range; the interval is made to hold it, too.

    Rewards are rounded to a grid, which may move an end by as much.
    """
    low, high = (0.0, 1.0) if experiment.range is None else experiment.range
    scale = high - low
    both = None if ends is None else [min(ends[0], mean) - 1.0 / GRID, max(ends[1], mean) + 1.0 / GRID]
    said: dict[str, Any] = {
        "mean": low + scale * mean,
        "interval": None if both is None else [low + scale * end for end in both],
        "confidence": 1.0 - MISSED,
        "of": "the logistic function of the reward" if experiment.range is None else "the reward",
        "responses": n,
    }
    return said if both is not None else said | {"note": NO_INTERVAL}


def holdout(connection: Connection, experiment: Experiment) -> dict[str, Any] | None:
    """The users who always get the baseline, to compare with; None where nobody is held out."""
    if not experiment.holdout or experiment.baseline is None:
        return None
    held = (decisions.c.experiment == experiment.id) & (decisions.c.kind == HOLDOUT)
    made = connection.execute(
        sa.select(sa.func.coalesce(sa.func.sum(decisions.c["items"]), 0)).where(held)
    ).scalar_one()
    taken = (answers.c.experiment == experiment.id) & (answers.c.kind == HOLDOUT) & (answers.c.outcome != "late")
    groups = connection.execute(
        sa.select(answers.c.level, sa.func.count(), sa.func.sum(answers.c.response))
        .where(taken)
        .group_by(answers.c.level)
    ).all()
    found = {
        "share": experiment.holdout,
        "arm": experiment.arms[experiment.baseline],
        "decisions": int(made or 0),
        "responses": sum(int(n) for _, n, _ in groups),
        "estimate": None,
    }
    if not experiment.local:
        return found | {"note": NOT_KEPT}
    of_levels = [(experiment.level_values[level], int(n), int(total)) for level, n, total in groups]
    return found | {"estimate": _of_held_out(experiment, of_levels) if of_levels else None}


def _of_held_out(experiment: Experiment, groups: list[tuple[float, int, int]]) -> dict[str, Any]:
    """The mean of their responses, those of each level with the weight of what one of them tells.

    ``groups`` has the level, the number and the sum of the responses. A bit has no other error than its own chance.
    """
    bits = experiment.mechanism == "bernoulli"
    weight, total, variance, squares, largest = 0.0, 0.0, 0.0, 0.0, 0.0
    for level, n, summed in groups:
        slope = attenuation(level) if bits else 1.0
        each = slope * slope if bits else 1.0 / (0.25 + 2.0 / level**2)
        weight += n * each
        total += n * each * (debias(summed / n, slope) if bits else summed / (n * experiment.steps))
        variance += n * (each / slope) ** 2 / 4.0
        squares, largest = squares + n * (each / level) ** 2, max(largest, each / level)
    half = spread(variance, MISSED) if bits else spread(variance, MISSED / 2.0) + noise(squares, largest, MISSED / 2.0)
    mean = total / weight
    return _estimated(
        experiment, mean, (unit(mean - half / weight), unit(mean + half / weight)), sum(n for _, n, _ in groups)
    )


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
        "A user with several rewards loses as many times as much."
    )


def users(connection: Connection, experiment: Experiment) -> dict[str, Any]:
    """How many users answered, and what they have spent, composed exactly: epsilons add up."""
    found = connection.execute(
        sa.select(people.c.person, people.c.level, people.c.responses).where(people.c.experiment == experiment.id)
    )
    spent: dict[bytes, Fraction] = {}
    sent: dict[bytes, int] = {}
    for person, level, number in found:
        spent[person] = spent.get(person, Fraction(0)) + number * experiment.costs[level]
        sent[person] = sent.get(person, 0) + number
    if not spent:
        return {"count": 0, "max_responses": experiment.cap, "epsilon": None, "delta": None}
    ordered = sorted(spent.values())
    most = max(sent.values())
    delta = experiment.guarantee.delta
    return {
        "count": len(ordered),
        "max_responses": experiment.cap,
        "epsilon": {str(q): str(ordered[min(int(q * len(ordered)), len(ordered) - 1)]) for q in QUANTILES},
        "delta": group(float(experiment.epsilon or 0), delta, most)[1] if delta else 0.0,
    }


def series(connection: Connection, run: LiveRun, points: int) -> dict[str, Any]:
    """Counts by arm over time, in at most so many steps of whole minutes."""
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
        decided = sum(one["decisions"] for one in point["arms"].values())
        for one in point["arms"].values():
            one["share"] = one["decisions"] / decided if decided else None
    return {"experiment": experiment.name, "step_seconds": 60 * step, "points": list(rows.values())}


def shares(connection: Connection, run: LiveRun, points: int) -> dict[str, Any]:
    """Decisions by arm over time, in columns: in steps of whole seconds while there are few, then of whole minutes."""
    experiment = run.experiment
    few = sum(_decided(connection, experiment, traffic.c.decisions, sa.true())) <= FINE
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


def ledger(connection: Connection, run: LiveRun, after: int, limit: int) -> dict[str, Any]:
    """Every release and what it cost. Stints share no reward: each reward loses what the release of its stint cost."""
    experiment = run.experiment
    found = connection.execute(
        sa.select(releases)
        .where((releases.c.experiment == experiment.id) & (releases.c.number > after))
        .order_by(releases.c.number, releases.c.arm)
        .limit(limit)
    ).all()
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
        "next": entries[-1]["release"] if len(entries) == limit else None,
        "users": users(connection, experiment),
    }


def _worst(connection: Connection, experiment: Experiment) -> str | None:
    """The largest epsilon that any reward has lost so far, checked by the ledger where stints are released."""
    if experiment.trust == "none":
        return None
    if experiment.trust == "local":
        used = sa.select(answers.c.level).where(answers.c.experiment == experiment.id).distinct()
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


def export(connection: Connection, run: LiveRun) -> Iterator[list[Any]]:
    """Every decision and what became of it, as rows of ``COLUMNS``. A reward is never among them."""
    experiment = run.experiment
    join = sa.and_(
        answers.c.experiment == decisions.c.experiment,
        answers.c.decision == decisions.c.decision,
        answers.c.item >= decisions.c.first,
        answers.c.item < decisions.c.first + decisions.c["items"],
    )
    query = (
        sa.select(decisions, answers.c.item, answers.c.received, answers.c.outcome, answers.c.response)
        .select_from(decisions.outerjoin(answers, join))
        .where(decisions.c.experiment == experiment.id)
        .order_by(decisions.c.decision, decisions.c.first, answers.c.item)
    )
    current: tuple[Any, Any] | None = None
    answered: dict[int, Any] = {}
    last: Any = None
    for row in connection.execution_options(yield_per=1000).execute(query):
        if (row.decision, row.first) != current:
            if last is not None:
                yield from _items(experiment, last, answered)
            current, answered, last = (row.decision, row.first), {}, row
        if row.item is not None:
            answered[row.item] = row
    if last is not None:
        yield from _items(experiment, last, answered)


def _items(experiment: Experiment, row: Any, answered: dict[int, Any]) -> Iterator[list[Any]]:
    level = None if row.level == SILENT or experiment.trust == "none" else str(experiment.costs[row.level])
    for item in range(row.first, row.first + row.items):
        answer = answered.get(item)
        yield [
            row.decision if row.lease == 0 else f"{row.decision}.{item}",
            experiment.arms[row.arm],
            KINDS[row.kind],
            row.propensity,
            row.version,
            row.made / 1000,
            level,
            None if answer is None else answer.received / 1000,
            None if answer is None else answer.outcome,
            None if answer is None else answer.response,
        ]


def as_csv(rows: Iterator[list[Any]]) -> Iterator[bytes]:
    """The export as CSV, in pieces."""
    yield _line(list(COLUMNS))
    for row in rows:
        yield _line(row)


def _line(row: list[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(row)
    return text.getvalue().encode()
