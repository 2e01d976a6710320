"""The two hot routes, decide and respond: plain ASGI and msgspec, as little as possible on the way to the writer."""

from __future__ import annotations

import json
import math
import re
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from typing import Any

import msgspec

from dpbandits.errors import InputError
from dpbandits.exact import rational
from dpbandits.exact.wire import DECISION
from dpbandits.service import tokens
from dpbandits.service.books import Ask
from dpbandits.service.experiment import Experiment
from dpbandits.service.problems import Refusal, not_loaded
from dpbandits.service.responses import UNKNOWN, Item, ItemAnswer, Tell
from dpbandits.service.service import Service

__all__ = ["CODES", "MAX_ITEMS", "decide", "respond"]

#: The most decisions or responses in one request.
MAX_ITEMS = 1000

#: The HTTP status of what became of a single response.
CODES = {"accepted": 200, "duplicate": 200, "conflict": 409, "late": 410, "unknown": 404, "invalid": 422}

#: The field in a message of msgspec: where a value is wrong, or one that is not known. Other messages name types.
FIELD = re.compile(r"(?:at `\$\.|unknown field `)([^`]+)`$")

#: The end of the names of decisions that were made in a lease. No other name may end like this.
OF_A_LEASE = re.compile(r"\.[0-9]+$")

#: What msgspec raises where a body is no JSON, or nothing that Python can hold.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def _refuse(constant: str) -> None:
    """NaN and Infinity are Python's, and no JSON."""
    raise ValueError(constant)


#: What JSON allows between values, and a decoder that only finds where they end: it converts no number.
BLANK = re.compile(r"[ \t\n\r]*")
_ends = json.JSONDecoder(parse_int=len, parse_float=len, parse_constant=_refuse)

#: Characters of what was sent that an answer repeats.
QUOTED = 200


class DecideBody(msgspec.Struct, forbid_unknown_fields=True):
    """What may be said when a decision is asked for."""

    decision: str | None = None
    user: str | None = None
    level: str | float | None = None
    count: int | None = None


