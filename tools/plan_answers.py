"""Write the table of docs/howto/plan.md that compares the answers of the four papers' policies with those of all.

Usage: ``python tools/plan_answers.py``; it takes about a minute.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from dpbandits import __version__
from dpbandits.formats import amount
from dpbandits.planning import plan
from dpbandits.planning.grid import Outcome, play_all
from dpbandits.planning.plan import Plan
from dpbandits.planning.question import ask
from dpbandits.policies import lookup

PAGE = Path(__file__).parents[1] / "docs" / "howto" / "plan.md"
BEGIN, END = "<!-- answers: written by tools/plan_answers.py -->", "<!-- end of answers -->"
BANNERS: dict[str, Any] = {"best": 0.036, "gap": 0.006, "horizon": 200_000, "unit": "clicks", "runs": 8}
LOSS: dict[str, Any] = {"epsilon": 2}
REFUSED: dict[str, Any] = {"refuse": "20%"}
BUDGET: dict[str, Any] = {"epsilon": "0.05:5", "budget": "8%", "trust": "central"}
WORDS = {"central": "with a trusted server", "local": "without trust"}
FOUR = {
    "Ren, Zhou, Liu & Shroff 2020",
    "Heterogeneous local differential privacy (HeLDP)",
    "Tossou & Dimitrakakis 2016",
    "Azize & Basu 2022",
}


def of_the_papers(*trusts: str) -> list[str]:
    """The policies of the four papers that the planner would play: it leaves out slow ones."""
    traits = {name: lookup.traits(name) for name in lookup.names() if lookup.sample(name).guarantee.trust in trusts}
    return [name for name, one in traits.items() if one.paper in FOUR and not one.slow and not one.any_reward]


def both(**asked: Any) -> tuple[Plan, Plan]:
    """The losses of the papers' policies, and of all; without the rest of a plan."""
    questions = [ask(5, **BANNERS, **asked, policies=policies) for policies in (of_the_papers(*WORDS), [])]
    old, new = (Plan(question, *play_all(question), [], []) for question in questions)
    return old, new


def loses(outcome: Outcome | None) -> str:
    """A policy with its regret and the interval of it."""
    if outcome is None:
        return "none"
    return (
        f"`{outcome.label}`: {amount(outcome.regret)} ({amount(outcome.interval[0])} to {amount(outcome.interval[1])})"
    )


def losses(question: str, before: Plan, after: Plan) -> list[str]:
    """A row for each trust model."""
    rows = []
    for trust in ("central", "local"):
        old, new = before.best(2.0, trust), after.best(2.0, trust)
        assert old is not None
        assert new is not None
        less = f"{100 * (1 - new.regret / old.regret):.0f} % less"
        print(trust, loses(old), loses(new), file=sys.stderr, flush=True)
        rows.append(f"| {question}, {WORDS[trust]} | {loses(old)} | {loses(new)} | {less} |")
    return rows


def least(made: Plan) -> tuple[float, str]:
    """The least epsilon within the budget, and its policy; below the least that was asked about nothing was played."""
    found = made.budgets[0].outcome
    assert found is not None
    assert found.epsilon is not None
    more = " or less" if found.epsilon == made.question.epsilons[0] else ""
    return found.epsilon, f"`{found.label}`: epsilon {found.epsilon:.3g}{more}"


def table() -> str:
    """The three questions, before and after."""
    rows = ["| question | the four papers' policies | all policies | gain |", "|---|---|---|---|"]
    rows += losses("Clicks lost at epsilon 2", *both(**LOSS))
    rows += losses("Clicks lost at epsilon 2 if 20 % refuse", *both(**LOSS, **REFUSED))
    before = plan(5, **BANNERS, **BUDGET, policies=of_the_papers("central"))
    after = plan(5, **BANNERS, **BUDGET)
    (old, first), (new, second) = least(before), least(after)
    gain = f"{'at least ' if ' or less' in second else ''}{old / new:.2g} times smaller"
    rows.append(f"| Least epsilon that keeps the loss under 8 %, with a trusted server | {first} | {second} | {gain} |")
    return "\n".join(rows) + f"\n\nVersion {__version__}, seed 0; in brackets the 95 % intervals."


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    if BEGIN not in text:
        raise SystemExit(f"{PAGE} has no line {BEGIN}")
    written = f"{BEGIN}\n\n{table()}\n\n{END}"
    PAGE.write_text(
        re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: written, text, flags=re.DOTALL), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
