"""A session in a few lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpbandits.display import shortened
from dpbandits.formats import plural

if TYPE_CHECKING:
    from dpbandits.session.session import Session

__all__ = ["lines"]


def lines(session: Session, most: int) -> list[str]:
    """What the session is, and the arms with the most pulls."""
    promise, end = session.policy.guarantee, session.policy.horizon
    size = promise.in_short.replace(" privacy", "")
    of = "" if end is None else f" of {end:,}"
    noise = ", simulated noise: no promise" if session.simulated else ""
    counts = f"{len(session.arms)} arms, {session.rounds:,}{of} rounds, {session.open:,} open"
    known = "" if session.winner is None else f"; the best arm is known: {shortened(str(session.winner.arm), 24)}"
    found = [f"Session: {session.policy.name} ({size}{noise}), {counts}{known}"]
    means = session.means
    low, high = session.reward_range
    unit = "" if (low, high) == (0.0, 1.0) else f" of rewards mapped from [{low:g}, {high:g}] to [0, 1]"
    order = sorted(session.pulls.items(), key=lambda item: -item[1])
    width = max(len(shortened(name, 24)) for name, _ in order[:most])
    for name, count in order[:most]:
        mean = means[name]
        shown = "nothing released" if mean is None else f"released mean {mean:.4g}{unit}"
        note = ", paused" if name in session.paused else ""
        found.append(f"  {shortened(name, 24):{width}}  {plural(count, 'pull')}, {shown}{note}")
    if len(order) > most:
        left = sum(count for _, count in order[most:])
        found.append(f"  and {plural(len(order) - most, 'more arm')} with {plural(left, 'pull')}")
    return found
