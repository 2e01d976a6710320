"""One user's device: it turns a reward into a response, and always returns the same bytes for the same decision."""

from __future__ import annotations

from dpbandits.client.store import Store
from dpbandits.exact import LocalCurator, as_float, writable
from dpbandits.exact.wire import encode, named


class Device:
    """Makes the private response to a decision once, and returns the same response afterwards.

    The order of the steps matters: *charge* the budget, on disk; *draw* the response; *keep* it, on disk; return it.
    Two draws for one reward would let an attacker average the noise away, so no response is returned before it is kept.
    If the device crashes before that, nobody has seen the draw. The next call draws again, at no further charge.

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
        """The bytes to send for ``decision``. Fix its name and the curator's epsilon before the reward is known.

        They are JSON, as ``{"decision":"d1","epsilon":"1/10","response":1}``, and the same as in the JavaScript client.
        A refusal comes before the charge, and never depends on the reward: a reward that is not a number is answered
        like the lowest one, because an unanswered decision would reveal it.
        """
        name, epsilon, respond = named(decision), writable("epsilon", curator.epsilon), curator.respond
        number = as_float(reward)
        made = self.store.charge(name, epsilon)
        if made is None:
            made = self.store.keep(name, encode(name, epsilon, respond(number)))
        return made
