"""The command that checks privacy guarantees: audit."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from dpbandits.cli.progress import working
from dpbandits.cli.shared import Number, app, echo, named_options, whole
from dpbandits.errors import InputError

if TYPE_CHECKING:
    from dpbandits.audit.verdict import Verdict


class _Audit(click.Group):
    """A group that also accepts ``module:function`` as a command."""

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        command = super().get_command(ctx, name)
        if command is None and ":" in name:
            return click.Command(name, params=_shared_options(), callback=_own(name), help=f"Audit {name}.")
        if command is None and _is_policy(name):
            raise click.UsageError(f"{name} is a policy: say audit policy {name}", ctx)
        return command


def _is_policy(name: str) -> bool:
    from dpbandits.policies import lookup

    try:
        lookup.find(name)
    except InputError:
        return False
    return True


@app.group(cls=_Audit)
def audit() -> None:
    """Check a privacy guarantee: prove it for the sizes that the verdict names, or try to refute it.

    \b
    audit policy NAME       a policy of the package
    audit curator NAME      a curator of one reward
    audit MODULE:FUNCTION   your own: a function that makes a policy, or a curator with respond(reward)

    Exit status 0: proved, vacuous, or not refuted. 1: violated, with a witness. 2: refused, with the reason.
    """


def _shared_options() -> list[click.Parameter]:
    return [
        click.Option(["--epsilon"], metavar="E", help="Epsilon of the policy or curator."),
        click.Option(
            ["--option", "options"], multiple=True, metavar="NAME=VALUE", help="Option of the policy; repeatable."
        ),
        click.Option(
            ["--rewards-per-user"],
            type=Number(),
            help="The most rewards that a user gives: the promise is then for the whole user.",
        ),
        click.Option(
            ["--user-delta"],
            type=Number(),
            help="Local policies: a user's responses together are (epsilon, this delta)-private.",
        ),
        click.Option(
            ["--claim"],
            type=Number(),
            help="The epsilon to check. With heldp-* it is a user's own epsilon, which is tried with others.  "
            "[default: the guaranteed one]",
        ),
        click.Option(["--delta"], type=Number(), help="The delta to check.  [default: the guaranteed one]"),
        click.Option(["--exact"], is_flag=True, help="Prove the claim, or look for a witness against it."),
        click.Option(["--trials"], type=Number(), help="Trials of the guessing game.  [default: 200000]"),
        click.Option(["--view"], metavar="actions|released|response|bytes", help="What the adversary sees."),
        click.Option(
            ["--alpha"], type=Number(), default="0.001", show_default=True, help="Error probability of the lower bound."
        ),
        click.Option(
            ["--horizon"], type=Number(), help="Rounds.  [default: 64, or more where a policy needs it; 30 in the game]"
        ),
        click.Option(["--seed"], type=Number(), default="0", show_default=True, help="Seed of all random numbers."),
        click.Option(["--anytime"], is_flag=True, help="Stop as soon as the claim is refuted."),
        click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON document on standard output."),
    ]


def _audited(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the shared options."""
    command.__click_params__ = [*reversed(_shared_options())]  # type: ignore[attr-defined]
    return command


@audit.command()
@click.argument("name")
@_audited
def policy(name: str, **given: Any) -> None:
    """Check the guarantee of the policy NAME.

    There is no --arms: the verdict says which numbers of arms it is about.
    """
    _stop_at_need()
    _report(lambda: _policy(name, given), given["as_json"])


