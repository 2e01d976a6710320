"""A response that comes, or a reward: what it is, what it costs its user, and what is said to its sender."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from dpbandits.service.experiment import Experiment
from dpbandits.service.recent import Recent
from dpbandits.service.tokens import Token

__all__ = [
    "ACCEPTED",
    "CONFLICT",
    "DUPLICATED",
    "NOT_TAKEN",
    "UNKNOWN",
    "Decided",
    "Item",
    "ItemAnswer",
    "Tell",
    "said_again",
    "spends",
]


#: Experiment, decision, item, arm and time: which decision it is, also where another one has had the same name.
Decided = tuple[int, str, int, int, int]


class Item(msgspec.Struct, gc=False):
    """A response or a reward that came with a valid token."""

    token: Token
    response: int | None  # what a device sent
    value: float  # what the curator takes

    @property
    def key(self) -> tuple[int, str, int]:
        """The key of the table ``answers``."""
        lease = self.token.lease
        return lease.experiment, lease.decision, self.token.item

    @property
    def decided(self) -> Decided:
        """The decision that it answers."""
        return *self.key, self.token.arm, self.token.lease.made

    @property
    def about(self) -> bytes:
        """The key as text, to which what is sealed or digested is bound."""
        experiment, decision, item = self.key
        return b"%d/%s/%d" % (experiment, decision.encode(), item)

    def digest(self, recent: Recent) -> bytes | None:
        """What is stored in place of a reward; nothing for a response, which is stored itself."""
        return recent.digest(self.about, self.value) if self.response is None else None


@dataclass(slots=True)
class Tell:
    """Responses that came in one request, or rewards, which a trusted server may release."""

    items: list[Item]
    rewards: bool


#: (status, reason): what is said to the sender of a response.
ItemAnswer = tuple[str, str]
ACCEPTED: ItemAnswer = ("accepted", "")
DUPLICATED: ItemAnswer = ("duplicate", "")
CONFLICT: ItemAnswer = ("conflict", "another answer to this decision is stored, and stands")
UNKNOWN: ItemAnswer = (
    "unknown",
    "the token is not one of this server's, was changed, or the database has no such experiment or decision",
)
TOO_LATE: ItemAnswer = ("late", "it came after its window, or after its stint was closed")
CAPPED: ItemAnswer = (
    "invalid",
    "this user has sent as many responses as max_responses_per_user allows; nothing was taken",
)


#: What is said about an answer that came and was not taken, by what is stored of it. Others are accepted.
NOT_TAKEN = {"late": TOO_LATE, "refused": CAPPED}


def spends(experiment: Experiment, outcome: str) -> bool:
    """Whether an answer costs its user something.

    In the local model it has left the device, whatever becomes of it. A reward that is not taken is used for nothing.
    """
    return experiment.local or outcome not in NOT_TAKEN


def said_again(item: Item, outcome: str, response: int | None, digest: bytes | None, recent: Recent) -> ItemAnswer:
    """What is said to somebody who answers a decision that is answered, from what is stored of the first answer."""
    if outcome in NOT_TAKEN:
        return NOT_TAKEN[outcome]
    if item.response is not None:
        other = response != item.response
    else:
        other = digest is not None and recent.contradicts(digest, item.about, item.value)
    return CONFLICT if other else DUPLICATED
