"""A plan's answers in words, and its tables."""

from __future__ import annotations

from dpbandits.planning.grid import SETTLED, Outcome
from dpbandits.planning.plan import BudgetAnswer, Plan
from dpbandits.privacy.guarantee import FROM_LOG

__all__ = ["answers", "best_table", "outcome_table"]

TRUST_PHRASE = {"central": "With a trusted server", "local": "Without trusting the server"}


def answers(plan: Plan) -> list[str]:
    """The answers, one or more sentences each: policies, trust, refusals, budget, lower bound and baselines."""
    return [
        *(_about_best(plan, trust) for trust in plan.question.trusts),
        *_about_trust(plan),
        *_about_refusal(plan),
        *(_about_budget(plan, budget) for budget in plan.budgets),
        *_about_regimes(plan),
        *_about_baselines(plan),
        *_about_the_log(plan),
    ]


def _about_the_log(plan: Plan) -> list[str]:
    if plan.question.arms.log is None:
        return []
    return [f"These numbers carry no promise: {FROM_LOG}. Do not show them to whoever may not see its rewards."]


def _about_best(plan: Plan, trust: str) -> str:
    best = plan.best(plan.focus, trust)
    if best is None:
        return f"{TRUST_PHRASE[trust]}: no policy can be played at epsilon {plan.focus:g}."
    delta = f" and delta {best.delta:.2g}" if best.delta else ""
    text = f"{TRUST_PHRASE[trust]}, at epsilon {plan.focus:g}{delta}: {best.policy} loses {_amount(plan, best)}"
    if plan.free is not None:
        text += f", {number(max(best.regret - plan.free.regret, 0.0))} more than the best non-private policy"
    text += "; "
    text += _settling(plan, best)
    if best.regret > 0.8 * plan.question.at_random:
        random = _regret(plan, plan.question.at_random)
        text += f" This gains little or nothing over playing at random, which loses {random}."
    return text


def _about_trust(plan: Plan) -> list[str]:
    central, local = (plan.best(plan.focus, trust) for trust in ("central", "local"))
    if central is None or local is None:
        return []
    saved = local.regret - central.regret
    if saved <= 0 or central.interval[1] >= local.interval[0]:
        return [f"There is no measurable difference between trusting the server and not ({number(saved)})."]
    return [
        f"Trusting the server saves {_regret(plan, saved)}: "
        f"the loss is {local.regret / central.regret:.1f} times smaller."
    ]


def _about_refusal(plan: Plan) -> list[str]:
    lines = []
    for everyone in plan.all_share:
        some = plan.best(plan.focus, everyone.trust)
        if some is not None:
            lines.append(
                f"{100 * float(plan.question.refuse):.3g} % of the users refuse: {some.policy} loses "
                f"{number(some.regret)}; if all shared, it would lose {_amount(plan, everyone)}."
            )
    return lines


def _about_budget(plan: Plan, budget: BudgetAnswer) -> str:
    allowed = _regret(plan, plan.question.budget or 0.0)
    low, high = plan.question.epsilons[0], plan.question.epsilons[-1]
    if budget.outcome is not None and budget.outcome.epsilon is not None:
        kept = budget.outcome
        return (
            f"{TRUST_PHRASE[budget.trust]}, the budget of {allowed} is met at epsilon {kept.epsilon:g} or more "
            f"by {kept.policy}, which loses {_amount(plan, kept)}."
        )
    best = plan.best(high, budget.trust)
    text = f"{TRUST_PHRASE[budget.trust]}, the budget of {allowed} is not met at any epsilon from {low:g} to {high:g}"
    text += "." if best is None else f": at {high:g} {best.policy} still loses {_amount(plan, best)}."
    if budget.lower is not None and budget.contradiction:
        text += (
            f" No policy can meet it: the lower bound is {number(budget.lower.value or 0.0)} "
            f"({budget.lower.name}: {budget.lower.source}, asymptotic)."
        )
    elif budget.lower is not None:
        text += f" The lower bound, {number(budget.lower.value or 0.0)} ({budget.lower.name}), does not rule it out."
    return text