@audit.command()
@click.argument("name")
@_audited
def curator(name: str, **given: Any) -> None:
    """Check the guarantee of the curator NAME.

    With exact noise, for deployment: randomised-response, bernoulli, laplace, piecewise, sigmoid-bernoulli,
    sigmoid-laplace. With floating-point noise, as in simulations: simulated-bernoulli, simulated-laplace.
    """
    from dpbandits.audit import responder, verify_curator

    if given["epsilon"] is None:
        raise InputError("epsilon", f"is required by {name}, got none")
    of_policies = {
        "option": given["options"],
        "horizon": given["horizon"],
        "rewards_per_user": given["rewards_per_user"],
        "user_delta": given["user_delta"],
    }
    for parameter, value in of_policies.items():
        if value not in (None, ()):
            raise InputError(parameter, f"is for policies: leave it out for the curator {name}, got {_written(value)}")
    if given["exact"]:
        _refuse_trials(given)
        _report(lambda: verify_curator(name, given["epsilon"], given["claim"]), given["as_json"])
    else:
        claim = given["claim"] or _epsilon(given) or 0.0
        made = responder(name, given["epsilon"])
        _report(lambda: _attack_responder(made, claim, given), given["as_json"])


def _own(target: str) -> Callable[..., None]:
    def command(**given: Any) -> None:
        from dpbandits.audit import own_subject, watch
        from dpbandits.audit.attack import HORIZON
        from dpbandits.audit.subjects import users_fault
        from dpbandits.audit.targets import Responder
        from dpbandits.policies import lookup

        _stop_at_need()
        with watch.watched():
            function, options = lookup.own(target), named_options(given["options"])
            asked = (_epsilon(given), int(given["horizon"] or HORIZON), options)
            made = users_fault("cannot be made", lambda: own_subject(function, target, *asked))
        if not isinstance(made, Responder):
            _report(lambda: _policy(made, given), given["as_json"])
            return
        if given["exact"]:
            raise InputError("exact", f"needs a policy; {target} makes a curator: use --trials")
        claim = _epsilon(given) if given["claim"] is None else given["claim"]
        if claim is None:
            raise InputError("claim", f"is required by {target}, got none")
        _report(lambda: _attack_responder(made, claim, given), given["as_json"])

    return command


def _policy(name: Any, given: dict[str, Any]) -> Verdict:
    from dpbandits.audit import attack, verify

    asked = {key: given[key] for key in ("horizon", "claim", "delta", "view", "user_delta")}
    asked |= {"epsilon": _epsilon(given), "options": named_options(given["options"])}
    asked |= {"rewards_per_user": whole("rewards_per_user", given["rewards_per_user"])}
    if not given["exact"]:
        return attack(name, **asked, **_game(given))
    _refuse_trials(given)
    return verify(name, **asked)


def _attack_responder(made: Any, claim: float, given: dict[str, Any]) -> Verdict:
    from dpbandits.audit import attack_responder

    view = given["view"] or "response"
    return attack_responder(made, claim=claim, delta=given["delta"] or 0.0, view=view, **_game(given))


def _game(given: dict[str, Any]) -> dict[str, Any]:
    """The settings of the guessing game that were given."""
    return {key: given[key] for key in ("trials", "alpha", "seed", "anytime") if given[key] is not None}


def _written(value: Any) -> str:
    """What was given, as on the command line."""
    return " ".join(value) if isinstance(value, tuple) else f"{value:g}"


def _refuse_trials(given: dict[str, Any]) -> None:
    if given["trials"] is not None:
        rule = "must not be given together with --exact: leave out one of them"
        raise InputError("trials", f"{rule}, got {given['trials']:g}")


def _epsilon(given: dict[str, Any]) -> float | None:
    """Epsilon as a number."""
    from dpbandits.environments.numbers import number

    return None if given["epsilon"] is None else number("epsilon", given["epsilon"])


def _stop_at_need() -> None:
    """Let the process end if the code under audit cannot be stopped otherwise."""
    from dpbandits.audit import watch

    watch.last_resort = _leave


def _leave(text: str) -> None:
    """End the process: nothing else stops code that catches every exception."""
    click.echo(f"dpbandits: the policy was stopped: {text}", err=True)
    os._exit(2)


def _report(check: Callable[[], Verdict], as_json: bool) -> None:
    with working("audit"):
        verdict = check()
    echo(json.dumps(verdict.to_json(), allow_nan=False) if as_json else str(verdict))
    if verdict.exit_status:
        raise click.exceptions.Exit(verdict.exit_status)
