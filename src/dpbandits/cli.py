"""The command line: one command is one library call. Imports are local so that ``--help`` is immediate."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpbandits import __version__
from dpbandits.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from dpbandits.simulation.trace import Trace

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on standard output.")


class Number(click.ParamType):  # type: ignore[type-arg]  # generic in some versions only
    """10000000, 1e7 and 10_000_000 are the same number."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from dpbandits.environments.numbers import number

        return number(param.name if param is not None and param.name else "value", str(value))


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dpbandits")
def app() -> None:
    """Differentially private multi-armed bandits."""


@app.command()
@as_json
def policies(as_json: bool) -> None:
    """List the policies, with what each promises and takes."""
    from dpbandits.policies import lookup

    rows = lookup.overview()
    if as_json:
        click.echo(json.dumps(rows))
        return
    _table(
        ["policy", "paper", "trust", "guarantee", "options"],
        [
            [row["name"], row["paper"], row["trust"], row["guarantee"], ", ".join(row["options"].values())]
            for row in rows
        ],
    )


@app.command()
@click.argument("policy")
@click.option(
    "--arms", required=True, help="0.9,0.8 or bernoulli(0.9)+5*beta(4,1) or @ren2020-mixed or replay(log.csv)."
)
@click.option("--horizon", required=True, type=Number(), help="Rounds of a run.")
@click.option("--epsilon", type=Number(), help="Privacy level, where the policy has one for all.")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="An option of the policy; repeatable.")
@click.option("--levels", help="Levels of the users: constant(1), choice(0,0.2,1,2,100) or normal(1,1).")
@click.option("--runs", default=20, type=Number(), show_default=True)
@click.option("--seed", default=0, type=Number(), show_default=True)
@click.option("--reward-range", metavar="LOW,HIGH", help="Clip rewards to this and map it to [0,1].  [default: 0,1]")
@click.option("--arm-order", default="shuffled", show_default=True, metavar="shuffled|given")
@click.option("--workers", type=Number(), help="Threads.  [default: the cores]")
@click.option("--checkpoints", default=100, type=Number(), show_default=True, help="How many points of the curve.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder for the trace (Parquet), the summary and a figure."
)
@as_json
def simulate(policy: str, as_json: bool, out: Path | None, **given: Any) -> None:
    """Play POLICY on given arms and report its regret."""
    from dpbandits.simulation import Interrupted
    from dpbandits.simulation import simulate as run

    given["options"] = _options(given["options"])
    given["reward_range"] = _range(given["reward_range"])
    stopped = False
    try:
        with _progress(f"{policy}: runs") as progress:
            trace = run(policy, progress=progress, **given)
    except Interrupted as error:
        if error.trace is None:
            raise
        trace, stopped = error.trace, True
        click.echo(f"interrupted: the {trace.runs} finished runs follow", err=True)
    if out is not None:
        _write(trace, out)
    if as_json:
        click.echo(json.dumps(trace.to_json(), allow_nan=False))
    else:
        _summary(trace)
    if stopped:
        raise KeyboardInterrupt


@app.command()
@click.option("--quick", is_flag=True, help="Shorter horizons: a smoke test, not a measurement.")
@as_json
def bench(quick: bool, as_json: bool) -> None:
    """Measure speed and memory against their targets."""
    from dpbandits.bench import measure

    with _progress("measurements") as progress:
        rows = [row._asdict() for row in measure(quick=quick, progress=progress)]
    if as_json:
        click.echo(json.dumps(rows))
        return
    verdicts = {True: "holds", False: "MISSED", None: "not measured"}
    _table(
        ["case", "measured", "target", "verdict"],
        [[row["case"], row["measured"], row["target"], verdicts[row["holds"]]] for row in rows],
    )


def main() -> None:
    """The ``dpbandits`` command."""
    try:
        app.main(standalone_mode=False)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.ClickException as error:
        _fail(error.format_message().replace("\n", " "))
    except (InputError, MissingExtraError) as error:
        _fail(str(error))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (KeyboardInterrupt, click.Abort):
        click.echo("dpbandits: interrupted", err=True)
        sys.stdout.flush()
        os._exit(130)  # compiled code that is still running cannot be stopped otherwise


def _fail(message: str) -> None:
    click.echo(f"dpbandits: {message}", err=True)
    sys.exit(2)


def _options(pairs: tuple[str, ...]) -> dict[str, str]:
    for pair in pairs:
        if "=" not in pair:
            raise InputError(f"option must be name=value, got '{pair}'")
    return dict(tuple(pair.split("=", 1)) for pair in pairs)  # type: ignore[misc]


def _range(text: str | None) -> tuple[float, float] | None:
    from dpbandits.environments.numbers import number

    if text is None:
        return None
    parts = [number("reward-range", part) for part in text.split(",")]
    if len(parts) != 2:
        raise InputError(f"reward-range must be LOW,HIGH, got '{text}'")
    return (parts[0], parts[1])


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on standard error, where somebody looks at it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _table(columns: list[str], rows: list[list[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def _summary(trace: Trace) -> None:
    record = trace.to_json()
    final, promise = record["final"], record["guarantee"]
    error = "" if final["regret_stderr"] is None else f" ± {final['regret_stderr']:.3g} (standard error)"
    click.echo(f"{trace.label} on {trace.arms}: {trace.horizon:,} rounds, {trace.runs} runs, seed {trace.seed}")
    click.echo(f"regret      {final['regret_mean']:.6g}{error}, at most {final['regret_max']:.6g}")
    click.echo(f"best arm    {100 * final['best_arm_fraction']:.2f} % of rounds")
    click.echo(f"guarantee   {_promise(promise)}")
    click.echo(f"time        {trace.seconds:.2f} s")


def _promise(promise: dict[str, Any]) -> str:
    if promise["trust"] == "none":
        return promise["conditions"]
    epsilon = "each user's own epsilon" if promise["epsilon"] is None else f"epsilon {promise['epsilon']:g}"
    delta = f", delta {promise['delta']:.3g}" if promise["delta"] else ""
    return f"{promise['trust']}, {epsilon}{delta} for {promise['unit']}; {promise['conditions']}"


def _write(trace: Trace, out: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    out.mkdir(parents=True, exist_ok=True)
    trace.save(out / "trace.parquet")
    (out / "summary.json").write_text(json.dumps(trace.to_json(), allow_nan=False))
    trace.plot().figure.savefig(out / "regret.png", dpi=150)  # type: ignore[union-attr]
    click.echo(f"written: {out}/trace.parquet, summary.json, regret.png", err=True)
