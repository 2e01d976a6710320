"""A client of a server: decisions, and a private answer to every one of them.

The curator runs inside ``report``, before anything leaves. An answer is drawn once, kept, and sent with the same bytes
until the server has it. It is sent at a time that is fixed with the decision, whether something was reported or not, so
neither silence nor the time of an answer reveals what happened. The JavaScript client follows the same rules.
"""

from __future__ import annotations

import json
import math
import os
import random
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from dpbandits.checks import known, positive
from dpbandits.client.budget import Budget, BudgetError
from dpbandits.client.link import Link
from dpbandits.client.outbox import LEASE, Outbox, Waiting
from dpbandits.client.responder import responder_for
from dpbandits.errors import InputError
from dpbandits.exact import Exactly, as_float, rational
from dpbandits.exact.wire import encode

__all__ = ["Client", "ClientDecision"]

#: Seconds that a server has to take an answer.
PATIENCE = 10.0

#: Seconds from a decision to its answer where neither the server nor the caller says any.
NO_WINDOW = 60.0

#: The longest sleep between two looks at what is due, in seconds.
LONGEST_SLEEP = 3600.0

FINAL = ("accepted", "duplicate", "conflict", "late", "unknown", "invalid")

#: The disk is full or read-only, the file is locked or damaged: nothing can be kept.
NO_STORE = (sqlite3.Error, OSError, InputError)

_NOTHING = object()

_chance = random.SystemRandom().random


@dataclass(frozen=True)
class ClientDecision:
    """Which arm to play, and whether an answer will be sent.

    ``silent`` is None if an answer will be sent, and otherwise says why none will. If it is ``budget``, ``cap``,
    ``trust`` or ``curator``, the arm is the server's; if it is ``storage``, ``unreachable``, ``unknown``, ``refused``
    or ``unreadable``, the arm is the fallback. ``status`` is the HTTP status if the server gave
    no decision; it is 0 if no server answered.
    """

    id: str
    experiment: str
    arm: str | None
    silent: str | None = None
    detail: str = ""
    status: int | None = None


