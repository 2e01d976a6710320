"""The command that checks promises: audit."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from dpbandits.cli.shared import Number, app, named_options
from dpbandits.errors import InputError

if TYPE_CHECKING:
    from dpbandits.audit.verdict import Verdict


class _Audit(click.Group):
    """A group in which ``module:function`` is a command too."""

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        command = super().get_command(ctx, name)
        if command is None and ":" in name:
            return click.Command(name, params=_shared_options(), callback=_own(name), help=f"Audit {name}.")
        return command


@app.group(cls=_Audit)
def audit() -> None:
    """Check a promise of privacy: prove it at small sizes, or try to refute it.

    \b
    audit policy NAME       a policy of the package
    audit curator NAME      a curator of one reward
    audit MODULE:FUNCTION   your own: a function that makes a policy (it takes arms), or a curator with respond(reward)

    Exit status 0: proved, or not refuted. 1: violated, with a witness.
    """


def _shared_options() -> list[click.Parameter]:
    return [
        click.Option(["--epsilon"], help="The level to make it with."),
        click.Option(["--option", "options"], multiple=True, metavar="NAME=VALUE", help="An option; repeatable."),
        click.Option(["--claim"], type=Number(), help="The epsilon to check.  [default: its own promise]"),
        click.Option(["--delta"], type=Number(), help="The delta to check.  [default: its own promise]"),
        click.Option(["--exact"], is_flag=True, help="Compute the worst case, at the strongest level that applies."),
        click.Option(["--trials"], type=Number(), help="Play the guessing game so often.  [default: 200000]"),
        click.Option(["--view"], metavar="actions|released|response|bytes", help="What the adversary sees."),
        click.Option(["--alpha"], type=Number(), default="0.001", show_default=True, help="Error of the lower bound."),
        click.Option(["--horizon"], type=Number(), help="Rounds.  [default: 8 exact, 30 otherwise]"),
        click.Option(["--seed"], type=Number(), default="0", show_default=True),
        click.Option(["--anytime"], is_flag=True, help="Look as it goes, and stop when the claim is refuted."),
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
    """Check the promise of the policy NAME, for two arms."""
    _report(_policy(name, **_read(given)), given["as_json"])


@audit.command()
@click.argument("name")
@_audited
def curator(name: str, **given: Any) -> None:
    """Check the promise of the curator NAME.

    Exact: randomised-response, bernoulli, laplace, sigmoid-bernoulli, sigmoid-laplace. Of simulations:
    simulated-bernoulli, simulated-laplace.
    """
    from dpbandits.audit import devices

    read = _read(given)
    if given["epsilon"] is None:
        raise InputError(f"epsilon is required by {name}, got none")
    if given["options"] or read["horizon"] is not None:
        raise InputError(f"option and horizon are not parameters of a curator, got them for {name}")
    if read["exact"]:
        claim = None if read["claim"] is None else float(read["claim"])
        _report(devices.verify_device(name, given["epsilon"], claim), given["as_json"])
        return
    made = devices.device(name, given["epsilon"])
    _report(_device(made, {**read, "claim": read["claim"] or read["epsilon"]}), given["as_json"])


def _own(target: str) -> Callable[..., None]:
    def command(**given: Any) -> None:
        from dpbandits.audit import devices

        read = _read(given)
        function = devices.own(target)
        if "arms" in inspect.signature(function).parameters:
            _report(_policy(function, **read), given["as_json"])
            return
        if read["exact"]:
            raise InputError(
                f"exact needs a policy; {target} makes a curator, which can only be attacked: use --trials"
            )
        made = devices.own_device(function, target, read["epsilon"])
        claim = read["claim"] or read["epsilon"]
        if claim is None:
            raise InputError(f"claim is required by {target}, got none")
        _report(_device(made, {**read, "claim": claim}), given["as_json"])

    return command


def _read(given: dict[str, Any]) -> dict[str, Any]:
    """The options, checked as far as they can be before anything is made."""
    from dpbandits.environments.numbers import number
    from dpbandits.errors import at_least, fraction, positive

    read = {name: given[name] for name in ("claim", "delta", "exact", "trials", "view", "horizon", "anytime")}
    read["options"] = named_options(given["options"])
    read["alpha"], read["seed"] = fraction("alpha", given["alpha"]), at_least("seed", given["seed"], 0)
    read["epsilon"] = None if given["epsilon"] is None else _level(given["epsilon"], number)
    if read["claim"] is not None:
        positive("claim", read["claim"])
    if read["exact"] and read["trials"] is not None:
        raise InputError(f"exact and trials exclude each other, got both, trials {read['trials']:g}")
    if read["horizon"] is not None:
        read["horizon"] = at_least("horizon", read["horizon"], 2)
    return read


def _level(text: str, number: Callable[[str, str], float]) -> float:
    """A level as a number; curators may also have it as a fraction, such as 1/3."""
    if "/" in text:
        from dpbandits.exact.rational import rational

        return float(rational("epsilon", text))
    return number("epsilon", text)


def _policy(name: Any, *, epsilon: float | None, options: dict[str, Any], exact: bool, **read: Any) -> Verdict:
    from dpbandits.audit import attack
    from dpbandits.audit import exact as verifier

    rounds = read["horizon"] or (verifier.HORIZON if exact else attack.HORIZON)
    made, note = verifier.subject(name, epsilon=epsilon, horizon=rounds, options=options, short=exact)
    if exact:
        keywords = {key: read[key] for key in ("horizon", "claim", "delta", "view")}
        return verifier.verify(made, note=note, **keywords)
    claim, delta = verifier.claim_of(made, read.pop("claim"), read.pop("delta"))
    trials = read.pop("trials") or attack.TRIALS
    return attack.attack_policy(made, claim=claim, delta=delta, trials=trials, **read)


def _device(made: Any, read: dict[str, Any]) -> Verdict:
    from dpbandits.audit import attack

    return attack.attack_device(
        made,
        claim=read["claim"],
        delta=read["delta"] or 0.0,
        view=read["view"] or "response",
        trials=read["trials"] or attack.TRIALS,
        alpha=read["alpha"],
        seed=read["seed"],
        anytime=read["anytime"],
    )


def _report(verdict: Verdict, as_json: bool) -> None:
    click.echo(json.dumps(verdict.to_json(), allow_nan=False) if as_json else str(verdict))
    if verdict.violated:
        sys.exit(1)
