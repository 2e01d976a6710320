"""A plan as a figure: regret of every policy, or of the best ones against epsilon, and regret over the rounds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpbandits import __version__
from dpbandits.planning.document import document
from dpbandits.planning.output import write_figure
from dpbandits.planning.plan import Plan
from dpbandits.plotting import COLOURS, GREY, new_figure
from dpbandits.privacy.guarantee import FROM_LOG

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_plan", "write_plan"]

TRUST_COLOUR = dict(zip(("central", "local", "none"), COLOURS, strict=False))
TRUST_NAME = {"central": "trusted server", "local": "local privacy", "none": "no privacy"}


def draw_plan(plan: Plan) -> Figure:
    """Left: every policy at every epsilon. Right: the best ones over the rounds, at the epsilon in focus."""
    figure, (left, right) = new_figure(1, 2, (6.4, 4.6))
    _against_epsilon(plan, left)
    _over_rounds(plan, right)
    asked = plan.question
    text = asked.arms.text
    arms = text if len(text) < 60 else f"{text[:57]}..."
    refusal = f", {100 * float(asked.refuse):.3g} % refuse" if asked.refuse else ""
    played = f"{plan.runs_in_words}, seed {asked.seed}, dpbandits {__version__}"
    settings = f"{arms}; {asked.horizon:,} rounds{refusal}; {played}"
    if asked.arms.from_log:
        settings += f"\nno promise: {FROM_LOG}"
    figure.suptitle(settings, fontsize=9, color=GREY)
    return figure


def _against_epsilon(plan: Plan, panel: Axes) -> None:
    from matplotlib.ticker import EngFormatter, LogLocator, NullLocator

    asked = plan.question
    for trust in asked.trusts:
        colour = TRUST_COLOUR[trust]
        if all(plan.best(epsilon, trust) is None for epsilon in asked.epsilons):
            continue
        for name in sorted({o.label for o in plan.outcomes if o.trust == trust}):
            points = sorted((o.epsilon, o.regret) for o in plan.outcomes if o.label == name and o.epsilon is not None)
            panel.plot(*zip(*points, strict=True), color=colour, alpha=0.3, linewidth=0.9)
        best = [o for o in (plan.best(epsilon, trust) for epsilon in asked.epsilons) if o is not None]
        if not best:  # no policy could be played
            continue
        x = [o.epsilon for o in best if o.epsilon is not None]
        names = list(dict.fromkeys(o.label for o in best))
        label = f"best, {TRUST_NAME[trust]}: {', '.join(names[:3])}{', ...' if len(names) > 3 else ''}"
        panel.plot(x, [o.regret for o in best], color=colour, linewidth=2.2, marker="o", markersize=4, label=label)
        low, high = zip(*(o.interval for o in best), strict=True)
        panel.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
        panel.vlines(x, low, high, color=colour, alpha=0.5, linewidth=1.2)
    _horizontals(plan, panel)
    panel.set_title(f"What is lost in {asked.horizon:,} rounds", fontsize=9)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xticks(asked.epsilons, [f"{epsilon:g}" for epsilon in asked.epsilons])
    panel.xaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    panel.yaxis.set_major_formatter(EngFormatter())
    panel.yaxis.set_minor_locator(NullLocator())
    panel.set_xlabel("epsilon")
    panel.set_ylabel(f"loss ({asked.unit})")
    panel.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)


def _horizontals(plan: Plan, panel: Axes) -> None:
    """Draw horizontal lines for what does not depend on epsilon: no privacy, random play and the budget."""
    lines = [(plan.question.at_random, "playing at random", GREY)]
    if plan.free is not None:
        lines.append((plan.free.regret, f"no privacy: {plan.free.label}", TRUST_COLOUR["none"]))
    if plan.question.budget is not None:
        lines.append((plan.question.budget, "budget", "#8a6d00"))
    for value, text, colour in lines:
        panel.axhline(value, color=colour, linestyle=(0, (5, 2)), linewidth=1.2, label=text)
    for budget in plan.budgets:
        if budget.outcome is not None and budget.outcome.epsilon is not None:
            point = ([budget.outcome.epsilon], [budget.outcome.regret])
            panel.plot(*point, marker="*", markersize=13, color=TRUST_COLOUR[budget.trust])
    if plan.question.epsilon is not None:
        panel.axvline(plan.question.epsilon, color=GREY, linewidth=0.8, alpha=0.6)


def _over_rounds(plan: Plan, panel: Axes) -> None:
    from matplotlib.ticker import EngFormatter

    asked, title = plan.question, f"at epsilon {plan.focus:g}"
    for trust in asked.trusts:
        best = plan.best(plan.focus, trust)
        if best is not None:
            label = f"{best.label} ({TRUST_NAME[trust]})"
            panel.plot(best.rounds, best.curve, color=TRUST_COLOUR[trust], linewidth=2, label=label)
            if best.settled is not None:
                panel.axvline(best.settled, color=TRUST_COLOUR[trust], linewidth=0.9, linestyle=(0, (2, 2)))
                title = f"at epsilon {plan.focus:g}; dotted: 90 % of the traffic goes to the best arm"
    if plan.free is not None:
        panel.plot(
            plan.free.rounds,
            plan.free.curve,
            color=TRUST_COLOUR["none"],
            linewidth=1.5,
            label=f"{plan.free.label} (no privacy)",
        )
    panel.plot([0, asked.horizon], [0, asked.at_random], color=GREY, linestyle=(0, (5, 2)), label="playing at random")
    panel.set_title(title, fontsize=9)
    panel.set_xlabel("rounds")
    panel.set_ylabel(f"loss so far ({asked.unit})")
    panel.set_xlim(0, asked.horizon)
    panel.xaxis.set_major_formatter(EngFormatter())
    panel.yaxis.set_major_formatter(EngFormatter())
    highest = max((o.regret for t in asked.trusts if (o := plan.best(plan.focus, t))), default=asked.at_random)
    panel.set_ylim(0, 1.05 * min(max(asked.at_random, highest), 3.0 * highest))
    panel.legend(frameon=False, fontsize=8)


def write_plan(plan: Plan, out: Path) -> list[str]:
    """Write the figure and the plan to this folder; return the names of the files."""
    return write_figure(draw_plan(plan), document(plan), out, "plan")
