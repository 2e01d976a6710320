"""One user's device: rewards go in, and for each decision the same bytes come out, however often they are asked for."""

from __future__ import annotations

import json
import re
from fractions import Fraction

from dpbandits.client.store import Store
from dpbandits.errors import InputError
from dpbandits.exact import LocalCurator

_DECISION = re.compile(r"[A-Za-z0-9._:=~-]{1,200}")


class Device:
    """Makes the private response to a decision once, and resends it ever after.

    The order is the protocol: *charge* the budget, on disk; *draw*; *keep* the response, on disk; only then return it.
    Two draws for one reward would let an attacker average the noise away, so no draw leaves before it is kept. A
    crash before it was kept loses a draw that nobody saw: asked again, the device draws again, at no further charge.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from dpbandits.client import BernoulliCurator
    >>> folder = tempfile.TemporaryDirectory()
    >>> device = Device(Store(Path(folder.name) / "responses", limit="1"))
    >>> first = device.respond("d1", 0.7, BernoulliCurator("0.1"))
    >>> first == device.respond("d1", 0.7, BernoulliCurator("0.1")), device.store.budget().spent
    (True, Fraction(1, 10))
    >>> folder.cleanup()
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    def respond(self, decision: str, reward: float, curator: LocalCurator) -> bytes:
        """What to send for ``decision``, which names it and the level of the curator before the reward is known.

        JSON, as ``{"decision":"d1","epsilon":"1/10","response":1}``, byte for byte that of the JavaScript client.
        """
        if _DECISION.fullmatch(decision) is None:
            raise InputError(f"decision must be 1 to 200 letters, digits or ._:=~- signs, got {decision!r:.80}")
        made = self.store.charge(decision, curator.epsilon)
        if made is None:
            made = self.store.keep(decision, encode(decision, curator.epsilon, curator.respond(reward)))
        return made


def encode(decision: str, epsilon: Fraction, response: int) -> bytes:
    """The bytes of a response.

    >>> encode("d1", Fraction("0.1"), 1)
    b'{"decision":"d1","epsilon":"1/10","response":1}'
    """
    return json.dumps(
        {"decision": decision, "epsilon": str(epsilon), "response": response}, separators=(",", ":")
    ).encode()