def _about_regimes(plan: Plan) -> list[str]:
    if plan.regimes is None:
        return []
    low, high = plan.regimes
    where = f"{low:.2g}" if f"{low:.2g}" == f"{high:.2g}" else f"{low:.2g} to {high:.2g}"
    reached = (
        "more than twice what the best non-private policy loses, at every epsilon"
        if plan.nearly_free is None
        else f"at most twice what the best non-private policy loses, from epsilon {plan.nearly_free:g} on"
    )
    return [
        f"The lower bound (Azize & Basu 2022, Theorem 3) depends on privacy below epsilon {where}, where it grows as "
        "1/epsilon; above, it is the bound without privacy. "
        f"In the simulations, the best private policy loses {reached}."
    ]


def _about_baselines(plan: Plan) -> list[str]:
    free = "" if plan.free is None else f"Without privacy, {plan.free.policy} loses {_amount(plan, plan.free)}; "
    return [f"{free}{'p' if free else 'P'}laying at random loses {_regret(plan, plan.question.at_random)}."]


def outcome_table(plan: Plan) -> tuple[list[str], list[list[str]]]:
    """Every policy at the epsilon in focus, and the non-private ones."""
    outcomes = [*plan.at(plan.focus), *sorted((o for o in plan.outcomes if o.epsilon is None), key=lambda o: o.regret)]
    free = None if plan.free is None else plan.free.regret
    rows: list[list[str]] = []
    for one in outcomes:
        name = one.policy if not one.delta else f"{one.policy} (delta {one.delta:.2g})"
        privacy = "" if free is None or one.epsilon is None else number(max(one.regret - free, 0.0))
        settled = "never" if one.settled is None else f"{one.settled:,}"
        proven = "" if one.upper_value is None else f"{number(one.upper_value)}"
        row = [name, one.trust, f"{number(one.regret)} ± {number(one.error)}", number(one.unlucky)]
        rows.append([*row, f"{one.runs}", _percent(plan, one.regret), privacy, settled, proven])
    columns = ["policy", "trust", "regret", "95 % quantile", "runs", "loss", "extra regret"]
    columns += [f"{100 * SETTLED:.0f} % on best arm after", "upper bound"]
    if not any(row[-1] for row in rows):  # all bounds are vacuous at this horizon
        return columns[:-1], [row[:-1] for row in rows]
    return columns, rows


def best_table(plan: Plan) -> tuple[list[str], list[list[str]]]:
    """The best policy of each trust model at each epsilon, with the lower bound."""
    columns = ["epsilon"]
    for trust in plan.question.trusts:
        columns += [f"best {trust}", "regret", "loss", "lower bound"]
    rows = []
    for epsilon in sorted({o.epsilon for o in plan.outcomes if o.epsilon is not None}):
        row = [f"{epsilon:g}"]
        for trust in plan.question.trusts:
            best, lower = plan.best(epsilon, trust), plan.lower(epsilon, trust)
            least = "-" if lower is None else number(lower.value or 0.0)
            if best is None:
                row += ["none", "", "", least]
            else:
                regret = f"{number(best.regret)} ± {number(best.error)}"
                row += [best.policy, regret, _percent(plan, best.regret), least]
        rows.append(row)
    return columns, rows


def number(value: float) -> str:
    """A whole number from 100 on, three significant digits below.

    >>> number(1234.5), number(0.01234)
    ('1,234', '0.0123')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value if abs(value) > 1e-9 else 0:.3g}"


def _percent(plan: Plan, regret: float) -> str:
    loss = plan.question.loss(regret)
    if loss is None:
        return ""
    return f"{100 * loss:.1f} %" if loss >= 0.01 else f"{100 * loss:.2g} %"


def _regret(plan: Plan, regret: float) -> str:
    percent = _percent(plan, regret)
    return f"{number(regret)} ({percent})" if percent else number(regret)


def _amount(plan: Plan, outcome: Outcome) -> str:
    percent = _percent(plan, outcome.regret)
    return f"{number(outcome.regret)} ± {number(outcome.error)}" + (f" ({percent})" if percent else "")


def _settling(plan: Plan, outcome: Outcome) -> str:
    if outcome.settled is None:
        return f"the best arm does not get {100 * SETTLED:.0f} % of the traffic within the horizon."
    days = "" if plan.question.per_day is None else f" ({outcome.settled / plan.question.per_day:.1f} days)"
    return f"the best arm gets {100 * SETTLED:.0f} % of the traffic after {outcome.settled:,} rounds{days}."
