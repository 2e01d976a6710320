"""What may be wrong with an experiment, from counts and releases: in words, with the likely cause."""

from __future__ import annotations

import math
from typing import Any

from dpbandits.service.books import fallback
from dpbandits.service.experiment import Experiment
from dpbandits.service.remarks import Remark, Severity
from dpbandits.service.state import LiveState

__all__ = ["findings"]

ENOUGH = 50  # decisions or responses before a share is worth a word
MANY_MISSING, MANY_LATE, MANY_TWICE = 0.2, 0.1, 0.1
COLLAPSED = 0.98  # of the recent decisions on one arm
SIGMAS = 4.0  # two response rates differ if intervals of this many standard errors do not touch

Counts = dict[str, int]


def findings(
    experiment: Experiment,
    state: LiveState,
    counts: list[Counts],
    due: list[int],
    recent: list[int],
    known: dict[str, Any],
) -> list[Remark]:
    """Warnings and notes.

    ``due`` are the decisions of each arm whose response must have come by now; ``recent`` are the latest decisions of
    each arm; ``known`` is the answer of ``converged``.
    """
    total = {name: sum(row[name] for row in counts) for name in counts[0]}
    came = total["used"] + total["apart"] + total["late"]
    found = [
        *_status(experiment, state),
        *_silence(experiment, total, came, sum(due)),
        *_lateness(experiment, total, came),
        *_unlike(experiment, counts, due),
    ]
    return [*found, *_collapse(experiment, state, recent, known, found)]


def _status(experiment: Experiment, state: LiveState) -> list[Remark]:
    if experiment.status == "halted":
        text = (
            "Halted: an old copy of the database was restored, and noise would be drawn twice. Start a new experiment."
        )
        return [Remark("warning", text, "halted")]
    if state.over and experiment.active:
        text = "All rounds that the policy was made for are played. It learns nothing more: stop it."
        return [Remark("note", text, "over")]
    if experiment.shadow:
        return [_shadow(experiment, state)]
    return []


def _shadow(experiment: Experiment, state: LiveState) -> Remark:
    """A stint is open until a response comes, and there is none to an arm that nobody gets."""
    given = fallback(experiment)
    text = f"A dry run: everybody gets {experiment.arms[given]}."
    waits = experiment.by_stint and state.desk.asked[0] > 0 and state.desk.arm[0] != given
    if not waits:
        return Remark("note", text, "shadow")
    arm = experiment.arms[state.desk.arm[0]]
    text += f" The policy waits for a response to {arm}, which nobody gets: it learns nothing until mode is live."
    return Remark("warning", text, "shadow")


def _silence(experiment: Experiment, total: Counts, came: int, due: int) -> list[Remark]:
    asked = total["decisions"] - total["silent"]
    if total["decisions"] == 0:
        return [Remark("note", "Nobody has asked for a decision yet.", "quiet")]
    if came == 0 and asked >= ENOUGH:
        text = f"{asked:,} decisions, and no response has come back. Do the clients call report?"
        return [Remark("warning" if due or math.isinf(experiment.window) else "note", text, "silence")]
    if due >= ENOUGH and came < (1.0 - MANY_MISSING) * due:
        share = 100 * (1.0 - came / due)
        text = (
            f"At least {share:.0f} % of the responses that were due never came. Clients should answer for every "
            "decision, whatever happened, so that silence reveals nothing."
        )
        return [Remark("warning", text, "missing")]
    return []


def _lateness(experiment: Experiment, total: Counts, came: int) -> list[Remark]:
    found = []
    if came >= ENOUGH and total["late"] > MANY_LATE * came and experiment.by_stint:
        text = (
            f"{100 * total['late'] / came:.0f} % of the responses were not used: their stint had closed. The policy "
            "serves one arm until enough responses have come. With many decisions open at once, the others come too "
            "late."
        )
        found.append(Remark("note", text, "closed"))
    elif came >= ENOUGH and total["late"] > MANY_LATE * came:
        text = (
            f"{100 * total['late'] / came:.0f} % of the responses came too late and were not used. A longer "
            f"response_window (now {experiment.window:g} s) or faster clients would help."
        )
        found.append(Remark("warning", text, "late"))
    if came >= ENOUGH and total["duplicate"] > MANY_TWICE * came:
        text = f"{total['duplicate']:,} responses came twice. That is harmless: each counts once."
        found.append(Remark("note", text, "duplicate"))
    if total["refused"]:
        text = (
            f"{total['refused']:,} responses were refused: another answer to the same decision was stored, or a user "
            "was over the cap. Does a client draw twice?"
        )
        found.append(Remark("warning", text, "refused"))
    return found


def _unlike(experiment: Experiment, counts: list[Counts], due: list[int]) -> list[Remark]:
    """Arms whose responses come more rarely than those of others."""
    rates = []
    for arm, (row, n) in enumerate(zip(counts, due, strict=True)):
        if n >= ENOUGH:
            rate = min((row["used"] + row["apart"] + row["late"]) / n, 1.0)
            rates.append((rate, SIGMAS * math.sqrt(max(rate * (1.0 - rate), 1.0 / n) / n), experiment.arms[arm]))
    if len(rates) < 2:
        return []
    low, high = min(rates), max(rates)
    if low[0] + low[1] >= high[0] - high[1]:
        return []
    text = (
        f"Responses come for {100 * low[0]:.0f} % of the decisions on {low[2]}, and for {100 * high[0]:.0f} % of those "
        f"on {high[2]}. The guarantee assumes that whether a response comes does not depend on the reward."
    )
    return [Remark("warning", text, "unlike", low[2])]


def _collapse(
    experiment: Experiment, state: LiveState, recent: list[int], known: dict[str, Any], found: list[Remark]
) -> list[Remark]:
    """Practically all recent traffic on one arm, though it is not known to be best."""
    n = sum(recent)
    arm = max(range(len(recent)), key=recent.__getitem__)
    if n < 4 * ENOUGH or recent[arm] < COLLAPSED * n or known["arm"] == experiment.arms[arm] or experiment.shadow:
        return []
    name = experiment.arms[arm]
    if len(experiment.paused) == len(experiment.arms) - 1:
        return [Remark("note", f"All traffic goes to {name}: every other arm is paused.", "collapse", name)]
    level, cause = _cause(experiment, {one.about for one in found})
    text = f"{100 * recent[arm] / n:.0f} % of the latest decisions are for {name}. The likely cause: {cause}."
    return [Remark(level, text, "collapse", name)]


def _cause(experiment: Experiment, about: set[str]) -> tuple[Severity, str]:
    """Why all traffic goes to one arm. Only what is wrong elsewhere is a warning: a policy may do so for a while."""
    if "silence" in about:
        return "warning", "no response comes back, so the policy cannot learn and keeps its choice"
    if "unlike" in about or "missing" in about:
        return "warning", "responses are missing, so the policy learns about some arms more slowly than about others"
    if "late" in about:
        return "warning", "responses come too late, so the policy learns from few of them"
    if experiment.by_stint:
        cause = "the policy is in a long stint: it serves one arm until enough responses have come, then chooses again"
    else:
        cause = "the policy prefers it, though its lead is not certain yet; the setting floor keeps every arm in play"
    return "note", cause
