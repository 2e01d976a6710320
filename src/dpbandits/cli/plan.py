"""The planning commands: plan and plan levels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpbandits.cli import NO
from dpbandits.cli.progress import working
from dpbandits.cli.shared import Number, OutputFolder, app, as_json, echo, print_table, ready_to_write, whole
from dpbandits.errors import InputError

if TYPE_CHECKING:
    from dpbandits.planning import LevelCurve, Plan

out_option = click.option("--out", type=OutputFolder(), help="Folder for a figure (SVG, PNG, PDF) and its data.")


@app.group(invoke_without_command=True)
@click.option(
    "--arms",
    metavar="ARMS",
    help="Guessed means 0.036,0.03,0.03, or arms as for simulate; or how many, with --best and --gap.",
)
@click.option("--best", type=Number(), help="A plausible mean of the best arm.")
@click.option("--gap", type=Number(), help="By how much the other means are lower.")
@click.option("--horizon", type=Number(), help="Rounds.")
@click.option(
    "--traffic", type=Number(), help="Rounds per day: with --days instead of --horizon, or to show times in days."
)
@click.option("--days", type=Number(), help="Number of days.")
@click.option(
    "--trust",
    default="any",
    show_default=True,
    metavar="central|local|any",
    help="Which policies to compare: with a trusted server, without, or both.",
)
@click.option("--epsilon", metavar="E", help="One value, a list 0.1,1 or a range 0.1:10.  [default: 0.05 to 10]")
@click.option("--curve", is_flag=True, help="With one epsilon: play multiples of it too.")
@click.option(
    "--rewards-per-user", type=Number(), metavar="M", help="The most rewards of one user: epsilon is then the user's."
)
@click.option(
    "--user-delta",
    type=Number(),
    metavar="DELTA",
    help="Without a trusted server: a user's responses together are (epsilon, this delta)-private.",
)
@click.option("--reward-range", metavar="LOW,HIGH", help="Rewards are clipped to it, and mapped to [0, 1].")
@click.option("--unit", default="rewards", show_default=True, metavar="WORD", help="What rewards are, such as clicks.")
@click.option(
    "--confidence",
    default="95%",
    show_default=True,
    metavar="SHARE",
    help="Confidence of a test that stops when the best arm is known. The plan says how many users it needs.",
)
@click.option("--theory", is_flag=True, help="Add what theorems say in the long run.")
@click.option(
    "--budget",
    metavar="AMOUNT|SHARE%",
    help="Allowed loss: a number such as 1800, or 5%, a share of what the best arm would pay.",
)
@click.option(
    "--refuse",
    default="0",
    show_default=True,
    metavar="SHARE",
    help="Share of users who refuse to report a reward, such as 20%.",
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME",
    help="Simulate only this policy; repeatable.  [default: all suitable]",
)
@click.option(
    "--runs", default=20, type=Number(), show_default=True, help="Runs of each policy; those that may be best get more."
)
@click.option("--seed", default=0, type=Number(), show_default=True, help="Seed of all random numbers.")
@click.option("--workers", type=Number(), help="Number of threads.  [default: number of cores]")
@out_option
@as_json
@click.pass_context
def plan(context: click.Context, /, as_json: bool, out: Path | None, theory: bool, **given: Any) -> None:
    """Compare policies and epsilons, and estimate what privacy will cost, from bounds and simulations.

    Exit status 1: no policy meets the budget.
    """
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return
    if given["arms"] is None:
        raise InputError("arms", "is required by plan, got none")
    from dpbandits.planning import ask, document
    from dpbandits.planning.advise import make_plan

    threads = whole("workers", given.pop("workers"))
    question = ask(**given)
    ready_to_write(out, "matplotlib", extra="plot")
    with working("plan: policies and epsilons") as progress:
        found = make_plan(question, progress, threads)
    if as_json:
        echo(json.dumps(document(found), allow_nan=False))
    else:
        _print(found, theory)
    if out is not None:
        from dpbandits.planning.draw import write_plan

        echo(f"written: {', '.join(f'{out}/{name}' for name in write_plan(found, out))}", err=True)
    if not found.kept:
        raise click.exceptions.Exit(NO)


@plan.command("levels")
@click.option(
    "--levels",
    required=True,
    metavar="LEVELS",
    help="constant(1), normal(1,1), or a sample of levels: choice(0,0.2,1,2,100).",
)
@click.option("--kind", metavar="laplace|bernoulli", help="Mechanism of the responses.  [default: both]")
@out_option
@as_json
def plan_levels(levels: str, kind: str | None, out: Path | None, as_json: bool) -> None:
    """Show what each epsilon_min costs a HeLDP policy, and which one epsilon_min=auto chooses."""
    from dpbandits.planning.levels import plan_levels as curves_of
    from dpbandits.planning.levels import write_levels

    with working("plan levels"):
        curves = curves_of(levels, kind)
    ready_to_write(out, "matplotlib", extra="plot")
    if as_json:
        echo(json.dumps([curve.to_json() for curve in curves], allow_nan=False))
    else:
        _print_levels(levels, curves)
    if out is not None:
        echo(f"written: {', '.join(f'{out}/{name}' for name in write_levels(curves, out))}", err=True)


def _print_levels(levels: str, curves: list[LevelCurve]) -> None:
    from dpbandits.planning.levels import LETTER, without_threshold

    for curve in curves:
        echo(f"{curve.kind} responses, levels {levels}: epsilon_min={curve.best:.4g} has the least cost\n")
        rows = list(zip(curve.thresholds, curve.shares, curve.costs, strict=True))
        every = max(len(rows) // 12, 1)
        print_table(
            ["epsilon_min", "users accepted", LETTER[curve.kind], "relative cost"],
            [
                [f"{x:.4g}", f"{100 * share:.1f} %", f"{cost:.4g}", f"{cost / curve.best_cost:.2f}"]
                for n, (x, share, cost) in enumerate(rows)
                if n % every == 0 or x == curve.best
            ],
        )
        echo(f"\nThese policies need no epsilon_min, and discard nobody: {', '.join(without_threshold(curve.kind))}.\n")


def _refuse_options(context: click.Context) -> None:
    """Refuse options before the name of a subcommand, which would be ignored."""
    from click.core import ParameterSource

    for name in context.params:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            option = name.removeprefix("as_")
            raise InputError(option, f"must come after plan {context.invoked_subcommand}, got it before")


def _print(found: Plan, in_theory: bool) -> None:
    from dpbandits.planning.words import answers, best_table, outcome_table, theory

    asked = found.question
    echo(f"arms {asked.arms.text}; {asked.horizon:,} rounds; seed {asked.seed}\n")
    for sentence in [*answers(found), *(theory(found) if in_theory else [])]:
        echo(f"* {sentence}")
    echo(
        f"\nAt epsilon {found.focus:g}, best first. Policies are ranked by the upper end of the 95 % interval of the "
        "mean,\nan empirical Bernstein bound. Those marked (!) come after the others, and those without privacy last.\n"
        "Loss is regret over what the best arm would pay. A disaster is a run that lost over ten times the median;\n"
        "a dash says that no run can.\n"
    )
    print_table(*outcome_table(found))
    cautions = {one.label: one.caution for one in found.at(found.focus) if one.caution}
    for name, caution in cautions.items():
        echo(f"(!) {name}: {caution}.")
    if len(asked.epsilons) > 1:
        echo("\nThe best policies, by epsilon:\n")
        print_table(*best_table(found))
    reasons: dict[str, list[str]] = {}
    for one in found.left_out:
        reasons.setdefault(one.reason, []).append(one.policy)
    if reasons:
        echo("\nNot played:")
    for reason, names in reasons.items():
        echo(f"  {', '.join(dict.fromkeys(names))}: {reason}")
