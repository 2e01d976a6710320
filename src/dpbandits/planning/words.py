"""A plan's answers in words, and its tables."""

from __future__ import annotations

from dpbandits.formats import plural
from dpbandits.planning.grid import SETTLED, Outcome
from dpbandits.planning.knowing import Knowing
from dpbandits.planning.plan import BudgetAnswer, Plan
from dpbandits.privacy.guarantee import FROM_LOG
from dpbandits.privacy.users import of_response, of_reward

__all__ = ["answers", "best_table", "outcome_table", "theory"]

TRUST_PHRASE = {"central": "With a trusted server", "local": "Without trusting the server"}


def answers(plan: Plan) -> list[str]:
    """The answers, one or more sentences each: what to take first, then privacy, trust, refusals and the budget."""
    return [
        _advice(plan),
        *_about_users(plan),
        *(_about_best(plan, trust) for trust in plan.question.trusts),
        *_about_trust(plan),
        *_about_refusal(plan),
        *(_about_budget(plan, budget) for budget in plan.budgets),
        *(_about_knowing(plan, test) for test in plan.knowing.values()),
        _about_baselines(plan),
        *_about_the_log(plan),
    ]


def _about_the_log(plan: Plan) -> list[str]:
    if not plan.question.arms.from_log:
        return []
    return [f"These numbers carry no promise: {FROM_LOG}. Do not show them to whoever may not see its rewards."]


def _about_users(plan: Plan) -> list[str]:
    rewards = plan.question.rewards_per_user
    if rewards is None:
        return []
    each = f"{of_reward(plan.focus, rewards):.3g}"
    if (delta := plan.question.user_delta) is not None:
        each += f", or {of_response(plan.focus, delta, rewards):.3g} where responses compose to a delta of {delta:g}"
    return [
        f"Epsilon is for a user with at most {plural(rewards, 'reward')}: at epsilon {plan.focus:g} each of them is "
        f"private at {each}. A round is a reward, so that {plan.question.horizon:,} rounds are at least "
        f"{plural(-(-plan.question.horizon // rewards), 'user')}."
    ]


def _advice(plan: Plan) -> str:
    """What to do, in one sentence."""
    asked, best = plan.question, plan.advised
    random = _amount(plan, asked.at_random)
    if best is None:
        reasons = [one.reason for one in plan.left_out if one.reason != "not asked for"]
        why = max(set(reasons), key=reasons.count) if reasons else "none was asked for"
        return f"No private policy can be played at epsilon {plan.focus:g}: {why}."
    if plan.nobody_learns and plan.free is not None:
        return (
            f"Nobody learns anything here: even without privacy, the best policy, {plan.free.label}, loses "
            f"{_amount(plan, plan.free.regret)}, and playing at random loses {random}. More traffic or a larger "
            "difference between the arms is needed."
        )
    where = "with a trusted server" if best.trust == "central" else "and trust no server"
    if plan.useless(best):
        return (
            f"Do not run this at epsilon {plan.focus:g}: the best private policy, {best.label}, loses "
            f"{_amount(plan, best.regret)}, and playing at random loses {random}."
        )
    return f"Take {best.label} {where}: at epsilon {plan.focus:g} it loses {_loss(plan, best)}."


def _about_best(plan: Plan, trust: str) -> str:
    best = plan.best(plan.focus, trust)
    if best is None:
        return f"{TRUST_PHRASE[trust]}: no policy can be played at epsilon {plan.focus:g}."
    delta = f" and delta {best.delta:.2g}" if best.delta else ""
    parts = [f"{TRUST_PHRASE[trust]}, at epsilon {plan.focus:g}{delta}: {best.label} loses {_loss(plan, best)}."]
    cost, same = plan.privacy_cost(trust), plan.unprotected.get(trust)
    if cost is not None and same is not None and plan.free is not None:
        error = 2.0 * (best.stderr**2 + same.stderr**2) ** 0.5
        itself = same.regret - plan.free.regret
        parts.append(
            f"Privacy costs {short(cost)} ± {short(error)} of it: without privacy the same policy loses "
            f"{short(same.regret)}, {short(abs(itself))} {'more' if itself >= 0 else 'less'} than {plan.free.label}."
        )
    parts.append(f"{best.tail}.")
    parts.append(_settling(plan, best))
    if best.needs_horizon:
        parts.append(f"It must know the number of rounds, {plan.question.horizon:,}, when it starts.")
    if best.candidate.practical:
        parts.append("These options are outside the theorem on its regret; its privacy does not depend on them.")
    if best.caution:
        parts.append(f"Caution: {best.caution}.")
    return " ".join(parts)


