"""The command for theorems: bounds."""

from __future__ import annotations

import json
from collections.abc import Callable
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
    from dpbandits.privacy.guarantee import FROM_LOG

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
    echo(f"{arms}, {horizon:,.0f} rounds, {privacy}. Playing at random loses {_number(about.at_random)}.")
    if about.from_log:
        echo(f"These numbers carry no promise: {FROM_LOG}.")
    _print_bounds(found["lower"], found["upper"])


def _print_bounds(lower: dict[str, Any], upper: dict[str, Any]) -> None:
    """A table of each kind of bound, then the notes, and what does not apply."""
    for heading, column, rows in (
        (
            "In the long run no consistent policy loses less (regret / log t has at least this limit; at a given "
            "horizon a policy may lose less):",
            "regret grows at least like",
            _rows(lower, lambda one: one["rate"], lambda rate: f"{_number(rate)} log t"),
        ),
        (
            "On the hardest problem with as many arms, no policy loses less (on this problem a policy may):",
            "regret",
            _rows(lower, lambda one: None if one["rate"] is not None else one["value"], _number),
        ),
        (
            "These policies do no worse than:",
            "regret",
            _rows(upper, lambda one: None if one["rate"] is not None else one["value"], _number),
        ),
        (
            "In the long run these policies do no worse (regret / log t has at most this limit; at a given horizon a "
            "policy may lose more):",
            "regret grows at most like",
            _rows(upper, lambda one: one["rate"], lambda rate: f"{_number(rate)} log t"),
        ),
        (
            "Claimed in print, and refuted by simulation:",
            "claimed regret",
            _rows(lower | upper, lambda one: one["claimed"], _number),
        ),
    ):
        if rows:
            echo(f"\n{heading}\n")
            print_table(["bound", column, "for", "where", "source"], rows)
    every = lower | upper
    notes = [[name, one["note"]] for name, one in every.items() if one["note"] and not _fails(one)]
    failing = [[name, one["holds"].split(": ", 1)[1]] for name, one in every.items() if _fails(one)]
    for column, rows in (("note", notes), ("does not apply, because", failing)):
        echo()
        print_table(["bound", column], rows)


def _linear(arms: str, horizon: float, epsilon: float | None) -> LinearProblem:
    """The linear bandit whose actions are the standard basis and whose parameter is the vector of the arms' means."""
    from dpbandits.bounds import LinearProblem
    from dpbandits.environments import Arms

    if epsilon is None:
        raise InputError("epsilon", "is required by bounds --linear, got none")
    read = Arms.of(arms)
    means = read.means
    basis = tuple(tuple(float(i == j) for j in range(len(means))) for i in range(len(means)))
    return LinearProblem(basis, means, at_least("horizon", horizon, len(means)), epsilon, read.from_log)


def _fails(bound: dict[str, Any]) -> bool:
    """Whether a condition of the theorem fails."""
    return bound["value"] is None and bound["claimed"] is None


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _rows(
    bounds: dict[str, Any], chosen: Callable[[dict[str, Any]], float | None], text: Callable[[float], str]
) -> list[list[str]]:
    """A row for each bound with the chosen number, the smallest number first."""
    numbers = {name: number for name, one in bounds.items() if (number := chosen(one)) is not None}
    rows = []
    for name in sorted(numbers, key=numbers.__getitem__):
        one = bounds[name]
        about = ", ".join(one["policies"]) or {"any": "any", "central": "central", "local": "local"}[one["trust"]]
        proof = "" if one["checked"] or one["claimed"] is not None else ", not checked"
        rows.append([name, text(numbers[name]), about, one["holds"], f"{one['source']} ({one['form']}{proof})"])
    return rows
