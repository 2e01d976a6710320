"""What is known of one policy live: its promise, its counts, and what follows from its releases."""

from __future__ import annotations

import threading
from typing import Any

from dpbandits.agents import standing
from dpbandits.checks import fraction, nearest
from dpbandits.curators.confidence import interval_of_any_stint, of_rewards
from dpbandits.errors import InputError
from dpbandits.live import Live
from dpbandits.policies.policy import Policy
from dpbandits.privacy.guarantee import Guarantee
from dpbandits.session.answers import Winner
from dpbandits.session.inputs import plain_name
from dpbandits.session.told import Told
from dpbandits.session.users import Users

__all__ = ["EXACT_NOISE", "SessionFacts"]

EXACT_NOISE = "the noise is exact: integers from the operating system's entropy"
WARM = "the log's users count as users who came first, and which arm each of them got must not tell a reward"


class SessionFacts:
    """What is known of one policy live. Reading it changes nothing."""

    def __init__(self, arms: tuple[Any, ...], live: Live, users: Users, told: Told) -> None:
        self.arms = arms
        self.reward_range = told.reward_range or (0.0, 1.0)
        self.warm = 0  # rewards of a log that were used
        self._live, self._users, self._told = live, users, told
        self._maps = told.reward_range is not None
        self._lock = threading.RLock()

    @property
    def policy(self) -> Policy:
        """The policy, with what it has learned."""
        return self._live.policy

    @property
    def simulated(self) -> bool:
        """Whether the noise is a generator's, of which nothing is promised."""
        return self._told.simulated

    @property
    def rewards_per_user(self) -> int | None:
        """The most rewards that are taken of a user, where epsilon is the promise for a user."""
        return self._users.most

    @property
    def guarantee(self) -> Guarantee:
        """The promise, which names the kind of noise that it rests on."""
        promise = self.policy.guarantee
        promise = promise.simulated() if self.simulated else promise.under(EXACT_NOISE)
        if self._maps:
            promise = promise.within(*self.reward_range)
        return promise.under(WARM) if self.warm else promise

    @property
    def rounds(self) -> int:
        """How many decisions were made."""
        return int(self._live.desk.decisions[0])

    @property
    def open(self) -> int:
        """How many decisions wait for an answer."""
        return len(self._live.open)

    @property
    def version(self) -> int:
        """How often something was released: save the session whenever this has changed, before you act on it."""
        return self._live.version

    @property
    def pulls(self) -> dict[Any, int]:
        """How many decisions each arm got."""
        return dict(zip(self.arms, self._live.pulls, strict=True))

    @property
    def means(self) -> dict[Any, float | None]:
        """The released mean of each arm, in the unit of the releases; None where nothing is released yet.

        In the local model these are means of private responses, randomised bits for instance, and not of rewards:
        ``interval`` is about the reward itself. In the central model the releases of this package's policies are as
        private as their choices. The means of a baseline are those of the rewards.
        """
        curator = self._live.curator
        return {
            name: float(curator.mean(arm)) if curator.ready(arm, 0.0) else None for arm, name in enumerate(self.arms)
        }

    @property
    def winner(self) -> Winner | None:
        """The best arm, once a policy that stops knows it; it is then played for ever. Until then, None.

        It follows from releases alone, so it is as private as the decisions are. The policy looks at what has been
        released whenever ``ask`` needs a new choice of it.

        >>> from dpbandits import Session
        >>> session = Session("dp-tt", arms=["red", "green"], epsilon=1, noise="simulated", seed=0)
        >>> while session.winner is None:
        ...     decision = session.ask()
        ...     _ = session.tell(decision, 1 if decision.arm == "green" else 0)
        >>> session.winner
        Winner(arm='green', rounds=70, confidence=0.95)
        """
        agent: Any = self.policy.agent
        if not self.policy.traits.stops or not agent.named.any():
            return None
        arm = int(agent.named.argmax())
        return Winner(self.arms[arm], int(agent.named[arm]), 1.0 - agent.beta)

    @property
    def evidence(self) -> dict[Any, float] | None:
        """For a policy that stops: the evidence against each arm, as a share of what rules it out; 1 is enough.

        The arm that is ahead has 0. It follows from releases alone. None for a policy that never stops.
        """
        live = self._live
        shares = standing(live.agent, live.releases)
        return None if shares is None else dict(zip(self.arms, shares, strict=True))

    def interval(self, arm: Any, confidence: float = 0.95) -> tuple[float, float]:
        """An interval that contains the arm's mean reward with probability ``confidence``, however often one looks.

        It follows from releases alone: see ``dpbandits.curators.interval``. Policies whose curator has no such bound
        refuse. A policy for any reward learns the logistic function of the reward, which says nothing of the mean of
        unbounded rewards: such a session needs a ``reward_range``.

        >>> from dpbandits import Session
        >>> session = Session("ldp-ucb-b", arms=["red", "green"], epsilon=2, reward_range=(0, 10))
        >>> session.interval("green")
        (0.0, 10.0)
        """
        number, low, high = self._number(arm), *self.reward_range
        if self.policy.any_reward and not self._maps:
            raise InputError("reward_range", f"is required to know the mean reward of an arm with {self.policy.name}")
        with self._lock:
            missed = 1.0 - fraction("confidence", confidence)
            ends = interval_of_any_stint(self.policy.curator, number, missed, self.version)
        if self.policy.any_reward:
            ends = of_rewards(ends)
        return low + (high - low) * ends[0], low + (high - low) * ends[1]

    @property
    def paused(self) -> tuple[Any, ...]:
        """The arms that are paused."""
        return tuple(self.arms[arm] for arm in sorted(self._live.paused))

    def _number(self, arm: Any) -> int:
        name = plain_name(arm)
        if name not in self.arms:
            raise InputError("arm", f"{name!r} is unknown: {nearest(name, map(str, self.arms))}")
        return self.arms.index(name)