class Client:
    """Decisions of the server at ``url``, for one user or for many.

    ``limit`` is the total epsilon that a user will ever spend; an earlier promise of less stands. It is counted in the
    file ``store``, together with the answers that are on their way, for each ``user`` apart. ``trust="central"`` lets
    rewards themselves go to a server that asks for them. After ``timeout`` seconds a decision is the fallback.
    ``observer`` is called with what happens here, rewards included: show it to the owner of the device only. A thread
    sends what is due. ``close`` ends it, and the next client with the same file sends what is kept.

    Wrong arguments raise ``InputError``. Failures of the server, the network or the disk raise nothing.

    >>> client = Client("http://localhost:9", store=os.devnull + "/none")
    >>> client.decide("banner", otherwise=0, fallback="red")
    ClientDecision(id='...', experiment='banner', arm='red', silent='storage', detail=...)
    >>> client.close()
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        store: str | os.PathLike[str] | None = None,
        limit: Exactly = "10",
        trust: str = "local",
        timeout: float = 2.0,
        observer: Callable[[dict[str, Any]], object] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        known("trust", trust, ("local", "central"))
        positive("timeout", timeout)  # seconds
        self._link = Link(url, key)
        self._outbox = Outbox(_default() if store is None else Path(store), limit)
        self._trust, self._timeout, self._observer, self._clock = trust, timeout, observer, clock
        self._heard: dict[str, object] = {}  # reports that could not be kept yet
        self._sending, self._starting, self._wake = threading.Lock(), threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None
        self._process = os.getpid()
        self._closed = False
        if self._outbox.path.exists():  # an earlier client may have left something
            self._run()

    def decide(
        self,
        experiment: str,
        *,
        otherwise: float | None,
        fallback: str | None = None,
        user: str | None = None,
        level: str | None = None,
        after: float | None = None,
    ) -> ClientDecision:
        """A decision, which will be answered whatever happens.

        ``otherwise`` is the reward that stands for "nothing happened", such as 0 for clicks: it is answered if there is
        no report. With None nothing is sent without a report, and the silence reveals that there was none. ``after`` is
        the number of seconds until the answer, where the server's window allows it; without it, answers are sent
        between 85 and 95 % of the window.
        """
        _check_asked(experiment, otherwise, after)
        asked, name, person = self._clock(), secrets.token_hex(16), user or ""
        instead = ClientDecision(name, experiment, fallback)
        try:
            self._outbox.budget(person)
        except NO_STORE as error:
            return self._decided(replace(instead, silent="storage", detail=str(error)), None, None, person)
        path, content = _request(experiment, {"decision": name, "user": user, "level": level})
        made, offer = _read(instead, *self._link.post(path, content, self._timeout), self._trust)
        if offer is None:
            return self._decided(made, None, None, person)
        block, token = offer
        now = self._clock()
        due = _due(asked, now, block.get("respond_within"), None if after is None else as_float(after))
        if due <= now:
            return self._decided(replace(made, silent="late"), block, None, person)
        number = None if otherwise is None else as_float(otherwise)
        epsilon = str(block.get("epsilon") or "0")
        row = Waiting(name, person, experiment, str(made.arm), epsilon, block, token, number, due, due - now, 0, None)
        try:
            self._outbox.open(row)
        except BudgetError as error:
            return self._decided(replace(made, silent="budget", detail=str(error)), block, None, person)
        except NO_STORE as error:
            return self._decided(replace(made, silent="storage", detail=str(error)), block, None, person)
        self._run()
        return self._decided(made, block, due, person)

    def report(self, decision: ClientDecision | str, reward: object) -> bool:
        """Report what happened. The answer is drawn and kept now, and sent when it is due.

        True: this report stands. False: an answer was already made, or none is awaited. A report that cannot be kept
        now is kept when the answer is due.
        """
        if isinstance(decision, ClientDecision) and decision.silent is not None:
            return False
        name = decision.id if isinstance(decision, ClientDecision) else decision
        if not isinstance(name, str):  # it is not shown: it may be the reward
            raise InputError("decision", f"must be one that decide returned, or its id, got a {type(name).__name__}")
        self._heard[name] = reward
        try:
            answer = self._outbox.make(name, lambda waiting: self._draw(waiting, reward))
        except NO_STORE:
            return False
        self._heard.pop(name, None)
        if answer is not None:
            self._tell(type="drawn", id=name, reward=as_float(reward), reported=True, response=answer)
        return answer is not None

    def current(self, experiment: str, user: str | None = None) -> ClientDecision | None:
        """The decision of a user in an experiment whose answer is not due yet, made here or by another process."""
        try:
            row = self._outbox.latest(user or "", experiment, self._clock())
        except NO_STORE:
            return None
        return None if row is None else ClientDecision(row.decision, row.experiment, row.arm)

    def budget(self, user: str | None = None) -> Budget | None:
        """What a user will ever spend and has spent, or None where nothing can be kept."""
        try:
            return self._outbox.budget(user or "")
        except NO_STORE:
            return None

    def flush(self, *, again: bool = False) -> None:
        """Send what is due. It happens by itself. With ``again``, what failed before is tried at once."""
        self._flush(again, lambda: False)

    def _flush(self, again: bool, ended: Callable[[], bool]) -> bool:
        """Send what is due, until ``ended``. False if the file of the client cannot be used."""
        with self._sending:
            drawn: list[dict[str, Any]] = []

            def draw(waiting: Waiting) -> str:
                reward = self._heard.get(waiting.decision, _NOTHING)
                reported = reward is not _NOTHING
                if not reported:
                    reward = waiting.otherwise
                    if reward is None:
                        return ""
                answer = self._draw(waiting, reward)
                event = {"id": waiting.decision, "reward": as_float(reward), "reported": reported, "response": answer}
                drawn.append(event)
                return answer

            try:
                claimed = self._outbox.claim(self._clock(), draw, _chance, again)
                for event in drawn:
                    self._tell(type="drawn", **event)
                for row in claimed:
                    self._heard.pop(row.decision, None)
                    if self._distrusts(row):
                        self._outbox.done(row.decision)
                        continue
                    code, answer = self._send(row)
                    if answer in FINAL:
                        self._outbox.done(row.decision)
                    if code == 0 or ended():  # no server: what is left is tried again with it
                        break
            except NO_STORE:
                return False  # nothing can be kept now, so nothing is drawn and nothing is sent
        return True

    def close(self) -> None:
        """End the thread that sends. What is kept is sent by the next client with the same file."""
        self._closed = True
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(PATIENCE + 1.0)  # it may be sending
            self._thread = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Sending

    def _distrusts(self, row: Waiting) -> bool:
        """Whether this is for a reward that this client may not give, although an earlier one with the file could."""
        return row.curator["mechanism"] == "none" and self._trust != "central"

    def _draw(self, waiting: Waiting, reward: object) -> str:
        """The answer to a decision. This happens inside the transaction that keeps it: nobody sees it before."""
        if self._distrusts(waiting):
            raise InputError("trust", "must be central for a reward itself to be sent, got local")
        if waiting.curator["mechanism"] == "none":
            return json.dumps(_plain(reward, waiting.curator))
        drawn = responder_for({**waiting.curator, "epsilon": waiting.epsilon})(reward)  # at the level that was charged
        return encode(waiting.decision, rational("epsilon", waiting.epsilon), drawn).decode()

    def _send(self, row: Waiting) -> tuple[int, str]:
        """The HTTP status, and what the server says became of the answer. The bytes are the same every time."""
        central = row.curator["mechanism"] == "none"
        field, path = ("reward", "/v1/rewards") if central else ("response", "/v1/responses")
        body = f'{{"token":{json.dumps(row.token)},"{field}":{row.answer}}}'
        code, said = self._link.post(path, body.encode(), PATIENCE)
        found = said.get("status") if isinstance(said, dict) else None
        status = found if found in FINAL else str(code or "unreachable")
        self._tell(
            type="sent", id=row.decision, path=path, body=body, bytes=len(body), attempt=row.tries, status=status
        )
        return code, status

    def _run(self) -> None:
        """See to it that a thread sends what is due. It does not survive a fork."""
        with self._starting:
            if self._process != os.getpid():
                self._process, self._thread, self._sending = os.getpid(), None, threading.Lock()
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._loop, name="dpbandits client", daemon=True)
                self._thread.start()
        self._wake.set()

    def _loop(self) -> None:
        while not self._closed:
            self._wake.clear()
            wait = LEASE
            if self._flush(False, lambda: self._closed):
                with suppress(*NO_STORE):
                    following = self._outbox.next()
                    wait = LONGEST_SLEEP if following is None else following - self._clock()
            self._wake.wait(max(0.0, min(wait, LONGEST_SLEEP)))

    # The observer

    def _tell(self, **event: Any) -> None:
        if self._observer is not None:
            try:
                self._observer(event)
            except Exception:  # an observer must not change what happens
                return

    def _decided(
        self, decision: ClientDecision, block: Mapping[str, Any] | None, due: float | None, person: str
    ) -> ClientDecision:
        if self._observer is not None:
            self._tell(type="decided", decision=decision, curator=block, due=due, budget=self.budget(person))
        return decision


def _default() -> Path:
    """Where a user's programs keep their data."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "dpbandits" / "answers.db"


