"""The core's commands: policies, simulate, bench, cache."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpbandits.cli.shared import Number, app, as_json, named_options, print_table, progress_bar
from dpbandits.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from dpbandits.simulation.trace import Trace


@app.command()
@as_json
def policies(as_json: bool) -> None:
    """List the policies, with what each promises and takes."""
    from dpbandits.policies import lookup

    rows = lookup.overview()
    if as_json:
        click.echo(json.dumps(rows))
        return
    print_table(
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

    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for module in ("matplotlib", "pandas", "pyarrow"):  # before the work, not after it
            if importlib.util.find_spec(module) is None:
                raise MissingExtraError(module, "plot")
    given["options"] = named_options(given["options"])
    given["reward_range"] = _range(given["reward_range"])
    stopped = False
    try:
        with progress_bar(f"{policy}: runs") as progress:
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

    with progress_bar("measurements") as progress:
        rows = [row._asdict() for row in measure(quick=quick, progress=progress)]
    if as_json:
        click.echo(json.dumps(rows))
        return
    verdicts = {True: "holds", False: "MISSED", None: "not measured"}
    print_table(
        ["case", "measured", "target", "verdict"],
        [[row["case"], row["measured"], row["target"], verdicts[row["holds"]]] for row in rows],
    )


@app.command()
@click.option("--clear", is_flag=True, help="Remove it; it will be compiled again when it is needed.")
@as_json
def cache(clear: bool, as_json: bool) -> None:
    """Show where compiled code is kept, and how much of it there is.

    The folder is dpbandits in the user's cache folder, or what DPBANDITS_CACHE says.
    """
    from dpbandits.simulation.store import Store, folder

    store = Store(folder())
    removed = store.clear() if clear else None
    held = store.contents()
    if as_json:
        record = {"folder": str(store.path), "entries": held.entries, "bytes": held.bytes}
        click.echo(json.dumps(record | ({} if removed is None else {"removed": removed.entries})))
        return
    if removed is not None:
        click.echo(f"removed     {removed.entries} entries, {removed.bytes / 1e6:.1f} MB")
    click.echo(f"folder      {store.path}")
    click.echo(f"holds       {held.entries} compiled loops, {held.bytes / 1e6:.1f} MB")


def _range(text: str | None) -> tuple[float, float] | None:
    from dpbandits.environments.numbers import number

    if text is None:
        return None
    parts = [number("reward-range", part) for part in text.split(",")]
    if len(parts) != 2:
        raise InputError(f"reward-range must be LOW,HIGH, got '{text}'")
    return (parts[0], parts[1])


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
    trace.save(out / "trace.parquet")
    (out / "summary.json").write_text(json.dumps(trace.to_json(), allow_nan=False))
    trace.plot().figure.savefig(out / "regret.png", dpi=150)  # type: ignore[union-attr]
    click.echo(f"written: {out}/trace.parquet, summary.json, regret.png", err=True)