def _about_trust(plan: Plan) -> list[str]:
    central, local = (plan.best(plan.focus, trust) for trust in ("central", "local"))
    if central is None or local is None or plan.nobody_learns:
        return []
    better, worse = (central, local) if central.regret <= local.regret else (local, central)
    error = 2.0 * (central.stderr**2 + local.stderr**2) ** 0.5
    saved = worse.regret - better.regret
    if saved <= error:
        return [f"There is no measurable difference between trusting the server and not ({short(saved)})."]
    if better is local:
        return [f"There is no reason to trust a server: {local.label} loses {short(saved)} less than {central.label}."]
    return [f"Trusting the server saves {_amount(plan, saved)}: {central.label} against {local.label}."]


def _about_refusal(plan: Plan) -> list[str]:
    lines = []
    for everyone in plan.all_share:
        some = plan.best(plan.focus, everyone.trust)
        if some is not None:
            lines.append(
                f"{100 * float(plan.question.refuse):.3g} % of the users refuse: {some.label} loses "
                f"{short(some.regret)}; if all shared, it would lose {_loss(plan, everyone)}."
            )
    return lines


def _about_budget(plan: Plan, budget: BudgetAnswer) -> str:
    allowed = _amount(plan, plan.question.budget or 0.0)
    low, high = plan.question.epsilons[0], plan.question.epsilons[-1]
    if budget.outcome is not None and budget.outcome.epsilon is not None:
        kept = budget.outcome
        return (
            f"{TRUST_PHRASE[budget.trust]}, the budget of {allowed} is met at epsilon {kept.epsilon:g} or more "
            f"by {kept.label}, which loses {_loss(plan, kept)}."
        )
    best = plan.best(high, budget.trust)
    where = f"at epsilon {high:g}" if low == high else f"at any epsilon from {low:g} to {high:g}"
    text = f"{TRUST_PHRASE[budget.trust]}, no policy here meets the budget of {allowed} {where}"
    return text + ("." if best is None else f": at {high:g} {best.label} loses {_loss(plan, best)}.")


def _about_knowing(plan: Plan, test: Knowing) -> str:
    """How many users a test needs that ends when the best arm is known."""
    asked = plan.question
    who = "users" if asked.rewards_per_user is None else "rewards"
    text = f"{TRUST_PHRASE[test.trust]}, a test that ends when the best arm is known with {_share(test.confidence)}"
    text += f" confidence ({test.policy}, epsilon {test.epsilon:g})"
    if test.users is None:
        return f"{text} needs more than {short(test.played)} {who}."
    about = float(f"{test.users:.2g}")  # from so few simulated tests, further digits of a quantile would mean nothing
    days = "" if asked.per_day is None else f" ({about / asked.per_day:.3g} days)"
    wait = "" if test.users <= asked.horizon else f", which is more than the {asked.horizon:,} of this plan"
    whose = "private test" if test.trust == "central" else "test on private bits"
    least = "" if test.at_least is None else f" No {whose} needs fewer than {short(test.at_least)} on average."
    return f"{text} needs about {about:,.0f} {who}{days} in 19 of 20 cases{wait}.{least}"


def _share(part: float) -> str:
    return f"{100 * part:.4g} %"


def _about_baselines(plan: Plan) -> str:
    free = "" if plan.free is None else f"Without privacy, {plan.free.label} loses {_loss(plan, plan.free)}; "
    return f"{free}{'p' if free else 'P'}laying at random loses {_amount(plan, plan.question.at_random)}."


