"""Ask and tell: one policy live, with as many open decisions as there are users; frozen to JSON, and thawed."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from dpbandits import __version__
from dpbandits.checks import at_least, flag, positive
from dpbandits.display import bars, card
from dpbandits.environments.numbers import low_and_high, real
from dpbandits.errors import ChoiceError, InputError
from dpbandits.exact import Exactly, ExactNoise, rational
from dpbandits.live import Live, Status
from dpbandits.policies import lookup
from dpbandits.policies.policy import Policy
from dpbandits.session.answers import Decision, SessionDevice, number_of
from dpbandits.session.chance import SessionChance, probabilities
from dpbandits.session.facts import SessionFacts
from dpbandits.session.inputs import epsilon_of_response, made_of, plain_name, renamed
from dpbandits.session.saved import FORMAT, SECRET, SECRET_STATE, checksum, read_saved, stint_of
from dpbandits.session.shown import lines
from dpbandits.session.sources import SIMULATED, sources
from dpbandits.session.told import Told, logged
from dpbandits.session.users import Users

__all__ = ["Session"]

FEW_ARMS = 3  # arms that a session shows in a terminal

#: What became of a response: as in a live run, or it was over what a user may give.
SessionStatus = Status | Literal["over"]


class Session(SessionFacts):
    """One policy live.

    ``policy`` is a policy, or the name of one with ``arms`` (a list of names, their number, or as for ``simulate``),
    ``epsilon`` and options, as a mapping or as keywords. Many decisions may be open, and are answered in any order. In
    the local model ``tell`` takes the response that the user's device made; otherwise the reward, which a private
    curator keeps to itself. Rewards lie in [0, 1], and others are clipped; ``reward_range`` maps another range to it.
    The noise is exact unless it is ``"simulated"``, which is for trying things out: then a ``seed`` makes it
    repeatable. With a ``window`` in seconds a response that comes later is not used. With ``propensities`` every
    decision says how probable its arm was. A session may be shared between threads. With ``rewards_per_user`` epsilon
    is the promise for a user, and no more than this many rewards of a user are taken; ``ask`` is then told who the user
    is.

    >>> session = Session("ldp-ucb-b", arms=["red", "green", "blue"], epsilon="1")
    >>> decision = session.ask()
    >>> session.tell(decision, session.device().respond(decision, reward=1))
    'used'
    >>> Session.thaw(session.freeze()).ask().arm
    'green'
    """

    def __init__(
        self,
        policy: str | lookup.Factory | Policy,
        *,
        arms: object = None,
        epsilon: Exactly | None = None,
        horizon: int | None = None,
        rewards_per_user: int | None = None,
        user_delta: float | None = None,
        options: Mapping[str, Any] | None = None,
        noise: ExactNoise | Literal["simulated"] | None = None,
        seed: int | None = None,
        window: float | None = None,
        reward_range: str | Sequence[float] | None = None,
        propensities: bool = False,
        clock: Callable[[], float] = time.time,
        **more: Any,
    ) -> None:
        given = lookup.merged(options, more)
        users = {"rewards_per_user": rewards_per_user, "user_delta": user_delta}
        names, made = made_of(policy, arms, epsilon, horizon, users, given)
        self.window = None if window is None else positive("window", real("window", window))
        ends = None if reward_range is None else low_and_high("reward_range", reward_range)
        self.propensities = flag("propensities", propensities)
        level = made.settings.get("epsilon") if epsilon is None else epsilon
        self._asked = None if level is None else rational("epsilon", level)
        self._noise, generator = sources(noise, seed)
        self._chance = SessionChance(generator, None if self.propensities else 1.0)
        self._clock = clock
        live = Live(made, window=self.window or math.inf)
        told = Told(live, epsilon_of_response(made, self._asked), self._noise, ends)
        super().__init__(names, live, Users(made.rewards_per_user), told)

    def ask(self, user: str | int | None = None) -> Decision:
        """The next decision. Every call is a decision of its own, whether or not earlier ones were answered.

        With ``rewards_per_user`` a ``user`` is required: any name that stands for one user. A user who has had that
        many decisions still gets further ones, but their rewards are not taken: ``counts`` is False. A decision that
        was answered with None does not count.
        """
        with self._lock:
            name = self._users.name(user)
            live, chance = self._live, self._chance
            watched = chance.watched
            watched.used, now = False, self._clock()
            asked = probabilities(live, now, self._noise) if self.propensities else None
            try:
                made = live.decide(now, self._noise, watched)  # type: ignore[arg-type]
            except ChoiceError as error:
                agent = type(self.policy.agent).__name__
                raise InputError("policy", f"{self.policy.name}: {agent}.{error}") from None
            if made.stint != chance.stint:
                chance.began(made.stint, made.arm, asked)
            counts = self._users.takes(name, made.number, live)
            return Decision(str(made.number), self.arms[made.arm], made.arm, chance.propensity, counts)

    def _receive(self, number: int, value: float | None, level: float, now: float) -> SessionStatus:
        """Give the response to the policy, unless its user is over the cap."""
        if self._users.most is None:
            return self._live.receive(number, value, level, now, self._noise)
        taken = self._users.taken(number)
        status = self._live.receive(number, value if taken else None, level, now, self._noise)
        self._users.answered(number, missing=value is None)
        return status if taken or value is None else "over"

    def ask_many(self, count: int, users: Sequence[str | int] | None = None) -> list[Decision]:
        """Several decisions at once; with ``rewards_per_user``, one for each of these users."""
        asked = [None] * at_least("count", count, 1) if users is None else list(users)
        if len(asked) != count:
            raise InputError("users", f"must be one for each of the {count} decisions, got {len(asked)}")
        with self._lock:
            for user in asked:
                self._users.name(user)
            return [self.ask(user) for user in asked]

    def device(self, *, level: Exactly | None = None) -> SessionDevice:
        """The part that runs on a user's device in the local model; ``level`` is that user's own epsilon, if any."""
        if not self._told.local:
            raise InputError("device", f"is for the local model; {self.policy.name} takes rewards")
        if self.policy.traits.levels is not None:
            if level is None:
                raise InputError("level", f"is required by {self.policy.name}, got none")
            epsilon = rational("level", level) / (self.rewards_per_user or 1)
        else:
            if level is not None:
                raise InputError("level", f"is not a parameter of {self.policy.name}, got {level}")
            epsilon = self._told.epsilon or rational("epsilon", self.policy.settings["epsilon"])
        ends = self.reward_range if self._maps else None
        return SessionDevice(self.policy.curator, epsilon, self._noise, exact=not self.simulated, reward_range=ends)

    def tell(self, decision: Decision | str, response: Any) -> SessionStatus:
        """Give the answer to a decision: a device's response or its bytes, or the reward. None says that none comes.

        The answer is ``used``, ``late`` (it came after its window or after its stint was closed), ``missing``, or
        ``over`` (its user has given as many rewards as a user may, and this one is not used).
        """
        name = self._named(decision)
        value, level = (None, 0.0) if response is None else self._told.value(name, response)
        with self._lock:
            return self._receive(int(name), value, level, self._clock())

    def _named(self, decision: Decision | str) -> str:
        """The number of a decision, as text. A decision of another session may have the same number."""
        name = number_of(decision)
        if isinstance(decision, Decision):
            waiting = self._live.open.get(int(name))
            if waiting is not None and waiting.arm != decision.number:
                raise InputError("decision", f"must be one of this session, whose decision {name} is for another arm")
        return name

    def tell_many(self, answers: Mapping[Any, Any] | Iterable[tuple[Decision | str, Any]]) -> list[SessionStatus]:
        """Give the answers to many decisions: pairs of a decision and its response, as for ``tell``, or a mapping.

        All of them are taken, or, if one of them is refused, none.
        """
        pairs = answers.items() if isinstance(answers, Mapping) else answers
        read: dict[int, tuple[float | None, float]] = {}
        for decision, response in pairs:
            name = self._named(decision)
            if int(name) in read:
                raise InputError("decision", f"must be answered once, got two answers to {name}")
            read[int(name)] = (None, 0.0) if response is None else self._told.value(name, response)
        with self._lock:
            for number in read:
                if not self._live.waits(number):
                    raise InputError("decision", f"must be one that waits for a response, got {number}")
            now = self._clock()
            return [self._receive(number, value, level, now) for number, (value, level) in read.items()]

    def pause(self, arm: Any) -> None:
        """Choose this arm no longer, until it is resumed. An open stint on the arm ends, with what has come.

        Answers to open decisions on the arm are still used, but where whole stints are released those of an ended stint
        are late. Not every policy allows pauses: see ``dpbandits.changing``.
        """
        with self._lock:
            self._live.pause(self._number(arm), self._noise)

    def resume(self, arm: Any) -> None:
        """Choose a paused arm again, with all that is known of it."""
        with self._lock:
            self._live.resume(self._number(arm))

    def add_arm(self, arm: Any) -> None:
        """One more arm, with a name that no other has. Not every policy allows it: see ``dpbandits.changing``."""
        with self._lock:
            name = plain_name(arm)
            if name in self.arms:
                raise InputError("arm", f"must have a new name, got {name!r}")
            self._live.add_arm()
            self.arms = (*self.arms, name)

    def warm_start(self, log: Any) -> int:
        """Learn from a log before the first decision; how many of its rewards were used.

        The policy is played on the log: each decision takes the next reward that the log holds for its arm, until the
        log has none left for the arm that is asked for. So each reward is used at most once and in the same way as a
        live one, and the promise covers it like any other, as long as a logged user's arm does not depend on a reward.

        ``log`` is a CSV or Parquet file or a data frame with columns ``arm`` and ``reward``, or pairs of an arm and a
        reward. In the local model it is pairs of an arm and a response that a device made at this epsilon: a log of
        rewards is refused, because these users' rewards have left their devices.

        >>> session = Session("adap-ucb", arms=["a", "b"], epsilon=1)
        >>> session.warm_start([("a", 1), ("b", 0), ("b", 1), ("a", 1)]) > 0
        True
        """
        with self._lock:
            if self.rewards_per_user is not None:
                raise InputError(
                    "log", "must not be used with rewards_per_user: it does not say whose rewards it holds"
                )
            if self.rounds:
                raise InputError("log", f"must come before the first decision, got {self.rounds} decisions")
            waiting = logged(log, self.arms, self._told)
            while any(waiting):
                decision = self.ask()
                queue = waiting[decision.number]
                value, level = queue.pop() if queue else (None, 0.0)
                self._live.receive(int(decision.id), value, level, self._clock(), self._noise)
                if value is None:
                    break
                self.warm += 1
            return self.warm

    def freeze(self) -> str:
        """Everything that the session's future depends on, as JSON with a checksum. It holds open sums: keep it safe.

        With exact noise no state of a generator is in it. With simulated noise it is, and whoever has it can compute
        past rewards from releases: it is as secret as the rewards.
        """
        with self._lock:
            record: dict[str, Any] = {
                "format": FORMAT,
                "version": __version__,
                "policy": lookup.written(self.policy.factory),
                "settings": self.policy.settings,
                "arms": list(self.arms),
                "epsilon": None if self._asked is None else str(self._asked),
                "users": self._users.to_json(),
                "window": self.window,
                "reward_range": list(self.reward_range) if self._maps else None,
                "propensities": self.propensities,
                "stint": [self._chance.stint, self._chance.propensity],
                "warm": self.warm,
                "noise": SIMULATED if self.simulated else "exact",
                "secret": SECRET_STATE if self.simulated else SECRET,
                "live": self._live.freeze(),
            }
            if self.simulated:
                generators = {"noise": self._noise, "choices": self._chance.watched.generator}
                record["generators"] = {name: rng.bit_generator.state for name, rng in generators.items()}
        return json.dumps({**record, "checksum": checksum(record)}, allow_nan=False)

    @classmethod
    def thaw(
        cls,
        text: str,
        policy: lookup.Factory | None = None,
        *,
        noise: ExactNoise | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Session:
        """The session that was frozen; ``policy`` is the function that makes it, where its name cannot be imported."""
        record = read_saved(text)
        simulated = record["noise"] == SIMULATED
        factory = lookup.find(policy or record["policy"])
        made = factory(**renamed(factory, record["settings"]))
        session = cls(
            made,
            arms=dict.fromkeys(map(plain_name, record["arms"])),
            noise=SIMULATED if simulated else noise,
            window=record["window"],
            reward_range=record.get("reward_range"),
            propensities=record.get("propensities", False),
            clock=clock,
        )
        epsilon = record["epsilon"]
        session._asked = None if epsilon is None else rational("epsilon", epsilon)
        session._told.epsilon = epsilon_of_response(made, session._asked)
        if epsilon is not None and float(rational("epsilon", epsilon)) != made.settings.get("epsilon"):
            raise InputError("text", f"must have one epsilon, got {epsilon} and {made.settings.get('epsilon')}")
        session._live.thaw(record["live"])
        session._users = Users.from_json(record.get("users"), session.rewards_per_user)
        session.warm = at_least("warm", record.get("warm", 0), 0)
        session._chance.stint, session._chance.propensity = stint_of(record.get("stint", [0, 1.0]))
        if simulated:
            try:
                session._noise.bit_generator.state = record["generators"]["noise"]
                session._chance.watched.generator.bit_generator.state = record["generators"]["choices"]
            except (KeyError, TypeError, ValueError):
                raise InputError("text", "must hold the state of its generators; this does not") from None
        return session

    def __repr__(self) -> str:
        return "\n".join(lines(self, FEW_ARMS))

    def _repr_html_(self) -> str:
        counts = sorted(self._live.pulls, reverse=True)
        return card(lines(self, len(self.arms)), bars([float(count) for count in counts]), "pulls, in this order")
