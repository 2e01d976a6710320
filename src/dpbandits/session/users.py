"""How many rewards a session has taken from each user, where epsilon is the promise for a user."""

from __future__ import annotations

from typing import Any

from dpbandits.errors import InputError
from dpbandits.live import Live

__all__ = ["Users"]

LONGEST_USER = 200  # characters of a user's name


class Users:
    """Who has given how many rewards; at most ``most`` are taken of a user, or any number if that is None."""

    __slots__ = ("given", "most", "whose")

    def __init__(self, most: int | None) -> None:
        self.most = most
        self.given: dict[str, int] = {}  # by user: decisions whose reward is taken
        self.whose: dict[int, str] = {}  # by open decision: whose reward it is; empty if it is not taken

    def name(self, user: object) -> str:
        """The user's name as a text; empty where users are not told apart."""
        if self.most is None:
            if user is not None:
                raise InputError("user", "is for sessions with rewards_per_user, which limits a user's rewards")
            return ""
        name = str(user) if isinstance(user, str | int) and not isinstance(user, bool) else ""
        if not 0 < len(name) <= LONGEST_USER:
            raise InputError(
                "user", f"must be a text of 1 to {LONGEST_USER} characters, or a whole number; this is not"
            )
        return name

    def takes(self, user: str, number: int, live: Live) -> bool:
        """Whether the reward of this decision is taken; remembers whose it is."""
        if self.most is None:
            return True
        given = self.given.get(user, 0)
        counts = given < self.most
        if counts:
            self.given[user] = given + 1
        if len(self.whose) > 2 * (len(live.open) + len(live.expired)) + 100:
            waiting = live.open.keys() | live.expired  # others were forgotten long after their window
            self.whose = {one: whose for one, whose in self.whose.items() if one in waiting}
        self.whose[number] = user if counts else ""
        return counts

    def taken(self, number: int) -> bool:
        """Whether the reward of this open decision is taken."""
        return self.whose.get(number) != ""

    def answered(self, number: int, *, missing: bool) -> None:
        """Forget an open decision. If no reward came, its user may give another one."""
        user = self.whose.pop(number, None)
        if user and missing:
            self.given[user] -= 1
            if not self.given[user]:
                del self.given[user]

    def to_json(self) -> dict[str, Any]:
        """As a saved session holds it."""
        return {"given": self.given, "open": [[number, user] for number, user in self.whose.items()]}

    @classmethod
    def from_json(cls, saved: Any, most: int | None) -> Users:
        """What ``to_json`` gave; sessions that were saved before there were users have None."""
        users = cls(most)
        if saved is None:
            return users
        try:
            users.given = {str(user): int(count) for user, count in saved["given"].items()}
            users.whose = {int(number): str(user) for number, user in saved["open"]}
        except (AttributeError, KeyError, TypeError, ValueError):
            raise InputError("text", "must be a saved session; this one is damaged: users is invalid") from None
        fits = all(0 < count <= (most or 0) for count in users.given.values())
        if not fits or any(user and user not in users.given for user in users.whose.values()):
            raise InputError("text", "must be a saved session; this one is damaged: users have given too much")
        return users