def theory(plan: Plan) -> list[str]:
    """What theorems say in the long run; nothing about a given horizon."""
    lines = []
    if plan.regimes is not None:
        low, high = plan.regimes
        where = f"{low:.2g}" if f"{low:.2g}" == f"{high:.2g}" else f"{low:.2g} to {high:.2g}"
        lines.append(
            f"In the long run privacy raises the lower bound below epsilon {where} (Azize & Basu 2022, Theorem 3)."
        )
    for trust in plan.question.trusts:
        lower = plan.lower(plan.focus, trust)
        if lower is not None and lower.rate is not None:
            lines.append(
                f"{TRUST_PHRASE[trust]}, at epsilon {plan.focus:g}: in the long run regret grows at least like "
                f"{short(lower.rate)} log t ({lower.name}: {lower.source})."
            )
    return lines


def outcome_table(plan: Plan) -> tuple[list[str], list[list[str]]]:
    """Every policy at the epsilon in focus, and the non-private ones, by the upper end of the interval."""
    free = sorted((o for o in plan.outcomes if o.epsilon is None), key=lambda o: o.interval[1])
    rows = []
    for one in [*plan.at(plan.focus), *free]:
        name = one.label if not one.delta else f"{one.label} (delta {one.delta:.2g})"
        settled = "never" if one.settled is None else f"{one.settled:,}"
        rows.append(
            [
                name + (" (!)" if one.caution else ""),
                one.trust,
                short(one.regret),
                f"{short(one.interval[0])} to {short(one.interval[1])}",
                _percent(plan, one.regret),
                short(one.tail.quantile),
                short(one.tail.largest),
                one.tail.disasters_in_percent,
                f"{one.runs:,}",
                settled,
            ]
        )
    columns = ["policy", "trust", "regret", "95 % interval", "loss", "95 % quantile", "largest", "disasters", "runs"]
    return [*columns, f"{100 * SETTLED:.0f} % on best arm after"], rows


def best_table(plan: Plan) -> tuple[list[str], list[list[str]]]:
    """The best policy of each trust model at each epsilon."""
    columns = ["epsilon"]
    for trust in plan.question.trusts:
        columns += [f"best {trust}", "regret", "95 % interval", "loss"]
    rows = []
    for epsilon in sorted({o.epsilon for o in plan.outcomes if o.epsilon is not None}):
        row = [f"{epsilon:g}"]
        for trust in plan.question.trusts:
            best = plan.best(epsilon, trust)
            if best is None:
                row += ["none", "", "", ""]
            else:
                ends = f"{short(best.interval[0])} to {short(best.interval[1])}"
                row += [best.label, short(best.regret), ends, _percent(plan, best.regret)]
        rows.append(row)
    return columns, rows


def short(value: float) -> str:
    """A whole number from 100 on, three significant digits below.

    >>> short(1234.5), short(0.01234)
    ('1,234', '0.0123')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value if abs(value) > 1e-9 else 0:.3g}"


def _percent(plan: Plan, regret: float) -> str:
    loss = plan.question.loss(regret)
    if loss is None:
        return ""
    return f"{100 * loss:.1f} %" if loss >= 0.01 else f"{100 * loss:.2g} %"


def _amount(plan: Plan, regret: float) -> str:
    percent = _percent(plan, regret)
    return f"{short(regret)} {plan.question.unit}" + (f" ({percent})" if percent else "")


def _loss(plan: Plan, outcome: Outcome) -> str:
    """The regret with its unit, its share of what the best arm would pay, and its interval."""
    low, high = outcome.interval
    return f"{_amount(plan, outcome.regret)} on average, with 95 % confidence {short(low)} to {short(high)}"


def _settling(plan: Plan, outcome: Outcome) -> str:
    day = plan.question.per_day
    if outcome.settled is None:
        end = "" if day is None else f" of {plan.question.horizon / day:.3g} days"
        return f"The best arm does not get {100 * SETTLED:.0f} % of the traffic within the horizon{end}."
    days = "" if day is None else f" ({outcome.settled / day:.1f} days)"
    return f"The best arm gets {100 * SETTLED:.0f} % of the traffic after {outcome.settled:,} rounds{days}."
