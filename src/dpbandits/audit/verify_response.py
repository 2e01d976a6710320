"""The verdict on one response of the local model, and on those of a user together."""

from __future__ import annotations

import dataclasses
import math

from dpbandits.audit import answers
from dpbandits.audit.local import Pair, worst_pair
from dpbandits.audit.reading import changed_names
from dpbandits.audit.refusals import Refused
from dpbandits.audit.subjects import for_arms, try_out
from dpbandits.audit.verdict import (
    NOT_REFUTED,
    OFF_GRID,
    PROVED,
    REFUSED,
    ROUNDING,
    SUMMING,
    VACUOUS,
    VIOLATED,
    Verdict,
    judged,
    to_digits,
)
from dpbandits.policies.policy import Policy
from dpbandits.privacy.composition import optimal
from dpbandits.privacy.users import of_response, of_reward

__all__ = ["verify_response"]

NOTHING = "nothing was proved"
ROOM = "leave room for that, as truth_probability does"
ALONE = "a response exceeds its share alone; what several of them lose together is not computed"


def verify_response(policy: Policy, claim: float, delta: float) -> Verdict:
    """The worst case of one response, and of a user's responses together, which are made one by one."""
    own = policy.guarantee.epsilon is None  # each user has their own level, and the claim is one of them
    rewards = policy.rewards_per_user or 1
    claim_each = of_response(claim, delta, rewards) if delta and rewards > 1 else of_reward(claim, rewards)
    levels = [claim_each, 0.1 * claim_each, 5.0 * claim_each] if own else [claim_each]
    try_out(policy)
    verdict, pair = _verify_one(policy, levels, own, delta if rewards == 1 else 0.0)
    if rewards == 1:
        return verdict
    worst = verdict.epsilon
    if worst is not None and math.isfinite(worst):
        worst = optimal(worst, rewards, delta) if delta and worst > 0.0 else rewards * worst
    domain = f"{verdict.domain}; {rewards} responses of a user, each made on its own: their losses add up"
    if delta:
        domain = f"{verdict.domain}; {rewards} responses of a user, which compose (Kairouz, Oh & Viswanath 2015)"
        if verdict.verdict == VIOLATED and not (
            worst is not None and worst > claim and pair is not None and _flips(pair)
        ):
            verdict = dataclasses.replace(verdict, verdict=NOT_REFUTED, domain=NOTHING, reason=ALONE)
            worst = None
    if verdict.verdict in (NOT_REFUTED, REFUSED):
        domain = verdict.domain
    shown = None if worst is None else to_digits(worst)
    claimed = to_digits(rewards * verdict.claim) if own else claim
    of_users = [to_digits(rewards * level) for level in verdict.levels]
    return dataclasses.replace(verdict, claim=claimed, delta=delta, epsilon=shown, levels=of_users, domain=domain)


def _flips(pair: Pair) -> bool:
    """Whether the two laws are those of a flipped bit, for which the exact loss of several responses is known."""
    one, two = (sorted(law.answers.values()) for law in pair.laws)
    return len(one) == len(two) == 2 and all(abs(a - b) < SUMMING for a, b in zip(one, two, strict=True))


def _verify_one(policy: Policy, levels: list[float], own: bool, delta: float) -> tuple[Verdict, Pair | None]:
    """The worst case of one response at these levels, and where it was found."""
    base = Verdict(PROVED, policy.name, levels[0], delta, None, "exact", "response", None, "one response")
    if own:
        base = dataclasses.replace(base, levels=levels)
    try:
        changed, made = changed_names(policy), for_arms(policy)
        tried = [(one.curator, level) for one in made for level in levels]
        pairs = [
            (worst_pair(curator, level if own else None, level, changed, delta), level) for curator, level in tried
        ]
    except Refused as refusal:
        return _answered(policy, base, levels, str(refusal)), None
    except (Exception, SystemExit) as error:
        text = " ".join(str(error).split())[:120]
        return _answered(policy, base, levels, f"the code fails on symbols: {type(error).__name__}: {text}"), None
    broken = [found for found in pairs if found[0].epsilon > found[1] * (1.0 + ROUNDING) + found[0].rounding]
    if not broken and not all(pair.on_grid for pair, _ in pairs):
        return dataclasses.replace(base, verdict=NOT_REFUTED, domain="noise as real numbers", reason=OFF_GRID), None
    close = [found for found in pairs if found[0].epsilon + found[0].rounding > found[1] * (1.0 + SUMMING)]
    if close and not broken:
        worst = close[0][0]
        reason = f"epsilon is {worst.epsilon:.12g} on paper, and may be {worst.rounding:.2g} more in floats: {ROOM}"
        return dataclasses.replace(base, verdict=NOT_REFUTED, domain=NOTHING, reason=reason), None
    pair, level = broken[0] if broken else pairs[0]
    of_users = f"users at levels {', '.join(f'{one:g}' for one in sorted(levels))}; " if own else ""
    arms = f"{', '.join(str(one.arms) for one in made)} arms; "
    domain = (
        f"one response; {arms}{of_users}every reward from -inf to inf, and NaN; "
        "uniform numbers of 53 bits, noise as real numbers"
    )
    domain += (
        ", and Laplace noise as exact noise too" if any(law.noise for pair, _ in pairs for law in pair.laws) else ""
    )
    word = VIOLATED if broken else judged(pair.epsilon, level)
    verdict = dataclasses.replace(
        base,
        verdict=word,
        claim=level,
        epsilon=to_digits(pair.epsilon),
        domain=domain,
        witness={"rewards": [law.reward for law in pair.laws], "responses": [str(law) for law in pair.laws]},
        reason="the response hardly depends on the reward" if word == VACUOUS else "",
        covered="for each response, in every round",
    )
    return verdict, pair


def _answered(policy: Policy, base: Verdict, levels: list[float], reason: str) -> Verdict:
    """The verdict if the response cannot be followed: the answers at some rewards are compared."""
    try:
        for level in levels:
            found = answers.refuted(policy.curator, level, level, base.delta)
            if found is not None:
                shown = {
                    "rewards": list(map(str, found.rewards)),
                    "event": f"the response {found.answer}",
                    "probabilities": list(found.probabilities),
                }
                domain = f"one response, over {answers.DRAWS} random uniform numbers"
                domain += f"; a right one is called violated with probability at most {answers.ERROR:g}"
                return dataclasses.replace(
                    base, verdict=VIOLATED, claim=level, epsilon=to_digits(found.epsilon), domain=domain, witness=shown
                )
    except Refused as refusal:
        why = f"{reason}; {refusal}" if str(refusal) not in reason else reason
        return dataclasses.replace(base, verdict=REFUSED, domain=NOTHING, reason=why)
    except (Exception, SystemExit) as error:
        why = f"{reason}; the code fails on chosen uniform numbers: {type(error).__name__}"
        return dataclasses.replace(base, verdict=REFUSED, domain=NOTHING, reason=why)
    tried = ", ".join(f"{reward:g}" for reward in answers.REWARDS)
    domain = f"the answers to rewards {tried}, over {answers.STEPS} uniform numbers"
    return dataclasses.replace(base, verdict=NOT_REFUTED, domain=domain, reason=reason)
