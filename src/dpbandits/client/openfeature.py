"""An OpenFeature provider: an experiment is a string flag, evaluation is a decision, tracking is the report.

It needs ``openfeature-sdk`` (``pip install 'dpbandits[openfeature]'``).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from dpbandits.client.client import Client, ClientDecision
from dpbandits.errors import MissingExtraError

try:
    from openfeature.evaluation_context import EvaluationContext
    from openfeature.exception import ErrorCode, TypeMismatchError
    from openfeature.flag_evaluation import FlagResolutionDetails, Reason
    from openfeature.provider import AbstractProvider, Metadata
    from openfeature.track import TrackingEventDetails
except ModuleNotFoundError:
    raise MissingExtraError("openfeature-sdk", "openfeature") from None

__all__ = ["Provider"]

#: What a decision that is the default value means in OpenFeature's words.
_CODES = {"unknown": ErrorCode.FLAG_NOT_FOUND, "unreadable": ErrorCode.PARSE_ERROR}

_LOCKS = 64


class Provider(AbstractProvider):
    """Flags whose values are the arms of experiments.

    The targeting key is the user: it has its own budget, and the server may cap or hold out users by it. The attribute
    ``level`` of the context is the user's own epsilon, where the experiment has levels. A user keeps an arm until its
    answer is due. A tracking call with the name of the flag is the report; its value is the reward, and 1 without one.

    ``otherwise`` is the reward that stands for "nothing happened", one for all flags or one for each. ``events`` names
    the flags that other tracking events report on: ``{"checkout": ["banner", "price"]}``. ``after`` is as in
    ``Client.decide``.

    >>> provider = Provider(Client("http://localhost:9", store="/dev/null/none"), otherwise=0)
    >>> details = provider.resolve_string_details("banner", "red", EvaluationContext("ann"))
    >>> details.value, details.error_code.value
    ('red', 'GENERAL')
    >>> provider.shutdown()
    """

    def __init__(
        self,
        client: Client,
        *,
        otherwise: float | Mapping[str, float | None] | None,
        events: Mapping[str, Iterable[str]] | None = None,
        after: float | None = None,
    ) -> None:
        super().__init__()
        self.client, self._otherwise, self._after = client, otherwise, after
        self._events = {name: tuple(flags) for name, flags in (events or {}).items()}
        self._locks = [threading.Lock() for _ in range(_LOCKS)]

    def get_metadata(self) -> Metadata:
        """The provider's name."""
        return Metadata(name="dpbandits")

    def shutdown(self) -> None:
        """Stop sending; what is kept is sent by the next client with the same file."""
        self.client.close()

    def resolve_string_details(
        self, flag_key: str, default_value: str, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[str]:
        """The arm of the user's decision: the one that still waits for its answer, or a new one."""
        context = evaluation_context or EvaluationContext()
        if not context.targeting_key:
            return _instead(default_value, ErrorCode.TARGETING_KEY_MISSING, "the targeting key is the user")
        several = isinstance(self._otherwise, Mapping)
        if several and flag_key not in self._otherwise:  # type: ignore[operator]
            return _instead(default_value, ErrorCode.FLAG_NOT_FOUND, f"otherwise does not name the flag {flag_key}")
        otherwise: Any = self._otherwise[flag_key] if several else self._otherwise  # type: ignore[index]
        user, level = context.targeting_key, context.attributes.get("level")
        with self._locks[hash((user, flag_key)) % _LOCKS]:  # two evaluations at once are one decision
            decision = self.client.current(flag_key, user) or self.client.decide(
                flag_key,
                otherwise=otherwise,
                fallback=default_value,
                user=user,
                level=None if level is None else str(level),
                after=self._after,
            )
        return _details(decision, default_value)

    async def resolve_string_details_async(
        self, flag_key: str, default_value: str, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[str]:
        """The same in a thread, so that the loop goes on meanwhile."""
        return await asyncio.to_thread(self.resolve_string_details, flag_key, default_value, evaluation_context)

    def track(
        self,
        tracking_event_name: str,
        evaluation_context: EvaluationContext | None = None,
        tracking_event_details: TrackingEventDetails | None = None,
    ) -> None:
        """Report what happened to the user's decisions. The first report on a decision stands."""
        user = evaluation_context.targeting_key if evaluation_context else None
        value = tracking_event_details.value if tracking_event_details else None
        for flag in self._events.get(tracking_event_name, (tracking_event_name,)):
            decision = self.client.current(flag, user) if user else None
            if decision is not None:
                self.client.report(decision, 1.0 if value is None else value)

    def resolve_boolean_details(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: arms are texts."""
        raise TypeMismatchError("an experiment is a string flag: its value is the name of an arm")

    resolve_integer_details = resolve_float_details = resolve_object_details = resolve_boolean_details


def _details(decision: ClientDecision, default: str) -> FlagResolutionDetails[str]:
    """A decision in OpenFeature's words. Over budget the arm is the server's, and there is no error."""
    silent = decision.silent
    if silent in ("storage", "unreachable", "unreadable", "unknown", "refused"):
        wrong = silent == "refused" and decision.status == 422  # the user or the level
        code = ErrorCode.INVALID_CONTEXT if wrong else _CODES.get(silent, ErrorCode.GENERAL)
        return _instead(default, code, f"{silent}: {decision.detail}")
    metadata: dict[str, bool | int | float | str] = {"decision": decision.id, "answered": silent is None}
    if silent is not None:
        metadata["silent"] = silent
    arm = str(decision.arm)
    return FlagResolutionDetails(value=arm, variant=arm, reason=Reason.SPLIT, flag_metadata=metadata)


def _instead(value: str, code: ErrorCode, message: str) -> FlagResolutionDetails[str]:
    return FlagResolutionDetails(value=value, reason=Reason.ERROR, error_code=code, error_message=message)
