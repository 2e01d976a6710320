"""The privacy loss of each reward from all releases of a central curator: for all rewards, noises, arms and stints.

The curator runs on symbols. As long as it never needs the value of a private number, one run stands for all rewards and
all noises. Where it compares a noisy number, that number counts as public, and both answers are followed. The adversary
chooses which arms are played and where stints end. An argument about the structure of the curator covers all choices
for many rounds; where none applies, all choices are tried for a few rounds.
"""

from __future__ import annotations

from typing import Any

from dpbandits.audit.anatomy import classes
from dpbandits.audit.blindness import read_agent
from dpbandits.audit.choices import Proof, all_arms_at_once, each_arm_alone, every_sequence, stint_by_stint
from dpbandits.audit.kinds import check_kind
from dpbandits.audit.memory import check_apart, check_memory
from dpbandits.audit.reading import FEEDS, changed_names, read_curator
from dpbandits.audit.states import fresh
from dpbandits.policies.policy import Policy

__all__ = ["Proof", "prove"]


def prove(policy: Policy, horizon: int) -> Proof:
    """The cost of the worst reward. Raises ``Refused`` if it cannot be known."""
    check_memory(policy.agent, "agent")
    check_memory(policy.curator, "curator")
    check_apart(policy.agent, policy.curator)
    for part in (policy.agent, policy.curator):
        for kind in classes(part):
            check_kind(kind, "agent" if part is policy.agent else "curator")
    read_agent(policy)
    curator: Any = policy.curator
    start = fresh(curator, read_curator(curator, *FEEDS, "accepts", changed=changed_names(policy)))
    return (
        each_arm_alone(start, policy.arms, horizon)
        or all_arms_at_once(start, policy.arms, horizon)
        or stint_by_stint(start, policy.arms, horizon)
        or every_sequence(start, policy.arms, horizon)
    )