class ResponseBody(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """What a device sends."""

    token: str
    value: Any = msgspec.field(name="response")


class RewardBody(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A reward of the central model."""

    token: str
    value: Any = msgspec.field(name="reward")


_decide = msgspec.json.Decoder(DecideBody)
_responses = msgspec.json.Decoder(ResponseBody | list[ResponseBody])
_rewards = msgspec.json.Decoder(RewardBody | list[RewardBody])
_one, _each = msgspec.json.Decoder(msgspec.Raw), msgspec.json.Decoder(list[msgspec.Raw])


async def decide(service: Service, name: str, body: bytes) -> bytes:
    """Decisions of an experiment, as JSON."""
    run = service.names.get(name) or await service.look_up(name)
    experiment = run.experiment
    try:
        asked = _decide.decode(body or b"{}")
    except msgspec.ValidationError as error:
        field = FIELD.search(str(error))
        allowed = ", ".join(DecideBody.__struct_fields__)
        text = f"{error!s:.{QUOTED}}; allowed are {allowed}"
        raise Refusal(422, text, parameter=field[1][:QUOTED] if field else "body") from None
    except UNREADABLE as error:
        raise Refusal(400, f"the body must be a JSON object: {error!s:.{QUOTED}}") from None
    if asked.decision is not None and DECISION.fullmatch(asked.decision) is None:
        raise InputError("decision", "must be 1 to 200 letters, digits or ._:=~- signs")
    if asked.decision is not None and OF_A_LEASE.search(asked.decision) is not None:
        raise InputError("decision", f"must not end in a dot and digits, as those of a lease do, got {asked.decision}")
    if asked.count is not None and not 1 <= asked.count <= MAX_ITEMS:
        raise InputError("count", f"must be from 1 to {MAX_ITEMS}, got {asked.count}")
    if asked.user is not None and not 0 < len(asked.user) <= 200:
        raise InputError("user", "must be a text of 1 to 200 characters")
    if asked.user is None and experiment.cap is not None:
        raise InputError("user", f"is required: {experiment.name} has max_responses_per_user={experiment.cap}")
    person = b"" if asked.user is None else service.keys.pseudonym(asked.user)
    level = 0 if experiment.levels is None and asked.level is None else _level(experiment, asked.level)
    answer: bytes = await service.writer.submit(Ask(experiment.id, asked.decision, person, level, asked.count or 0))
    return answer


def _level(experiment: Experiment, level: str | float | None) -> int:
    """Which of the experiment's levels; at level 0 no response is taken."""
    if experiment.levels is None:
        raise InputError("level", f"is not a setting of {experiment.policy.name}: one epsilon holds for all users")
    allowed = ", ".join(map(str, experiment.levels))
    if level is None:
        raise InputError("level", f"is required: one of {allowed}")
    exact = Fraction(0) if level in (0, "0") else rational("level", level)
    if exact not in experiment.levels:
        raise InputError("level", f"must be one of {allowed}, got {level!s:.80}")
    return experiment.levels.index(exact)


async def respond(service: Service, body: bytes, *, rewards: bool) -> tuple[int, bytes]:
    """(HTTP status, JSON): what became of a response, or of each of a list."""
    sent = _sent(body, rewards)
    many = isinstance(sent, list)
    bodies = sent if many else [sent]
    read = _items(service, bodies, rewards)
    if not service.store.embedded and UNKNOWN in read:
        await service.look_for_tokens()  # another worker may just have made the experiment, or a new token key
        read = _items(service, bodies, rewards)
    items = [one for one in read if type(one) is Item]
    outcomes: list[ItemAnswer] = await service.writer.submit(Tell(items, rewards)) if items else []
    if len(items) < len(read):
        told = iter(outcomes)
        outcomes = [next(told) if isinstance(one, Item) else one for one in read]
    if many:
        return 200, b"[%s]" % b",".join(map(_outcome, outcomes))
    return CODES[outcomes[0][0]], _outcome(outcomes[0])


def _sent(body: bytes, rewards: bool) -> Any:
    """What was sent, one or a list. If not all of it can be read or has the right fields, each is looked at alone."""
    with suppress(*UNREADABLE):
        return _few((_rewards if rewards else _responses).decode(body))
    begins = body.lstrip(b" \t\n\r")[:1]
    if begins == b"[":
        return [_alone(one, rewards) for one in _few(_list(body))]
    one = _read(_one, body)
    if begins != b"{":
        raise Refusal(422, f"the body must be {_shape(rewards)}, or a list of such objects")
    return _alone(one, rewards)


def _list(body: bytes) -> list[Any]:
    """The items of a list. An item with half a surrogate is no text, but the others can be read.

    Each is cut out as it was sent, so that it is taken as it would be alone.
    """
    with suppress(*UNREADABLE):
        return _each.decode(body)
    text, items = body.decode(errors="surrogateescape"), list[bytes]()
    place = text.index("[")
    with suppress(ValueError, IndexError, RecursionError):
        while len(items) <= MAX_ITEMS and text[place] == ("," if items else "["):
            start = BLANK.match(text, place + 1).end()  # type: ignore[union-attr]  # it matches anywhere
            end = _ends.raw_decode(text, start)[1]
            items.append(text[start:end].encode(errors="surrogateescape"))
            place = BLANK.match(text, end).end()  # type: ignore[union-attr]
        if len(items) > MAX_ITEMS:
            raise Refusal(413, f"a list may have at most {MAX_ITEMS} items, got more")
        if text[place] == "]" and BLANK.fullmatch(text, place + 1):
            return items
    return _read(_each, body)  # says what is wrong


def _few(sent: Any) -> Any:
    """What was sent. A list that is too long is refused."""
    if isinstance(sent, list) and len(sent) > MAX_ITEMS:
        raise Refusal(413, f"a list may have at most {MAX_ITEMS} items, got {len(sent)}")
    return sent


def _read(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    try:
        return decoder.decode(body)
    except UNREADABLE as error:
        raise Refusal(400, f"the body must be JSON: {error!s:.{QUOTED}}") from None


def _alone(sent: msgspec.Raw, rewards: bool) -> Any:
    """One of those that were sent, or what is wrong with it."""
    try:
        return msgspec.json.decode(sent, type=RewardBody if rewards else ResponseBody)
    except UNREADABLE as error:
        return "invalid", f"must be {_shape(rewards)}: {error!s:.{QUOTED}}"


def _shape(rewards: bool) -> str:
    what = "reward (a number)" if rewards else "response (a whole number, or what a device of dpbandits wrote)"
    return f"an object with the fields token (a text) and {what}"


@lru_cache(1000)  # reasons may name an experiment
def _outcome(outcome: ItemAnswer) -> bytes:
    status, reason = outcome
    return msgspec.json.encode({"status": status, "reason": reason} if reason else {"status": status})


def _items(service: Service, bodies: list[Any], rewards: bool) -> list[Item | ItemAnswer]:
    """Each with its token, or what is wrong with it."""
    runs, take = service.runs, _reward if rewards else _response
    read = iter(tokens.read([one.token for one in bodies if type(one) is not tuple], service.keys))
    found: list[Item | ItemAnswer] = []
    for one in bodies:
        if type(one) is tuple:
            found.append(one)
            continue
        token = next(read)
        run = None if token is None else runs.get(token.lease.experiment)
        if token is None or run is None or not run.experiment.has(token.arm, token.lease.level):
            if token is not None and token.lease.experiment in service.aside:
                raise not_loaded(service.aside[token.lease.experiment])  # a list is to be sent again as a whole
            found.append(UNKNOWN)
        elif run.experiment.local is rewards:
            right = "responses" if rewards else "rewards"
            found.append(("invalid", f"{run.experiment.name} takes {right}: send it to /v1/{right}"))
        else:
            found.append(take(run.experiment, token, one.value))
    return found


def _reward(experiment: Experiment, token: tokens.Token, reward: Any) -> Item | ItemAnswer:
    if not isinstance(reward, int | float) or isinstance(reward, bool):
        return "invalid", "reward must be a number"
    try:
        number = float(reward)
    except OverflowError:
        number = math.inf if reward > 0 else -math.inf
    return Item(token, None, experiment.value(number))


def _response(experiment: Experiment, token: tokens.Token, response: Any) -> Item | ItemAnswer:
    if type(response) is dict:
        lease = token.lease
        name = f"{lease.decision}.{token.item}"
        if set(response) != {"decision", "epsilon", "response"}:
            return "invalid", "response must be a whole number, or what a device of dpbandits wrote"
        if response["decision"] not in ((name, lease.decision) if token.item == 0 else (name,)):
            return "invalid", "response is to another decision than the token"
        if not _same(response["epsilon"], experiment.costs[lease.level]):
            return "invalid", f"response must be made at epsilon {experiment.costs[lease.level]}"
        response = response["response"]
    if type(response) is not int:
        return "invalid", "response must be a whole number"
    value = experiment.taken(response)
    if value is None:
        return "invalid", f"response must be one that the {experiment.mechanism} mechanism can make"
    return Item(token, response, value)


def _same(epsilon: Any, level: Fraction) -> bool:
    try:
        return isinstance(epsilon, str) and rational("epsilon", epsilon) == level
    except InputError:
        return False