def _read(
    instead: ClientDecision, status: int, answer: Any, trust: str
) -> tuple[ClientDecision, tuple[dict[str, Any], str] | None]:
    """What the server decided, with the curator and the token that an answer needs, if one is to be sent."""
    said = answer.get("detail", "") if isinstance(answer, dict) else ""
    if status != 200:
        away = status == 0 or status >= 500 or status == 429
        word = "unreachable" if away else "unknown" if status == 404 else "refused"
        return replace(instead, silent=word, detail=f"{status} {said}".strip(), status=status), None
    arm = answer.get("arm") if isinstance(answer, dict) else None
    if not isinstance(arm, str) or answer.get("decision") != instead.id:
        return replace(instead, silent="unreadable", detail="this is not a decision"), None
    made, block, token = replace(instead, arm=arm), answer.get("curator"), answer.get("token")
    if not isinstance(block, dict) or not isinstance(token, str):
        return replace(made, silent="cap"), None
    central = block.get("mechanism") == "none"
    if central and trust != "central":
        return replace(made, silent="trust"), None
    try:
        if not central:
            responder_for(block)
        else:
            _plain(None, block)
            if block.get("epsilon") is not None:
                rational("epsilon", str(block["epsilon"]))
        float(block.get("respond_within") or 0.0)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # InputError is among them
        return replace(made, silent="curator", detail=str(error)), None
    return made, (block, token)


def _check_asked(experiment: object, otherwise: float | None, after: float | None) -> None:
    """Refuse what no decision can be asked for with."""
    if otherwise is not None and not math.isfinite(as_float(otherwise)):
        raise InputError("otherwise", f"must be the reward for 'nothing happened', or None, got {otherwise!r:.80}")
    if after is not None and not 0.0 < as_float(after) < math.inf:
        raise InputError("after", f"must be positive seconds, got {after!r:.80}")
    if not isinstance(experiment, str):
        raise InputError("experiment", f"must be a text, got {experiment!r:.80}")


def _request(experiment: str, body: Mapping[str, str | None]) -> tuple[str, bytes]:
    """The path and the content of a request for a decision."""
    content = json.dumps({field: value for field, value in body.items() if value is not None}).encode()
    return f"/v1/experiments/{quote(experiment, safe='')}/decisions", content


def _due(asked: float, now: float, window: Any, after: float | None) -> float:
    """When to answer: near the end of the window, or ``after`` this many seconds; by chance, and fixed from now on."""
    within = float(window) if isinstance(window, int | float) else math.inf
    latest = asked + within * (0.85 + 0.1 * _chance())
    if after is None and within < math.inf:
        return latest
    return min(now + (NO_WINDOW if after is None else after) * (1.0 + 0.1 * _chance()), latest)


def _plain(reward: object, block: Mapping[str, Any]) -> float:
    """A reward as JSON has it, for a server that keeps the curator itself; the lowest if it is no number."""
    value = as_float(reward)
    if math.isnan(value):
        return float(block["range"][0]) if block.get("range") else 0.0
    return max(-1e308, min(value, 1e308))
