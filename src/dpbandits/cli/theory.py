"""The command for theorems: bounds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from dpbandits.checks import at_least
from dpbandits.cli.progress import working
from dpbandits.cli.shared import Number, app, as_json, echo, named_options, print_table
from dpbandits.errors import InputError

if TYPE_CHECKING:
    from dpbandits.bounds import LinearProblem


@app.command()
@click.option("--arms", required=True, metavar="ARMS", help="0.9,0.8 or bernoulli(0.9)+5*beta(4,1) or @ren2020-mixed.")
@click.option("--horizon", required=True, type=Number(), help="Rounds.")
@click.option("--epsilon", type=Number(), help="Epsilon, if it is the same for all users.")
@click.option(
    "--levels", metavar="LEVELS", help="Levels of the users: constant(1), choice(0,0.2,1,2,100) or normal(1,1)."
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="alpha, epsilon_min, delta, v or schedule, for policies that have it; repeatable.",
)
@click.option("--linear", is_flag=True, help="Theorems on linear bandits, with the arms as the standard basis.")
@as_json
def bounds(arms: str, horizon: float, epsilon: float | None, levels: str | None, **rest: Any) -> None:
    """List every theorem on the regret of a problem: its value, source and conditions."""
    from dpbandits.bounds import Problem, read_options, report
    from dpbandits.environments import Arms, parse_levels

    if epsilon is None and levels is None:
        raise InputError("epsilon", "or levels is required by bounds, got none")
    if rest["linear"]:
        about: Any = _linear(arms, horizon, epsilon)
    else:
        users = None if levels is None else parse_levels(levels)
        about = Problem.on(Arms.of(arms), horizon, epsilon=epsilon, levels=users)
    with working("bounds"):
        found = report(about, read_options(named_options(rest["options"])))
    if rest["as_json"]:
        echo(json.dumps(found, allow_nan=False))
        return
    privacy = f"levels {levels}" if epsilon is None else f"epsilon {epsilon:g}"
    echo(f"regret on {arms} after {horizon:,.0f} rounds, {privacy}")
    for kind, heading in (("lower", "No policy does better than"), ("upper", "These policies do no worse than")):
        holding = {name: bound for name, bound in found[kind].items() if bound["value"] is not None}
        echo(f"\n{heading}:\n")
        print_table(
            ["bound", "regret", "policies", "form", "source"],
            [_row(name, holding[name]) for name in sorted(holding, key=lambda name: holding[name]["value"])],
        )
    every = {name: bound for kind in ("lower", "upper") for name, bound in found[kind].items()}
    notes = [[name, bound["note"]] for name, bound in every.items() if bound["value"] is not None and bound["note"]]
    failing = [[name, bound["holds"].split(": ", 1)[1]] for name, bound in every.items() if bound["value"] is None]
    for column, rows in (("note", notes), ("does not apply, because", failing)):
        echo()
        print_table(["bound", column], rows)


def _linear(arms: str, horizon: float, epsilon: float | None) -> LinearProblem:
    """The linear bandit whose actions are the standard basis and whose parameter is the vector of the arms' means."""
    from dpbandits.bounds import LinearProblem
    from dpbandits.environments import Arms

    if epsilon is None:
        raise InputError("epsilon", "is required by bounds --linear, got none")
    means = Arms.of(arms).means
    basis = tuple(tuple(float(i == j) for j in range(len(means))) for i in range(len(means)))
    return LinearProblem(basis, means, at_least("horizon", horizon, len(means)), epsilon)


def _row(name: str, bound: dict[str, Any]) -> list[str]:
    form = bound["form"] if bound["checked"] else f"{bound['form']}, not checked"
    where = {"some problem": " (on the hardest problem)", "every problem": " (on any problem)"}.get(bound["scope"], "")
    policies = ", ".join(bound["policies"]) or {"any": "any", "central": "central", "local": "local"}[bound["trust"]]
    value = bound["value"]
    return [name, (f"{value:,.0f}" if value >= 1000 else f"{value:.4g}") + where, policies, form, bound["source"]]
